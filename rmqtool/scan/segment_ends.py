"""The first and the last record of a segment, without reading what lies between where that is much."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from formats.commitlog import (
    BLANK_MAGIC_CODE,
    END_FILE_MIN_BLANK_LENGTH,
    HEADERS,
    MESSAGE_MAGIC_CODES,
    Blank,
    is_v6,
)
from formats.primitives import offset_of, sizeof
from rmqtool.scan import kernels_python
from rmqtool.scan.engine import choose_kernels
from rmqtool.scan.events import Records
from rmqtool.scan.fields import ROW_WIDTH, STATUS_WIDTH, Check, Field, Status
from rmqtool.scan.segment import SegmentScan

if TYPE_CHECKING:
    from formats.primitives import Container
    from rmqtool.store.bytes import ByteSource
    from rmqtool.store.segments import Segment

_LARGEST_HEADER = sizeof(HEADERS[True, True])
_PREFIX = sizeof(Blank)
_SYS_FLAG = offset_of(HEADERS[False, False], "sys_flag")
_MAGIC = offset_of(HEADERS[False, False], "magic")
_STEPS = (1 << 18, 1 << 21, 1 << 25)
"""bytes in front of the end of the data that are searched for a record: more than the largest one"""
_PAGE = 4096


@dataclass(frozen=True, slots=True)
class RecordHead:
    """A record seen from outside: byte in its file, size, store timestamp (ms)."""

    position: int
    size: int
    store_timestamp: int


@dataclass(frozen=True, slots=True)
class SegmentEnds:
    """first, last: the outermost records, None where there is none (or none was found).

    end: byte behind the last record, None when no record was found although the file holds something.
    ending: what lies there: `blank`, `end`, `zero` or `other`. read_through: every frame was walked, so that
    records of an earlier life behind the end cannot be taken for living ones.
    """

    first: RecordHead | None
    last: RecordHead | None
    end: int | None
    ending: str
    read_through: bool


_EMPTY = SegmentEnds(None, None, 0, "end", read_through=False)


def segment_ends(segment: Segment, *, read_through: bool, active: bool = True) -> SegmentEnds:
    """Ends of a segment. `read_through`: walk all its frames; otherwise some pages at both ends are read.

    active: no later segment holds data, so that older records behind the end are leftovers. Raises
    `StoreIOError` or `UnreadableError`.
    """
    if not segment.size:
        return _EMPTY
    with segment.open("pread") as source:
        if read_through:
            kernels = choose_kernels(min(segment.size, segment.file.disk_bytes))
            scan = SegmentScan(source, segment.base, checks=Check.FRAME, active=active, kernels=kernels)
            first, last = _outermost(scan)
            return _ends(source, first, last, read_through=True)
        return _searched(source, segment.base, full=not active)


def record_at(source: ByteSource, position: int) -> RecordHead | None:
    """The record whose header stands at `position`, by magic only: cheap, and good where a file begins."""
    head = _header(source, position)
    return None if head is None else RecordHead(position, head.total_size, head.store_timestamp)


def _header(source: ByteSource, position: int) -> Container | None:
    raw = source.window(position, _LARGEST_HEADER).tobytes()
    if len(raw) < sizeof(HEADERS[False, False]) or _int32(raw, _MAGIC) not in MESSAGE_MAGIC_CODES:
        return None
    schema = HEADERS[is_v6(_int32(raw, _SYS_FLAG))]
    return schema.parse(raw) if len(raw) >= sizeof(schema) else None


def _int32(raw: bytes, at: int) -> int:
    return int.from_bytes(raw[at : at + 4], "big", signed=True)


def _searched(source: ByteSource, base: int, *, full: bool) -> SegmentEnds:
    first = record_at(source, 0)
    place = _last_place(source, base, source.size) if full else None
    if place is None:
        place = _last_place(source, base, data_end(source))
    if place is None:
        return _ends(source, first, None, read_through=False)
    scan = SegmentScan(source, base, checks=Check.FRAME, start=place, kernels=kernels_python)
    _, last = _outermost(scan, source)
    return _ends(source, first, last, read_through=False)


def _outermost(
    scan: SegmentScan, stop_at_end_of: ByteSource | None = None
) -> tuple[RecordHead | None, RecordHead | None]:
    """First and last record of a scan, which with `stop_at_end_of` is left where zeros or a blank follow."""
    first = last = None
    for event in scan:
        if not isinstance(event, Records):
            continue
        first = first or _head(event, 0)
        last = _head(event, -1)
        if stop_at_end_of is not None and _ending(stop_at_end_of, last.position + last.size) != "other":
            break
    return first, last


def _head(records: Records, index: int) -> RecordHead:
    row = records.rows[index].tolist()
    return RecordHead(row[Field.POSITION], row[Field.STORE_SIZE], row[Field.STORE_TIMESTAMP])


def _ends(
    source: ByteSource, first: RecordHead | None, last: RecordHead | None, *, read_through: bool
) -> SegmentEnds:
    if last is not None:
        end = last.position + last.size
        return SegmentEnds(first, last, end, _ending(source, end), read_through)
    ending = _ending(source, 0)
    empty = ending != "other" and first is None
    return SegmentEnds(first, None, 0 if empty else None, ending, read_through)


def _ending(source: ByteSource, position: int) -> str:
    left = source.size - position
    if left <= 0:
        return "end"
    raw = source.window(position, _PREFIX).tobytes()
    if left >= END_FILE_MIN_BLANK_LENGTH and _int32(raw, _MAGIC) == BLANK_MAGIC_CODE:
        return "blank"
    return "other" if any(raw) else "zero"


def _last_place(source: ByteSource, base: int, stop: int) -> int | None:
    """A whole record in front of `stop`, near it, that lies where it says; None when there is none.

    A walk on from there repairs what the bisection got wrong, for example inside a body of zeros.
    """
    import numpy as np

    rows, status = np.empty((1, ROW_WIDTH), np.int64), np.zeros(STATUS_WIDTH, np.int64)
    for step in _STEPS:
        start = max(stop - step, 0)
        window = source.window(start, stop - start)
        at = 0
        while at < window.size:
            kernels_python.find_record(window, at, start, source.size, base, 0, 0, rows, status)
            place = int(status[Status.POSITION])
            if status[Status.COUNT] and int(status[Status.STOP]) == 0:
                return place
            at = max(place - start, at) + 1
        if start == 0:
            break
    return None


def data_end(source: ByteSource, page: int = _PAGE) -> int:
    """End of the last page that is not all zero, by bisection over pages.

    Right when zeros lie only behind the data; otherwise an earlier end of the data is found.
    """
    low, high = 0, -(-source.size // page)
    while low < high:
        middle = (low + high) // 2
        if source.window(middle * page, 2 * page).any():
            low = middle + 1
        else:
            high = middle
    return min(low * page, source.size)
