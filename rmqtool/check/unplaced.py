"""Records that were not found at their slot, kept as runs: memory goes with their number of gaps."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    Ints = npt.NDArray[np.int64]

MOST_RUNS = 4096
"""runs of one queue that are reported one by one; records beyond are counted"""


@dataclass(slots=True)
class Behind:
    """Records that their queue has not come to, or that have no queue at all."""

    count: int = 0
    offset: int = 0
    """of the first, in log order"""
    slot: int = 0
    lowest_offset: int = 0

    def add(self, offsets: Ints, slots: Ints, count: int | None = None) -> None:
        """Takes more of them, in log order. count: how many, where these are the first of stretches."""
        if not len(offsets):
            return
        lowest = int(offsets.min())
        if not self.count:
            self.offset, self.slot, self.lowest_offset = int(offsets[0]), int(slots[0]), lowest
        self.count += len(offsets) if count is None else count
        self.lowest_offset = min(self.lowest_offset, lowest)


@dataclass(slots=True)
class Run:
    """Records with neighbouring queue offsets: the first, and how many."""

    slot: int
    offset: int
    count: int


@dataclass(slots=True)
class Unplaced:
    """Records of one topic and queue without a unit: behind the end of the queue, or in it (`runs`)."""

    behind: Behind = field(default_factory=Behind)
    runs: list[Run] = field(default_factory=list)
    more: int = 0
    """records in runs for which there was no more room"""

    def add_inside(self, offsets: Ints, slots: Ints) -> None:
        """Takes records whose slots lie in the queue, in log order."""
        if not len(slots):
            return
        borders = np.flatnonzero(np.diff(slots) != 1) + 1
        starts = np.concatenate(([0], borders))
        lengths = np.diff(np.concatenate((starts, [len(slots)])))
        last = self.runs[-1] if self.runs else None
        if last is not None and not self.more and last.slot + last.count == int(slots[0]):
            last.count += int(lengths[0])
            starts, lengths = starts[1:], lengths[1:]
        room = MOST_RUNS - len(self.runs)
        for start, length in zip(starts[:room].tolist(), lengths[:room].tolist(), strict=True):
            self.runs.append(Run(int(slots[start]), int(offsets[start]), length))
        self.more += int(lengths[room:].sum())
