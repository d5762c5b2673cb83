"""Records of a log that lie near each other, to be read together."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    Ints = npt.NDArray[np.int64]


def pieces(begins: Ints, ends: Ints, apart: int, most: int) -> Iterator[slice]:
    """Parts of places [begin, end) (bytes), each of which is read with one window.

    A part ends in front of a gap of more than `apart` bytes, of a place that begins in front of the end of
    the last one, and where it would have more than `most` bytes, unless one place alone has them.
    """
    borders = (begins[1:] - ends[:-1] > apart) | (begins[1:] < ends[:-1])
    for start, stop in pairwise([0, *(np.flatnonzero(borders) + 1).tolist(), len(begins)]):
        at = start
        while at < stop:
            until = int(np.searchsorted(ends[at:stop], int(begins[at]) + most, side="right")) + at
            yield slice(at, at := max(until, at + 1))
