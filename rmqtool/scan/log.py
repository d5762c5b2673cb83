"""A whole commit log: segment after segment, several at once, as Arrow batches and events."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from rmqtool.errors import RmqtoolError, VanishedError
from rmqtool.scan.engine import choose_kernels
from rmqtool.scan.events import Records, Unreadable
from rmqtool.scan.fields import Check, Field
from rmqtool.scan.parallel import in_order
from rmqtool.scan.parts import Part, cut, parts
from rmqtool.scan.segment import SegmentScan
from rmqtool.store.access import Access
from rmqtool.store.patched import PatchedSource
from rmqtool.store.throttle import RateLimit

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
    from types import ModuleType

    import pyarrow as pa

    from rmqtool.scan.events import Blank, End, Gap, Tail
    from rmqtool.scan.parallel import Lane
    from rmqtool.store.segments import Segment, SegmentSet


@dataclass(frozen=True)
class LogScan:
    """How to read a log.

    columns: of the record table. choose: keeps some of the records of a run (segment base, path given), asked
    from several threads.
    wanted: False skips a segment unread. bytes_per_second: reading rate, None without bound.
    live: a broker may be writing (`store.live`).
    """

    columns: Sequence[str]
    choose: Callable[[Records, int, str], Records] | None = None
    wanted: Callable[[Segment], bool] | None = None
    checks: Check = Check.ALL
    jobs: int = 1
    safe_io: bool = False
    bytes_per_second: int | None = None
    live: bool = False
    advance: Callable[[int], object] | None = None
    """told how many bytes of a segment are done"""


@dataclass(frozen=True, slots=True)
class Piece:
    """One piece of a log, in physical order. `bad_bodies`: records of the batch that fail their CRC."""

    segment: Segment
    content: pa.RecordBatch | Blank | Gap | Tail | End | Unreadable
    bad_bodies: int = 0


def data_bytes(segments: Iterable[Segment]) -> int:
    """Bytes that really lie on disk, the measure of how long a scan takes."""
    return sum(min(one.size, one.file.disk_bytes) for one in segments)


def scan_log(segments: SegmentSet, how: LogScan) -> Iterator[Piece]:
    """Everything in the segments that `how` wants. Damage and unreadable parts are pieces, not errors."""
    chosen = [one for one in segments if how.wanted is None or how.wanted(one)]
    kernels = choose_kernels(data_bytes(chosen))
    limit = RateLimit(how.bytes_per_second) if how.bytes_per_second else None
    access = Access("pread" if how.safe_io or how.live else "auto", limit, drop_behind=how.live)

    def work(segment: Segment, lane: Lane) -> Iterator[Piece]:
        active = segments.is_active(segment)
        return _scan_one(segment, how, kernels, access, lane, active=active)

    return in_order(chosen, work, how.jobs)


def open_patched(segment: Segment, access: Access, lane: Lane) -> tuple[PatchedSource, bool]:
    """The bytes of a segment, and whether its length has changed since it was listed: then it is copied."""
    access = replace(access, stop=lane.stop)
    source = segment.open(access)
    changed = source.size != segment.size
    if changed and source.zero_copy:
        source.close()
        source = segment.open(replace(access, mode="pread", drop_behind=True))
    return PatchedSource(source, segment.size), changed


def _scan_one(
    segment: Segment,
    how: LogScan,
    kernels: ModuleType,
    access: Access,
    lane: Lane,
    *,
    active: bool,
) -> Iterator[Piece]:
    done = 0
    try:
        source, changed = open_patched(segment, access, lane)
        with source:
            scan = SegmentScan(
                source,
                segment.base,
                checks=how.checks,
                active=active,
                kernels=kernels,
                moving=how.live or changed,
                stop=lane.stop,
            )
            for event in scan:
                if isinstance(event, Records):
                    yield from _Batches(segment, how, kernels, source, scan, lane).of(event)
                    last = event.rows[-1]
                    done = _advance(how, done, int(last[Field.POSITION] + last[Field.STORE_SIZE]))
                else:
                    yield Piece(segment, event)
    except VanishedError as error:
        if not how.live:  # else it has expired since it was listed
            yield Piece(segment, Unreadable(0, segment.size, str(error)))
    except RmqtoolError as error:
        yield Piece(segment, Unreadable(done, segment.size - done, str(error)))
    _advance(how, done, segment.size)


def _advance(how: LogScan, done: int, now: int) -> int:
    if how.advance is not None:
        how.advance(now - done)
    return now


@dataclass(frozen=True, slots=True)
class _Batches:
    """Makes the batches of one segment; what they are made from must have been readable to the end."""

    segment: Segment
    how: LogScan
    kernels: ModuleType
    source: PatchedSource
    scan: SegmentScan
    lane: Lane

    def of(self, records: Records, *, counted: bool = False) -> Iterator[Piece]:
        """The records that are wanted, some at a time, with the number of bad bodies among all of them.

        counted: these bad bodies have been told.
        """
        from rmqtool.scan.table import bad_bodies

        bad = 0 if counted else bad_bodies(records)
        mapped = self.source.zero_copy
        if self.how.choose is None:
            bad = yield from self._all(records, bad, mapped=mapped)
        else:
            # a filter may look at text, so it is given no more at once than a batch holds
            for some in cut(records):
                kept = self.how.choose(some, self.segment.base, self.segment.file.shown)
                if self._spoiled(mapped=mapped):
                    yield from self._anew(some)
                elif len(kept.rows):
                    bad = yield from self._all(kept, bad, mapped=mapped)
        if bad:
            empty = Records(records.rows[:0], records.window, records.origin)
            yield Piece(self.segment, self._batch(Part(empty)), bad)

    def _spoiled(self, *, mapped: bool) -> bool:
        """Whether bytes of a run, and of all that follows in it, may be wrong; `mapped`: they are no copy."""
        return self.source.spoiled() or (mapped and not self.source.zero_copy)

    def _all(self, records: Records, bad: int, *, mapped: bool) -> Generator[Piece, None, int]:
        """Batches of all these records, the first one with `bad`; answers what of it is left to be told."""
        from rmqtool.scan.table import PLAIN_COLUMNS

        plain = not PLAIN_COLUMNS.isdisjoint(self.how.columns)
        for part in parts(records, self.lane, plain=plain):
            batch = self._batch(part)
            if self._spoiled(mapped=mapped):
                yield from self._anew(part.records)
                continue
            yield Piece(self.segment, batch, bad)
            bad = 0
        return bad

    def _anew(self, records: Records) -> Iterator[Piece]:
        """Reads them again; from here on the source copies, so nothing is read three times."""
        for event in self.scan.anew(records):
            if isinstance(event, Records):
                yield from self.of(event, counted=True)
            else:
                yield Piece(self.segment, event)

    def _batch(self, part: Part) -> pa.RecordBatch:
        from rmqtool.scan.table import to_batch

        return to_batch(
            part.records,
            base=self.segment.base,
            path=self.segment.file.shown,
            kernels=self.kernels,
            columns=self.how.columns,
            plain=part.plain,
        )
