"""The size of the segments that the records come from."""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd
from typing import TYPE_CHECKING

import numpy as np

from formats.commitlog import END_FILE_MIN_BLANK_LENGTH
from rmqtool.repair.salvage.tables import Found, Run

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import numpy.typing as npt

    from rmqtool.repair.salvage.sources import Source

DEFAULT_SIZE = 1 << 30
"""`mappedFileSizeCommitLog`"""


@dataclass(frozen=True, slots=True)
class SegmentSize:
    """Bytes, and where the number comes from: `given`, `blanks`, `files` or `default`."""

    size: int
    source: str


def infer(found: Found, files: Sequence[Source]) -> SegmentSize:
    """The size by the blanks behind runs, then by the files, else the broker's default.

    A blank tells where its segment ends; all segment ends are multiples of the size. A file whose records lie
    where a segment of the file's length would have them tells it, too. A size that runs would cross is wrong.
    """
    for source, size in _candidates(found, files):
        if size > 0 and _fits(found, size).mean() > _MOST:
            return SegmentSize(size, source)
    return SegmentSize(DEFAULT_SIZE, "default")


_PAGE = 4096

_MOST = 0.9
"""share of the runs that a size must suit: some may come from elsewhere"""


def _candidates(found: Found, files: Sequence[Source]) -> Iterator[tuple[str, int]]:
    runs = found.runs
    if len(runs) == 0:
        return
    rolled = runs[(runs[:, Run.ROLLS] >= 0) & (runs[:, Run.HEADER] == 0)]
    ends = sorted({int(end) for end in rolled[:, Run.ROLLS]})
    sizes = np.array([file.size for file in files], np.int64)[runs[:, Run.SOURCE]]
    shift = runs[:, Run.OFFSET] - runs[:, Run.POSITION]
    whole = (sizes > 0) & (shift >= 0) & (shift % np.maximum(sizes, 1) == 0)
    # a fragment from the start of a log has its records at their offsets, too
    whole &= (shift > 0) | (sizes % _PAGE == 0)
    by_size: dict[int, int] = {}
    for size, length in zip(sizes[whole].tolist(), runs[whole, Run.LENGTH].tolist(), strict=True):
        by_size[size] = by_size.get(size, 0) + length
    voted = sorted(by_size, key=lambda size: by_size[size], reverse=True)
    if ends:
        common = gcd(*ends)
        # a file with an end that is a multiple says more than ends that may share a larger factor
        yield from (("files", size) for size in voted if common % size == 0)
        if common % DEFAULT_SIZE == 0:
            yield "default", DEFAULT_SIZE
        yield "blanks", common
    yield from (("files", size) for size in voted)


def _fits(found: Found, size: int) -> npt.NDArray[np.bool_]:
    """Which runs lie within one segment, with room for the blank behind them."""
    last = found.ends + END_FILE_MIN_BLANK_LENGTH - 1
    fits: npt.NDArray[np.bool_] = found.runs[:, Run.OFFSET] // size == last // size
    return fits | (found.runs[:, Run.HEADER] > 0)


def crossing(found: Found, size: int) -> npt.NDArray[np.int64]:
    """Numbers of the runs with a record that would reach over the end of a segment of this size."""
    return np.flatnonzero(~_fits(found, size))
