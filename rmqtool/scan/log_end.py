"""Where the records of the segment end that a broker writes into, without reading all of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rmqtool.errors import RmqtoolError
from rmqtool.scan.engine import choose_kernels, ready_kernels
from rmqtool.scan.events import Gap, Records, Tail, TailContent
from rmqtool.scan.fields import Check, Field, Stop
from rmqtool.scan.segment import SegmentScan
from rmqtool.scan.segment_ends import data_end
from rmqtool.store.cut import TruncatedSource

if TYPE_CHECKING:
    from rmqtool.store.bytes import ByteSource
    from rmqtool.store.layout import Store
    from rmqtool.store.segments import Segment, SegmentSet

_PROBES = 128
"""places behind the end found that are looked at, in case zeros lie between the data"""
_SAMPLES = 16
"""places whose records are compared by time, in case older records lie behind the end"""
_HIDDEN = (Stop.BLANK, Stop.BLANK_LENGTH)
_PAGE = 4096
_CHUNK = 1 << 14
"""bytes in front of the end of the data that are searched first for the last record"""


def log_span(store: Store) -> tuple[int, int]:
    """Physical offsets from the first byte to behind the last record, or all files where that is unknown."""
    return span_of(store.segments)


def span_of(segments: SegmentSet) -> tuple[int, int]:
    """As `log_span`, of a log as it was listed at another time."""
    first = max(segments.first_offset, 0)
    last = next((one for one in reversed(segments) if _has_data(segments, one)), None)
    if last is None:
        return first, 0
    try:
        return first, last.base + (end_of_records(last) or last.size)
    except RmqtoolError:
        return first, last.end


def _has_data(segments: SegmentSet, segment: Segment) -> bool:
    """Also where the first page of a segment is lost, as in a power cut, and others are there."""
    if segments.has_data(segment) or not segment.size:
        return bool(segment.size)
    try:
        with segment.open("pread") as source:
            return _filled(source) > 0
    except RmqtoolError:
        return True


def end_of_data(segment: Segment) -> int:
    """Position behind the last page with data that can be records of this life of the segment.

    By bisection over zero pages, and by the store times of a few records: what follows where time goes back
    and no record continues is left from before (`Tail` of stale content). Raises `StoreIOError`.
    """
    with segment.open("pread") as source:
        end = _filled(source)
        return _before_stale(source, segment.base, end)


def end_of_records(segment: Segment) -> int:
    """Position behind the last record of the segment, which may be any; 0 when it has none.

    Reads backwards from `end_of_data`, chunk by chunk, until one holds a record. Raises `StoreIOError` or
    `UnreadableError`.
    """
    end = end_of_data(segment)
    frontier, step = end, _CHUNK
    with segment.open("pread") as source:
        while frontier > 0:
            frontier = max(frontier - step, 0)
            step *= 4
            last = _last_record_end(TruncatedSource(source, end), segment.base, frontier)
            if last is not None:
                return last
    return 0


def _last_record_end(source: TruncatedSource, base: int, start: int) -> int | None:
    """Behind the last record, also one that a filler hides: its header may lie on the last record's front."""
    found = None
    kernels = choose_kernels(source.size - start)
    scan = SegmentScan(source, base, checks=Check.FRAME, start=start, kernels=kernels, false_blanks=True)
    for event in scan:
        if isinstance(event, Records):
            found = int(event.rows[-1, Field.POSITION] + event.rows[-1, Field.STORE_SIZE])
        elif isinstance(event, Gap) and event.reason in _HIDDEN:
            found = event.position + event.length
    return found


def _filled(source: ByteSource) -> int:
    end = data_end(source)
    if source.next_data(end) is None:
        return end
    for place in np.linspace(end, max(source.size - _PAGE, end), _PROBES).astype(np.int64).tolist():
        if source.window(place, _PAGE).any():
            end = min(place + _PAGE, source.size)
    return end


def _before_stale(source: ByteSource, base: int, end: int) -> int:
    before: tuple[int, int] | None = None
    for place in np.linspace(0, end, _SAMPLES, endpoint=False).astype(np.int64).tolist():
        found = _record_from(source, base, place, end)
        if found is None:  # nor is one behind any later place
            break
        if before is not None and found[1] < before[1]:
            stop = _stale_from(source, base, before[0], end)
            if stop is not None:
                return stop
        before = found
    return end


def _record_from(source: ByteSource, base: int, start: int, end: int) -> tuple[int, int] | None:
    """Position and store time of the first record behind a place."""
    scan = SegmentScan(
        TruncatedSource(source, end, _CHUNK),
        base,
        checks=Check.FRAME,
        keep_stale=True,
        start=start,
        batch_rows=1,
        kernels=ready_kernels(end - start),
    )
    for event in scan:
        if isinstance(event, Records):
            row = event.rows[0]
            return int(row[Field.POSITION]), int(row[Field.STORE_TIMESTAMP])
    return None


def _stale_from(source: ByteSource, base: int, start: int, end: int) -> int | None:
    kernels = choose_kernels(end - start)
    scan = SegmentScan(TruncatedSource(source, end), base, checks=Check.FRAME, start=start, kernels=kernels)
    for event in scan:
        if isinstance(event, Tail) and event.content is TailContent.STALE:
            return event.position
    return None
