"""All checks over one store, in one pass over its log."""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from formats.checkpoint import parse_checkpoint
from rmqtool.check.causes import Causes
from rmqtool.check.cross import CrossCheck
from rmqtool.check.doubtful import Damage, RecordsAt, UnitCheck, queue_times
from rmqtool.check.findings import Tally, finding
from rmqtool.check.ghosts import Circumstances, ghosts
from rmqtool.check.index import IndexCheck
from rmqtool.check.index import LogRange as IndexedLog
from rmqtool.check.layout import check_layout
from rmqtool.check.live import border, confirmed, listed_anew
from rmqtool.check.log import LogCheck, blank_findings, gap_finding, tail_finding
from rmqtool.check.log_reading import Expired, Filler, LogReader
from rmqtool.check.lost import lost_end
from rmqtool.check.queue_files import OpenFiles, check_units, queues_of
from rmqtool.check.state import LogEnd, check_state, is_unclean
from rmqtool.check.topics import QueueEnds, in_rocksdb
from rmqtool.errors import RmqtoolError
from rmqtool.scan.engine import choose_kernels
from rmqtool.scan.events import End, Event, Gap, Records, Tail, Unreadable
from rmqtool.scan.fields import Field, Stop
from rmqtool.scan.files import FileReader
from rmqtool.scan.log import data_bytes
from rmqtool.store.access import Access
from rmqtool.store.layout import FileKind
from rmqtool.store.live import is_live
from rmqtool.store.throttle import RateLimit

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
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
    compared_until: int | None = None
    """of a live store: offset up to which log, queues and index are held against each other"""
    expired_end: int = 0
    """where the segments end that a live store has deleted since it was listed"""
    _started: float = field(default_factory=time.monotonic)

    @cached_property
    def _live(self) -> bool:
        return is_live(self.store)

    @cached_property
    def _access(self) -> Access:
        """How files are opened; one rate for all of them."""
        rate = self.reading.bytes_per_second
        careful = self.reading.safe_io or self._live
        limit = RateLimit(rate) if rate else None
        return Access("pread" if careful else "auto", limit, drop_behind=self._live)

    def findings(self) -> Iterator[Finding]:
        """All findings, those about the log in physical order."""
        return self.tally.counted(self.causes.told(self._all()))

    def _all(self) -> Iterator[Finding]:
        files = OpenFiles(self._access)
        try:
            if self._live:
                self.compared_until = border(self.store, files)
                self.store = listed_anew(self.store)
            store, until = self.store, self.compared_until
            kernels = choose_kernels(data_bytes(store.segments))
            with FileReader(store, replace(self._access, mode="pread")) as reader:
                queues = queues_of(store, FileKind.CONSUMEQUEUE, files, until)
                batches = queues_of(store, FileKind.BATCHCONSUMEQUEUE, files, until)
                cross = CrossCheck(queues, batches, reader, kernels)
                index = IndexCheck(store, kernels, self._access, until)
                yield from self._looks(check_layout)
                yield from self.causes.settled(self._log(kernels, cross, index))
                yield from cross.close()
                yield from self._queues(cross, files)
                yield from self._index(index)
                yield from self._state([*queues.values(), *batches.values()], files)
        finally:
            files.close()

    def _looks(self, check: Callable[[Store], Iterator[Finding]]) -> Iterator[Finding]:
        """One look at a store at rest; at a live one a second, where the first finds something."""
        if not self._live:
            return check(self.store)
        stores = iter((self.store,))
        return confirmed(lambda: check(next(stores, None) or listed_anew(self.store)))

    def _state(self, queues: Sequence[QueueUnits], files: OpenFiles) -> Iterator[Finding]:
        limit = self._access.limit
        if limit is not None:
            small = self.store.of_kind(FileKind.CHECKPOINT, FileKind.CONFIG, FileKind.CONFIG_BAK)
            limit.take(sum(file.size for file in small))
        records = RecordsAt(self.store.segments, files)
        by_key = {(queue.topic, queue.queue_id): queue for queue in queues}
        ends = _ends(queues)

        def times(topic: str, queue_id: int) -> tuple[int, int] | None:
            return queue_times(by_key[topic, queue_id], records)

        yield from self._looks(
            lambda store: check_state(store, queues=ends, log_end=self._log_end(), times=times)
        )

    def _log_end(self) -> LogEnd | None:
        if self.end_offset is None or not self.last_timestamp:
            return None
        return LogEnd(self.end_offset, self.last_timestamp)

    @property
    def _first_offset(self) -> int:
        """Where the log begins, as far as it has not expired while it was read."""
        return max(self.store.segments.first_offset, self.expired_end)

    def _index(self, index: IndexCheck) -> Iterator[Finding]:
        segments = self.store.segments
        known = None
        if len(segments) and self.end_offset is not None:
            end = self.end_offset if self.compared_until is None else self.compared_until
            known = IndexedLog(self._first_offset, end)
        for one in index.finish(known, self.causes.lost):
            if one.code == "IDX-UNREADABLE":
                where = {"path": one.path, "position": one.position or 0, "length": one.length}
                self.not_covered.append(where | {"reason": one.found})
            yield one

    def _log(self, kernels: ModuleType, cross: CrossCheck, index: IndexCheck) -> Iterator[Finding]:
        """Scans segments side by side; what they hold is checked in the order of the log."""
        config = self.store.config
        check = LogCheck(config is not None and config.force_verify_prop_crc)
        how = self.reading
        reader = LogReader(self.store.segments, self._access, kernels, how.jobs, self._live, how.advance)
        for segment, event in reader.events():
            if isinstance(event, Records):
                self._count(event)
                yield from check.records(event, segment)
                yield from cross.take(self._settled(event, segment, 1), segment.base)
                yield from index.records(self._settled(event, segment, 0), segment.base)
            elif isinstance(event, Filler):
                yield from blank_findings(event.blank, segment, event.filled)
            elif isinstance(event, Unreadable):
                yield self._unreadable(segment, event)
            elif isinstance(event, Expired):
                self.expired_end = segment.end
            else:
                yield from self._other(event, segment)
        yield from check.close(self._dispatched_timestamp())

    def _settled(self, run: Records, segment: Segment, border: int) -> Records:
        """The records of a run that units and items are complete for; `border`: 1 with the one at the border.

        That one has its unit, while its index items may be to come.
        """
        if self.compared_until is None:
            return run
        last = self.compared_until - segment.base + border
        count = int(np.searchsorted(run.rows[:, Field.POSITION], last))
        return Records(run.rows[:count], run.window, run.origin)

    def _dispatched_timestamp(self) -> int | None:
        """`logicsMsgTimestamp` of the checkpoint, None without one."""
        for file in self.store.of_kind(FileKind.CHECKPOINT):
            try:
                with file.open("pread") as source:
                    return int(parse_checkpoint(source.window(0, source.size).tobytes()).logics_msg_timestamp)
            except RmqtoolError:
                return None
        return None

    def _unreadable(self, segment: Segment, lost: Unreadable) -> Finding:
        start = segment.base + lost.position
        return self._not_read(segment.file.shown, lost, physical_offset=start)

    def _not_read(self, path: str, lost: Unreadable, **place: Any) -> Finding:
        """The finding that a range of a file cannot be read; what was not covered goes into the summary."""
        where: dict[str, Any] = {"path": path, "position": lost.position, "length": lost.length}
        self.not_covered.append(where | {"reason": lost.reason})
        return finding("DIR-UNREADABLE", **where, **place, found=lost.reason)

    def _count(self, run: Records) -> None:
        self.records += len(run.rows)
        self.last_timestamp = int(run.rows[-1, Field.STORE_TIMESTAMP])
        self.bytes += int(run.rows[:, Field.STORE_SIZE].sum())

    def _other(self, event: Event, segment: Segment) -> Iterator[Finding]:
        if isinstance(event, Gap):
            if event.reason is Stop.TORN:  # what is unreadable beside it has its own finding
                self.causes.add(segment.base + event.position, event.length, "DIR-UNREADABLE")
                return
            yield gap_finding(event, segment, self.store.sizes[FileKind.COMMITLOG].value)
        elif isinstance(event, Tail):
            tail = tail_finding(event, segment)
            if tail is not None:
                yield tail
        elif isinstance(event, End) and self.store.segments.is_active(segment):
            self.end_offset = segment.base + event.position

    def _queues(self, cross: CrossCheck, files: OpenFiles) -> Iterator[Finding]:
        store = self.store
        records = RecordsAt(store.segments, files)
        known = (self._first_offset, store.segments.end_offset) if len(store.segments) else None
        kernels = cross.kernels
        readable = []
        for queue in (*cross.queues.values(), *cross.batches.values()):
            try:
                yield from check_units(queue, kernels)
                yield from self._bad_ranges(queue)
                readable.append(queue)
            except RmqtoolError as error:
                yield self._lost_queue(queue, error)
        if self.end_offset is not None and not self._live:
            size = store.sizes[FileKind.COMMITLOG].value
            yield from lost_end(readable, store.segments, self.end_offset, size)
        check = UnitCheck(records, Damage(self.causes.lost), known)
        for queue in readable:
            try:
                yield from check.check(queue)
            except RmqtoolError as error:
                yield self._lost_queue(queue, error)
        if in_rocksdb(store) and not any(queue.files for queue in cross.queues.values()):
            yield finding("X-ROCKSDB", path="consumequeue")
        elif len(store.segments):
            yield from ghosts(cross, Circumstances(is_unclean(store), frozenset(store.topics)))

    def _bad_ranges(self, queue: QueueUnits) -> Iterator[Finding]:
        for number, file in enumerate(queue.files):
            for bad in queue.unreadable(number):
                yield self._not_read(
                    file.shown,
                    Unreadable(bad.start, bad.length, bad.reason),
                    topic=queue.topic,
                    queue_id=queue.queue_id,
                    queue_offset=queue.first_slot(number) + bad.start // queue.dtype.itemsize,
                )

    def _lost_queue(self, queue: QueueUnits, error: RmqtoolError) -> Finding:
        self.not_covered.append({"path": queue.path, "reason": str(error)})
        return finding("DIR-UNREADABLE", path=queue.path, found=str(error))

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
        if self.compared_until is not None:
            told["live"] = {"compared_until": self.compared_until}
        if self.not_covered:
            told |= {"incomplete_reason": "unreadable", "not_covered": self.not_covered}
        return told


def _ends(queues: Iterable[QueueUnits]) -> dict[tuple[str, int], QueueEnds]:
    """Queue offsets that each queue holds units for; without those that cannot all be read."""
    return {
        (queue.topic, queue.queue_id): QueueEnds(*queue.ends())
        for queue in queues
        if not any(queue.unreadable(number) for number in range(len(queue.files)))
    }
