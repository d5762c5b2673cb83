"""A whole commit log: segment after segment, several at once, as Arrow batches and events."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rmqtool.errors import RmqtoolError, VanishedError
from rmqtool.scan.engine import choose_kernels
from rmqtool.scan.events import Records, Unreadable
from rmqtool.scan.fields import Check, Field
from rmqtool.scan.parallel import in_order
from rmqtool.scan.segment import SegmentScan
from rmqtool.store.access import Access
from rmqtool.store.patched import PatchedSource
from rmqtool.store.throttle import RateLimit

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from types import ModuleType

    import pyarrow as pa

    from rmqtool.scan.events import Blank, End, Gap, Tail
    from rmqtool.store.segments import Segment, SegmentSet

BATCH_BYTES = 16 << 20
"""bytes of records in one batch: with `_AHEAD` batches a job, memory stays bounded whatever records hold"""

_MAY_GROW = 64
"""times that a compressed body counts: few compress better, and a hostile one is alone in its batch"""


@dataclass(frozen=True)
class LogScan:
    """How to read a log.

    columns: of the record table. choose: keeps some of the records of a run (segment base, path given).
    wanted: False skips a segment unread. bytes_per_second: reading rate, None without bound. live: a broker
    may be writing (`store.live`).
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
    access = access_of(how)

    def work(segment: Segment) -> Iterator[Piece]:
        active = segments.is_active(segment)
        return _scan_one(segment, how, kernels, access, active=active)

    return in_order(chosen, work, how.jobs)


def access_of(how: LogScan) -> Access:
    """How the files of this scan are opened."""
    limit = RateLimit(how.bytes_per_second) if how.bytes_per_second else None
    return Access("pread" if how.safe_io or how.live else "auto", limit, drop_behind=how.live)


def open_patched(segment: Segment, access: Access) -> tuple[PatchedSource, bool]:
    """The bytes of a segment, and whether its length has changed since it was listed: then it is copied."""
    source = segment.open(access)
    changed = source.size != segment.size
    if changed and source.zero_copy:
        source.close()
        source = segment.open(Access("pread", access.limit, drop_behind=True))
    return PatchedSource(source, segment.size), changed


def _scan_one(
    segment: Segment, how: LogScan, kernels: ModuleType, access: Access, *, active: bool
) -> Iterator[Piece]:
    done = 0
    try:
        source, changed = open_patched(segment, access)
        with source:
            scan = SegmentScan(
                source,
                segment.base,
                checks=how.checks,
                active=active,
                kernels=kernels,
                moving=how.live or changed,
            )
            for event in scan:
                if isinstance(event, Records):
                    yield from _Batches(segment, how, kernels, source, scan).of(event)
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

    def of(self, records: Records, *, counted: bool = False) -> Iterator[Piece]:
        """The records that are wanted, some at a time, with the number of bad bodies among all of them.

        counted: these bad bodies have been told.
        """
        from rmqtool.scan.table import bad_bodies

        chosen = records
        if self.how.choose is not None:
            chosen = self.how.choose(records, self.segment.base, self.segment.file.shown)
            if self.source.spoiled():
                yield from self._anew(records, counted=counted)
                return
        bad = 0 if counted else bad_bodies(records)
        for part in _slices(chosen):
            batch = self._batch(part)
            if self.source.spoiled():
                yield from self._anew(part, counted=True)
                continue
            yield Piece(self.segment, batch, bad)
            bad = 0
        if bad:
            empty = Records(records.rows[:0], records.window, records.origin)
            yield Piece(self.segment, self._batch(empty), bad)

    def _anew(self, records: Records, *, counted: bool) -> Iterator[Piece]:
        """Reads them again; from here on the source copies, so this happens once."""
        for event in self.scan.anew(records):
            if isinstance(event, Records):
                yield from self.of(event, counted=counted)
            else:
                yield Piece(self.segment, event)

    def _batch(self, records: Records) -> pa.RecordBatch:
        from rmqtool.scan.table import to_batch

        path = self.segment.file.shown
        return to_batch(
            records, base=self.segment.base, path=path, kernels=self.kernels, columns=self.how.columns
        )


def _slices(records: Records) -> Iterator[Records]:
    """Runs that are short enough in bytes; compressed bodies count for what they may grow to."""
    import numpy as np

    rows = records.rows
    if not len(rows):
        return
    weights = rows[:, Field.STORE_SIZE] * np.where(rows[:, Field.SYS_FLAG] & 1, _MAY_GROW, 1)
    summed = np.cumsum(weights)
    start = 0
    while start < len(rows):
        before = int(summed[start - 1]) if start else 0
        end = max(int(np.searchsorted(summed, before + BATCH_BYTES, side="right")), start + 1)
        yield Records(rows[start:end], records.window, records.origin)
        start = end
