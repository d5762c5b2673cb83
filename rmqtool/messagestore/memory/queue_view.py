"""What readers ask of a queue in memory."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from rmqtool.broker.queue_view import UnitColumn
from rmqtool.scan.units import UNIT

if TYPE_CHECKING:
    import numpy.typing as npt

    from rmqtool.messagestore.memory.log import MemoryLog, Settled
    from rmqtool.messagestore.memory.log_reader import MemoryLogReader

    Units = npt.NDArray[Any]

_WIDTH = UNIT.itemsize


class _TimedPart(NamedTuple):
    """All units as if they were one file, see `broker.offset_by_time.TimedFile`."""

    base: int
    written: int


class MemoryQueueView:
    """See `broker.get_message.ServedQueue` and `broker.offset_by_time.TimedQueue`.

    settled: the queue as it was asked for; what has come since is not served.
    """

    batch, dtype, width = False, UNIT, _WIDTH

    def __init__(self, settled: Settled, reader: MemoryLogReader, log: MemoryLog) -> None:
        self._topic, self.queue, self.max_offset = settled
        self.log, self.traits, self._lock = reader, log.traits, log.lock

    @property
    def min_offset(self) -> int:
        """Queue offset of the first message that is there; of the next one where none is."""
        with self._lock:
            self.queue.trim(self._topic.head)
            return self.queue.first if len(self.queue) else self.max_offset

    @property
    def min_logic_offset(self) -> int:
        """The same in bytes."""
        return self.min_offset * _WIDTH

    def plain_from(self, offset: int, most: int) -> bytes:
        """Bytes of units from a queue offset on."""
        with self._lock:
            start = offset - self.queue.first
            return self.queue.read(start, start + most) if start >= 0 else b""

    def slice_from(self, offset: int, most: int) -> tuple[int, Units] | None:
        """Units from a queue offset on, and that offset."""
        raw = self.plain_from(offset, most)
        return (offset, np.frombuffer(raw, UNIT)) if raw else None

    def next_file_offset(self, offset: int) -> int:
        """Where to go on when what lay at an offset is gone."""
        return max(self.min_offset, offset)

    # ---- by time

    @property
    def files(self) -> list[_TimedPart]:
        """One, of all units."""
        with self._lock:
            return [_TimedPart(self.min_offset * _WIDTH, len(self.queue) * _WIDTH)]

    def units(self, file: _TimedPart, start: int = 0, end: int | None = None) -> Units:
        """See `TimedQueue.units`."""
        stop = file.written if end is None else min(end, file.written)
        raw = self.plain_from((file.base + start) // _WIDTH, max(stop - start, 0) // _WIDTH)
        return np.frombuffer(raw, UNIT)

    def unit(self, file: _TimedPart, number: int, name: str) -> int:
        """See `TimedQueue.unit`."""
        units = self.units(file, number * _WIDTH, (number + 1) * _WIDTH)
        return int(units[name][0]) if len(units) else 0

    def column(self, file: _TimedPart, name: str) -> UnitColumn:
        """See `TimedQueue.column`."""
        return UnitColumn(self, file, name)

    def modified(self) -> list[int]:
        """See `TimedQueue.modified`."""
        return [time.time_ns() // 1_000_000]
