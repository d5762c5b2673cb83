"""A queue of a topic in memory: units as in a consume queue's files, and what readers ask of such a queue."""

from __future__ import annotations

import time
from bisect import bisect_left
from struct import Struct
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from rmqtool.broker.queue_view import UnitColumn
from rmqtool.scan.units import UNIT

if TYPE_CHECKING:
    import numpy.typing as npt

    from rmqtool.broker.queue_records import QueueRecords
    from rmqtool.messagestore.memory.log import MemoryLog
    from rmqtool.messagestore.memory.reading import MemoryLogReader
    from rmqtool.messagestore.memory.topic_log import TopicLog

    Units = npt.NDArray[Any]

_WIDTH = UNIT.itemsize
_ADDRESS = Struct(">q")
"""at the beginning of a unit"""


class MemoryQueue:
    """Units of the messages that are there and were dispatched. Use it with the log's lock held.

    first: queue offset of the first of them.
    """

    def __init__(self) -> None:
        self.first = 0
        self._units = bytearray()

    def __len__(self) -> int:
        return len(self._units) // _WIDTH

    def add(self, run: QueueRecords) -> None:
        """Units of messages that follow; those in front have been evicted where they do not."""
        first = int(run.slots[0])
        if first != self.first + len(self):
            self.first = first
            self._units.clear()
        units = np.empty(len(run), UNIT)
        units["physical_offset"], units["size"], units["tags_code"] = run.offsets, run.sizes, run.codes
        self._units += units.tobytes()

    def trim(self, low: int) -> None:
        """Messages in front of an address are gone."""
        gone = bisect_left(range(len(self)), low, key=self._address)
        if gone:
            del self._units[: gone * _WIDTH]
            self.first += gone

    def _address(self, number: int) -> int:
        return int(_ADDRESS.unpack_from(self._units, number * _WIDTH)[0])

    def read(self, start: int, stop: int) -> bytes:
        """Bytes of units by their numbers here."""
        return bytes(self._units[max(start, 0) * _WIDTH : stop * _WIDTH])


class _TimedPart(NamedTuple):
    """All units as if they were one file, see `broker.offset_by_time.TimedFile`."""

    base: int
    written: int


class MemoryQueueView:
    """See `broker.get_message.ServedQueue` and `broker.offset_by_time.TimedQueue`.

    behind: queue offset of the next message when it was made; those that have come since are not served.
    """

    batch, dtype, width = False, UNIT, _WIDTH

    def __init__(
        self, topic: TopicLog, queue: MemoryQueue, behind: int, reader: MemoryLogReader, log: MemoryLog
    ) -> None:
        self.queue, self.log, self.traits = queue, reader, log.traits
        self._topic, self._lock = topic, log.lock
        self.max_offset = behind

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
