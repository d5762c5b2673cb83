"""A whole commit log: segment after segment, several at once, as Arrow batches and events."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rmqtool.errors import RmqtoolError, UnreadableError
from rmqtool.scan.engine import choose_kernels
from rmqtool.scan.events import Records
from rmqtool.scan.fields import Check, Field
from rmqtool.scan.parallel import in_order
from rmqtool.scan.parts import cut, parts
from rmqtool.scan.segment import SegmentScan
from rmqtool.store.throttle import RateLimit, ThrottledSource

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from types import ModuleType

    import numpy as np
    import numpy.typing as npt
    import pyarrow as pa

    from rmqtool.scan.events import Blank, End, Gap, Tail
    from rmqtool.scan.parallel import Lane
    from rmqtool.scan.parts import Part
    from rmqtool.store.bytes import ByteSource
    from rmqtool.store.segments import Segment, SegmentSet


@dataclass(frozen=True)
class LogScan:
    """How to read a log.

    with _open(segment, how, limit, lane) as source:
        scan = SegmentScan(
            source,
            segment.base,
            checks=how.checks,
            active=active,
            kernels=kernels,
            start=done,
            stop=lane.stop,
        )
        for event in scan:
            if not isinstance(event, Records):
    """

    columns: Sequence[str]
    choose: Callable[[Records, int, str], Records] | None = None
    wanted: Callable[[Segment], bool] | None = None
    offsets: tuple[int, int] | None = None
    checks: Check = Check.ALL
    jobs: int = 1
    safe_io: bool = False
    bytes_per_second: int | None = None
    advance: Callable[[int], object] | None = None
    """told how many bytes of a segment are done"""


@dataclass(frozen=True, slots=True)
class Unreadable:
    """The rest of a segment that the medium did not give."""

    position: int
    length: int
    reason: str


@dataclass(frozen=True, slots=True)
class Piece:
    """One piece of a log, in physical order.

    bad_bodies: physical offsets of the records of a run that fail their CRC, chosen or not; all of them come
    with the first batch of the run. None without one.
    """

    segment: Segment
    content: pa.RecordBatch | Blank | Gap | Tail | End | Unreadable
    bad_bodies: npt.NDArray[np.int64] | None = None


def data_bytes(segments: Iterable[Segment]) -> int:
    """Bytes that really lie on disk, the measure of how long a scan takes."""
    return sum(min(one.size, one.file.disk_bytes) for one in segments)


def scan_log(segments: SegmentSet, how: LogScan) -> Iterator[Piece]:
    """Everything in the segments that `how` wants. Damage and unreadable parts are pieces, not errors."""
    low, high = how.offsets or (0, segments.end_offset)
    chosen = [
        one
        for one in segments
        if one.end > low and one.base < high and (how.wanted is None or how.wanted(one))
    ]
    kernels = choose_kernels(data_bytes(chosen))
    limit = RateLimit(how.bytes_per_second) if how.bytes_per_second else None

    def work(segment: Segment, lane: Lane) -> Iterator[Piece]:
        active = segments.is_active(segment)
        return _scan_one(segment, how, kernels, limit, lane, active=active)

    return in_order(chosen, work, how.jobs)


def _open(segment: Segment, how: LogScan, limit: RateLimit | None, lane: Lane) -> ByteSource:
    source = segment.open("pread" if how.safe_io or limit else "auto")
    return ThrottledSource(source, limit, lane.stop) if limit else source


def _scan_one(
    segment: Segment,
    how: LogScan,
    kernels: ModuleType,
    limit: RateLimit | None,
    lane: Lane,
    *,
    active: bool,
) -> Iterator[Piece]:
    low, high = how.offsets or (segment.base, segment.end)
    done, stop = max(low - segment.base, 0), high - segment.base
    try:
        with _open(segment, how, limit, lane) as source:
            scan = SegmentScan(
                source,
                segment.base,
                checks=how.checks,
                active=active,
                kernels=kernels,
                start=done,
                stop=lane.stop,
            )
            for event in scan:
                if not isinstance(event, Records):
                    yield Piece(segment, event)
                    continue
                part = _before(event, stop)
                if len(part.rows):
                    yield from _batches(part, segment, how, kernels, lane)
                    last = part.rows[-1]
                    done = _advance(how, done, int(last[Field.POSITION] + last[Field.STORE_SIZE]))
                if len(part.rows) < len(event.rows):
                    break
    except UnreadableError as error:
        start = max(done, 0)
        yield Piece(segment, Unreadable(start, segment.size - start, error.reason))
    except RmqtoolError as error:
        yield Piece(segment, Unreadable(done, segment.size - done, str(error)))
    _advance(how, done, segment.size)


def _before(records: Records, stop: int) -> Records:
    """The records that begin in front of a position."""
    rows = records.rows
    if rows[-1, Field.POSITION] < stop:
        return records
    return Records(rows[rows[:, Field.POSITION] < stop], records.window, records.origin)


def _advance(how: LogScan, done: int, now: int) -> int:
    if how.advance is not None:
        how.advance(now - done)
    return now


def _batches(
    records: Records, segment: Segment, how: LogScan, kernels: ModuleType, lane: Lane
) -> Iterator[Piece]:
    from rmqtool.scan.table import PLAIN_COLUMNS, bad_bodies, to_batch

    found = bad_bodies(records) + segment.base
    bad = found if found.size else None
    path = segment.file.shown
    plain = not PLAIN_COLUMNS.isdisjoint(how.columns)
    for part in _chosen(records, segment, how, lane, plain=plain):
        batch = to_batch(
            part.records,
            base=segment.base,
            path=path,
            kernels=kernels,
            columns=how.columns,
            plain=part.plain,
        )
        yield Piece(segment, batch, bad)
        bad = None
    if bad is not None:
        empty = Records(records.rows[:0], records.window, records.origin)
        batch = to_batch(empty, base=segment.base, path=path, kernels=kernels, columns=how.columns)
        yield Piece(segment, batch, bad)


def _chosen(records: Records, segment: Segment, how: LogScan, lane: Lane, *, plain: bool) -> Iterator[Part]:
    """What is to become batches. A filter may look at text: it gets no more at once than a batch holds."""
    if how.choose is None:
        yield from parts(records, lane, plain=plain)
        return
    for some in cut(records):
        kept = how.choose(some, segment.base, segment.file.shown)
        if len(kept.rows):
            yield from parts(kept, lane, plain=plain)
