"""The quick look at a store: a bounded part of every file, in seconds for 100 GiB."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from rmqtool.check.findings import finding
from rmqtool.check.index import IndexCheck
from rmqtool.check.layout import check_layout
from rmqtool.check.levels import Phase
from rmqtool.check.log import blank_findings, gap_finding, tail_finding
from rmqtool.check.queue_files import OpenFiles, QueueUnits, check_units
from rmqtool.check.state import check_state
from rmqtool.check.topics import QueueEnds
from rmqtool.errors import RmqtoolError, UnreadableError
from rmqtool.scan.engine import choose_kernels
from rmqtool.scan.events import Blank, End, Gap, Records, Tail
from rmqtool.scan.fields import Check, Field, Issue, Stop
from rmqtool.scan.lanes import dispatch_kernels
from rmqtool.scan.log import data_bytes
from rmqtool.scan.one import RecordReader
from rmqtool.scan.segment import SegmentScan
from rmqtool.store.layout import FileKind

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rmqtool.check.findings import Finding
    from rmqtool.check.verify import Verification
    from rmqtool.store.bytes import ByteSource
    from rmqtool.store.segments import Segment

FRAMED = 3
"""segments at the end of the log whose frames are walked: as many as a broker reads after a clean stop
(`CommitLog#recoverNormally`)"""


class QuickCheck:
    """One run; what it covers is counted in the `Verification` that it belongs to."""

    def __init__(self, run: Verification) -> None:
        self._run = run
        self._store = run.store
        self._kernels = choose_kernels(data_bytes(list(self._store.segments)[-FRAMED:]))
        self._reader = RecordReader(Check.FRAME)
        self._ends: dict[tuple[str, int], QueueEnds] = {}

    def findings(self) -> Iterator[Finding]:
        """All findings of the level."""
        store, run = self._store, self._run
        yield from check_layout(store)
        run.phase = Phase.LOG
        segments = list(store.segments)
        for number, segment in enumerate(segments):
            framed = number >= len(segments) - FRAMED
            try:
                with run.log.open(segment) as source:
                    yield from self._frames(source, segment) if framed else self._first(source, segment)
            except UnreadableError as error:
                yield run.unreadable(segment, error.offset, error.reason)
            except RmqtoolError as error:
                yield run.unreadable(segment, 0, str(error))
            run.log.advance(segment.size)
            run.read_to = segment.base + segment.size
        run.phase = Phase.QUEUES
        yield from self._queues()
        run.phase = Phase.INDEX
        run.index_check = IndexCheck(store, self._kernels, run.log.careful)
        yield from run.index_check.heads()
        run.phase = Phase.STATE
        yield from check_state(store, queues=self._ends, log_end=run.log_end())

    def _first(self, source: ByteSource, segment: Segment) -> Iterator[Finding]:
        """The record at the beginning of a segment, where one must be."""
        row, _, stop, expected, found = self._reader.read(source, segment.base, 0)
        if row is not None:
            self._run.records += 1
            self._run.bytes += row[Field.STORE_SIZE]
            if row[Field.ISSUES] & Issue.OFFSET:
                stored = row[Field.STORED_PHYSICAL_OFFSET]
                yield self._misplaced(segment, 0, row[Field.STORE_SIZE], stored)
        elif stop is Stop.ZERO and source.next_data(0) is None:
            yield gap_finding(Gap(0, segment.size, stop, expected, found), segment)
        else:
            scan = SegmentScan(source, segment.base, checks=Check.FRAME, active=False, kernels=self._kernels)
            event = next(iter(scan))
            if isinstance(event, Gap):
                yield gap_finding(event, segment)

    def _frames(self, source: ByteSource, segment: Segment) -> Iterator[Finding]:
        """Every frame of a segment. The end of the log is where the last one with data ends."""
        run, active = self._run, self._store.segments.is_active(segment)
        scan = SegmentScan(source, segment.base, checks=Check.FRAME, active=active, kernels=self._kernels)
        for event in scan:
            if isinstance(event, Records):
                run.count(event)
                for row in event.rows[(event.rows[:, Field.ISSUES] & Issue.OFFSET) != 0]:
                    place = row[[Field.POSITION, Field.STORE_SIZE, Field.STORED_PHYSICAL_OFFSET]].tolist()
                    yield self._misplaced(segment, *place)
            elif isinstance(event, Gap):
                yield gap_finding(event, segment)
            elif isinstance(event, Tail):
                tail = tail_finding(event, segment)
                if tail is not None:
                    yield tail
            elif isinstance(event, Blank) and event.stored_length != event.length:
                yield from blank_findings(event, segment, filled=False)
            elif isinstance(event, End) and active and (run.end_offset is None or event.position):
                run.end_offset = segment.base + event.position

    @staticmethod
    def _misplaced(segment: Segment, position: int, size: int, stored: int) -> Finding:
        place = segment.base + position
        return finding(
            "CL-OFFSET",
            path=segment.file.shown,
            position=position,
            physical_offset=place,
            length=size,
            part="physical_offset",
            expected=place,
            found=stored,
        )

    def _queues(self) -> Iterator[Finding]:
        """The last file of every queue by itself."""
        kernels = dispatch_kernels(self._kernels)
        # a fault in a mapping reads ahead, here mostly holes
        files = OpenFiles("pread")
        try:
            for kind in (FileKind.CONSUMEQUEUE, FileKind.BATCHCONSUMEQUEUE):
                for queue in self._store.queues(kind):
                    if queue.topic is None or queue.queue_id is None:
                        continue
                    last = QueueUnits(replace(queue, files=queue.files[-1:]), files)
                    try:
                        yield from check_units(last, kernels)
                        if kind is FileKind.CONSUMEQUEUE and queue.files:
                            first = (queue.files[0].base_offset or 0) // last.dtype.itemsize
                            self._ends[queue.topic, queue.queue_id] = QueueEnds(first, last.next_slot)
                    except RmqtoolError as error:
                        yield self._run.unreadable_queue(last, error)
        finally:
            files.close()
