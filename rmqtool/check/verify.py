"""All checks over one store, in one pass over its log."""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from formats.checkpoint import parse_checkpoint
from rmqtool.check.account import Accounting, RunSummary
from rmqtool.check.causes import Causes
from rmqtool.check.compaction import check_compaction
from rmqtool.check.covered import Covered
from rmqtool.check.cross import CrossCheck
from rmqtool.check.finding_limits import limited
from rmqtool.check.findings import Tally, finding
from rmqtool.check.further import FurtherRules, is_off
from rmqtool.check.index import IndexCheck
from rmqtool.check.index import LogRange as IndexedLog
from rmqtool.check.layout import blocked_topics, check_layout
from rmqtool.check.levels import NOT_LOOKED_AT, Level, Phase
from rmqtool.check.live import border, confirmed, relisted
from rmqtool.check.log import blank_findings, gap_finding, tail_finding
from rmqtool.check.log_reading import Filler, accounted_log
from rmqtool.check.lost import lost_end
from rmqtool.check.not_copied import NotCopied
from rmqtool.check.queue_files import OpenFiles, queues_of
from rmqtool.check.queue_order import check_units, unreadable_units
from rmqtool.check.quick import QuickCheck
from rmqtool.check.records_at import RecordsAt
from rmqtool.check.state import LogEnd, check_state, is_unclean
from rmqtool.check.times import TimeCheck
from rmqtool.check.topics import QueueEnds
from rmqtool.check.unchecked import unchecked_names
from rmqtool.check.undispatched import Circumstances, misplaced, undispatched
from rmqtool.check.unmatched_units import UnitCheck, queue_times
from rmqtool.errors import RmqtoolError
from rmqtool.scan.engine import choose_kernels
from rmqtool.scan.events import End, Event, Gap, Tail, Unreadable
from rmqtool.scan.extensions import Extensions
from rmqtool.scan.fields import Stop
from rmqtool.scan.options import ReadOptions, data_bytes
from rmqtool.scan.reader import Expired
from rmqtool.store.kinds import COMPACTION_KINDS
from rmqtool.store.layout import FileKind
from rmqtool.store.resolve import StoreForm
from rmqtool.store.rocksdb import rocksdb_queue_files
from rmqtool.store.whole import read_whole

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from rmqtool.check.findings import Finding
    from rmqtool.check.queue_files import QueueUnits
    from rmqtool.check.topics import Times
    from rmqtool.scan.kernel_types import Kernels
    from rmqtool.store.access import Access
    from rmqtool.store.coverage import Incomplete, Row
    from rmqtool.store.layout import Store
    from rmqtool.store.segments import Segment, SegmentSet

    LogEvent = tuple[Segment, RunSummary | Event | Filler | Expired]

_QUEUES = (FileKind.CONSUMEQUEUE, FileKind.BATCHCONSUMEQUEUE)


@dataclass
class Verification:
    """One run over one store: iterate `findings`, then ask for the `summary`."""

    store: Store
    reading: ReadOptions
    level: Level = Level.DEFAULT
    tally: Tally = field(default_factory=Tally)
    covered: Covered = field(default_factory=Covered)
    compared_until: int | None = None
    """of a live store: offset up to which log, queues and index are held against each other"""
    causes: Causes = field(default_factory=Causes)
    not_copied: NotCopied = field(init=False)
    index_check: IndexCheck | None = None
    external_reader: Callable[[SegmentSet], Iterator[LogEvent]] | None = None
    """gives what was read of the log elsewhere, in place of reading it"""
    _started: float = field(default_factory=time.monotonic)

    def __post_init__(self) -> None:
        self.not_copied = NotCopied.of(self.store.segments)

    @property
    def live(self) -> bool:
        """Whether a broker may be writing."""
        return self.reading.live

    @property
    def access(self) -> Access:
        """How files are opened."""
        return self.reading.access

    @property
    def bytes_to_read(self) -> int:
        """What `reading.advance` is given in all: log, queues and index."""
        return sum(one.size for one in self.store.segments) + self._bytes_of(
            *_QUEUES, FileKind.INDEX, *(COMPACTION_KINDS if self._reads_compaction else ())
        )

    @property
    def _reads_compaction(self) -> bool:
        """A log that moves cannot be held against its queue."""
        return self.level is not Level.QUICK and not self.live

    def _bytes_of(self, *kinds: FileKind) -> int:
        """Holes are not read, and most of a new file of a queue or the index is one."""
        return sum(min(file.size, file.disk_bytes) for file in self.store.of_kind(*kinds))

    def findings(self) -> Iterator[Finding]:
        """All findings, those about the log in physical order."""
        reported = self.causes.with_causes(self._to_the_end())
        return self.tally.counted(limited(self.covered.watched(reported)))

    def _to_the_end(self) -> Iterator[Finding]:
        if self.level is Level.QUICK:
            yield from QuickCheck(self).findings()
        else:
            yield from self._all()
        self.covered.note_entries(self.store)
        self.covered.phase = Phase.DONE

    def _all(self) -> Iterator[Finding]:
        files = OpenFiles(self.access)
        try:
            if self.live:
                self.compared_until = border(self.store, files)
                self.store = relisted(self.store)
            store, until = self.store, self.compared_until
            kernels = choose_kernels(data_bytes(store.segments))
            with Extensions(store, replace(self.access, mode="pread")) as extensions:
                queues = queues_of(store, FileKind.CONSUMEQUEUE, files, until)
                batches = queues_of(store, FileKind.BATCHCONSUMEQUEUE, files, until)
                bare = not any(one.files for one in (*queues.values(), *batches.values()))
                single = self.external_reader is not None or FurtherRules.of(store) is not None
                cross = CrossCheck(queues, batches, extensions, kernels, stretched=bare and not single)
                index = self.index_check = IndexCheck(
                    store, kernels, self.access, until, not_copied=self.not_copied
                )
                yield from self.layout()
                self.covered.phase = Phase.LOG
                yield from self.causes.deferred(self._log(kernels, cross, index))
                yield from cross.close()
                self.covered.phase = Phase.QUEUES
                yield from self._queues(kernels, cross, files)
                self.reading.done(self._bytes_of(*_QUEUES))
                self.covered.phase = Phase.INDEX
                yield from self._index(index)
                self.reading.done(self._bytes_of(FileKind.INDEX))
                self.covered.phase = Phase.COMPACTION
                if self._reads_compaction:
                    yield from check_compaction(self.store, self.reading, unclean=is_unclean(self.store))
                self.covered.phase = Phase.STATE
                yield from self._all_state([*queues.values(), *batches.values()], files)
        finally:
            files.close()

    def layout(self) -> Iterator[Finding]:
        """The directory itself."""
        return self._looks(check_layout)

    def _looks(self, check: Callable[[Store], Iterator[Finding]]) -> Iterator[Finding]:
        """One look at a store at rest; at a live one a second, where the first finds something."""
        if not self.live:
            return check(self.store)
        stores = iter((self.store,))
        return confirmed(lambda: check(next(stores, None) or relisted(self.store)))

    def _all_state(self, queues: Sequence[QueueUnits], files: OpenFiles) -> Iterator[Finding]:
        records = RecordsAt(self.store.segments, files)
        by_key = {(queue.topic, queue.queue_id): queue for queue in queues}

        def times(topic: str, queue_id: int) -> tuple[int, int] | None:
            return queue_times(by_key[topic, queue_id], records, self.not_copied)

        ends = {key: QueueEnds(*queue.ends()) for key, queue in by_key.items() if queue.whole}
        yield from self.state(ends, times)

    def state(
        self, queues: Mapping[tuple[str, int], QueueEnds], times: Times | None = None
    ) -> Iterator[Finding]:
        """What lies beside the data; see `check_state`."""
        if self.access.limit is not None:
            small = self.store.of_kind(FileKind.CHECKPOINT, FileKind.CONFIG, FileKind.CONFIG_BAK)
            self.access.limit.take(sum(file.size for file in small))
        self.causes.log_end = self.covered.end_offset
        yield from self._looks(
            partial(check_state, queues=queues, log_end=self._log_end(), times=times, reading=self.reading)
        )

    def _log_end(self) -> LogEnd | None:
        end, timestamp = self.covered.end_offset, self.covered.last_timestamp
        return None if end is None or not timestamp else LogEnd(end, timestamp)

    @property
    def _first_offset(self) -> int:
        """Where the log begins, as far as it has not expired while it was read."""
        return max(self.store.segments.first_offset, self.covered.expired_end)

    def _index(self, index: IndexCheck) -> Iterator[Finding]:
        known = None
        if len(self.store.segments) and self.covered.end_offset is not None:
            end = self.covered.end_offset if self.compared_until is None else self.compared_until
            known = IndexedLog(self._first_offset, end)
        yield from index.finish(known, self.causes.lost)

    def _log(self, kernels: Kernels, cross: CrossCheck, index: IndexCheck) -> Iterator[Finding]:
        """What segments hold, read side by side, is checked in the order of the log."""
        times = TimeCheck()
        bare = False
        for segment, event in self._read(kernels, cross, index):
            if isinstance(event, Unreadable) and segment.file.absent is not None:
                yield from self.not_copied.meets(segment)
                continue
            yield from self.not_copied.close()
            if isinstance(event, RunSummary):
                self.covered.count(event.extent, segment)
                for one in event.judged:
                    if not (bare and one.code == "CL-NO-CRC32"):
                        yield one
                    bare |= one.code == "CL-NO-CRC32"
                yield from times.records(event.times, segment)
                yield from event.inside
                yield from cross.take(event.placed)
                cross.further.take(event.further)
                yield from index.match(event.keys)
            elif isinstance(event, Filler):
                yield from blank_findings(event.blank, segment, event.filled)
            elif isinstance(event, Unreadable):
                yield self.unreadable(segment, event)
            elif isinstance(event, Expired):
                self.covered.expired_end = segment.end
            else:
                yield from self._other(event, segment)
        yield from self.not_copied.close()
        yield from times.close(self._dispatched_timestamp())

    def _read(self, kernels: Kernels, cross: CrossCheck, index: IndexCheck) -> Iterator[LogEvent]:
        """The log as it was read elsewhere, or as it is read here."""
        if self.external_reader is not None:
            return self.external_reader(self.store.segments)
        usual = Accounting.of(self.store, kernels, self.level, self.compared_until)
        account = replace(usual, stretched=cross.stretched, unindexed=index.without_files)
        return accounted_log(self.store.segments, self.reading, kernels, account).events()

    def _dispatched_timestamp(self) -> int | None:
        """`logicsMsgTimestamp` of the checkpoint, None without one."""
        for file in self.store.of_kind(FileKind.CHECKPOINT):
            try:
                return int(parse_checkpoint(read_whole(file)).logics_msg_timestamp)
            except RmqtoolError:
                return None
        return None

    def unreadable(self, segment: Segment, lost: Unreadable) -> Finding:
        """The finding about bytes of a segment that cannot be read."""
        return finding(
            "DIR-UNREADABLE",
            path=segment.file.display_path,
            position=lost.position,
            physical_offset=segment.base + lost.position,
            length=lost.length,
            found=lost.reason,
        )

    def _other(self, event: Event, segment: Segment) -> Iterator[Finding]:
        if isinstance(event, Gap):
            if event.reason is Stop.TORN:  # what is unreadable beside it has its own finding
                start = segment.base + event.position
                self.causes.torn(start, start + event.length)
            else:
                yield gap_finding(event, segment, self.store.sizes[FileKind.COMMITLOG].value)
        elif isinstance(event, Tail):
            tail = tail_finding(event, segment)
            if tail is not None:
                yield tail
        elif isinstance(event, End) and self.store.segments.is_active(segment):
            self.covered.end_offset = segment.base + event.position

    def _queues(self, kernels: Kernels, cross: CrossCheck, files: OpenFiles) -> Iterator[Finding]:
        store = self.store
        both = [*cross.queues.values(), *cross.batches.values()]
        for queue in both:
            yield from _guarded(queue, check_units(queue, kernels.dispatch))
            yield from unreadable_units(queue)
        if self.covered.end_offset is not None and not self.live:
            size = store.sizes[FileKind.COMMITLOG].value
            yield from lost_end(both, store.segments, self.covered.end_offset, size)
        known = (self._first_offset, store.segments.end_offset) if len(store.segments) else None
        records = RecordsAt(store.segments, files)
        check = UnitCheck(records, self.causes.lost, known, self.not_copied, kernels)
        for queue in both:
            yield from _guarded(queue, check.check(queue))
        if rocksdb_queue_files(store) and not any(queue.files for queue in cross.queues.values()):
            yield finding("X-ROCKSDB", path="consumequeue")
        elif len(store.segments):
            yield from misplaced(cross, records)
            # the settings beside a log that was given alone tell of topics; their queues were not given
            alone = store.form is StoreForm.COMMITLOG
            topics = frozenset() if alone else frozenset(store.topics)
            around = Circumstances(is_unclean(store), topics, unfed=is_off(store) and not alone)
            yield from undispatched(cross, around)
            yield from blocked_topics(store, {topic for topic, _ in cross.unplaced})

    def summary(self) -> dict[str, Any]:
        """What was found and covered."""
        covered = self.covered
        reported: dict[str, Any] = {
            "level": self.level.value,
            "findings": sum(self.tally.by_severity.values()),
            "by_severity": self.tally.by_severity,
            "by_code": dict(sorted(self.tally.by_code.items())),
            "records": covered.records,
            "bytes": covered.bytes,
            "end_offset": covered.end_offset,
            "seconds": round(time.monotonic() - self._started, 3),
            "index_files": [] if self.index_check is None else self.index_check.stats(),
        }
        if self.compared_until is not None:
            reported["live"] = {"compared_until": self.compared_until}
        if unseen := [
            *NOT_LOOKED_AT[self.level],
            *unchecked_names(self.store, compaction=self._reads_compaction),
            *self.not_copied.unseen(),
        ]:
            reported["not_looked_at"] = unseen
        return reported | covered.as_row()

    def left(self, reason: Incomplete) -> list[Row]:
        """What is not covered if the run ends now, besides what the summary has."""
        return self.covered.left(self.store, reason)


def _guarded(queue: QueueUnits, findings: Iterator[Finding]) -> Iterator[Finding]:
    """The findings about a queue, up to where it cannot be read."""
    try:
        yield from findings
    except RmqtoolError as error:
        queue.whole = False
        yield finding("DIR-UNREADABLE", path=queue.path, found=str(error))
