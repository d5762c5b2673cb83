"""The order of queues: which records continue their queue, which are out of it, which positions are missing.

Queue offsets of one queue grow by one from record to record. Where they do not, either records between are
missing, and then the log has a hole between that is large enough for them, or some of the records lie.
"""

from __future__ import annotations

import sys
from bisect import bisect_left
from collections import defaultdict
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from rmqtool.repair.keep.chain import BATCH, Link, heaviest
from rmqtool.repair.keep.headers import SMALLEST_RECORD
from rmqtool.repair.keep.model import Run
from rmqtool.repair.keep.room import Fronts, Missing, Room
from rmqtool.repair.keep.stabbing import Stabbing

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    from rmqtool.repair.keep.model import QueueKey, Survey

    Position = tuple[QueueKey, int]
    """a queue and a queue offset"""

SHORT = 2
"""records out of order that are taken for damage; where more agree with each other, nobody can say who is
right: such a queue was numbered twice"""


@dataclass
class Order:
    """What was found out about all queues.

    chosen: runs by queue that are in order. outliers: short runs that are not. twice: queues with long ones,
    whose units are left as they are. skipping: those of them whose offsets ascend, but for short runs, and
    skip more than the log has room for. missing: positions that no record has, between chosen runs of the
    others. undecided: two records with one queue offset, the one that counts and the other, where as much
    speaks for the one as for the other. lonely: records alone in their queue, without a unit there, that
    stay as long as the holes of the log explain what other queues miss.
    """

    room: Room

    chosen: dict[QueueKey, list[Run]] = field(default_factory=dict)
    outliers: list[Run] = field(default_factory=list)
    twice: set[QueueKey] = field(default_factory=set)
    skipping: set[QueueKey] = field(default_factory=set)
    missing: list[Missing] = field(default_factory=list)
    undecided: list[tuple[Run, Run]] = field(default_factory=list)
    lonely: list[Run] = field(default_factory=list)


def singleton_runs(survey: Survey) -> list[Run]:
    """Queues with a record or two in the log: their topic or queue number may be what lies."""
    return [
        runs[0]
        for key, runs in survey.runs.items()
        if len(runs) == 1 and runs[0].count <= SHORT and key[0] not in survey.batches
    ]


def scattered_runs(survey: Survey) -> dict[QueueKey, list[Run]]:
    """Queues with more than that, but never with more than two records in a row."""
    return {
        key: runs
        for key, runs in survey.runs.items()
        if len(runs) > 1 and key[0] not in survey.batches and all(one.count <= SHORT for one in runs)
    }


def order_of(
    survey: Survey,
    pointed: Mapping[int, Sequence[Position]] | None = None,
    places: Callable[[Sequence[Run]], Mapping[int, Collection[int]]] = lambda _: {},
) -> Order:
    """Looks at every queue of a log that is not one run.

    pointed: positions with a unit for a single record, by its physical offset. places: where in their own
    queue some single records, by physical offset, have units.
    """

    def with_unit(runs: Sequence[Run]) -> set[int]:
        """Which of them have one at their queue offset."""
        known = places(runs)
        return {one.start for one in runs if one.first in known.get(one.start, ())}

    batches = survey.batches
    broken = {
        key: list(runs) if key[0] in batches else _parts(runs)
        for key, runs in survey.runs.items()
        if len(runs) > 1
    }
    loose = [
        part for key, parts in broken.items() for part in parts if _is_short(part, batch=key[0] in batches)
    ]
    singletons = singleton_runs(survey)
    room = Room(survey.holes, loose + singletons)
    order = Order(room)
    begin = survey.segments[0].base if survey.segments else 0
    scattered = scattered_runs(survey)
    for key, runs in survey.runs.items():
        if key not in broken:
            order.chosen[key] = list(runs)
        elif key not in scattered:
            _put_in_order(order, key, broken[key], room, begin, batch=key[0] in batches)
    claimed = {
        one.start for key in scattered for one in broken[key] if _is_claimed(order, one, pointed or {})
    }
    parted = {key: [one for one in broken[key] if one.start not in claimed] for key in broken}
    for key in scattered:
        _put_in_order(order, key, parted[key], room, begin, batch=False)
    _believe_units(order, parted, with_unit, room, begin, batches)
    _let_skip_by_units(order, parted, places, batches)
    order.outliers += [one for key in scattered for one in broken[key] if one.start in claimed]
    singletons += _left_alone(order, scattered, with_unit)
    holes = Room(survey.holes, ())
    fronts = Fronts(holes, [*order.outliers, *singletons, *_rivals(order)])
    for key in survey.runs:
        _find_missing(order, key, fronts, begin, batch=key[0] in batches)
    changed = _give_back(order, with_unit)
    order.missing = [one for one in order.missing if one.key not in changed]
    for key in changed:
        _find_missing(order, key, fronts, begin, batch=False)
    unexplained = [
        one
        for one in order.missing
        if not holes.takes(one.count, one.low, one.high, batch=one.key[0] in batches)
    ]
    whole = [one for one in singletons if begin > 0 or not one.first]
    lacking = [one for one in singletons if begin == 0 and one.first]
    missed = _owed_elsewhere(order.missing, lacking) | _owed_elsewhere(unexplained, whole)
    pairs = [one for one in singletons if one.count > 1]
    larger = {key for key, runs in order.chosen.items() if sum(one.count for one in runs) > 1}
    of_larger = [one for one in order.missing if one.key in larger]
    missed -= {one.start for one in pairs} - _missed_elsewhere(of_larger, pairs)  # one record takes no two
    _disown(order, singletons, missed, pointed or {})
    order.lonely = [
        one
        for one in whole
        if one.count == 1
        and order.chosen[one.key]
        and (one.key, one.first) not in (pointed or {}).get(one.start, ())
    ]
    return order


def disown_for_room(order: Order, unexplained: list[Missing]) -> list[Run]:
    """Lonely records that are just what another queue misses where the holes do not have room for it.

    Each queue by itself may find room in a hole that does not take what all of them miss. unexplained: what
    remains when all of them are placed.
    """
    missed = _owed_elsewhere(unexplained, order.lonely) if unexplained else set()
    disowned = [one for one in order.lonely if one.start in missed]
    for run in disowned:
        order.chosen[run.key] = []
    order.outliers += disowned
    return disowned


def _left_alone(
    order: Order, scattered: Iterable[QueueKey], with_unit: Callable[[Sequence[Run]], Collection[int]]
) -> list[Run]:
    """Single records that are all that is in order of such queues, and have no unit there."""
    found = [runs[0] for key in scattered if len(runs := order.chosen[key]) == 1 and runs[0].count == 1]
    known = with_unit(found) if found else ()
    return [one for one in found if one.start not in known]


def _alone(order: Order) -> dict[tuple[QueueKey, int], Run]:
    return {(one.key, one.first): one for one in order.outliers if one.count == 1}


def _rivals(order: Order) -> list[Run]:
    """Records in order whose queue offset a record out of order has too."""
    alone = _alone(order)
    chosen = [one for key in sorted({key for key, _ in alone}) for one in order.chosen[key]]
    return [one for one in chosen if one.count == 1 and (one.key, one.first) in alone]


def _give_back(order: Order, with_unit: Callable[[Sequence[Run]], Collection[int]]) -> set[QueueKey]:
    """Of two records with one queue offset, the one that another queue misses there is the one that lies.

    So is the one without a unit, where the other has one; one with a unit is right, and so is the only one
    in the order of the log. The queues where another record counts now.
    """
    alone, rivals = _alone(order), _rivals(order)
    both = [*rivals, *(alone[one.key, one.first] for one in rivals)]
    missed = _missed_elsewhere(order.missing, [*rivals, *alone.values()]) if rivals else set()
    known = frozenset(with_unit(both)) if rivals else frozenset()
    between = _between(order, rivals)
    changed: dict[QueueKey, dict[int, Run]] = defaultdict(dict)
    for one in rivals:
        other = alone[one.key, one.first]
        low, high = between[one.start]
        ours, theirs = one.start in known, other.start in known
        lies = (theirs and not ours) or (one.start in missed and other.start not in missed)
        if not low <= other.start < high:
            continue
        if lies and ours <= theirs:
            changed[one.key][one.start] = other
        elif ours == theirs and (one.start in missed) == (other.start in missed):
            order.undecided.append((one, other))
    taken = {other.start for runs in changed.values() for other in runs.values()}
    order.outliers = [one for one in order.outliers if one.start not in taken]
    order.outliers += [one for one in rivals if one.start in changed.get(one.key, ())]
    for key, runs in changed.items():
        order.chosen[key] = [runs.get(one.start, one) for one in order.chosen[key]]
    return set(changed)


def _between(order: Order, some: Sequence[Run]) -> dict[int, tuple[int, int]]:
    """Of records in order, by where they begin, where the ones in front end and those behind begin."""
    starts = {one.start for one in some}
    found: dict[int, tuple[int, int]] = {}
    for key in sorted({one.key for one in some}):
        runs = order.chosen[key]
        ends, begins = [0, *(one.end for one in runs)], [*(one.start for one in runs), sys.maxsize]
        found |= {
            one.start: (ends[number], begins[number + 1])
            for number, one in enumerate(runs)
            if one.start in starts
        }
    return found


def _disown(
    order: Order, singletons: list[Run], missed: set[int], pointed: Mapping[int, Sequence[Position]]
) -> None:
    """Lonely records that are just what another queue misses there are out of order, not a queue.

    missed: where they begin. One that its queue may well begin with, as the log does not, or with queue
    offset 0, is among them only where the holes of the log do not explain what is missing. So is one whose
    queue has the unit for it where a bit of the queue offset makes the difference.
    """
    for run in singletons:
        positions = pointed.get(run.start, ())
        own = (run.key, run.first) in positions
        missing = run.start in missed and not own
        moved = run.count == 1 and not own and any(_is_a_bit_away(run, one) for one in positions)
        if missing or moved or _is_claimed(order, run, pointed):
            order.chosen[run.key] = []
            order.outliers.append(run)


def _is_a_bit_away(run: Run, position: Position) -> bool:
    """Whether a position of the same queue has a queue offset with one other bit."""
    key, slot = position
    return key == run.key and (slot ^ run.first).bit_count() == 1


def _is_claimed(order: Order, run: Run, pointed: Mapping[int, Sequence[Position]]) -> bool:
    """Whether not the record's queue has a unit for it at its place, but one whose key it may have had.

    The name of a directory proves nothing, it may be a copy; records of that queue do. So does that no log
    ever had as many records in front of it as its queue would have.
    """
    positions = pointed.get(run.start, ())
    if (run.key, run.first) in positions:
        return False
    if run.first > run.start // SMALLEST_RECORD and any(key == run.key for key, _ in positions):
        return True
    # of two records another queue may have one
    return run.count == 1 and any(
        order.chosen.get(key) and _differs_in_one(run.key, key) for key, _ in positions
    )


def _missed_elsewhere(missing: list[Missing], singletons: list[Run]) -> set[int]:
    """Physical offsets of runs whose queue offset another queue of that topic or number misses there.

    A queue of one run misses nothing but positions in front of it, so what covers a run is of another queue.
    """
    return {
        run.start
        for shared in (_topic, _length_and_number)
        for gaps, runs in _together(missing, singletons, shared)
        for run in _covered(gaps, runs)
    }


def _owed_elsewhere(missing: list[Missing], singletons: list[Run]) -> set[int]:
    """As `_missed_elsewhere`, but a position that is missed accounts for one record, and first for its topic.

    Where more records have that queue offset than queues miss it, nobody can say which one lies: all stay.
    So do those of other topics where a queue may as well begin later.
    """
    found: set[int] = set()
    used: dict[tuple[object, int], int] = defaultdict(int)
    """queues that miss a position and have a record for it, by what other topics share and queue offset"""
    for gaps, runs in _together(missing, singletons, _topic):
        bounds = np.array([(one.first, one.last) for one in gaps], np.int64).T
        for slot, some in _by_slot(_covered(gaps, runs)).items():
            here = np.flatnonzero((bounds[0] <= slot) & (slot <= bounds[1])).tolist()
            if len(some) > len(here):
                continue
            found.update(run.start for run in some)
            for at in here:
                used[_length_and_number(gaps[at].key), slot] += 1
    inner = [one for one in missing if one.first]
    rest = [run for run in singletons if run.start not in found]
    for gaps, runs in _together(inner, rest, _length_and_number):
        firsts, lasts = np.sort(np.array([(one.first, one.last) for one in gaps], np.int64).T)
        for slot, some in _by_slot(_covered(gaps, runs)).items():
            count = np.searchsorted(firsts, slot, side="right") - np.searchsorted(lasts, slot, side="left")
            if len(some) <= count - used[_length_and_number(gaps[0].key), slot]:
                found.update(run.start for run in some)
    return found


def _by_slot(runs: Iterable[Run]) -> dict[int, list[Run]]:
    found: dict[int, list[Run]] = defaultdict(list)
    for run in runs:
        found[run.first].append(run)
    return found


def _together(
    missing: list[Missing], singletons: list[Run], shared: Callable[[QueueKey], object]
) -> Iterator[tuple[list[Missing], list[Run]]]:
    """Gaps and runs whose keys share something, each in the order of the log."""
    runs: dict[object, list[Run]] = defaultdict(list)
    gaps: dict[object, list[Missing]] = defaultdict(list)
    for run in sorted(singletons, key=lambda one: one.start):
        runs[shared(run.key)].append(run)
    for one in sorted(missing, key=lambda one: one.low):
        if shared(one.key) in runs:
            gaps[shared(one.key)].append(one)
    for same, there in gaps.items():
        yield there, runs[same]


def _differs_in_one(key: QueueKey, other: QueueKey) -> bool:
    """In the queue number, or in a topic of the same length."""
    if _topic(key) == _topic(other):
        return key[1] != other[1]
    return _length_and_number(key) == _length_and_number(other)


def _topic(key: QueueKey) -> object:
    return key[0]


def _length_and_number(key: QueueKey) -> object:
    """A record whose topic lies is whole only with a topic of the length that it had."""
    return len(key[0].encode("utf-8", "surrogateescape")), key[1]


def _covered(gaps: list[Missing], runs: list[Run]) -> Iterator[Run]:
    """The runs that lie in a gap, in the log and in queue offsets. Both sorted by the log."""
    highest = Stabbing((one.first, one.last + 1) for one in gaps)
    at = 0
    for run in runs:
        while at < len(gaps) and gaps[at].low <= run.start:
            highest.raise_to(gaps[at].first, gaps[at].last + 1, gaps[at].high)
            at += 1
        if highest.at(run.first) >= run.end:
            yield run


def _parts(runs: list[Run]) -> list[Run]:
    """Runs with their first and last record by themselves: one of them may be the one that lies."""
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


def _believe_units(
    order: Order,
    parted: Mapping[QueueKey, list[Run]],
    with_unit: Callable[[Sequence[Run]], Collection[int]],
    room: Room,
    begin: int,
    batches: Collection[str],
) -> None:
    """Where as many records are in order with one record as with another, the one that has a unit is."""
    doubted = {one.key for one in order.outliers if one.key[0] not in batches}
    singles = [one for key in sorted(doubted) for one in parted[key] if one.count == 1]
    known = frozenset(with_unit(singles)) if singles else frozenset()
    again = {one.key for one in order.outliers if one.start in known and one.key in doubted}
    order.outliers = [one for one in order.outliers if one.key not in again]
    for key in sorted(again):
        _put_in_order(order, key, parted[key], room, begin, batch=False, known=known)


def _is_short(part: Run, *, batch: bool) -> bool:
    """Whether it may be a lie: of a batch queue, in which runs have no parts, a single record."""
    return part.start == part.last_start if batch else part.count <= SHORT


def _put_in_order(
    order: Order,
    key: QueueKey,
    parts: list[Run],
    room: Room,
    begin: int,
    *,
    batch: bool,
    known: Collection[int] = (),
) -> None:
    parts = sorted(parts, key=lambda part: part.start)
    order.chosen[key], left = _split(parts, _best_chain(parts, room, begin, batch=batch, known=known))
    ascend = all(a.last < b.first for a, b in pairwise(parts))
    # the inside of a run (`Run.first_end`) is left only with both its ends: three records or more that agree
    agree = ascend and any(part.first_end < 0 for part in left)
    if agree or not all(_is_short(part, batch=batch) for part in left):
        order.twice.add(key)
        _let_skip(order, key, parts, batch=batch)
        return
    order.outliers += left


def _let_skip(order: Order, key: QueueKey, parts: Sequence[Run], *, batch: bool) -> bool:
    """Takes it for a queue that skips queue offsets, where they ascend but for short runs."""
    ascending, left = _split(parts, _ascending(parts))
    if not all(_is_short(part, batch=batch) for part in left):
        return False
    order.twice.add(key)
    order.skipping.add(key)
    order.chosen[key] = ascending
    order.outliers += left
    return True


def _let_skip_by_units(
    order: Order,
    parted: Mapping[QueueKey, list[Run]],
    places: Callable[[Sequence[Run]], Mapping[int, Collection[int]]],
    batches: Collection[str],
) -> None:
    """A queue may skip where it has no hole, although one close by has room for all that it then misses.

    A record in front of that hole is out of order then. Where the next one in order states more than the
    place of its unit, and that one as much, or nothing more, none of the two lies: a broker appends units one
    after the other. Few records that state more may lie all the same.
    """
    pairs = [
        (one, behind)
        for one in order.outliers
        if one.count == 1 and one.key not in order.twice and one.key[0] not in batches
        if (behind := _behind_in_order(order.chosen[one.key], one))
    ]
    known = places([run for one, behind in pairs for run in (one, behind[0])]) if pairs else {}
    skipping = {
        one.key
        for one, behind in pairs
        if _agree(one, known.get(one.start, ()), behind, known.get(behind[0].start, ()))
    }
    before = order.outliers
    order.outliers = [one for one in before if one.key not in skipping]
    for key in sorted(skipping):
        if not _let_skip(order, key, sorted(parted[key], key=lambda part: part.start), batch=False):
            order.outliers += [one for one in before if one.key == key]


def _agree(one: Run, places: Collection[int], behind: Sequence[Run], following: Collection[int]) -> bool:
    """Whether the units of a record and of the next one, at their places, say that the queue skips."""
    stated, count = behind[0].first, sum(run.count for run in behind)
    return stated not in following and any(
        place < its < stated
        and one.first - place in (0, stated - its)
        and count + (one.first > place) > SHORT
        for place in places
        for its in following
    )


def _behind_in_order(runs: Sequence[Run], one: Run) -> Sequence[Run]:
    """The first ones behind a record that has a queue offset between those in front and behind, else none."""
    at = bisect_left(runs, one.start, key=lambda run: run.start)
    fits = at < len(runs) and one.last < runs[at].first and (not at or runs[at - 1].last < one.first)
    return runs[at : at + SHORT + 1] if fits and runs[at].count == 1 else ()


def _split(parts: Sequence[Run], chain: Sequence[int]) -> tuple[list[Run], list[Run]]:
    """The parts with some numbers, and the others."""
    picked = set(chain)
    left = [part for number, part in enumerate(parts) if number not in picked]
    return [parts[number] for number in chain], left


def _ascending(parts: Sequence[Run]) -> list[int]:
    """The parts, by number, that keep the most records in order, whatever is missing between them."""
    most = 2 * max(part.last for part in parts) + 2
    places = (number * most for number in range(len(parts)))
    weighed = ((part, part.count, at) for part, at in zip(parts, places, strict=True))
    return heaviest([Link(part.first, part.last, count, count, at, at) for part, count, at in weighed])


def _best_chain(
    parts: list[Run], room: Room, begin: int, *, batch: bool, known: Collection[int]
) -> list[int]:
    """The parts, by number, that keep the most records in order; of equal ones those with `known` records.

    Where nothing accounts for what a queue misses in front, its first records lie, unless enough agree.
    """
    most = BATCH if batch else 1
    one_record = len(known) + 1
    links = []
    for part, agree in zip(parts, _agreeing(parts), strict=True):
        at_begin = begin > 0 or agree > SHORT or room.takes(part.first, begin, part.start, batch=batch)
        weight = part.count * one_record + (part.start in known)
        alone = weight if at_begin else weight - (part.first + 1) * one_record
        front, behind = room.until(part.start) * most, room.until(part.start + 1) * most
        links.append(Link(part.first, part.last, weight, alone, front, behind))
    return heaviest(links)


def _agreeing(parts: list[Run]) -> list[int]:
    """How many records there are in the row of neighbouring queue offsets that each part is in."""
    rows: list[list[Run]] = []
    for part in parts:
        if rows and rows[-1][-1].last + 1 == part.first:
            rows[-1].append(part)
        else:
            rows.append([part])
    return [sum(one.count for one in row) for row in rows for _ in row]


def _find_missing(order: Order, key: QueueKey, fronts: Fronts, begin: int, *, batch: bool) -> None:
    runs = order.chosen[key]
    if not runs or key in order.twice:
        return
    first = runs[0]
    if begin == 0 and first.first:
        front = Missing(key, 0, first.first - 1, begin, first.start)
        if fronts.believes(front, batch=batch):
            order.missing.append(front)
    for left, right in pairwise(runs):
        if right.first > left.last + 1:
            order.missing.append(Missing(key, left.last + 1, right.first - 1, left.end, right.start))


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
        gaps = [
            Missing(key, a.last + 1, b.first - 1, a.end, b.start)
            for a, b in pairwise(runs)
            if b.first != a.last + 1 and b.start not in blank.get(key, ())
        ]
        if runs and survey.segments[0].base == 0 and runs[0].first:
            gaps.insert(0, Missing(key, 0, runs[0].first - 1, 0, runs[0].start))
        if key not in survey.runs and all(0 < one.count <= room.between(one.low, one.high) for one in gaps):
            found[key] = gaps
        else:
            apart.add(key)
    return found, apart
