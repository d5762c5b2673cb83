"""The binary search of `ConsumeQueue#correctMinOffset` since 5.0, which units out of order lead astray."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rmqtool.scan.units import UNIT

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Ints = npt.NDArray[np.int64]


class NegativePositionError(Exception):
    """Correcting the minimum throws `IllegalArgumentException`: an empty last file behind a full one."""


def first_at_or_behind(offsets: Ints, floor: int) -> int | None:
    """Number of the unit that the search settles on, None when it finds none. floor: the log's first byte."""
    low, high = 0, (len(offsets) - 1) * UNIT.itemsize
    while high - low > UNIT.itemsize:
        middle = (low + high) // 2 // UNIT.itemsize * UNIT.itemsize
        value = int(offsets[middle // UNIT.itemsize])
        if value > floor:
            high = middle
        elif value == floor:
            low = high = middle
        else:
            low = middle
    for place in range(low, high + 1, UNIT.itemsize):
        if int(offsets[place // UNIT.itemsize]) >= floor:
            return place // UNIT.itemsize
    return None
