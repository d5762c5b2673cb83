"""What lies at a physical offset: a record, the inside of one, a filler, damage or nothing."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING

import numpy as np

from rmqtool.scan import kernels_python
from rmqtool.scan.engine import choose_kernels
from rmqtool.scan.events import Blank, End, Gap, Records, Tail
from rmqtool.scan.fields import ROW_WIDTH, STATUS_WIDTH, Check, Field, Issue, Status, Stop
from rmqtool.scan.one import RecordReader
from rmqtool.scan.segment import SegmentScan
from rmqtool.scan.segment_ends import segment_ends

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rmqtool.scan.events import Event
    from rmqtool.store.bytes import ByteSource
    from rmqtool.store.segments import Segment, SegmentSet

_STEPS = (1 << 17, 1 << 21, 1 << 25)
_STALE_LIMIT = 256 << 20
"""bytes of an active segment up to which it is walked to tell living records from left-over ones"""


class What(StrEnum):
    """What an offset turned out to be."""

    RECORD = "record"
    INSIDE = "inside"
    """a byte of a record, not its first"""
    DAMAGED = "damaged"
    """where a record should begin, but its frame does not hold together"""
    BLANK = "blank"
    ZERO = "zero"
    GARBAGE = "garbage"
    """bytes that are not a record, not at the place where one should begin"""
    STALE = "stale"
    """behind the end of the log, between records of an earlier life"""
    NO_FILE = "no_file"


@dataclass(frozen=True, slots=True)
class Place:
    """An offset that was asked for, and what lies there.

    segment, position: the file and the byte in it, None where no file lies. start, length: the record,
    filler or damaged range in that file. reason, expected, found: why the bytes are not a record. before,
    after: physical offsets of the nearest records in the same file. leftover: the record lies behind the end
    of the living log. row, raw: of a record, its row (`scan.fields.Field`) and its bytes.
    """

    physical_offset: int
    what: What
    segment: Segment | None = None
    position: int = 0
    start: int = 0
    length: int = 0
    reason: str | None = None
    expected: int | None = None
    found: int | None = None
    before: int | None = None
    after: int | None = None
    leftover: bool = False
    row: Sequence[int] | None = None
    raw: bytes = b""

    @property
    def is_record(self) -> bool:
        """Is there a whole record to show?"""
        return self.what in {What.RECORD, What.INSIDE}


def look_at(segments: SegmentSet, physical_offset: int) -> Place:
    """What lies at an offset. Raises `StoreIOError` or `UnreadableError`."""
    reader = RecordReader()
    with ExitStack() as files:
        there = reader.at(segments, physical_offset, lambda one: files.enter_context(one.open("pread")))
        if there is None:
            return Place(physical_offset, What.NO_FILE)
        segment, position, source, row, window, stop, expected, found = there
        active = segments.is_active(segment)
        place = Place(physical_offset, What.RECORD, segment, position, position)
        if row is None:
            place = replace(place, reason=stop.name.lower(), expected=expected, found=found)
        if row is None or row[Field.ISSUES] & Issue.OFFSET:
            around = _surroundings(source, place, segment, active=active)
            if around.what is What.INSIDE:
                row, window, *_ = reader.read(source, segment.base, around.start)
                return replace(around, row=row, raw=window[: around.length].tobytes())
            if row is None:
                return around
    size = int(row[Field.STORE_SIZE])
    leftover = active and _is_leftover(segment, position)
    return replace(place, length=size, leftover=leftover, row=row, raw=window[:size].tobytes())


def _is_leftover(segment: Segment, position: int) -> bool:
    if min(segment.size, segment.file.disk_bytes) > _STALE_LIMIT:
        return False
    ends = segment_ends(segment, read_through=True)
    return ends.end is not None and position >= ends.end


def _surroundings(source: ByteSource, place: Place, segment: Segment, *, active: bool) -> Place:
    """Walks from a record in front of the place past it and tells what it is part of."""
    start = _sync_point(source, segment.base, place.position)
    kernels = choose_kernels(min(segment.size, segment.file.disk_bytes) - start)
    scan = SegmentScan(
        source, segment.base, checks=Check.FRAME, active=active, start=start, kernels=kernels, batch_rows=1024
    )
    reported = place
    for event in scan:
        if isinstance(event, Records):
            reported = _among(reported, event, segment.base)
        elif not isinstance(event, End) and event.position <= place.position < event.position + event.length:
            reported = _in_event(reported, event)
        if reported.what is What.INSIDE or reported.after is not None:
            break
    return reported


def _sync_point(source: ByteSource, base: int, position: int) -> int:
    """Start of a whole record in front of `position` that lies where it says, 0 when none is near."""
    rows, status = np.empty((1, ROW_WIDTH), np.int64), np.zeros(STATUS_WIDTH, np.int64)
    for step in _STEPS:
        start = max(position - step, 0)
        if start == 0:
            return 0
        window = source.window(start, min(2 * step, source.size - start))
        kernels_python.find_record(window, 0, start, source.size, base, 0, 0, rows, status)
        found = int(status[Status.POSITION])
        if status[Status.COUNT] and int(status[Status.STOP]) == 0 and found < position:
            return found
    return 0


def _among(place: Place, event: Records, base: int) -> Place:
    positions = event.rows[:, Field.POSITION]
    index = int(np.searchsorted(positions, place.position, side="right")) - 1
    before, after = place.before, place.after
    if index >= 0:
        start, size = int(positions[index]), int(event.rows[index, Field.STORE_SIZE])
        if start < place.position < start + size:
            return replace(place, what=What.INSIDE, start=start, length=size, reason=None)
        if start < place.position:
            before = base + start
    if index + 1 < len(positions):
        after = base + int(positions[index + 1])
    return replace(place, before=before, after=after)


def _in_event(place: Place, event: Event) -> Place:
    if isinstance(event, Blank):
        return replace(place, what=What.BLANK, start=event.position, length=event.length)
    if isinstance(event, Tail):
        names = {"zero": What.ZERO, "stale": What.STALE, "garbage": What.GARBAGE}
        what = names[event.content.value]
    else:
        what = What.GARBAGE
    if isinstance(event, Gap | Tail):
        what = What.DAMAGED if _begins_record(place, event) else what
        place = replace(place, what=what, start=event.position, length=event.length)
        if place.position == event.position:
            return replace(
                place, reason=event.reason.name.lower(), expected=event.expected, found=event.found
            )
    return place


def _begins_record(place: Place, event: Gap | Tail) -> bool:
    """Should a record begin here? Where damage begins, and wherever a record magic stands."""
    if place.reason not in {"zero", "bad_magic", "short", "end", "blank"}:
        return True
    return place.position == event.position and event.reason is not Stop.ZERO
