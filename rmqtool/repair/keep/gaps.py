"""Queue offsets that queues miss: between the records that are in order, and in front of the first one."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from rmqtool.repair.keep.room import Missing, Room

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from rmqtool.repair.keep.model import QueueKey, Run, Survey


def gap_in_front(runs: Sequence[Run], begin: int) -> Missing | None:
    """What is missing in front of the first run, where the log begins with physical offset 0: [0, first)."""
    if begin or not runs or not runs[0].first:
        return None
    return Missing(runs[0].key, 0, runs[0].first - 1, begin, runs[0].start)


def gaps_between(runs: Sequence[Run]) -> Iterator[Missing]:
    """What is missing between runs of one queue: between 3 4 and 7 it is [5, 7), from the end of 4 to 7."""
    for left, right in pairwise(runs):
        if right.first != left.last + 1:
            yield Missing(left.key, left.last + 1, right.first - 1, left.end, right.start)


def light_missing(
    survey: Survey, blank: Mapping[QueueKey, Mapping[int, int]]
) -> tuple[dict[QueueKey, list[Missing]], set[QueueKey]]:
    """Positions that queues of other topics' records miss where the log has a hole, by queue.

    And queues whose records count differently from their units: those that miss positions that no hole has
    room for (5.x names queues of other names than LMQ's, and then gives none of that record's positions),
    those whose positions do not ascend, and those that have records of their own. blank: of each queue the
    physical offsets of records that lie behind blank units, which stay.
    """
    room = Room(survey.holes, ())
    found: dict[QueueKey, list[Missing]] = {}
    apart: set[QueueKey] = set()
    for key, runs in survey.light.items():
        front = gap_in_front(runs, survey.segments[0].base)
        behind_blank = blank.get(key, ())
        gaps = [] if front is None else [front]
        gaps += [one for one in gaps_between(runs) if one.high not in behind_blank]
        if key not in survey.runs and all(0 < one.count <= room.between(one.low, one.high) for one in gaps):
            found[key] = gaps
        else:
            apart.add(key)
    return found, apart


def tail_gaps(end: Run, stated: Sequence[tuple[int, int, int]], room: Room) -> Iterator[Missing]:
    """What is missing behind the last intact record of a queue, up to what broken ones state.

    stated: start, end and queue offset of these, by start. One that goes back, or skips more than there is
    room for, is wrong.
    """
    last, low = end.last, end.end
    for start, stop, slot in stated:
        count = slot - last - 1
        if start < low or count < 0 or count > room.between(low, start):
            continue
        if count:
            yield Missing(end.key, last + 1, slot - 1, low, start)
        last, low = slot, stop
