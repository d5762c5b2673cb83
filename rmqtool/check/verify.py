"""All checks over one store, in one pass over its log."""

from __future__ import annotations

import time
from contextlib import closing
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from formats.checkpoint import parse_checkpoint
from formats.commitlog import END_FILE_MIN_BLANK_LENGTH as BLANK_HEADER
from rmqtool.check.causes import Causes
from rmqtool.check.cross import Circumstances, CrossCheck, ghosts
from rmqtool.check.doubtful import Damage, RecordsAt, UnitCheck, queue_times
from rmqtool.check.findings import Tally, finding
from rmqtool.check.index import IndexCheck
from rmqtool.check.index import LogRange as IndexedLog
from rmqtool.check.layout import check_layout
from rmqtool.check.log import LogCheck, blank_findings, gap_finding, tail_finding
from rmqtool.check.lost import lost_end
from rmqtool.check.queue_files import OpenFiles, all_queues, batch_queues, check_units
from rmqtool.check.state import LogEnd, check_state
from rmqtool.check.topics import QueueEnds, in_rocksdb
from rmqtool.errors import RmqtoolError, UnreadableError
from rmqtool.scan.engine import choose_kernels
from rmqtool.scan.events import Blank, End, Event, Gap, Records, Tail
from rmqtool.scan.fields import Field
from rmqtool.scan.files import FileReader
from rmqtool.scan.log import data_bytes
from rmqtool.scan.parallel import in_order
from rmqtool.scan.segment import SegmentScan
from rmqtool.store.layout import FileKind
from rmqtool.store.lock import network_filesystem, probe
from rmqtool.store.throttle import RateLimit, ThrottledSource

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from types import ModuleType

    from rmqtool.check.findings import Finding
    from rmqtool.check.queue_files import QueueUnits
    from rmqtool.store.layout import Store
    from rmqtool.store.segments import Segment


@dataclass(frozen=True)
class Reading:
    """How to read.

    jobs: segments scanned at once. bytes_per_second: None without bound. advance: told how many bytes are
    done.
    """

    jobs: int = 1
    safe_io: bool = False
    bytes_per_second: int | None = None
    advance: Callable[[int], object] | None = None


@dataclass(frozen=True, slots=True)
class _Filler:
    """A blank record, and whether the bytes behind its header are not zero."""

    blank: Blank
    filled: bool


@dataclass(frozen=True, slots=True)
class _Lost:
    """From `position` on the segment cannot be read."""

    position: int
    reason: str


@dataclass
class Verification:
    """One run over one store: iterate `findings`, then ask for the `summary`."""

    store: Store
    reading: Reading = field(default_factory=Reading)
    tally: Tally = field(default_factory=Tally)
    not_covered: list[dict[str, Any]] = field(default_factory=list)
    records: int = 0
    bytes: int = 0
    units: int = 0
    end_offset: int | None = None
    last_timestamp: int | None = None
    causes: Causes = field(default_factory=Causes)
    _started: float = field(default_factory=time.monotonic)

    @cached_property
    def _careful(self) -> bool:
        """Read with pread: a file of a live store may shrink, and so may one on a network file system."""
        reading = self.reading
        live = probe(self.store.lock_path).held is True
        remote = network_filesystem(self.store.root) is not None
        return reading.safe_io or reading.bytes_per_second is not None or live or remote

    def findings(self) -> Iterator[Finding]:
        """All findings, those about the log in physical order."""
        return self.tally.counted(self.causes.told(self._all()))

    def _all(self) -> Iterator[Finding]:
        store = self.store
        kernels = choose_kernels(data_bytes(store.segments))
        files = OpenFiles("pread" if self._careful else "auto")
        try:
            with FileReader(store, "pread" if self._careful else "auto") as reader:
                queues = all_queues(store, files)
                batches = batch_queues(store, files)
                cross = CrossCheck(queues, reader, kernels)
                index = IndexCheck(store, kernels, self._careful)
                yield from check_layout(store)
                yield from self.causes.settled(self._log(kernels, cross, index))
                yield from cross.close()
                yield from self._queues(cross, batches, files)
                yield from self._index(index)
                yield from self._state([*queues.values(), *batches.values()], files)
        finally:
            files.close()

    def _state(self, queues: Sequence[QueueUnits], files: OpenFiles) -> Iterator[Finding]:
        records = RecordsAt(self.store.segments, files)
        by_key = {(queue.topic, queue.queue_id): queue for queue in queues}

        def times(topic: str, queue_id: int) -> tuple[int, int] | None:
            return queue_times(by_key[topic, queue_id], records)

        yield from check_state(self.store, queues=_ends(queues), log_end=self._log_end(), times=times)

    def _log_end(self) -> LogEnd | None:
        if self.end_offset is None or not self.last_timestamp:
            return None
        return LogEnd(self.end_offset, self.last_timestamp)

    def _index(self, index: IndexCheck) -> Iterator[Finding]:
        segments = self.store.segments
        known = None
        if len(segments) and self.end_offset is not None:
            known = IndexedLog(segments.first_offset, self.end_offset)
        yield from index.finish(known, self.causes.lost)

    def _log(self, kernels: ModuleType, cross: CrossCheck, index: IndexCheck) -> Iterator[Finding]:
        """Scans segments side by side; what they hold is checked in the order of the log."""
        config = self.store.config
        check = LogCheck(config is not None and config.force_verify_prop_crc)
        reading = self.reading
        limit = RateLimit(reading.bytes_per_second) if reading.bytes_per_second else None
        segments = list(self.store.segments)
        with closing(in_order(segments, lambda one: self._scan(one, kernels, limit), reading.jobs)) as events:
            for segment, event in events:
                if isinstance(event, Records):
                    self._count(event)
                    yield from check.records(event, segment)
                    yield from cross.take(event, segment.base)
                    yield from index.records(event, segment.base)
                elif isinstance(event, _Filler):
                    yield from blank_findings(event.blank, segment, event.filled)
                elif isinstance(event, _Lost):
                    yield from self._unreadable(segment, event)
                else:
                    yield from self._other(event, segment)
        yield from check.close(self._dispatched_timestamp())

    def _scan(
        self, segment: Segment, kernels: ModuleType, limit: RateLimit | None
    ) -> Iterator[tuple[Segment, Event | _Filler | _Lost]]:
        """Everything in a segment, for one thread; an unreadable rest is its last event."""
        side_by_side = self.reading.jobs > 1
        done = 0
        try:
            source = segment.open("pread" if self._careful or limit else "auto")
            with ThrottledSource(source, limit) if limit else source as opened:
                active = self.store.segments.is_active(segment)
                for event in SegmentScan(opened, segment.base, active=active, kernels=kernels):
                    if isinstance(event, Records):
                        last = event.rows[-1]
                        now = int(last[Field.POSITION] + last[Field.STORE_SIZE])
                        rows = event.rows.copy() if side_by_side else event.rows
                        yield segment, Records(rows, event.window, event.origin)
                        self._advance(now - done)
                        done = now
                    elif isinstance(event, Blank):
                        rest = opened.window(event.position, event.length)[BLANK_HEADER:]
                        yield segment, _Filler(event, int(kernels.first_nonzero(rest, 0)) < rest.size)
                    else:
                        yield segment, event
        except UnreadableError as error:
            yield segment, _Lost(max(done, error.offset), error.reason)
        except RmqtoolError as error:
            yield segment, _Lost(done, str(error))
        self._advance(segment.size - done)

    def _advance(self, count: int) -> None:
        if self.reading.advance is not None:
            self.reading.advance(count)

    def _dispatched_timestamp(self) -> int | None:
        """`logicsMsgTimestamp` of the checkpoint, None without one."""
        for file in self.store.of_kind(FileKind.CHECKPOINT):
            try:
                with file.open("pread") as source:
                    return int(parse_checkpoint(source.window(0, source.size).tobytes()).logics_msg_timestamp)
            except RmqtoolError:
                return None
        return None

    def _unreadable(self, segment: Segment, lost: _Lost) -> Iterator[Finding]:
        length = segment.size - lost.position
        self.not_covered.append(
            {
                "path": segment.file.shown,
                "position": lost.position,
                "length": length,
                "reason": lost.reason,
            }
        )
        yield finding(
            "DIR-UNREADABLE",
            path=segment.file.shown,
            position=lost.position,
            physical_offset=segment.base + lost.position,
            length=length,
            found=lost.reason,
        )

    def _count(self, run: Records) -> None:
        self.records += len(run.rows)
        self.last_timestamp = int(run.rows[-1, Field.STORE_TIMESTAMP])
        self.bytes += int(run.rows[:, Field.STORE_SIZE].sum())

    def _other(self, event: Event, segment: Segment) -> Iterator[Finding]:
        if isinstance(event, Gap):
            yield gap_finding(event, segment, self.store.sizes[FileKind.COMMITLOG].value)
        elif isinstance(event, Tail):
            tail = tail_finding(event, segment)
            if tail is not None:
                yield tail
        elif isinstance(event, End) and self.store.segments.is_active(segment):
            self.end_offset = segment.base + event.position

    def _queues(
        self, cross: CrossCheck, batches: Mapping[tuple[str, int], QueueUnits], files: OpenFiles
    ) -> Iterator[Finding]:
        store = self.store
        queues = cross.queues
        both = [*queues.values(), *batches.values()]
        for queue in both:
            yield from check_units(queue)
            self.not_covered += [
                {"path": queue.files[number].shown, "reason": reason}
                for number, reason in sorted(queue.unreadable.items())
            ]
        live = probe(store.lock_path).held is True
        if self.end_offset is not None and not live:
            size = store.sizes[FileKind.COMMITLOG].value
            yield from lost_end(both, store.segments, self.end_offset, size)
        low = store.segments.first_offset
        known = (low, store.segments.end_offset) if len(store.segments) else None
        moving_end = self.end_offset if live else None
        records = RecordsAt(store.segments, files)
        check = UnitCheck(records, Damage(self.causes.lost), known, moving_end)
        for queue in both:
            yield from check.check(queue)
        if in_rocksdb(store) and not any(queue.files for queue in queues.values()):
            yield finding("X-ROCKSDB", path="consumequeue")
        elif len(store.segments):
            yield from ghosts(cross, queues, self._circumstances(batches))

    def _circumstances(self, batches: Mapping[tuple[str, int], QueueUnits]) -> Circumstances:
        store = self.store
        aborted = bool(store.of_kind(FileKind.ABORT)) or (store.root / "abort").is_dir()
        live = bool(probe(store.lock_path).held)
        return Circumstances(aborted or live, frozenset(store.topics), batches)

    def summary(self) -> dict[str, Any]:
        """What was found and covered."""
        told: dict[str, Any] = {
            "findings": sum(self.tally.by_severity.values()),
            "by_severity": self.tally.by_severity,
            "by_code": dict(sorted(self.tally.by_code.items())),
            "records": self.records,
            "bytes": self.bytes,
            "end_offset": self.end_offset,
            "seconds": round(time.monotonic() - self._started, 3),
            "complete": not self.not_covered,
        }
        if self.not_covered:
            told |= {"incomplete_reason": "unreadable", "not_covered": self.not_covered}
        return told


def _ends(queues: Iterable[QueueUnits]) -> dict[tuple[str, int], QueueEnds]:
    """Queue offsets that each queue holds units for; without those that cannot all be read."""
    return {
        (queue.topic, queue.queue_id): QueueEnds(*queue.ends()) for queue in queues if not queue.unreadable
    }
