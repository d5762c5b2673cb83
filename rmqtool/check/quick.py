"""The quick look at a store: a bounded part of every file, in seconds for 100 GiB."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

from rmqtool.check.covered import Extent
from rmqtool.check.findings import finding
from rmqtool.check.index import IndexCheck
from rmqtool.check.levels import Phase
from rmqtool.check.log import blank_findings, gap_finding, tail_finding
from rmqtool.check.queue_files import OpenFiles, QueueUnits
from rmqtool.check.queue_order import check_units, unreadable_units
from rmqtool.check.topics import QueueEnds
from rmqtool.errors import RmqtoolError
from rmqtool.scan.engine import choose_kernels
from rmqtool.scan.events import Blank, End, Gap, Records, Tail, Unreadable
from rmqtool.scan.fields import Check, Field, Issue, Stop
from rmqtool.scan.one import RecordReader
from rmqtool.scan.opened import opened, unread
from rmqtool.scan.options import data_bytes
from rmqtool.store.layout import FileKind

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from rmqtool.check.covered import Covered
    from rmqtool.check.findings import Finding
    from rmqtool.check.not_copied import NotCopied
    from rmqtool.scan.options import ReadOptions
    from rmqtool.scan.segment import SegmentScan
    from rmqtool.store.access import Access
    from rmqtool.store.layout import Store
    from rmqtool.store.patched import ZeroFilledSource
    from rmqtool.store.segments import Segment

FRAMED = 3
"""segments at the end of the log whose frames are walked: as many as a broker reads after a clean stop
(`CommitLog#recoverNormally`)"""


_ALL = (1 << 63) - 1
"""border of what is looked at in a live store: here nothing is held against something else"""


class Run(Protocol):
    """What it asks of the run of `verify` that it belongs to (`verify.Verification`)."""

    store: Store
    covered: Covered
    reading: ReadOptions
    index_check: IndexCheck | None
    not_copied: NotCopied

    @property
    def live(self) -> bool:
        """Whether a broker may be writing."""
        ...

    @property
    def access(self) -> Access:
        """How files are opened."""
        ...

    def layout(self) -> Iterator[Finding]:
        """Findings of names and sizes."""
        ...

    def state(self, queues: Mapping[tuple[str, int], QueueEnds]) -> Iterator[Finding]:
        """Findings of checkpoint and tables."""
        ...

    def unreadable(self, segment: Segment, lost: Unreadable) -> Finding:
        """Bytes of the log that the medium does not give."""
        ...


class QuickCheck:
    """One run; what it covers is counted in the run that it belongs to."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._store = run.store
        self._until = _ALL if run.live else None
        self._kernels = choose_kernels(data_bytes(list(self._store.segments)[-FRAMED:]))
        self._reader = RecordReader(Check.FRAME)
        self._ends: dict[tuple[str, int], QueueEnds] = {}

    def findings(self) -> Iterator[Finding]:
        """All findings of the level."""
        store, run = self._store, self._run
        yield from run.layout()
        run.covered.phase = Phase.LOG
        segments = list(store.segments)
        for number, segment in enumerate(segments):
            if segment.file.absent is not None:
                yield from run.not_copied.meets(segment)
                run.reading.done(segment.size)
                continue
            yield from run.not_copied.close()
            yield from self._segment(segment, framed=number >= len(segments) - FRAMED)
            run.reading.done(segment.size)
            run.covered.read_to = segment.end
        yield from run.not_copied.close()
        run.covered.phase = Phase.QUEUES
        yield from self._queues()
        run.covered.phase = Phase.INDEX
        run.index_check = IndexCheck(store, self._kernels, run.access, self._until)
        yield from run.index_check.heads()
        run.covered.phase = Phase.STATE
        yield from run.state(self._ends)

    def _segment(self, segment: Segment, *, framed: bool) -> Iterator[Finding]:
        run = self._run
        try:
            active = framed and self._store.segments.is_active(segment)
            with opened(segment, run.reading, kernels=self._kernels, active=active, checks=Check.FRAME) as (
                source,
                scan,
            ):
                yield from (
                    self._frames(scan, segment, active) if framed else self._first(source, scan, segment)
                )
        except RmqtoolError as error:
            lost = unread(error, 0, segment.size, live=run.live)
            if lost is not None:
                yield run.unreadable(segment, lost)

    def _first(self, source: ZeroFilledSource, scan: SegmentScan, segment: Segment) -> Iterator[Finding]:
        """The record at the beginning of a segment, where one must be."""
        row, _, stop, expected, found = self._reader.read(source, segment.base, 0)
        if source.unreadable:
            for bad in source.unreadable:
                yield self._run.unreadable(segment, Unreadable(bad.start, bad.length, bad.reason))
        elif row is not None:
            self._run.covered.records += 1
            self._run.covered.bytes += row[Field.STORE_SIZE]
            if row[Field.ISSUES] & Issue.OFFSET:
                stored = row[Field.STORED_PHYSICAL_OFFSET]
                yield self._misplaced(segment, 0, row[Field.STORE_SIZE], stored)
        elif stop is Stop.ZERO and source.next_data(0) is None:
            yield self._gap(Gap(0, segment.size, stop, expected, found), segment)
        else:
            event = next(iter(scan))
            if isinstance(event, Gap):
                yield self._gap(event, segment)

    def _frames(self, scan: SegmentScan, segment: Segment, active: bool) -> Iterator[Finding]:
        """Every frame of a segment. The end of the log is where the last one with data ends."""
        covered = self._run.covered
        for event in scan:
            if isinstance(event, Records):
                covered.count(Extent.of(event.rows), segment)
                for row in event.rows[(event.rows[:, Field.ISSUES] & Issue.OFFSET) != 0]:
                    place = row[[Field.POSITION, Field.STORE_SIZE, Field.STORED_PHYSICAL_OFFSET]].tolist()
                    yield self._misplaced(segment, *place)
            elif isinstance(event, Unreadable):
                yield self._run.unreadable(segment, event)
            elif isinstance(event, Gap) and event.reason is not Stop.TORN:
                yield self._gap(event, segment)
            elif isinstance(event, Tail):
                tail = tail_finding(event, segment)
                if tail is not None:
                    yield tail
            elif isinstance(event, Blank) and event.stored_length != event.length:
                yield from blank_findings(event, segment, filled=False)
            elif isinstance(event, End) and active and (covered.end_offset is None or event.position):
                covered.end_offset = segment.base + event.position

    def _gap(self, event: Gap, segment: Segment) -> Finding:
        return gap_finding(event, segment, self._store.sizes[FileKind.COMMITLOG].value)

    @staticmethod
    def _misplaced(segment: Segment, position: int, size: int, stored: int) -> Finding:
        place = segment.base + position
        return finding(
            "CL-OFFSET",
            path=segment.file.display_path,
            position=position,
            physical_offset=place,
            length=size,
            part="physical_offset",
            expected=place,
            found=stored,
        )

    def _queues(self) -> Iterator[Finding]:
        """The last file of every queue by itself."""
        kernels = self._kernels.dispatch
        files = OpenFiles(self._run.access)
        try:
            for kind in (FileKind.CONSUMEQUEUE, FileKind.BATCHCONSUMEQUEUE):
                for queue in self._store.queues(kind):
                    if queue.topic is None or queue.queue_id is None:
                        continue
                    last = QueueUnits(replace(queue, files=queue.files[-1:]), files, self._until)
                    try:
                        yield from check_units(last, kernels)
                        yield from unreadable_units(last)
                        if kind is FileKind.CONSUMEQUEUE and queue.files:
                            first = (queue.files[0].base_offset or 0) // last.dtype.itemsize
                            self._ends[queue.topic, queue.queue_id] = QueueEnds(first, last.next_slot)
                    except RmqtoolError as error:
                        yield finding("DIR-UNREADABLE", path=last.path, found=str(error))
        finally:
            files.close()
