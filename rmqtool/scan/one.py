"""One record at a known place, without a scan: what single answers and doubtful units need."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from rmqtool.scan import kernels_python
from rmqtool.scan.fields import ROW_WIDTH, STATUS_WIDTH, Check, Field, Status, Stop

if TYPE_CHECKING:
    from collections.abc import Callable

    from rmqtool.store.bytes import ByteSource, Window
    from rmqtool.store.segments import Segment, SegmentSet

_HEAD = 1 << 12
"""bytes read at first; most records need no more"""
_OVERLAPS = 8
"""files that are looked into for one offset"""


class RecordAt(NamedTuple):
    """What lies where a record was looked for.

    row (`scan.fields.Field`): of the record, None where none begins. window: the bytes read, which begin at
    `position` and hold the whole record. stop, expected, found: why there is no record.
    """

    segment: Segment
    position: int
    source: ByteSource
    row: list[int] | None
    window: Window
    stop: Stop
    expected: int
    found: int

    def text(self, place: Field) -> bytes:
        """The bytes of a field of the record. place: of its position, the length comes next in the row."""
        if self.row is None:
            return b""
        start = self.row[place] - self.position
        return self.window[start : start + max(self.row[place + 1], 0)].tobytes()


class RecordReader:
    """Reads records one by one; the plain-Python kernel answers, as a compiler would take longer to load.

    Rows (`scan.fields.Field`) are reused: a row is good until the next `read`.
    """

    def __init__(self, checks: Check = Check.ALL) -> None:
        self._checks = int(checks)
        self._rows = np.empty((1, ROW_WIDTH), np.int64)
        self._status = np.zeros(STATUS_WIDTH, np.int64)

    def read(
        self, source: ByteSource, base: int, position: int
    ) -> tuple[list[int] | None, Window, Stop, int, int]:
        """The row of the record at `position` of a segment, or None; the bytes read, which begin there.

        Then why there is none: stop, expected, found. base: physical offset of the segment. Raises
        `UnreadableError` or `StoreIOError`.
        """
        need = _HEAD
        while True:
            window = source.window(position, need)
            kernels_python.walk(
                window, 0, position, source.size, base, self._checks, self._rows, self._status
            )
            count, _, stop, expected, found = self._status[: Status.FOUND + 1].tolist()
            if count:
                return self._rows[0].tolist(), window, Stop.ROWS_FULL, 0, 0
            if stop != Stop.NEED_MORE or window.size < need:
                return None, window, Stop(stop), expected, found
            need = max(expected, need * 2)

    def at(
        self, segments: SegmentSet, physical_offset: int, opened: Callable[[Segment], ByteSource]
    ) -> RecordAt | None:
        """What lies at a physical offset, None where no file lies. Raises what `opened` and `read` raise.

        Of files that overlap, one with a record at its own place goes before others.
        """
        place = segments.locate(physical_offset)
        if place is None:
            return None
        found = self._in(place[0], physical_offset, opened)
        if _is_own(found, physical_offset):
            return found
        others = segments.locate_all(physical_offset)[:_OVERLAPS]
        for segment in others if len(others) > 1 else ():
            other = self._in(segment, physical_offset, opened)
            if _is_own(other, physical_offset):
                return other
        return found

    def _in(
        self, segment: Segment, physical_offset: int, opened: Callable[[Segment], ByteSource]
    ) -> RecordAt:
        position, source = physical_offset - segment.base, opened(segment)
        return RecordAt(segment, position, source, *self.read(source, segment.base, position))


def _is_own(found: RecordAt, physical_offset: int) -> bool:
    return found.row is not None and found.row[Field.STORED_PHYSICAL_OFFSET] == physical_offset
