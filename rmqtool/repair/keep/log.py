"""The commit log repaired: for every segment the bytes that change, and what is reported about them."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np

from rmqtool.repair.content import Zeros
from rmqtool.repair.keep.blanks import filler_places, open_pointed, open_skipped, open_unplaced
from rmqtool.repair.keep.claimed import claimed_elsewhere
from rmqtool.repair.keep.counted import Ahead, by_units, in_skipping
from rmqtool.repair.keep.donor import Donor, Donors, of_copies, of_store
from rmqtool.repair.keep.fill import Filled, Filling, readable
from rmqtool.repair.keep.frames import frames_by_header, frames_by_unit, misplaced_header
from rmqtool.repair.keep.hole_layout import allocate, layouts_of
from rmqtool.repair.keep.light import MultiDispatchPositions
from rmqtool.repair.keep.logbytes import LogBytes
from rmqtool.repair.keep.misdirected import misdirected
from rmqtool.repair.keep.model import UNUSED, Frame, Hole, Trust
from rmqtool.repair.keep.order import disown_for_room, order_of, scattered_runs, singleton_runs
from rmqtool.repair.keep.outliers import SHORT
from rmqtool.repair.keep.overlay import OverlaySource, Patch
from rmqtool.repair.keep.proof import foreign_queues, weigh
from rmqtool.repair.keep.refuted import refute
from rmqtool.repair.keep.repaired_log import Repaired, RepairedLog, leave_blank, place_skipping
from rmqtool.repair.keep.room import Room
from rmqtool.repair.keep.slot_assignment import SlotAssigner
from rmqtool.repair.keep.stale import cut_stale, is_stale, loosen
from rmqtool.repair.keep.survey import Surveyor
from rmqtool.repair.keep.tiles import Tiles
from rmqtool.repair.keep.unlisted import Unlisted
from rmqtool.scan.multi import takes_number
from rmqtool.scan.segment import SegmentScan
from rmqtool.store.kinds import FileKind
from rmqtool.store.patched import ZeroFilledSource

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    import numpy.typing as npt

    from rmqtool.broker.file_rules import FileRules
    from rmqtool.repair.keep.donor import DonorRange
    from rmqtool.repair.keep.hole_layout import HoleLayout
    from rmqtool.repair.keep.model import Position, QueueKey, Run, Survey, Torn
    from rmqtool.repair.keep.order import Order
    from rmqtool.repair.keep.placing import PlacedSegment, Placing
    from rmqtool.repair.keep.room import Missing
    from rmqtool.repair.keep.slot_assignment import Claims
    from rmqtool.scan.kernel_types import Kernels
    from rmqtool.scan.options import ReadOptions
    from rmqtool.store.access import OpenMode
    from rmqtool.store.layout import Store

    Ints = npt.NDArray[np.int64]

_STEP = 4 << 20


@dataclass(frozen=True, slots=True)
class _Decided:
    """Frames of all holes, those of further queues' units by hole, where the log ends, and layouts by hole.

    without: positions that no hole has room for. skipping: where entries of queues that skip offsets lie.
    """

    claims: Claims
    further: dict[int, list[Frame]]
    end: int
    layouts: list[list[HoleLayout]]
    without: list[Missing]
    skipping: Ahead

    @property
    def unexplained(self) -> list[Missing]:
        """Open positions of queues, as they belong together, that not all have room."""
        lacking = {(one.key, one.last) for one in self.without}
        return [gap for gaps in self.claims.open.values() for gap in gaps if (gap.key, gap.last) in lacking]


@dataclass(frozen=True)
class LogRepair:
    """How a log is repaired; `repair` does it, reading only. work: directory for what segments give."""

    store: Store
    placing: Placing
    reading: ReadOptions
    plan_id: str
    rules: FileRules
    work: str
    keep_bodies: bool = False
    donors: Sequence[Store] = ()

    @property
    def kernels(self) -> Kernels:
        """Those for a log of this size."""
        return self.reading.kernels

    @property
    def mode(self) -> OpenMode:
        """How its files are opened."""
        return self.reading.access

    def repair(self) -> RepairedLog:
        """Reads the whole log, then decides about every hole in it."""
        survey, donated_ranges = self._surveyed()
        open_skipped(survey)
        with LogBytes(survey.segments, self.mode) as log:
            unlisted = Unlisted(survey, log)
            ahead = self._ahead(survey, unlisted)
        if unlisted.offsets:
            survey, ahead = self._without(survey, unlisted.offsets)
        order = order_of(survey, self._pointed(survey), partial(self._places_of, survey))
        if claimed := claimed_elsewhere(self.store, survey, order):
            survey, ahead = self._without(survey, unlisted.offsets | claimed)
            order = order_of(survey, self._pointed(survey), partial(self._places_of, survey))
        loosen(survey, order.outliers)
        with LogBytes(survey.segments, self.mode) as log:
            decided = self._decide(survey, order, log)
            if disowned := disown_for_room(order, decided.unexplained):
                loosen(survey, disowned)
                decided = self._decide(survey, order, log)
            while open_unplaced(survey, decided.without) or refute(
                survey, order, decided.claims, decided.layouts, decided.without
            ):
                decided = self._decide(survey, order, log)
            claims, layouts, end = decided.claims, decided.layouts, decided.end
            made = RepairedLog(
                [placed for placed in survey.segments if placed.base < end],
                end,
                survey,
                without=decided.without,
                twice=sorted(order.twice),
                skipping=order.skipping,
                contested=claims.contested,
                ahead=ahead,
            )
            frames = {one.start: one for there in claims.frames.values() for one in there}
            made.undecided = [
                ((one, frames.get(one.start)), (other, frames.get(other.start)))
                for one, other in sorted(order.undecided, key=lambda both: both[0].start)
            ]
            made.behind = [one for one in frames.values() if one.unplaced and one.start >= end]
            made.repaired += [Repaired(one.hole, one.patch, None, one) for one in donated_ranges]
            multi_dispatch = MultiDispatchPositions(
                survey,
                self.rules,
                [one for some in decided.further.values() for one in some if one.trust is not Trust.REFUTED],
                readable(chain.from_iterable(claims.frames.values())),
                ahead,
            )
            filling = Filling(log, self.plan_id, multi_dispatch, survey.batches, self.keep_bodies)
            for number, hole in enumerate(survey.holes):
                if hole.start < end:
                    made.repaired += self._filled(hole, claims.frames[number], layouts[number], end, filling)
            made.without += [
                one for filled in made.repaired if filled.filled is not None for one in filled.filled.without
            ]
            leave_blank(made, multi_dispatch.without())
            place_skipping(made, order, decided.skipping)
            ahead.set_unproven(multi_dispatch.proven)
            made.dropped = [*unlisted.gone.items(), *multi_dispatch.dropped.items()]
        made.repaired += _torn(survey, made)
        self._clear_tail(made)
        return made

    def _decide(self, survey: Survey, order: Order, log: LogBytes) -> _Decided:
        """What becomes of every hole."""
        headers = {n: frames_by_header(hole, log) for n, hole in enumerate(survey.holes)}
        units, further = _parted(survey, frames_by_unit(self.store, survey.holes))
        solid = _solid_end(survey)
        for number, loose in headers.items():
            own = [one for one in _credible(loose, solid) if not is_stale(survey, one)]
            headers[number] = own
            extents = {(one.start, one.end) for one in own}
            for reported in (units, further):
                reported[number] = [
                    one
                    for one in reported.get(number, ())
                    if one.start < solid or (one.start, one.end) in extents
                ]
        foreign = foreign_queues(self.store, survey, order, log)
        pointed = [one for some in (*units.values(), *further.values()) for one in some]
        skipping = in_skipping(self.store, order)
        for one in chain.from_iterable(units.values()):
            if one.key is not None and one.slot is not None:
                one.slot += skipping.at(one.key, one.start)
        weigh(self.store, survey, order, pointed, foreign, skipping)
        known = [key for key in queues_of(self.store) if not survey.is_light(key) and key not in foreign]
        places = {number: _places(some, lmq=self.rules.lmq) for number, some in further.items()}
        misplaced = partial(misplaced_header, log=log)
        claims = SlotAssigner(survey, order, known).claims(headers, units, places, misplaced)
        end = self._end(survey, claims, solid)
        layouts, without = _allocated(survey, claims, end)
        return _Decided(claims, further, end, layouts, without, skipping)

    def _ahead(self, survey: Survey, unlisted: Unlisted | None = None) -> Ahead:
        room, rule = Room(survey.holes, ()), self.rules.multi_dispatch
        return by_units(self.store, survey, room, rule, unlisted)

    def _survey_of(self, segments: Sequence[PlacedSegment], unlisted: Ints | None = None) -> Survey:
        """Once more where records tell of batch queues: those state their queue offsets twice."""
        survey = self._survey_by(self.rules, segments, unlisted)
        if not survey.batches <= self.rules.batch_topics:
            survey = self._survey_by(replace(self.rules, batch_topics=survey.batches), segments, unlisted)
        cut_stale(survey)
        return survey

    def _survey_by(
        self, rules: FileRules, segments: Sequence[PlacedSegment], unlisted: Ints | None
    ) -> Survey:
        jobs, advance = self.reading.jobs, self.reading.advance
        return Surveyor(self.kernels, self.mode, rules, jobs, advance, unlisted).read(segments)

    def _without(self, survey: Survey, offsets: Collection[int]) -> tuple[Survey, Ahead]:
        """The log once more, with the records at these physical offsets as holes."""
        survey = self._survey_of(survey.segments, np.fromiter(offsets, np.int64))
        open_skipped(survey)
        return survey, self._ahead(survey)

    def _pointed(self, survey: Survey) -> dict[int, list[Position]]:
        """Positions with a unit for the first record of those that are alone; opens fillers that lie."""
        runs = chain(singleton_runs(survey), *scattered_runs(survey).values())
        singletons = {one.start: one for one in runs if one.count <= SHORT}
        fillers = {one.start: one for one in filler_places(survey)}
        places = [Hole(survey.segments[0], one.start, one.first_end) for one in singletons.values()]
        places = sorted([*places, *fillers.values()], key=lambda one: one.start)
        found = [(places[number], frames) for number, frames in frames_by_unit(self.store, places).items()]
        open_pointed(survey, [(place, frames) for place, frames in found if place.start in fillers])
        return {
            place.start: [
                (one.key, one.slot)
                for one in frames
                if one.key is not None and one.slot is not None and one.end == place.end
            ]
            for place, frames in found
            if place.start in singletons
        }

    def _places_of(self, survey: Survey, runs: Sequence[Run]) -> dict[int, set[int]]:
        """Where in their own queue some single records, by where they begin, have units."""
        by_start = {one.start: one for one in runs}
        holes = [Hole(survey.segments[0], one.start, one.end) for _, one in sorted(by_start.items())]
        found: dict[int, set[int]] = defaultdict(set)
        for frame in chain.from_iterable(frames_by_unit(self.store, holes).values()):
            one = by_start.get(frame.start)
            if one is not None and (frame.key, frame.end) == (one.key, one.end) and frame.slot is not None:
                found[frame.start].add(frame.slot)
        return found

    def _surveyed(self) -> tuple[Survey, list[DonorRange]]:
        """The log, with what donors have for its holes."""
        survey = self._survey_of(self.placing.segments)
        donated_ranges = self._donated(survey)
        if not donated_ranges:
            return survey, []
        given: dict[int, list[Patch]] = {}
        for one in donated_ranges:
            given.setdefault(one.hole.placed.base, []).append(one.patch)
        segments = [
            replace(placed, given=tuple(given[placed.base])) if placed.base in given else placed
            for placed in survey.segments
        ]
        by_base = {placed.base: placed for placed in segments}
        for one in donated_ranges:
            one.hole.placed = by_base[one.hole.placed.base]
        return self._survey_of(segments), donated_ranges

    def _donated(self, survey: Survey) -> list[DonorRange]:
        """What replicas have, then what other places of the log have: these are of it, also at its end."""
        records, holes = _maybe_torn(survey), _joined(survey.holes)
        wanting = self._wanting(holes) if self.donors else []
        replicas = Donors([of_store(one) for one in self.donors], self.kernels, self.mode)
        copies, stay = self.placing.copies, {placed.path for placed in self.placing.segments}
        with LogBytes(survey.segments, self.mode) as log:
            of_log = Donors(
                [
                    of_copies((one for one in copies if one[0].path not in stay), None),
                    of_copies((one for one in copies if one[0].path in stay), self.work),
                    Donor(None, misdirected(self.store, holes, log), self.work),
                ],
                self.kernels,
                self.mode,
            )
            found = replicas.donated_ranges(_by_start(wanting, records), log)
            found += of_log.donated_ranges(_by_start(holes, records), log, found)
        torn, begins = {one.start for one in survey.torn}, {(one.donor, one.start) for one in found}
        return [
            one
            for one in found
            if not one.of_record or one.start in torn or (one.donor, one.hole.end) in begins
        ]

    def _wanting(self, holes: Sequence[Hole]) -> list[Hole]:
        """Holes in which something is lost: not the unused rest of the last segment.

        That is one too where a unit of the store's own queues points into it: then the log was longer.
        """
        pointed = frames_by_unit(self.store, holes)
        return [
            hole
            for number, hole in enumerate(holes)
            if hole.behind is not None or hole.reasons != {UNUSED} or number in pointed
        ]

    @staticmethod
    def _end(survey: Survey, claims: Claims, solid: int) -> int:
        """Behind the last record that is intact or will be a tombstone; what follows is a torn tail."""
        ends = [one.end for frames in claims.frames.values() for one in frames if one.key is not None]
        return _with_filler(survey, max([solid, *ends]))

    def _filled(
        self, hole: Hole, frames: Sequence[Frame], layouts: Sequence[HoleLayout], end: int, filling: Filling
    ) -> list[Repaired]:
        filled = filling.fill(hole, frames, layouts, end)
        if not len(filled.tiles):
            return []
        return [Repaired(hole, Patch(filled.tiles.start - hole.placed.base, filled.tiles), filled)]

    def _clear_tail(self, made: RepairedLog) -> None:
        """Zeros behind the end of the log, where anything else is left in its segment."""
        placed = next((one for one in made.segments if one.base < made.end < one.end), None)
        if placed is None or (placed.file is None and not placed.given):
            return
        start = made.end - placed.base
        below = None if placed.file is None else ZeroFilledSource(placed.file.open(self.mode))
        with OverlaySource(below, placed.size, placed.given, placed.path) as source:
            scan = SegmentScan(source, placed.base, kernels=self.kernels)
            first = scan.first_nonzero(start)
            if first >= placed.size:
                return
            last = _last_data(source, first)
        hole = next((one for one in made.survey.holes if one.placed is placed and one.end > made.end), None)
        if hole is not None:
            made.repaired.append(Repaired(hole, Patch(first, Zeros(last - first)), None))


def _allocated(survey: Survey, claims: Claims, end: int) -> tuple[list[list[HoleLayout]], list[Missing]]:
    """Layouts by hole, and what finds no room: in places of units of further queues, or without them."""
    tries = []
    for apart in (True, False):
        layouts = [
            list(layouts_of(hole, claims.frames[number], end, apart=apart))
            for number, hole in enumerate(survey.holes)
        ]
        without = allocate(claims, [layout for group in layouts for layout in group], survey.batches)
        tries.append((sum(one.count for one in without), layouts, without))
        if not without:
            break
    _, layouts, without = min(tries, key=lambda one: one[0])
    return layouts, without


def _torn(survey: Survey, made: RepairedLog) -> Iterator[Repaired]:
    """Records that stay with the properties that are whole, less those that are not part of the log."""
    starts = [hole.start for hole in survey.holes]
    longer = {one.filled.lengthened for one in made.repaired if one.filled is not None}
    for one in survey.torn:
        at = bisect_right(starts, one.start) - 1
        behind = survey.fillers.get(one.placed.base, one.placed.size) + one.placed.base
        if one.start >= min(behind, made.end) or one.start in longer:
            continue
        if at >= 0 and one.start < survey.holes[at].end:
            continue
        hole = _torn_hole(one)
        filled = Filled(Tiles())
        filled.tiles.add(one.start, len(one.record), partial(bytes, one.record))
        filled.restored.add(one.key, one.slot, 1, one.start, len(one.record))
        yield Repaired(hole, Patch(one.start - one.placed.base, filled.tiles), filled)


def _maybe_torn(survey: Survey) -> list[Hole]:
    """Torn records, and those that a hole follows: what it begins with may reach into their properties."""
    found = {one.start: _torn_hole(one) for one in survey.torn}
    for one in survey.holes:
        if one.before is not None and one.placed.file is not None and not one.placed.moved:
            found[one.before] = Hole(
                one.placed, one.before, one.start, one.before, reasons={"torn-properties"}
            )
    return list(found.values())


def _joined(holes: Sequence[Hole]) -> list[Hole]:
    """Those that follow each other as one: what lay there ended at other places."""
    joined: list[Hole] = []
    for one in holes:
        last = joined[-1] if joined else None
        if last is not None and last.end == one.start and last.placed is one.placed:
            joined[-1] = replace(last, end=one.end, behind=one.behind, reasons=last.reasons | one.reasons)
        else:
            joined.append(one)
    return joined


def _by_start(*holes: Sequence[Hole]) -> list[Hole]:
    return sorted(chain.from_iterable(holes), key=lambda one: one.start)


def _torn_hole(one: Torn) -> Hole:
    return Hole(one.placed, one.start, one.start + len(one.record), one.start, reasons={"torn-properties"})


def _solid_end(survey: Survey) -> int:
    """Behind the last intact record that is in order."""
    end = survey.data_end
    for hole in reversed(survey.holes):
        if hole.start < end <= hole.end:
            end = hole.start
    return end


def _credible(frames: list[Frame], solid: int) -> list[Frame]:
    """Behind the end of the log only those that state their place and size themselves."""
    return [
        one
        for one in frames
        if one.start < solid
        or (one.header is not None and one.header.own_place and one.header.size == one.length)
    ]


def _with_filler(survey: Survey, end: int) -> int:
    """A whole filler right behind the last record is the end of its segment."""
    for placed in survey.segments:
        if placed.base < end <= placed.end and survey.fillers.get(placed.base) == end - placed.base:
            return placed.end
    return end


def _last_data(source: OverlaySource, first: int) -> int:
    """Behind the last byte that is not zero."""
    at = source.size
    while at > first:
        low = max(first, at - _STEP)
        places = source.window(low, at - low).nonzero()[0]
        if places.size:
            return low + int(places[-1]) + 1
        at = low
    return first


def _parted(
    survey: Survey, units: dict[int, list[Frame]]
) -> tuple[dict[int, list[Frame]], dict[int, list[Frame]]]:
    """Frames of queues that records name as their own, by hole, and those of further queues."""
    own: dict[int, list[Frame]] = defaultdict(list)
    further: dict[int, list[Frame]] = defaultdict(list)
    for number, frames in units.items():
        for one in frames:
            light = one.key is not None and survey.is_light(one.key)
            (further if light else own)[number].append(one)
    return own, further


def _places(further: Sequence[Frame], *, lmq: bool) -> list[Frame]:
    """Where units of further queues say that records were, once an extent; a number that all state holds.

    lmq: `enableLmq`.
    """
    numbers: dict[tuple[int, int], set[int]] = {}
    for one in further:
        stated = numbers.setdefault((one.start, one.end), set())
        if one.key is not None and one.trust is not Trust.REFUTED and takes_number(one.key[0], lmq=lmq):
            stated.add(one.key[1])
    return [
        Frame(start, end, further=True, number=min(stated) if len(stated) == 1 else None)
        for (start, end), stated in numbers.items()
    ]


def queues_of(store: Store) -> list[QueueKey]:
    """Plain and batch queues that have a directory."""
    return [
        (one.topic, one.queue_id)
        for kind in (FileKind.CONSUMEQUEUE, FileKind.BATCHCONSUMEQUEUE)
        for one in store.queues(kind)
        if one.topic is not None and one.queue_id is not None
    ]
