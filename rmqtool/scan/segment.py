"""One segment file from its first byte to its last: records, blanks, gaps, tail.

After bytes that are no record the scan looks for the next place that holds one, reports what lies between as a gap,
and goes on there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rmqtool.scan.engine import choose_kernels
from rmqtool.scan.events import Blank, End, Event, Gap, Records, Tail, TailContent
from rmqtool.scan.fields import ROW_WIDTH, STATUS_WIDTH, Check, Field, Status, Stop
from rmqtool.scan.windows import Windows

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import ModuleType

    from rmqtool.store.bytes import ByteSource

BATCH_ROWS = 16_384
"""records in one `Records` event: 3.5 MiB of rows, small enough to stay in a shared cache"""


class SegmentScan:
    """Iterate once over the events of one segment.

    source: the bytes. base: physical offset of its first byte. checks: how much to look at. active: no later segment
    holds data, so what follows the last record is a tail rather than damage. previous_timestamp: store timestamp
    (ms) of the last record before this segment, when known. keep_stale: yield records behind the end of the active
    segment as records instead of one `Tail`.
    """

    def __init__(
        self,
        source: ByteSource,
        base: int,
        *,
        checks: Check = Check.ALL,
        active: bool = True,
        previous_timestamp: int | None = None,
        keep_stale: bool = False,
        start: int = 0,
        batch_rows: int = BATCH_ROWS,
        kernels: ModuleType | None = None,
    ) -> None:
        import numpy as np

        self._windows = Windows(source)
        self._source = source
        self._size = source.size
        self._base = base
        self._checks = int(checks)
        self._active = active
        self._timestamp = previous_timestamp
        self._shift = 0
        self._keep_stale = keep_stale
        self._start = start
        self._kernels = kernels or choose_kernels(source.size)
        self._rows = np.empty((batch_rows, ROW_WIDTH), np.int64)
        self._scratch = np.empty((1, ROW_WIDTH), np.int64)
        self._status = np.zeros(STATUS_WIDTH, np.int64)

    def __iter__(self) -> Iterator[Event]:
        position = self._start
        while True:
            records, position, stop, expected, found = self._walk(position)
            if records is not None:
                self._remember(records)
                yield records
            if stop is Stop.ROWS_FULL:
                continue
            if stop is Stop.END or (stop is Stop.BLANK and expected == found):
                if stop is Stop.BLANK:
                    yield Blank(position, self._size - position, found)
                yield End(position, stop, expected, found)
                return
            event, position = self._behind(position, stop, expected, found)
            yield event
            if not isinstance(event, Gap) or position == self._size:
                yield End(event.position, stop, expected, found)
                return

    def _walk(self, position: int) -> tuple[Records | None, int, Stop, int, int]:
        """Read on from `position`, with a larger window where a record needs one."""
        need = 0
        while True:
            window, origin = self._windows.at(position, need)
            self._kernels.walk(
                window,
                position - origin,
                origin,
                self._size,
                self._base,
                self._checks,
                self._rows,
                self._status,
            )
            count, at, stop, expected, found = self._status[: Status.FOUND + 1].tolist()
            if stop == Stop.NEED_MORE:
                if count == 0:
                    need = expected
                    continue
                stop = Stop.ROWS_FULL
            records = Records(self._rows[:count], window, origin) if count else None
            return records, at, Stop(stop), expected, found

    def _remember(self, records: Records) -> None:
        last = records.rows[-1]
        self._timestamp = int(last[Field.STORE_TIMESTAMP])
        place = self._base + int(last[Field.POSITION])
        self._shift = int(last[Field.STORED_PHYSICAL_OFFSET]) - place

    def _behind(self, position: int, stop: Stop, expected: int, found: int) -> tuple[Event, int]:
        """What begins at `position`, where no record is, and where to read on."""
        nonzero = self._first_nonzero(position)
        rest = self._size - position
        if nonzero == self._size:
            if self._active:
                return Tail(position, rest, TailContent.ZERO, 0, stop, expected, found), self._size
            return Gap(position, rest, stop, expected, found), self._size
        # a record may begin with up to three zero bytes of its total size
        place, kind = self._next_record(max(position + 1, nonzero - 3))
        if place is None:
            if stop is Stop.BLANK:
                return Blank(position, rest, found), self._size
            if self._active:
                return Tail(position, rest, TailContent.GARBAGE, 0, stop, expected, found), self._size
            return Gap(position, rest, stop, expected, found), self._size
        if self._active and not self._keep_stale and self._is_stale(kind, stop):
            if stop is Stop.BLANK:
                return Blank(position, rest, found), self._size
            count = self._count_records(place)
            return Tail(position, rest, TailContent.STALE, count, stop, expected, found), self._size
        reason = Stop.BLANK_LENGTH if stop is Stop.BLANK else stop
        return Gap(position, place - position, reason, expected, found), place

    def _first_nonzero(self, position: int) -> int:
        """Position of the first byte that is not zero; holes of a sparse file are skipped unread."""
        while position < self._size:
            data = self._source.next_data(position)
            if data is None:
                return self._size
            window, origin = self._windows.at(data, 1)
            at = origin + int(self._kernels.first_nonzero(window, data - origin))
            if at < origin + window.size:
                return at
            position = at
        return self._size

    def _next_record(self, position: int) -> tuple[int | None, Stop]:
        """The next whole record: at its own place if any is, else one of a copied or renamed file."""
        shifts = [self._shift, 0] if self._shift else [0]
        for shift in shifts:
            place, kind = self._find(position, shift, any_offset=False)
            if place is not None:
                return place, kind
        at = position
        while True:
            place, kind = self._find(at, 0, any_offset=True)
            if place is None or kind is Stop.BLANK or self._chained(place):
                return place, kind
            at = place + 1

    def _find(self, position: int, shift: int, *, any_offset: bool) -> tuple[int | None, Stop]:
        need = 0
        while True:
            window, origin = self._windows.at(position, need)
            self._kernels.find_record(
                window,
                position - origin,
                origin,
                self._size,
                self._base,
                shift,
                int(any_offset),
                self._scratch,
                self._status,
            )
            hit, at, stop, expected, _ = self._status[: Status.FOUND + 1].tolist()
            if hit:
                return at, Stop(stop)
            if stop == Stop.END and origin + window.size >= self._size:
                return None, Stop.END
            need = expected if stop == Stop.NEED_MORE and at == position else 0
            position = at

    def _chained(self, place: int) -> bool:
        """Is the record at `place` followed by another with the same shift, a blank, zeros or the file end?"""
        shift = int(self._scratch[0, Field.STORED_PHYSICAL_OFFSET]) - self._base - place
        behind = place + int(self._scratch[0, Field.STORE_SIZE])
        if self._first_nonzero(behind) == self._size:
            return True
        keep = self._scratch.copy()
        nearest, kind = self._find(behind, shift, any_offset=False)
        self._scratch[:] = keep
        return nearest == behind or (nearest is not None and kind is Stop.BLANK)

    def _is_stale(self, kind: Stop, stop: Stop) -> bool:
        """Older than what lies before it? A filler behind zeros, with no segment behind it, is a leftover too."""
        if kind is Stop.BLANK:
            return stop is Stop.ZERO
        if self._timestamp is None:
            return False
        return int(self._scratch[0, Field.STORE_TIMESTAMP]) < self._timestamp

    def _count_records(self, position: int) -> int:
        inner = SegmentScan(
            self._source,
            self._base,
            checks=Check.FRAME,
            keep_stale=True,
            start=position,
            batch_rows=1024,
            kernels=self._kernels,
        )
        return sum(len(event.rows) for event in inner if isinstance(event, Records))
