"""Queues whose units lie at other queue offsets than their records state: light ones, and those that skip.

A broker appends a unit of a further queue behind the last one, whatever the record states
(`ConsumeQueue#putMessagePositionInfo`). Since 5.2 prepared and rolled back records take an offset there too,
and get no unit (`LmqDispatch#updateLmqOffsets`): up to the next start, which counts units, all records behind
them state more than that. What consumers know is the place of the unit, so it counts.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from rmqtool.check.queue_files import OpenFiles
from rmqtool.repair.keep.frames import queues_there
from rmqtool.scan.multi import MultiDispatch
from rmqtool.scan.units import UNIT, pre_blanks
from rmqtool.store.access import Access

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    import numpy.typing as npt

    from rmqtool.check.queue_files import QueueUnits
    from rmqtool.repair.keep.model import QueueKey, Run, Survey
    from rmqtool.repair.keep.order import Order
    from rmqtool.repair.keep.room import Room
    from rmqtool.repair.keep.unlisted import Unlisted
    from rmqtool.store.layout import Store

    Ints = npt.NDArray[np.int64]


class Skip(NamedTuple):
    """Queue offsets [first, last] that the record at the physical offset `start` skips.

    certain: other records prove that those of the queue state more than their places.
    """

    first: int
    last: int
    start: int
    certain: bool


@dataclass(frozen=True)
class Ahead:
    """By how much records state more than the place of their unit.

    by_queue: physical offsets, ascending, and the difference from each of them on. blank: physical offsets of
    records whose units lie behind blank ones, for which the log has no room, and how many these are.
    unproven: by queue the physical offset from which on nothing tells places: records may state more than
    these, and nothing says how many of those that they skip at a hole, or in front of the log, had units.
    skipped: by queue where that may be, until `set_unproven` gets what was there.
    """

    by_queue: dict[QueueKey, tuple[list[int], list[int]]] = field(default_factory=dict)
    blank: dict[QueueKey, dict[int, int]] = field(default_factory=dict)
    skipped: dict[QueueKey, list[Skip]] = field(default_factory=dict)
    unproven: dict[QueueKey, int] = field(default_factory=dict)

    def at(self, key: QueueKey, offset: int) -> int:
        """Of a record of the queue at a physical offset."""
        starts, found = self.by_queue.get(key, ((), ()))
        return found[max(bisect_right(starts, offset) - 1, 0)] if found else 0

    def of(self, key: QueueKey, offsets: Ints) -> Ints:
        """Of many records."""
        starts, found = self.by_queue[key]
        at = np.maximum(np.searchsorted(np.array(starts, np.int64), offsets, "right") - 1, 0)
        return np.array(found, np.int64)[at]

    def set_unproven(self, proven: Mapping[QueueKey, Collection[int]]) -> None:
        """What is unproven. proven: positions of each queue that units or records in holes had."""
        for key, skipped in self.skipped.items():
            there = sorted(proven.get(key, ()))
            for one in skipped:
                known = bisect_right(there, one.last) - bisect_left(there, one.first)
                if one.certain or known <= one.last - one.first:
                    self.unproven[key] = one.start
                    break

    def tell(self, key: QueueKey, offset: int, by: int) -> None:
        """What the unit of a record says that is in no run, of a queue whose units count."""
        starts, found = self.by_queue.get(key, ([], []))
        at = bisect_right(starts, offset)
        if starts and by >= 0 and by != self.at(key, offset):
            starts.insert(at, offset)
            found.insert(at, by)


def by_units(
    store: Store, survey: Survey, room: Room, rule: MultiDispatch, unlisted: Unlisted | None = None
) -> Ahead:
    """Where units tell so, `Survey.light` becomes what they count. room: of the survey's holes.

    rule: of the newest release that the store may be of. unlisted: looks at the queues.
    """
    found = Ahead()
    stated: dict[QueueKey, tuple[list[Run], list[int | None]]] = {
        key: (runs, [None] * len(runs)) for key, runs in survey.light.items() if key not in survey.runs
    }
    ends: dict[QueueKey, int] = {}
    files = OpenFiles(Access("pread"))
    try:
        for key, queue in queues_there(store, files):
            runs = [] if key in survey.runs or queue.batch else survey.light.get(key, [])
            if not runs or not queue.files:
                continue
            reported = _stated_ahead(queue, runs)
            stated[key] = runs, reported
            if unlisted is not None:
                unlisted.look(key, queue, runs, reported)
            ends[key] = _end(queue)
            without = _between(runs, survey.uncounted.get(key, ()))
            ahead = _ahead(reported, runs, room, without)
            if ahead is None:
                stated[key] = runs, [None] * len(runs)
            if blank := _blank(reported, runs, room):
                found.blank[key] = blank
            if ahead is not None and (any(ahead) or without[-1]):
                found.by_queue[key] = _steps(runs, ahead, without)
                survey.light[key] = [_moved(one, -by) for one, by in zip(runs, ahead, strict=True)]
    finally:
        files.close()
    begins = bool(survey.segments) and survey.segments[0].base == 0
    counts_all = rule is MultiDispatch.USER_TOPICS  # and came with the releases that count prepared ones
    for key, (runs, reported) in stated.items():
        skips = _skips(runs, room, ends.get(key, -1), begins=begins)
        explained = [[], *_between(runs, survey.uncounted.get(key, ()))]
        certain = False in skips
        if counts_all or certain:
            behind = max((number for number, by in enumerate(reported) if by is not None), default=-1)
            lasts = [-1 if begins else ends.get(key, -1), *(run.last for run in runs)]
            found.skipped[key] = [
                Skip(last + 1, run.first - 1, run.start, certain)
                for number, (last, run, skips_at_hole) in enumerate(zip(lasts, runs, skips, strict=False))
                if number > behind and skips_at_hole and run.first - last - 1 > len(explained[number])
            ]
    return found


def in_skipping(store: Store, order: Order) -> Ahead:
    """By how much records of queues that skip queue offsets state more than the places of their entries.

    Those stay: a broker appends an entry behind the last one, whatever the record states. So places are known
    of entries that are missing, too.
    """
    found = Ahead()
    skipping = {key: order.chosen[key] for key in sorted(order.skipping)}
    reported: dict[QueueKey, list[int | None]] = {key: [None] * len(runs) for key, runs in skipping.items()}
    files = OpenFiles(Access("pread"))
    try:
        for key, queue in queues_there(store, files) if skipping else ():
            if queue.batch:
                reported.pop(key, None)
            elif key in reported:
                reported[key] = _stated_ahead(queue, skipping[key])
    finally:
        files.close()
    for key, known in reported.items():
        runs = skipping[key]
        found.by_queue[key] = [run.start for run in runs], _appended(runs, known, order.holes)
    return found


def _appended(runs: Sequence[Run], reported: Sequence[int | None], holes: Room) -> list[int]:
    """By how much each run states more, where entries of runs that have none followed each other.

    Where no run has one, the first lies where it states. What holes have room for may have had entries.
    """
    steps = [max(b.first - a.last - 1 - holes.between(a.end, b.start), 0) for a, b in pairwise(runs)]
    known = next((number for number, by in enumerate(reported) if by is not None), 0)
    ahead = [by or 0 for by in reported]
    for number in range(known - 1, -1, -1):
        ahead[number] = max(ahead[number + 1] - steps[number], 0)
    for number in range(known + 1, len(runs)):
        if reported[number] is None:
            ahead[number] = ahead[number - 1] + steps[number - 1]
    return ahead


def blanks_between(ahead: Ahead, key: QueueKey, runs: Sequence[Run]) -> int | None:
    """How many places between the entries of runs no run has; None where entries cannot lie so."""
    placed = [_moved(run, -ahead.at(key, run.start)) for run in runs]
    between = [b.first - a.last - 1 for a, b in pairwise(placed)]
    return sum(between) if placed[0].first >= 0 and min(between, default=0) >= 0 else None


def _between(runs: Sequence[Run], uncounted: Sequence[tuple[int, int]]) -> list[list[int]]:
    """Behind each run, where records begin that took a position in front of the next run without a unit."""
    found: list[list[int]] = []
    for run, behind in zip(runs, [*runs[1:], None], strict=True):
        at, last = bisect_left(uncounted, (run.end,)), run.last
        found.append([])
        for start, slot in uncounted[at:]:
            if behind is not None and start >= behind.start:
                break
            if last < slot and (behind is None or slot < behind.first):
                found[-1].append(start)
                last = slot
    return found


def _steps(
    runs: Sequence[Run], ahead: Sequence[int], without: Sequence[Sequence[int]]
) -> tuple[list[int], list[int]]:
    """Where records begin to state more, and by how much: at runs, and at those between that have no unit."""
    starts: list[int] = []
    found: list[int] = []
    for run, by, between, following in zip(runs, ahead, without, [*ahead[1:], None], strict=True):
        room = len(between) if following is None else following - by
        inside = between if len(between) <= room else []
        starts += [run.start, *inside]
        found += range(by, by + len(inside) + 1)
    return starts, found


def _moved(run: Run, by: int) -> Run:
    return replace(run, first=run.first + by, last=run.last + by)


def _blank(reported: Sequence[int | None], runs: Sequence[Run], room: Room) -> dict[int, int]:
    """Positions between units of neighbouring runs for which the log has no room, by the run behind them."""
    found: dict[int, int] = {}
    for (a, b), (left, right) in zip(pairwise(runs), pairwise(reported), strict=True):
        if left is None or right is None or room.between(a.end, b.start):
            continue
        count = (b.first - right) - (a.last - left) - 1
        if count > 0:
            found[b.start] = count
    return found


def _end(queue: QueueUnits) -> int:
    """Place of the last unit, -1 where there is none."""
    for number in reversed(range(len(queue.files))):
        found = -1
        for low, units in queue.parts(number):
            there = (units["size"] > 0) & ~pre_blanks(units)
            if there.any():
                found = queue.first_slot(number) + low + int(np.flatnonzero(there)[-1])
        if found >= 0:
            return found
    return -1


def _skips(runs: Sequence[Run], room: Room, end: int, *, begins: bool) -> list[bool | None]:
    """Whether a run skips offsets at a hole, or without one, which proves that records state too much.

    None where it skips none. begins: the log has its first byte; of one that begins later nobody knows how
    many records it had in front. end: place of the last unit.
    """
    ends = [(0, -1 if begins else end) for _ in runs[:1]]
    ends += [(run.end, run.last) for run in runs[:-1]]
    skips = [
        None if run.first <= last + 1 else room.between(behind, run.start) > 0
        for (behind, last), run in zip(ends, runs, strict=True)
    ]
    if skips[0] is False and not begins:
        skips[0] = True
    return skips


def _ahead(
    reported: Sequence[int | None], runs: Sequence[Run], room: Room, without: Sequence[Sequence[int]]
) -> list[int] | None:
    """By how much each run states more; None where units say nothing, or nothing that can be.

    without: behind each run, records that are there and took positions without a unit.
    """
    known = next((number for number, by in enumerate(reported) if by is not None), None)
    if known is None:
        return None
    # offsets that no hole has room for were taken by records without a unit
    steps = [
        len(there) if room.between(a.end, b.start) else b.first - a.last - 1
        for (a, b), there in zip(pairwise(runs), without, strict=False)
    ]
    ahead = [by or 0 for by in reported]
    for number in range(known - 1, -1, -1):
        ahead[number] = ahead[number + 1] - steps[number]
    for number in range(known + 1, len(runs)):
        if reported[number] is None:
            ahead[number] = ahead[number - 1] + steps[number - 1]
    moved = [_moved(run, -by) for run, by in zip(runs, ahead, strict=True)]
    if min(ahead) < 0 or moved[0].first < 0 or any(a.last >= b.first for a, b in pairwise(moved)):
        return None
    return ahead


def _stated_ahead(queue: QueueUnits, runs: Sequence[Run]) -> list[int | None]:
    """What the units of each run's first and last record say, if they agree as far as they are there."""
    slots = _slots(queue, runs)
    reported: list[int | None] = []
    absent: list[tuple[int, int]] = []
    for number, run in enumerate(runs):
        ends = {run.start: run.first, run.last_start: run.last}
        ways = {stated - slots[at] for at, stated in ends.items() if at in slots}
        reported.append(ways.pop() if len(ways) == 1 else None)
        if (by := reported[-1]) is not None and _of_another_file(queue, run, by):
            reported[-1] = 0
        elif by is not None:
            absent += [(number, stated - by) for at, stated in ends.items() if at not in slots]
    if absent:
        there = queue.gather(np.array([slot for _, slot in absent], np.int64))[0] >= 0
        for (number, _), others in zip(absent, there.tolist(), strict=True):
            if others:
                reported[number] = None
    return reported


def _of_another_file(queue: QueueUnits, run: Run, by: int) -> bool:
    """Whether a run's units lie whole files away from what it states, where none are: in a copied file."""
    of_a_file = queue.files[0].size // UNIT.itemsize
    if not by or not of_a_file or by % of_a_file:
        return False
    return bool((queue.gather(np.array([run.first, run.last], np.int64))[0] < 0).all())


def _slots(queue: QueueUnits, runs: Sequence[Run]) -> dict[int, int]:
    """Places of the units of first and last records, by physical offset; of no record with two units."""
    sizes = {run.start: run.first_end - run.start for run in runs}
    sizes |= {run.last_start: run.end - run.last_start for run in runs}
    wanted = np.array(sorted(sizes), np.int64)
    found: dict[int, int] = {}
    twice: set[int] = set()
    for number in range(len(queue.files)):
        for low, units in queue.parts(number):
            offsets = units["physical_offset"].astype(np.int64)
            for k in np.flatnonzero(np.isin(offsets, wanted)).tolist():
                offset = int(offsets[k])
                if int(units["size"][k]) == sizes[offset]:
                    twice |= {offset} & found.keys()
                    found[offset] = queue.first_slot(number) + low + k
    return {offset: slot for offset, slot in found.items() if offset not in twice}
