"""The order of queues: which records continue their queue, which are out of it, which positions are missing.

Queue offsets of one queue grow by one from record to record. Where they do not, either records between are
missing, and then the log has a hole between that is large enough for them, or some of the records are wrong.
`outliers` looks at one queue for itself; this module holds the queues against each other and against units.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from rmqtool.repair.keep.duplicates import duplicates_of, settle
from rmqtool.repair.keep.gaps import gap_in_front, gaps_between
from rmqtool.repair.keep.missed import missed_elsewhere, owed_elsewhere
from rmqtool.repair.keep.outliers import (
    SHORT,
    is_short,
    next_in_order,
    parts_of,
    put_in_order,
    skips,
    units_tell_of_skipping,
)
from rmqtool.repair.keep.room import Fronts, Missing, Room
from rmqtool.repair.keep.unit_evidence import UnitEvidence

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from rmqtool.repair.keep.duplicates import Duplicate
    from rmqtool.repair.keep.model import Position, QueueKey, Run, Survey
    from rmqtool.repair.keep.outliers import QueueOrder


@dataclass
class Order:
    """What was found out about all queues.

    chosen: runs by queue that are in order. outliers: short runs that are not. twice: queues with long ones,
    whose units are left as they are. skipping: those of them whose offsets ascend, but for short runs, and
    skip more than the log has room for. missing: positions that no record has, between chosen runs of the
    others. undecided: two records with one queue offset, the one that counts and the other, where as much
    speaks for the one as for the other. lonely: records alone in their queue, without a unit there, that
    stay as long as the holes of the log explain what other queues miss. holes: room in these; room: also in
    what may be no record of its queue. refuted: where records begin whose queue offset the log has no room
    for, in so many rounds; left: room once the holes have their records.
    """

    room: Room
    holes: Room

    chosen: dict[QueueKey, list[Run]] = field(default_factory=dict)
    outliers: list[Run] = field(default_factory=list)
    twice: set[QueueKey] = field(default_factory=set)
    skipping: set[QueueKey] = field(default_factory=set)
    missing: list[Missing] = field(default_factory=list)
    undecided: list[tuple[Run, Run]] = field(default_factory=list)
    lonely: list[Run] = field(default_factory=list)
    refuted: set[int] = field(default_factory=set)
    rounds: int = 0
    left: Room = field(default_factory=lambda: Room((), ()))

    def take(self, key: QueueKey, found: QueueOrder) -> None:
        """One queue is in this order."""
        self.chosen[key] = found.chosen
        self.outliers += found.outliers
        if found.twice:
            self.twice.add(key)
        if found.skipping:
            self.skipping.add(key)

    def disown(self, run: Run) -> None:
        """A queue of this run alone is none: the run is another queue's."""
        self.chosen[run.key] = []
        self.outliers.append(run)

    def reduce(self, remaining: Mapping[QueueKey, list[Run]], begin: int) -> list[Run]:
        """Of some queues only these runs remain; what goes. begin: of the log."""
        fronts = {one.key for one in self.missing if not one.first}
        self.missing = [one for one in self.missing if one.key not in remaining]
        gone: list[Run] = []
        for key, runs in remaining.items():
            starts, old = {one.start for one in runs}, self.chosen[key]
            gone += [one for one in old if one.start not in starts]
            front = gap_in_front(runs, begin) if key in fronts or not old[0].first else None
            self.missing += [*([front] if front else ()), *gaps_between(runs)]
            self.chosen[key] = runs
        self.outliers += gone
        return gone


def singleton_runs(survey: Survey) -> list[Run]:
    """Queues with a record or two in the log: their topic or queue number may be what is wrong."""
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

    pointed: positions with a unit for the first record of one of `singleton_runs` or `scattered_runs`, by its
    physical offset. places: where in their own queue some single records, by physical offset, have units.
    """
    return _Ordering(survey, UnitEvidence(pointed or {}, places)).run()


def disown_for_room(order: Order, unexplained: list[Missing]) -> list[Run]:
    """Lonely records that are just what another queue misses where the holes do not have room for it.

    Each queue by itself may find room in a hole that does not take what all of them miss. unexplained: what
    remains when all of them are placed.
    """
    missed = owed_elsewhere(unexplained, order.lonely) if unexplained else set()
    disowned = [one for one in order.lonely if one.start in missed]
    for run in disowned:
        order.disown(run)
    return disowned


class _Ordering:
    """The steps of `order_of`, each on what those in front of it have found."""

    def __init__(self, survey: Survey, units: UnitEvidence) -> None:
        self._survey, self._units, self._batches = survey, units, survey.batches
        self._begin = survey.segments[0].base if survey.segments else 0
        self._parts = {
            key: list(runs) if self._is_batch(key) else parts_of(runs)
            for key, runs in survey.runs.items()
            if len(runs) > 1
        }
        """of queues that are not one run"""
        self._scattered = scattered_runs(survey)
        self._singletons = singleton_runs(survey)
        """what may be all of its queue, and may be another queue's"""
        loose = [
            part
            for key, parts in self._parts.items()
            for part in parts
            if is_short(part, batch=self._is_batch(key))
        ]
        self._holes = Room(survey.holes, ())
        self._order = Order(Room(survey.holes, loose + self._singletons), self._holes)

    def run(self) -> Order:
        """All steps: first each queue for itself, then with its units, then queues against each other."""
        self._put_rows_in_order()
        claimed = self._put_scattered_in_order()
        self._believe_units()
        self._let_skip_by_units()
        self._order.outliers += claimed
        self._singletons += self._left_alone()
        self._find_missing()
        self._disown_singletons()
        return self._order

    def _put_rows_in_order(self) -> None:
        """Queues with three records in a row somewhere, or one run: their records tell the order."""
        for key, runs in self._survey.runs.items():
            if key not in self._parts:
                self._order.chosen[key] = list(runs)
            elif key not in self._scattered:
                self._put_in_order(key)

    def _put_scattered_in_order(self) -> list[Run]:
        """The other queues, without records that a queue with an order has a unit for.

        Their own order tells little: of three records 4, 9, 5 any may be another queue's. So what units claim
        is taken out first. Returns that; these records are outliers.
        """
        chosen = self._order.chosen
        claimed = [
            one for key in self._scattered for one in self._parts[key] if self._units.is_claimed(one, chosen)
        ]
        starts = {one.start for one in claimed}
        for key in self._scattered:
            self._parts[key] = [one for one in self._parts[key] if one.start not in starts]
            self._put_in_order(key)
        return claimed

    def _put_in_order(self, key: QueueKey, known: Collection[int] = ()) -> None:
        batch = self._is_batch(key)
        found = put_in_order(self._parts[key], self._order.room, self._begin, batch=batch, known=known)
        self._order.take(key, found)

    def _believe_units(self) -> None:
        """Where as many records are in order with one record as with another, the one that has a unit is.

        In 0 to 4, 7, 6, 9 to 20, with holes that have room for what is missing, 7 or 6 is wrong, and with
        either of them as many records are in order. Without units 6 is the outlier. If 6 has a unit at its
        queue offset, the queue is put in order once more, and units decide where records weigh as much.
        """
        order = self._order
        doubted = {one.key for one in order.outliers if not self._is_batch(one.key)}
        singles = [one for key in sorted(doubted) for one in self._parts[key] if one.count == 1]
        known = self._units.with_unit(singles)
        again = {one.key for one in order.outliers if one.start in known and one.key in doubted}
        order.outliers = [one for one in order.outliers if one.key not in again]
        for key in sorted(again):
            self._put_in_order(key, known)

    def _let_skip_by_units(self) -> None:
        """A queue may skip queue offsets where it has no hole, although one close by has room for them.

        A record in front of that hole is an outlier then. Where its unit and that of the next record in order
        say that the queue skips (`units_tell_of_skipping`), none of the two is wrong.
        """
        order = self._order
        pairs = [
            (one, behind)
            for one in order.outliers
            if one.count == 1 and one.key not in order.twice and not self._is_batch(one.key)
            if (behind := next_in_order(order.chosen[one.key], one))
        ]
        known = self._units.places([run for one, behind in pairs for run in (one, behind[0])])
        told = {
            one.key
            for one, behind in pairs
            if units_tell_of_skipping(one, known.get(one.start, ()), behind, known.get(behind[0].start, ()))
        }
        skipping = {key: found for key in sorted(told) if (found := skips(self._parts[key], batch=False))}
        order.outliers = [one for one in order.outliers if one.key not in skipping]
        for key, found in skipping.items():
            order.take(key, found)

    def _left_alone(self) -> list[Run]:
        """Records without a unit that are all that is in order of a scattered queue, as singletons are."""
        chosen = self._order.chosen
        found = [runs[0] for key in self._scattered if len(runs := chosen[key]) == 1 and runs[0].count == 1]
        known = self._units.with_unit(found)
        return [one for one in found if one.start not in known]

    def _find_missing(self) -> None:
        """Gaps of all queues; they tell, too, which of two records with one queue offset counts."""
        order = self._order
        duplicates = duplicates_of(order.chosen, order.outliers)
        doubtful = [*order.outliers, *self._singletons, *(one.chosen for one in duplicates)]
        fronts = Fronts(self._holes, doubtful)
        for key in self._survey.runs:
            order.missing += self._gaps(key, fronts)
        changed = self._settle(duplicates)
        order.missing = [one for one in order.missing if one.key not in changed]
        for key in changed:
            order.missing += self._gaps(key, fronts)

    def _gaps(self, key: QueueKey, fronts: Fronts) -> list[Missing]:
        """What a queue misses; nothing where it was numbered twice."""
        runs = self._order.chosen[key]
        if key in self._order.twice:
            return []
        front, gaps = gap_in_front(runs, self._begin), list(gaps_between(runs))
        lost = front is not None and fronts.believes(front, batch=self._is_batch(key))
        return [front, *gaps] if front is not None and lost else gaps

    def _settle(self, duplicates: Sequence[Duplicate]) -> Collection[QueueKey]:
        """Exchanges records with the outliers that count in their place; the queues where it did."""
        order = self._order
        both = [run for pair in duplicates for run in pair]
        missed = missed_elsewhere(order.missing, both)
        settled = settle(duplicates, order.chosen, self._units.with_unit(both), missed)
        order.undecided += settled.undecided
        instead = {one.start: other for one, other in settled.exchanged}
        taken = {other.start for other in instead.values()}
        order.outliers = [one for one in order.outliers if one.start not in taken]
        order.outliers += [one for one, _ in settled.exchanged]
        changed = dict.fromkeys(one.key for one, _ in settled.exchanged)
        for key in changed:
            order.chosen[key] = [instead.get(one.start, one) for one in order.chosen[key]]
        self._singletons = [instead.get(one.start, one) for one in self._singletons]
        return changed

    def _disown_singletons(self) -> None:
        """Records that are all of their queue are outliers where they are another queue's; others are lonely.

        Another queue's is what that queue misses, without a unit in its own, or what it claims with a unit;
        and an outlier is what has its unit elsewhere (`UnitEvidence.is_moved`).
        """
        missed = self._missed_singletons()
        for run in self._singletons:
            owed = run.start in missed and not self._units.has_own(run)
            claimed = self._units.is_claimed(run, self._order.chosen)
            if owed or claimed or self._units.is_moved(run):
                self._order.disown(run)
        self._order.lonely = [
            one
            for one in self._singletons
            if self._may_be_whole(one) and one.count == 1
            if self._order.chosen[one.key] and not self._units.has_own(one)
        ]

    def _missed_singletons(self) -> set[int]:
        """Where singletons begin that are just what another queue misses there (`owed_elsewhere`).

        T/9 with a record 12 alone cannot begin with it: it is T/1's where that misses 12 there, hole or not.
        One that its queue may begin with is missed only where the holes of the log do not explain what is
        missing. Two records in a row are missed only by a queue of more than one: one record takes no two.
        """
        missing, singletons = self._order.missing, self._singletons
        unexplained = [
            one
            for one in missing
            if not self._holes.takes(one.count, one.low, one.high, batch=self._is_batch(one.key))
        ]
        whole = [one for one in singletons if self._may_be_whole(one)]
        lacking = [one for one in singletons if not self._may_be_whole(one)]
        missed = owed_elsewhere(missing, lacking) | owed_elsewhere(unexplained, whole)
        pairs = [one for one in singletons if one.count > 1]
        larger = {key for key, runs in self._order.chosen.items() if sum(one.count for one in runs) > 1}
        of_larger = [one for one in missing if one.key in larger]
        return missed - ({one.start for one in pairs} - missed_elsewhere(of_larger, pairs))

    def _may_be_whole(self, singleton: Run) -> bool:
        """Whether its queue may begin with it: with queue offset 0, or as the log begins later."""
        return self._begin > 0 or not singleton.first

    def _is_batch(self, key: QueueKey) -> bool:
        return key[0] in self._batches
