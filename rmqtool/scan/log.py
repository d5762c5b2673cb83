"""A whole commit log: segment after segment, several at once, as Arrow batches and events."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rmqtool.errors import RmqtoolError, UnreadableError
from rmqtool.scan.engine import choose_kernels
from rmqtool.scan.events import Records
from rmqtool.scan.fields import Check, Field
from rmqtool.scan.parallel import in_order
from rmqtool.scan.segment import SegmentScan
from rmqtool.store.throttle import RateLimit, ThrottledSource

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from types import ModuleType

    import numpy as np
    import numpy.typing as npt
    import pyarrow as pa

    from rmqtool.scan.events import Blank, End, Gap, Tail
    from rmqtool.store.bytes import ByteSource
    from rmqtool.store.segments import Segment, SegmentSet

BATCH_BYTES = 16 << 20
"""bytes of records in one batch: with `_AHEAD` batches a job, memory stays bounded whatever records hold"""

_MAY_GROW = 64
"""times that a compressed body counts: few compress better, and a hostile one is alone in its batch"""


@dataclass(frozen=True)
class LogScan:
    """How to read a log.

    columns: of the record table. choose: keeps some of the records of a run (segment base, path given).
    wanted: False skips a segment unread. offsets: only physical offsets [start, end), where a record or a
    segment begins at `start`; what begins behind `end` is not read. bytes_per_second: reading rate, None
    without bound.
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

    def work(segment: Segment) -> Iterator[Piece]:
        active = segments.is_active(segment)
        return _scan_one(segment, how, kernels, limit, active=active)

    return in_order(chosen, work, how.jobs)


def _open(segment: Segment, how: LogScan, limit: RateLimit | None) -> ByteSource:
    source = segment.open("pread" if how.safe_io or limit else "auto")
    return ThrottledSource(source, limit) if limit else source


def _scan_one(
    segment: Segment, how: LogScan, kernels: ModuleType, limit: RateLimit | None, *, active: bool
) -> Iterator[Piece]:
    low, high = how.offsets or (segment.base, segment.end)
    done, stop = max(low - segment.base, 0), high - segment.base
    try:
        with _open(segment, how, limit) as source:
            scan = SegmentScan(
                source, segment.base, checks=how.checks, active=active, kernels=kernels, start=done
            )
            for event in scan:
                if not isinstance(event, Records):
                    yield Piece(segment, event)
                    continue
                part = _before(event, stop)
                if len(part.rows):
                    yield from _batches(part, segment, how, kernels)
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


def _batches(records: Records, segment: Segment, how: LogScan, kernels: ModuleType) -> Iterator[Piece]:
    from rmqtool.scan.table import bad_bodies, to_batch

    found = bad_bodies(records) + segment.base
    bad = found if found.size else None
    path = segment.file.shown
    if how.choose is not None:
        records = how.choose(records, segment.base, path)
    for part in _slices(records):
        batch = to_batch(part, base=segment.base, path=path, kernels=kernels, columns=how.columns)
        yield Piece(segment, batch, bad)
        bad = None
    if bad is not None:
        empty = Records(records.rows[:0], records.window, records.origin)
        batch = to_batch(empty, base=segment.base, path=path, kernels=kernels, columns=how.columns)
        yield Piece(segment, batch, bad)


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
