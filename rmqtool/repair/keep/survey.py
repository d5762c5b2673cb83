"""Reads a whole log, segment after segment: intact records as runs by queue, everything else as holes."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from statistics import median
from typing import TYPE_CHECKING

import numpy as np

from formats.commitlog import SysFlag
from formats.crc_trailer import TRAILER_SIZE
from formats.properties import CRC32
from rmqtool.broker.consume_queue import LARGEST_SLOT
from rmqtool.broker.dispatch import Dispatcher, dispatcher_by_place
from rmqtool.broker.refused_rows import without_number
from rmqtool.errors import RmqtoolError
from rmqtool.repair.keep.blanks import drop_behind_blanks
from rmqtool.repair.keep.model import Blanked, Frame, Hole, QueueKey, Run, Survey, Torn, joined, text_of
from rmqtool.repair.keep.overlay import OverlaySource, PatchIndex
from rmqtool.repair.keep.torn import with_whole_properties
from rmqtool.repair.tombstone_forms import is_service
from rmqtool.scan.events import Blank, End, Gap, Records, Tail
from rmqtool.scan.fields import CrcState, Field, Issue, Stop
from rmqtool.scan.joined_runs import RunJoiner
from rmqtool.scan.multi import MultiDispatch, inner_batches, uncounted
from rmqtool.scan.opened import handed_on
from rmqtool.scan.parallel import in_order
from rmqtool.scan.segment import SegmentScan
from rmqtool.store.patched import ZeroFilledSource

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import numpy.typing as npt

    from rmqtool.broker.file_rules import FileRules
    from rmqtool.broker.queue_records import QueueRecords
    from rmqtool.repair.keep.placing import PlacedSegment
    from rmqtool.scan.events import Event
    from rmqtool.scan.kernel_types import Kernels
    from rmqtool.scan.parallel import WorkerContext
    from rmqtool.store.access import OpenMode
    from rmqtool.store.patched import BadRange

    Rows = npt.NDArray[np.int64]
    Mask = npt.NDArray[np.bool_]

_FEW, _FAR_MS = 5, 86_400_000
"""records whose median store time is taken where that of the last one is so far ahead"""

_NO_POSITION = int(SysFlag.PREPARED)
"""bit that prepared and rolled back records have, and no others"""


@dataclass(frozen=True, slots=True)
class _Finished:
    """The end of what is read of a segment: why it ends early, ranges that could not be read."""

    reason: str | None = None
    unreadable: Sequence[BadRange] = ()


@dataclass
class Surveyor:
    """Make it, call `read` once.

    rules: whose records may take several positions, or positions in several queues. jobs: threads that read
    segments ahead. advance: called with how many bytes are done. unlisted: physical offsets of records whose
    lists of further queues are wrong.
    """

    kernels: Kernels
    mode: OpenMode
    rules: FileRules
    jobs: int = 1
    advance: Callable[[int], object] | None = None
    unlisted: Rows | None = None
    _survey: Survey = field(init=False)
    _dispatcher: Dispatcher = field(init=False)
    _placed: PlacedSegment = field(init=False)
    _previous: Rows | None = None
    """the last intact records of the segment that is read"""
    _usual: int = 0
    """store time of the last intact record, or of its neighbours where that one's is days away"""
    _trailer: bool = False
    _open: list[Hole] = field(default_factory=list)
    """holes behind which no intact record was met yet"""
    _joiner: RunJoiner = field(default_factory=RunJoiner)
    """records of the segment that is read on their way to the dispatcher"""
    _barrier: int = 0
    """physical offset behind which runs go on no run from in front of it"""

    def read(self, segments: Sequence[PlacedSegment]) -> Survey:
        """All segments; what cannot be read is a hole."""
        self._survey = Survey(list(segments), batches=self.rules.batch_topics)
        self._dispatcher = dispatcher_by_place(self._append, self.rules, self.kernels)
        last = segments[-1] if segments else None
        current, reached = None, 0
        with closing(
            in_order(list(segments), partial(self._events, last), self.jobs, size=lambda one: one.size)
        ) as events:
            for placed, event in events:
                if current is not placed:
                    self._dispatch_rest()
                    current, reached = placed, 0
                    self._placed, self._previous = placed, None
                if isinstance(event, _Finished):
                    self._end(placed, event, reached)
                else:
                    reached = self._take(event, reached)
        self._dispatch_rest()
        self._dispatcher.flush()
        self._survey.batches |= self._dispatcher.batch_topics
        drop_behind_blanks(self._survey)
        self._survey.holes = joined(self._survey.holes)
        return self._survey

    def _events(
        self, last: PlacedSegment | None, placed: PlacedSegment, worker: WorkerContext
    ) -> Iterator[tuple[PlacedSegment, Event | _Finished]]:
        """What a segment holds, for one thread. last: of the log."""
        if placed.file is None and not placed.given:
            yield placed, _Finished("no-file")
            return
        below = None
        try:
            if placed.file is not None:
                below = ZeroFilledSource(placed.file.open(self.mode))
            with OverlaySource(below, placed.size, placed.given, placed.path) as source:
                scan = SegmentScan(
                    source,
                    placed.base,
                    active=placed is last,
                    keep_stale=True,
                    tell_stale=True,
                    past_blanks=True,
                    kernels=self.kernels,
                    stop=worker.stop,
                )
                for event in scan:
                    if isinstance(event, Records):
                        yield placed, handed_on(event, source, worker)
                    else:
                        yield placed, event
        except RmqtoolError as error:
            yield placed, _Finished(f"unreadable: {error}")
            return
        yield placed, _Finished(unreadable=tuple(below.unreadable) if below is not None else ())

    def _end(self, placed: PlacedSegment, end: _Finished, reached: int) -> None:
        """Nothing more is read of a segment."""
        if end.reason is not None:
            self._hole(reached, placed.size, end.reason)
        if self._survey.doubts and self._survey.doubts[-1].placed is placed:
            self._part(placed.end)
        given = PatchIndex(placed.given)
        for bad in end.unreadable:
            if not given.covers(bad.start, bad.end):
                self._hole(bad.start, min(bad.end, placed.size), "unreadable")
        if self.advance is not None:
            self.advance(placed.size)

    def _take(self, event: Event, done: int) -> int:
        """Where the events seen so far end."""
        if isinstance(event, Records):
            self._records(event)
            last = event.rows[-1]
            return int(last[Field.POSITION] + last[Field.STORE_SIZE])
        if isinstance(event, Blank):
            self._survey.fillers[self._placed.base] = event.position
            self._survey.in_front[self._placed.base] = self._survey.last_timestamp, self._trailer
            if self._placed.foreign:
                self._hole(event.position, self._placed.size, "blank")
            elif event.stored_length != event.length:
                # since 5.3.2 no filler when larger than the file (`CommitLog#checkMessageAndReturnSize`)
                self._hole(event.position, self._placed.size, "blank-length")
            return event.position + event.length
        if isinstance(event, End):
            if event.reason is Stop.SHORT:
                self._hole(event.position, self._placed.size, "short")
            return done
        reason = "unreadable"
        if isinstance(event, Gap):
            if event.reason is Stop.BLANK:
                self._doubt(event)
            reason = event.reason.name.lower()
            if event.stale and self._survey.stale_from is None:
                self._survey.stale_from = self._placed.base + event.position
        elif isinstance(event, Tail):
            reason = f"tail-{event.content.value}"
        self._hole(event.position, event.position + event.length, reason)
        return event.position + event.length

    def _doubt(self, event: Gap) -> None:
        """A filler with records behind it: which of the two is right is settled at the end of the log.

        So is one with no more than the rest of a record under its header, which is of the log by its time.
        """
        survey, start = self._survey, self._placed.base + event.position
        self._part(start)
        facts = survey.last_start, survey.last_timestamp, survey.highest_timestamp, survey.data_end
        doubt = Blanked(self._placed, start, self._usual, *facts, tuple(self._open))
        doubt.later += event.expected == event.length
        survey.doubts.append(doubt)

    def _part(self, place: int) -> None:
        """Runs end here: what follows may turn out not to be part of the log."""
        self._dispatch_rest()
        self._dispatcher.flush()
        self._barrier = place

    def _dispatch_rest(self) -> None:
        for together in self._joiner.rest():
            self._dispatcher.take(together, self._placed.base)

    def _records(self, run: Records) -> None:
        rows = run.rows
        good = intact(rows)
        for number in np.flatnonzero(rows[:, Field.ISSUES] & int(Issue.PROPERTIES_NUL)).tolist():
            good[number] &= self._takes_torn(run, rows[number])
        good &= self._counts_right(run)
        refused = without_number(run, self.kernels)
        unlisted = self._is_unlisted(run)
        good &= ~refused & ~unlisted
        if good.all():
            self._good(run)
            return
        places = np.flatnonzero(np.diff(np.concatenate(([0], good.astype(np.int8), [0]))))
        at = 0
        for start, end in [*places.reshape(-1, 2).tolist(), [len(rows), len(rows)]]:
            for number in range(at, start):
                self._suspect(rows[number], refused=bool(refused[number]), unlisted=bool(unlisted[number]))
            if start < end:
                self._good(Records(rows[start:end], run.window, run.origin))
            at = end

    def _is_unlisted(self, run: Records) -> Mask:
        if self.unlisted is None:
            return np.zeros(len(run.rows), np.bool_)
        return np.isin(run.rows[:, Field.POSITION] + self._placed.base, self.unlisted)

    def _counts_right(self, run: Records) -> Mask:
        """Which records state the queue offset that their INNER_BASE has, as those of batch queues do."""
        rows = run.rows
        inner = (rows[:, Field.SYS_FLAG] & int(SysFlag.INNER_BATCH)) != 0
        if not inner.any() or not self.rules.batch_topics:
            return np.ones(len(rows), np.bool_)
        stated = rows[:, Field.QUEUE_OFFSET]
        bases, _ = inner_batches(run, inner, stated, np.ones_like(stated), self.kernels)
        return np.asarray(bases == stated, np.bool_)

    def _takes_torn(self, run: Records, row: Rows) -> bool:
        """Whether the record stays a message, with the properties that are whole."""
        start, size = int(row[Field.POSITION]) - run.origin, int(row[Field.STORE_SIZE])
        record = run.window[start : start + size].tobytes()
        whole = with_whole_properties(record, trailer=self._trailer)
        if whole is None or row[Field.CRC_STATE] == CrcState.BAD:
            return True
        at = int(row[Field.TOPIC_POSITION] - row[Field.POSITION])
        topic = text_of(record[at : at + int(row[Field.TOPIC_LENGTH])])
        if topic is None or is_service(topic) or topic in self.rules.batch_topics:
            return False
        key, offset = (topic, int(row[Field.QUEUE_ID])), self._placed.base + int(row[Field.POSITION])
        self._survey.torn.append(Torn(self._placed, offset, key, int(row[Field.QUEUE_OFFSET]), whole))
        return True

    def _good(self, run: Records) -> None:
        survey, rows = self._survey, run.rows
        survey.messages += len(rows)
        times = rows[:, Field.STORE_TIMESTAMP]
        if survey.doubts and survey.doubts[-1].placed is self._placed:
            later = int((times >= survey.doubts[-1].usual).sum())
            survey.doubts[-1].later += later
            survey.doubts[-1].older += len(times) - later
        survey.last_timestamp = int(times[-1])
        usual = int(median(times[-_FEW:].tolist()))
        self._usual = usual if survey.last_timestamp - usual > _FAR_MS else survey.last_timestamp
        highest = int(times.max())
        survey.highest_timestamp = max(survey.highest_timestamp, highest)
        survey.last_start = self._placed.base + int(rows[-1, Field.POSITION])
        survey.data_end = survey.last_start + int(rows[-1, Field.STORE_SIZE])
        self._previous = rows[-1].copy()
        for hole in self._open:
            hole.behind = highest
        self._open.clear()
        self._trailer = _has_trailer(run)
        self._uncounted(run)
        for together in self._joiner.add(run):
            self._dispatcher.take(together, self._placed.base)

    def _uncounted(self, run: Records) -> None:
        """Positions in further queues that only 5.x gives records: they get no units."""
        if self.rules.multi_dispatch is not MultiDispatch.USER_TOPICS:
            return
        if self.kernels.building.feeds_further_queues(run.window, run.origin, run.rows):
            for index, name, number, slot in uncounted(run, self.kernels, lmq=self.rules.lmq):
                place = self._placed.base + int(run.rows[index, Field.POSITION]), slot
                self._survey.uncounted.setdefault((name, number), []).append(place)

    def _suspect(self, row: Rows, *, refused: bool, unlisted: bool) -> None:
        start = int(row[Field.POSITION])
        reason = "not-a-number" if refused else "unlisted" if unlisted else "out-of-place"
        reason = "bad-crc" if row[Field.CRC_STATE] == CrcState.BAD else reason
        hole = self._hole(start, start + int(row[Field.STORE_SIZE]), reason)
        moved = bool(row[Field.ISSUES] & int(Issue.OFFSET))
        hole.frames.append(Frame(hole.start, hole.end, moved=moved))

    def _hole(self, start: int, end: int, reason: str) -> Hole:
        placed, previous = self._placed, self._previous
        before = None
        if previous is not None and previous[Field.POSITION] + previous[Field.STORE_SIZE] == start:
            before = placed.base + int(previous[Field.POSITION])
        hole = Hole(
            placed,
            placed.base + start,
            placed.base + end,
            before,
            self._survey.last_timestamp,
            trailer=self._trailer,
        )
        hole.reasons.add(reason)
        self._survey.holes.append(hole)
        self._open.append(hole)
        return hole

    def _append(self, key: QueueKey, run: QueueRecords) -> None:
        """Appends records to the runs of their queue: those that name it as their own, and others."""
        counts = np.maximum(run.messages, 1)  # no run ends in front of its begin
        values = np.stack((run.bases, run.offsets, run.sizes, counts))
        own = np.ones(len(run), np.bool_) if run.own is None else run.own
        for runs, some in ((self._survey.runs, own), (self._survey.light, ~own)):
            if some.any():
                _extend(runs.setdefault(key, []), key, values[:, some], self._barrier)


def intact(rows: Rows) -> Mask:
    """Which framed records are right in every field that can be judged by itself."""
    plain = (rows[:, Field.SYS_FLAG] & _NO_POSITION) == 0
    good = rows[:, Field.CRC_STATE] != CrcState.BAD
    good &= (rows[:, Field.ISSUES] & int(Issue.OFFSET | Issue.TOPIC_UTF8 | Issue.TOPIC_NUL)) == 0
    good &= (rows[:, Field.QUEUE_ID] >= 0) & (rows[:, Field.QUEUE_OFFSET] >= 0)
    good &= rows[:, Field.QUEUE_OFFSET] < LARGEST_SLOT  # no queue has a place behind that
    good &= (rows[:, Field.TOPIC_LENGTH] > 0) | ~plain
    # no release gives a record without a place in its queue a queue offset
    good &= plain | (rows[:, Field.QUEUE_OFFSET] == 0)
    return np.asarray(good, np.bool_)


def _has_trailer(run: Records) -> bool:
    row = run.rows[-1]
    end = int(row[Field.POSITION] + row[Field.STORE_SIZE]) - run.origin
    return run.window[end - TRAILER_SIZE : end - TRAILER_SIZE + 8].tobytes() == CRC32.encode()


def _extend(runs: list[Run], key: QueueKey, values: Rows, barrier: int) -> None:
    """values: first queue offset, physical offset, bytes and messages of records."""
    slots, offsets, sizes, counts = values
    # queue offsets that ascend: sums and differences of two others may leave 64 bits
    follows = (slots[1:] > slots[:-1]) & (slots[1:] - slots[:-1] == counts[:-1])
    breaks = np.flatnonzero(~follows) + 1
    edges = [0, *breaks.tolist(), len(slots)]
    for start, end in pairwise(edges):
        first, last = int(slots[start]), int(slots[end - 1]) + int(counts[end - 1]) - 1
        last_start = int(offsets[end - 1])
        stop = last_start + int(sizes[end - 1])
        if runs and runs[-1].last + 1 == first and runs[-1].start >= barrier:
            runs[-1].last, runs[-1].last_start, runs[-1].end = last, last_start, stop
        else:
            first_end = int(offsets[start] + sizes[start])
            runs.append(Run(key, first, last, int(offsets[start]), last_start, stop, first_end))
