"""The log of an open store as replication sends it and appends to it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rmqtool.errors import DivergedError, StoreIOError
from rmqtool.scan.fields import ROW_WIDTH, STATUS_WIDTH, Check, Field, Issue, Status, Stop
from rmqtool.store.writing import open_regular

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable

    from rmqtool.messagestore.dispatching import Dispatching
    from rmqtool.messagestore.flushing import Flusher
    from rmqtool.messagestore.log_files import LogFiles
    from rmqtool.messagestore.log_places import LogPlaces
    from rmqtool.scan.kernel_types import Kernels
    from rmqtool.store.bytes import Window

_ROWS = 1 << 12
_LARGEST = 32 << 20
"""bytes of a record that is held back until it is whole"""


class StoreLog:
    """See `master.SentLog` and `slave.FollowingLog`. lock: of who appends. synced: flush what is taken."""

    def __init__(
        self,
        log: LogFiles,
        places: LogPlaces,
        dispatching: Dispatching,
        lock: threading.Lock,
        flusher: Flusher,
        kernels: Kernels,
        *,
        synced: bool,
    ) -> None:
        self._log, self._places, self._dispatching, self._lock = log, places, dispatching, lock
        self._flusher, self._synced, self._kernels = flusher, synced, kernels
        self._rows = np.empty((_ROWS, ROW_WIDTH), np.int64)
        self._status = np.zeros(STATUS_WIDTH, np.int64)

    @property
    def low(self) -> int:
        """Lowest physical offset, -1 without files."""
        return self._log.log.min_offset

    @property
    def end(self) -> int:
        """Physical offset behind the last byte that a file has."""
        return self._log.committed

    @property
    def segment_size(self) -> int:
        """Bytes of a segment."""
        return self._log.log.size

    def on_growth(self, wake: Callable[[], object]) -> None:
        """Has it called when something was appended."""
        self._dispatching.on_wake = wake

    def descriptor(self, physical_offset: int) -> int:
        """A new descriptor of the segment around a place. Raises `StoreIOError`."""
        file = self._log.log.at(physical_offset)
        if file is None:
            raise StoreIOError(f"the log has no segment with offset {physical_offset} any more")
        try:
            return open_regular(self._places.at(file.path))
        except OSError as error:
            raise StoreIOError(f"{file.path}: {error.strerror}") from error

    def take(self, data: memoryview) -> int:
        """Appends bytes that a master has next, as far as records are whole; how many.

        A broker appends parts of records too, and a start behind them takes one without its last properties
        for whole. Raises `StoreIOError` or `DivergedError` for bytes that are not those of this log, and
        `StoreIOError` where it cannot be written.
        """
        if self._dispatching.error is not None:
            raise self._dispatching.error
        window, offset = np.frombuffer(data, np.uint8), self._log.end
        whole = self._whole(window, offset)
        if whole:
            self._append(offset, window[:whole])
        return whole

    def begin_at(self, physical_offset: int) -> None:
        """The first bytes of an empty log come from there. Raises `StoreIOError` where no segment begins."""
        if physical_offset % self.segment_size:
            raise StoreIOError(f"segments of {self.segment_size} bytes do not begin at {physical_offset}")
        with self._lock:
            self._log.begin_at(physical_offset)

    def _whole(self, window: Window, offset: int) -> int:
        """Bytes up to the last record that is there as a whole; all where something else lies."""
        size, length = self.segment_size, len(window)
        position = offset % size
        if position + length > size:
            raise StoreIOError(f"the master's segments do not end where those of {size} bytes here do")
        at = 0
        while True:
            self._kernels.walk(
                window, at, position, size, offset - position, int(Check.FRAME), self._rows, self._status
            )
            count, end, stop = self._status[: Status.STOP + 1].tolist()
            others = np.flatnonzero(self._rows[:count, Field.ISSUES] & Issue.OFFSET)
            if len(others):
                row = self._rows[others[0]]
                place, stored = (
                    offset - position + int(row[Field.POSITION]),
                    row[Field.STORED_PHYSICAL_OFFSET],
                )
                message = f"what the master has at {place} says that it lies at {stored}: it is another log"
                raise DivergedError(message, place, stored)
            at = end - position
            if stop != Stop.ROWS_FULL:
                break
        is_part = stop == Stop.NEED_MORE and length - at <= _LARGEST and position + length < size
        return at if is_part else length

    def _append(self, physical_offset: int, data: Window) -> None:
        log = self._log
        try:
            with self._lock:
                log.append(log.log.last_for(physical_offset), data)
                log.last_timestamp = max(log.last_timestamp, self._dispatching.timestamp)
        except OSError as error:
            raise StoreIOError(f"the log cannot be written: {error.strerror}") from error
        self._dispatching.wake()
        if self._synced and not self._flusher.flush_to(log.end):
            raise StoreIOError(f"the log cannot be flushed: {self._flusher.error}")
