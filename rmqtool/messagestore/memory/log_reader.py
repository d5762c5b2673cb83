"""Records in memory for readers: what `LogReader` is for those in segments."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rmqtool.broker.get_message import Run
from rmqtool.errors import StoreIOError
from rmqtool.messagestore.memory.log import SEGMENT
from rmqtool.messagestore.memory.topic_log import BASE
from rmqtool.messagestore.messages import StoredMessage

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import TypeVar

    from rmqtool.broker.get_message import Delivered
    from rmqtool.messagestore.memory.log import MemoryLog
    from rmqtool.store.bytes import Window

    Made = TypeVar("Made")

_SIZE = 4
_NOTHING = np.empty(0, np.uint8)


class MemoryLogReader:
    """See `broker.get_message.ServedLog` and `LogReader`; what was evicted meanwhile is `StoreIOError`."""

    low, segment_size = BASE, SEGMENT

    def __init__(self, log: MemoryLog) -> None:
        self._log = log

    @property
    def high(self) -> int:
        """No address is behind it."""
        return BASE + SEGMENT

    def path_of(self, _base: int) -> str:
        """No file."""
        return "memory"

    def extent(self, address: int) -> tuple[int, int]:
        """See `ServedLog.extent`."""
        chunk = self._log.chunk_at(address)
        return (0, 0) if chunk is None else (chunk.base, chunk.base + chunk.used)

    def holds(self, address: int, size: int) -> bool:
        """See `ServedLog.holds`."""
        return 0 < size <= self.extent(address)[1] - address

    def file_behind(self, address: int) -> int:
        """See `ServedLog.file_behind`."""
        return max(self.extent(address)[1], address + 1)

    def read(self, address: int, size: int) -> Window:
        """Bytes of one chunk, nothing copied; none of a message that was evicted."""
        chunk = self._log.chunk_at(address)
        return _NOTHING if chunk is None else chunk.window[address - chunk.base :][:size]

    def whole(self, address: int) -> tuple[int, Window] | None:
        """See `LogReader.whole`, of the chunk that has a message."""
        chunk = self._log.chunk_at(address)
        return None if chunk is None else (chunk.base, chunk.window)

    def copy(self, address: int, size: int) -> bytes:
        """The bytes of `read`."""
        return self.read(address, size).tobytes()

    def retried(self, work: Callable[[], Made], _places: Iterable[int] | None = None) -> Made:
        """Memory is never cut."""
        return work()

    def copies(self, delivered: Sequence[Delivered]) -> list[bytes]:
        """The bytes of `records`."""
        return list(map(bytes, self.records(delivered)))

    def records(self, delivered: Sequence[Delivered]) -> list[memoryview]:
        """The records, nothing copied, good as long as they are referenced. Raises `StoreIOError`."""
        if isinstance(delivered, Run):
            chunk = self._log.chunk_at(delivered.offsets[0])
            if chunk is not None and chunk.base == delivered.base:
                data, base = chunk.data.toreadonly(), chunk.base
                places = zip(delivered.offsets, delivered.sizes)  # noqa: B905
                if len(data):  # else it has gone just now
                    return [data[(at := one - base) : at + size] for one, size in places]
            delivered = list(delivered)
        found = [self.read(one.physical_offset, one.size).data.toreadonly() for one in delivered]
        if not all(map(len, found)):
            raise StoreIOError("memory: a message was evicted")
        return found

    def record(self, address: int) -> bytes | None:
        """The bytes of the record that begins there."""
        size = int.from_bytes(self.copy(address, _SIZE), "big", signed=True)
        raw = self.copy(address, size) if size > 0 else b""
        return raw if len(raw) == size > 0 else None

    def store_timestamp(self, address: int, size: int) -> int:
        """Store time of a record (ms), -1 of one that is not there."""
        raw = self.copy(address, size)
        return StoredMessage(raw).store_timestamp if raw and len(raw) == size else -1
