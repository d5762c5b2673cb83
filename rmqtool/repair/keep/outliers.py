"""The order of one queue: which of its records continue each other, and which are outliers.

Queue offsets of a queue grow by one from record to record. Where the log has holes some are missing, and
where records are damaged some are wrong. What is believed is the heaviest increasing subsequence in the order
of the log (`chain`): the one that keeps the most records, with a step over missing queue offsets only where
the log has room for as many records. Of 0 1 2 7 3 4 it is 0 1 2 3 4, and the record with 7 is an outlier.

A few outliers are damage. Where more records agree with each other, nobody can say which ones are right.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from rmqtool.repair.keep.chain import BATCH, Link, heaviest
from rmqtool.repair.keep.model import Run

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from rmqtool.repair.keep.room import Room

SHORT = 2
"""records out of order that are taken for damage; where more agree with each other, nobody can say who is
right: such a queue was numbered twice"""


@dataclass(frozen=True, slots=True)
class QueueOrder:
    """The parts of one queue that are in order, and the outliers, both in the order of the log.

    twice: its outliers are too many for damage, they stay where they are. skipping: it is numbered twice only
    in that it skips queue offsets.
    """

    chosen: list[Run]
    outliers: list[Run]
    twice: bool = False
    skipping: bool = False


def parts_of(runs: Sequence[Run]) -> list[Run]:
    """Runs with their first and last record by themselves: one of them may be the one that is wrong.

    A wrong record may seem to go on with its neighbours: of the runs 3 4 5 and 5 6 7 8 one record with 5 is
    wrong. Their parts are 3, 4, 5 and 5, 6 to 7, 8.
    """
    parts: list[Run] = []
    for run in runs:
        if run.count == 1:
            parts.append(run)
            continue
        key = run.key
        parts.append(Run(key, run.first, run.first, run.start, run.start, run.first_end, run.first_end))
        if run.count > SHORT:
            # physical offsets inside of a run are not known; those of its neighbours bound them
            inner = run.start + 1, run.last_start - 1, run.last_start
            parts.append(Run(key, run.first + 1, run.last - 1, *inner))
        parts.append(Run(key, run.last, run.last, run.last_start, run.last_start, run.end, run.end))
    return parts


def is_short(part: Run, *, batch: bool) -> bool:
    """Whether it may be wrong: of a batch queue, in which runs have no parts, a single record."""
    return part.start == part.last_start if batch else part.count <= SHORT


def put_in_order(
    parts: Sequence[Run], room: Room, begin: int, *, batch: bool, known: Collection[int] = ()
) -> QueueOrder:
    """What is believed of a queue. begin: of the log. known: where single records with a unit begin.

    Outliers that are all short are damage. Not so where queue offsets ascend and three records agree: with 0
    to 8 and, no hole between, 15 16, the last two are outliers; with 15 16 17 the queue skips queue offsets.
    """
    parts = _by_start(parts)
    found = _split(parts, _heaviest_chain(parts, room, begin, batch=batch, known=known))
    ascend = all(a.last < b.first for a, b in pairwise(parts))
    # the inside of a run (`Run.first_end`) is left only with both its ends: three records or more that agree
    agree = ascend and any(part.first_end < 0 for part in found.outliers)
    if agree or not _all_short(found.outliers, batch=batch):
        return skips(parts, batch=batch) or QueueOrder(found.chosen, [], twice=True)
    return found


def skips(parts: Sequence[Run], *, batch: bool) -> QueueOrder | None:
    """The order of a queue that skips queue offsets; None where they do not ascend but for short outliers."""
    parts = _by_start(parts)
    found = _split(parts, _ascending(parts))
    if not _all_short(found.outliers, batch=batch):
        return None
    return QueueOrder(found.chosen, found.outliers, twice=True, skipping=True)


def next_in_order(chosen: Sequence[Run], outlier: Run) -> Sequence[Run]:
    """The first ones in order behind an outlier that lies between its neighbours in queue offsets, too.

    With 0 to 4, the outlier 8, a hole that has room for 5 to 10, and 11 12 13: the last three. None where the
    outlier has no such place.
    """
    at = bisect_left(chosen, outlier.start, key=_start)
    fits = at < len(chosen) and outlier.last < chosen[at].first
    fits = fits and (not at or chosen[at - 1].last < outlier.first)
    return chosen[at : at + SHORT + 1] if fits and chosen[at].count == 1 else ()


def units_tell_of_skipping(
    outlier: Run, places: Collection[int], behind: Sequence[Run], following: Collection[int]
) -> bool:
    """Whether the units of an outlier and of the next record in order say that the queue skips queue offsets.

    places, following: where the two have units, as queue offsets. A broker appends units one after the other:
    behind a skip, records state more than the places of their units. The next record has to, and the outlier
    states as much more, or nothing more, where the skip is behind it. In the example of `next_in_order`: 8
    with its unit at 5, and 11 at 8; or 8 at 8, and 11 at 10. Where two records state more, or one, these may
    be wrong all the same.
    """
    stated, count = behind[0].first, sum(run.count for run in behind)
    return stated not in following and any(
        place < its < stated
        and outlier.first - place in (0, stated - its)
        and count + (outlier.first > place) > SHORT
        for place in places
        for its in following
    )


def _heaviest_chain(
    parts: Sequence[Run], room: Room, begin: int, *, batch: bool, known: Collection[int]
) -> list[int]:
    """The parts, by number, that keep the most records in order; of equal ones those with `known` records.

    A log that begins with physical offset 0 has the first records of its queues. Where no hole has room for
    what would be missing in front of a part, it weighs less as the first one, by one record more than that:
    a chain that begins with 5 needs seven records to be heavier than one of a single record with 0. Not so
    where three records or more agree with it.
    """
    offsets = BATCH if batch else 1
    """the most queue offsets of one record"""
    record = len(known) + 1
    """the weight of a record: all units together weigh less"""
    links = []
    for part, agree in zip(parts, _agreeing(parts), strict=True):
        weight = part.count * record + (part.start in known)
        first = begin > 0 or agree > SHORT or room.takes(part.first, begin, part.start, batch=batch)
        alone = weight if first else weight - (part.first + 1) * record
        front, behind = room.until(part.start) * offsets, room.until(part.start + 1) * offsets
        links.append(Link(part.first, part.last, weight, alone, front, behind))
    return heaviest(links)


def _agreeing(parts: Sequence[Run]) -> list[int]:
    """How many records there are in the row of neighbouring queue offsets that each part is in.

    In 3, 4 to 5, 6, 9 each of the first three is in a row of four records, and the last one in a row of one.
    """
    return [sum(one.count for one in row) for row in rows_of(parts) for _ in row]


def rows_of(parts: Iterable[Run]) -> list[list[Run]]:
    """Parts that follow each other with neighbouring queue offsets, together."""
    rows: list[list[Run]] = []
    for part in parts:
        if rows and rows[-1][-1].last + 1 == part.first:
            rows[-1].append(part)
        else:
            rows.append([part])
    return rows


def _ascending(parts: Sequence[Run]) -> list[int]:
    """As `_heaviest_chain`, but with room everywhere: the longest increasing subsequence, nothing else."""
    most = 2 * max(part.last for part in parts) + 2
    links = []
    for number, part in enumerate(parts):
        room = number * most
        links.append(Link(part.first, part.last, part.count, part.count, room, room))
    return heaviest(links)


def _split(parts: Sequence[Run], chain: Sequence[int]) -> QueueOrder:
    """The parts with some numbers, and the others."""
    picked = set(chain)
    left = [part for number, part in enumerate(parts) if number not in picked]
    return QueueOrder([parts[number] for number in chain], left)


def _all_short(parts: Sequence[Run], *, batch: bool) -> bool:
    return all(is_short(part, batch=batch) for part in parts)


def _by_start(parts: Sequence[Run]) -> list[Run]:
    return sorted(parts, key=_start)


def _start(run: Run) -> int:
    return run.start
