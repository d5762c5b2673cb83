"""Records that have nothing to tell, by their sums: what is made of a run without its rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from rmqtool.scan.fields import ROW_WIDTH, STATUS_WIDTH, Check, Sum

if TYPE_CHECKING:
    import numpy.typing as npt

    from rmqtool.scan.kernel_types import Kernels
    from rmqtool.scan.lanes import Placed, StretchedLanes

BLOCK = 128
"""records that are checked before they are summed up: their rows stay in the nearest cache"""

MOST_BYTES = 32 << 20
"""bytes that are checked before somebody can say that it is enough"""

_LEAST = 65
"""records of a run: what is fewer is looked at one by one"""


@dataclass(frozen=True, slots=True)
class Sound:
    """A run of records by stretches of neighbouring queue offsets, and its sums (`fields.Sum`)."""

    stretches: Placed
    records: int
    start: int
    end: int
    first_time: int
    last_time: int
    keyed: int
    keyed_start: int
    keyed_end: int


class SoundRuns:
    """Takes the records of one segment that have nothing to tell, up to the first that has.

    most: milliseconds by which a store timestamp may differ from the one before.
    """

    def __init__(self, kernels: Kernels, lanes: StretchedLanes, checks: Check, most: int) -> None:
        self._kernels = kernels
        self._lanes = lanes
        self._checks, self._most = int(checks), most
        self._rows = np.empty((BLOCK, ROW_WIDTH), np.int64)
        self._status = np.zeros(STATUS_WIDTH, np.int64)
        self._keyed = np.zeros(3, np.int64)
        self._sums = np.zeros(len(Sum), np.int64)

    def __call__(
        self, window: npt.NDArray[np.uint8], start: int, origin: int, place: tuple[int, int, int]
    ) -> Sound | None:
        """From window position `start` on; place: see `kernels.sound.sound_stretches`. None for too few."""
        self._kernels.sound_stretches(
            window,
            start,
            origin,
            np.array(place),
            self._checks,
            self._most,
            self._rows,
            self._status,
            *self._lanes.state(),
            self._keyed,
            self._sums,
        )
        stretches = self._lanes.filled()
        sums = self._sums.tolist()
        return Sound(stretches, *sums) if sums[Sum.RECORDS] >= _LEAST else None
