"""All checks over one store, in one pass over its log."""

from __future__ import annotations

import time
from contextlib import closing
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from formats.checkpoint import parse_checkpoint
from rmqtool.check.cross import CrossCheck
from rmqtool.check.doubtful import Damage, RecordsAt, UnitCheck
from rmqtool.check.findings import Tally, finding
from rmqtool.check.ghosts import Circumstances, ghosts
from rmqtool.check.index import IndexCheck
from rmqtool.check.index import LogRange as IndexedLog
from rmqtool.check.layout import check_layout
from rmqtool.check.levels import NOT_LOOKED_AT, PHASE_PATHS, Level, Phase
from rmqtool.check.log import LogCheck, blank_findings, gap_finding, tail_finding
from rmqtool.check.queue_files import OpenFiles, check_units, queues_of
from rmqtool.check.reading import Filler, LogReader, Lost, Reading, Run
from rmqtool.check.state import LogEnd, check_state, is_unclean
from rmqtool.check.topics import QueueEnds, in_rocksdb
from rmqtool.errors import RmqtoolError
from rmqtool.scan.engine import choose_kernels
from rmqtool.scan.events import End, Event, Gap, Records, Tail
from rmqtool.scan.fields import CrcState, Field
from rmqtool.scan.files import FileReader
from rmqtool.scan.log import data_bytes
from rmqtool.scan.parallel import in_order
from rmqtool.store.layout import FileKind

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from types import ModuleType

    from rmqtool.check.findings import Finding
    from rmqtool.check.queue_files import QueueUnits
    from rmqtool.store.layout import Store
    from rmqtool.store.segments import Segment


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
    phase: Phase = Phase.LAYOUT
    read_to: int | None = None
    """physical offset up to which the log was read"""
    _damage: list[tuple[int, int, str]] = field(default_factory=list)
    index_check: IndexCheck | None = None
    _started: float = field(default_factory=time.monotonic)

    @cached_property
    def log(self) -> LogReader:
        """What reads the segments."""
        return LogReader(self.store, self.reading)

    def findings(self) -> Iterator[Finding]:
        """All findings, those about the log in physical order."""
        return self.tally.counted(self._to_the_end())

    def _to_the_end(self) -> Iterator[Finding]:
        if self.reading.level is Level.QUICK:
            from rmqtool.check.quick import QuickCheck

            yield from QuickCheck(self).findings()
        else:
            yield from self._all()
        self.phase = Phase.DONE

    def _all(self) -> Iterator[Finding]:
        store = self.store
        kernels = choose_kernels(data_bytes(store.segments))
        files = OpenFiles("pread" if self.log.careful else "auto")
        try:
            with FileReader(store, "pread" if self.log.careful else "auto") as reader:
                queues = queues_of(store, FileKind.CONSUMEQUEUE, files)
                batches = queues_of(store, FileKind.BATCHCONSUMEQUEUE, files)
                cross = CrossCheck(queues, batches, reader, kernels)
                index = self.index_check = IndexCheck(store, kernels, self.log.careful)
                yield from check_layout(store)
                self.phase = Phase.LOG
                yield from self._log(kernels, cross, index)
                yield from cross.close()
                self.phase = Phase.QUEUES
                yield from self._queues(cross, files)
                self.phase = Phase.INDEX
                yield from self._index(index)
                self.phase = Phase.STATE
                yield from check_state(store, queues=_ends(queues), log_end=self.log_end())
        finally:
            files.close()

    def log_end(self) -> LogEnd | None:
        """Where the log ends, as far as it was read."""
        if self.end_offset is None or not self.last_timestamp:
            return None
        return LogEnd(self.end_offset, self.last_timestamp)

    def _index(self, index: IndexCheck) -> Iterator[Finding]:
        segments = self.store.segments
        known = None
        if len(segments) and self.end_offset is not None:
            known = IndexedLog(segments.first_offset, self.end_offset)
        yield from index.finish(known, sorted(self._damage))

    def _log(self, kernels: ModuleType, cross: CrossCheck, index: IndexCheck) -> Iterator[Finding]:
        """Scans segments side by side; what they hold is checked in the order of the log."""
        check = LogCheck()
        segments = list(self.store.segments)
        scanned = in_order(segments, lambda one: self.log.scan(one, kernels, index), self.reading.jobs)
        with closing(scanned) as events:
            for segment, event in events:
                if isinstance(event, Run):
                    self.count(event.records)
                    last = event.records.rows[-1]
                    self.read_to = segment.base + int(last[Field.POSITION] + last[Field.STORE_SIZE])
                    self._bad_bodies(event.records, segment)
                    yield from check.records(event.records, segment)
                    yield from event.inside
                    yield from cross.take(event.records, segment.base)
                    yield from index.match(event.keys)
                elif isinstance(event, Filler):
                    yield from blank_findings(event.blank, segment, event.filled)
                elif isinstance(event, Lost):
                    yield self.unreadable(segment, event.position, event.reason)
                else:
                    yield from self._other(event, segment)
        yield from check.close(self._dispatched_timestamp())

    def _dispatched_timestamp(self) -> int | None:
        """`logicsMsgTimestamp` of the checkpoint, None without one."""
        for file in self.store.of_kind(FileKind.CHECKPOINT):
            try:
                with file.open("pread") as source:
                    return int(parse_checkpoint(source.window(0, source.size).tobytes()).logics_msg_timestamp)
            except RmqtoolError:
                return None
        return None

    def unreadable(self, segment: Segment, position: int, reason: str) -> Finding:
        """Notes that a segment is not covered from `position` on."""
        length = segment.size - position
        self.not_covered.append(
            {
                "path": segment.file.shown,
                "position": position,
                "length": length,
                "reason": reason,
            }
        )
        return finding(
            "DIR-UNREADABLE",
            path=segment.file.shown,
            position=position,
            physical_offset=segment.base + position,
            length=length,
            found=reason,
        )

    def unreadable_queue(self, queue: QueueUnits, error: RmqtoolError) -> Finding:
        """Notes that a queue is not covered."""
        self.not_covered.append({"path": queue.path, "reason": str(error)})
        return finding("DIR-UNREADABLE", path=queue.path, found=str(error))

    def count(self, run: Records) -> None:
        """Counts records that were looked at."""
        self.records += len(run.rows)
        self.last_timestamp = int(run.rows[-1, Field.STORE_TIMESTAMP])
        self.bytes += int(run.rows[:, Field.STORE_SIZE].sum())

    def _bad_bodies(self, run: Records, segment: Segment) -> None:
        for row in run.rows[run.rows[:, Field.CRC_STATE] == CrcState.BAD]:
            start = segment.base + int(row[Field.POSITION])
            self._damage.append((start, start + int(row[Field.STORE_SIZE]), "CL-CRC"))

    def _other(self, event: Event, segment: Segment) -> Iterator[Finding]:
        if isinstance(event, Gap):
            found = gap_finding(event, segment)
            start = segment.base + event.position
            self._damage.append((start, start + event.length, found.code))
            yield found
        elif isinstance(event, Tail):
            tail = tail_finding(event, segment)
            if tail is not None:
                yield tail
        elif isinstance(event, End) and self.store.segments.is_active(segment):
            self.end_offset = segment.base + event.position

    def _queues(self, cross: CrossCheck, files: OpenFiles) -> Iterator[Finding]:
        store = self.store
        records = RecordsAt(store.segments, files)
        damage = Damage(sorted(self._damage))
        low = store.segments.first_offset
        known = (low, store.segments.end_offset) if len(store.segments) else None
        check = UnitCheck(records, damage, known)
        kernels = cross.kernels
        for queue in (*cross.queues.values(), *cross.batches.values()):
            try:
                yield from check_units(queue, kernels)
                yield from check.check(queue)
            except RmqtoolError as error:
                yield self.unreadable_queue(queue, error)
        if in_rocksdb(store) and not cross.queues:
            yield finding("X-ROCKSDB", path="consumequeue")
        elif len(store.segments):
            yield from ghosts(cross, Circumstances(is_unclean(store), frozenset(store.topics)))

    def _index_facts(self) -> list[dict[str, Any]]:
        return [] if self.index_check is None else self.index_check.stats()

    def summary(self) -> dict[str, Any]:
        """What was found and covered."""
        told: dict[str, Any] = {
            "level": self.reading.level.value,
            "findings": sum(self.tally.by_severity.values()),
            "by_severity": self.tally.by_severity,
            "by_code": dict(sorted(self.tally.by_code.items())),
            "records": self.records,
            "bytes": self.bytes,
            "end_offset": self.end_offset,
            "seconds": round(time.monotonic() - self._started, 3),
            "index_files": self._index_facts(),
            "complete": self.phase is Phase.DONE and not self.not_covered,
        }
        if NOT_LOOKED_AT[self.reading.level]:
            told["not_looked_at"] = list(NOT_LOOKED_AT[self.reading.level])
        if self.phase is not Phase.DONE:
            told |= {"stopped_in": self.phase.name.lower(), "covered_to": self.read_to}
        left = self.not_covered + self._left()
        if left:
            told |= {"incomplete_reason": "unreadable" if self.not_covered else "interrupted"}
            told["not_covered"] = left
        return told

    def _left(self) -> list[dict[str, Any]]:
        """What an interrupt left uncovered."""
        left: list[dict[str, Any]] = []
        for phase, path in PHASE_PATHS.items():
            if phase < self.phase:
                continue
            entry: dict[str, Any] = {"path": path, "reason": "interrupted"}
            segments = self.store.segments
            if phase is Phase.LOG and len(segments):
                start = segments.first_offset if self.read_to is None else self.read_to
                entry |= {"physical_offset": start, "length": max(segments.end_offset - start, 0)}
            left.append(entry)
        return left


def _ends(queues: Mapping[tuple[str, int], QueueUnits]) -> dict[tuple[str, int], QueueEnds]:
    """Queue offsets that each queue holds units for."""
    return {
        key: QueueEnds(queue.first_slot(0) if queue.files else 0, queue.next_slot)
        for key, queue in queues.items()
    }
