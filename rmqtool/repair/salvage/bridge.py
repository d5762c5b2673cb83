"""What lies between the runs: gaps, cut at segment borders, and what they are filled with."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from heapq import heappop, heappush
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from formats.commitlog import END_FILE_MIN_BLANK_LENGTH
from rmqtool.repair.filler import SMALLEST_FILLER
from rmqtool.repair.salvage.tables import Run

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from rmqtool.repair.salvage.queues import Hole
    from rmqtool.repair.salvage.tables import Found

MISSING_SEGMENTS = 4096
"""whole segments that are bridged at most between two runs: each costs a file"""


@dataclass(frozen=True, slots=True)
class Allocation:
    """Placeholders of `size` bytes for queue offsets `[first, end)` of a partition; one covers `step`."""

    partition: int
    first: int
    end: int
    size: int
    step: int
    time: int

    @property
    def count(self) -> int:
        """Records."""
        return -(-(self.end - self.first) // self.step)


@dataclass(slots=True)
class Gap:
    """Physical offsets `[start, end)` of one segment without a record. rolls: it ends with the segment."""

    start: int
    end: int
    rolls: bool
    time: int
    allocated: list[Allocation] = field(default_factory=list)

    @property
    def room(self) -> int:
        """Bytes that are left for placeholders."""
        return self.end - self.start - self.taken - (END_FILE_MIN_BLANK_LENGTH if self.rolls else 0)

    @property
    def taken(self) -> int:
        """Bytes of its placeholders."""
        return sum(one.count * one.size for one in self.allocated)


def gaps(found: Found, size: int) -> Iterator[Gap]:
    """Gaps of runs that are sorted and overlap nowhere, from the start of the first run's segment on."""
    if len(found.runs) == 0:
        return
    offsets = found.runs[:, Run.OFFSET]
    first = int(offsets[0]) // size * size
    ends = np.concatenate([[first], found.ends])
    times = np.concatenate([found.runs[:1, Run.FIRST_TIME], found.runs[:, Run.LAST_TIME]])
    for number in np.flatnonzero(offsets > ends[:-1]).tolist():
        at, end = int(ends[number]), int(offsets[number])
        while at < end:
            border = (at // size + 1) * size
            stop = min(border, end)
            yield Gap(at, stop, stop == border, int(times[number]))
            at = stop


def is_narrow(gap: Gap, smallest: int) -> bool:
    """Whether no record fits into a gap that must be filled by records."""
    return not gap.rolls and gap.end - gap.start < smallest


def islands(found: Found, size: int) -> list[tuple[int, int]]:
    """Ranges of run numbers with no more than `MISSING_SEGMENTS` missing anywhere inside."""
    segments = found.runs[:, Run.OFFSET] // size
    lasts = (found.ends - 1) // size
    far = np.flatnonzero(segments[1:] - lasts[:-1] > MISSING_SEGMENTS) + 1
    borders = [0, *far.tolist(), len(segments)]
    return list(pairwise(borders))


def allocate(
    open_gaps: Sequence[Gap], missing: Sequence[Hole], sizes: Callable[[int], tuple[int, int, int]]
) -> list[Hole]:
    """Gives every hole its placeholders, in the gaps that lie between its neighbours; what fits nowhere.

    sizes: for a partition the least and the wanted bytes of a placeholder, and the offsets that one covers.
    Gaps go first to the hole that ends first, which serves all where that is possible.
    """
    waiting = sorted(missing, key=lambda hole: hole.start, reverse=True)
    active: list[tuple[int, int, Hole]] = []
    unmet: list[Hole] = []
    for gap in open_gaps:
        while waiting and waiting[-1].start <= gap.start:
            hole = waiting.pop()
            heappush(active, (hole.stop, len(waiting), hole))
        while active and active[0][0] < gap.end:
            unmet.append(heappop(active)[2])
        _fill(gap, active, sizes)
    return [*unmet, *(entry[2] for entry in active), *waiting]


def _fill(
    gap: Gap, active: list[tuple[int, int, Hole]], sizes: Callable[[int], tuple[int, int, int]]
) -> None:
    room = gap.room
    later: list[tuple[int, int, Hole]] = []
    while active:
        entry = heappop(active)
        hole = entry[2]
        size, _, step = sizes(hole.partition)
        count = min(-(-(hole.end - hole.first) // step), room // size)
        if count == 0:
            later.append(entry)
            if room < SMALLEST_FILLER:
                break
            continue
        end = min(hole.first + count * step, hole.end)
        gap.allocated.append(Allocation(hole.partition, hole.first, end, size, step, hole.time))
        room -= count * size
        hole.first = end
        if hole.first < hole.end:
            later.append(entry)
    for entry in later:
        heappush(active, entry)
    wider = [replace(one, size=sizes(one.partition)[1]) for one in gap.allocated]
    if sum(one.count * one.size for one in wider) <= gap.room + gap.taken:
        gap.allocated = wider
