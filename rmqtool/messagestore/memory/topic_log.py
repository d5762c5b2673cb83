"""The messages of one topic in memory: records one behind the other, as in a segment; the oldest go first.

A record has an address, which stands where a log has physical offsets. Addresses begin where no log ends, so
that neither is taken for the other.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from itertools import takewhile
from struct import Struct
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    from rmqtool.messagestore.memory.queues import MemoryQueue

    Bytes = npt.NDArray[np.uint8]
    Ints = npt.NDArray[np.int64]
    Int32s = npt.NDArray[np.int32]

BASE = 1 << 62
"""the first address"""
BESIDE = 28
"""bytes that a message takes beside its record: its unit, and its number among all"""
_LEAST, _MOST = 16 << 10, 1 << 20
"""bytes of a chunk"""
_PART = 8
"""of the topic's bytes are in one chunk at most, so that what was evicted in it counts little"""
_SIZE = Struct(">i")
_NUMBER = Struct("=q")


@dataclass(slots=True)
class Chunk:
    """Records of a topic. base: address of the first byte; used: bytes that are written.

    keys: what was `used` when they were asked for, hashes, and places and sizes of records (`memory.keys`).
    """

    base: int
    data: memoryview
    topic: TopicLog
    used: int = 0
    keys: tuple[int, tuple[Int32s, Int32s, Int32s]] | None = None

    @property
    def room(self) -> int:
        """Bytes that are free."""
        return len(self.data) - self.used

    @property
    def low(self) -> int:
        """Where in it the first record lies that is there."""
        return max(self.topic.head - self.base, 0)

    @property
    def window(self) -> Bytes:
        """What is written."""
        return np.frombuffer(self.data, np.uint8)[: self.used]

    def drop(self) -> None:
        """Its messages are gone; views of them stay good."""
        self.data, self.keys = memoryview(b""), None


@dataclass(slots=True, eq=False)
class TopicLog:
    """Use it with the log's lock held.

    head: address of the oldest record. dispatched: up to where records have units. live: bytes of what is
    there, `BESIDE` each counted in. offsets: of the next message of each queue.
    """

    name: str
    offsets: dict[int, int]
    chunks: deque[Chunk] = field(default_factory=deque)
    queues: dict[int, MemoryQueue] = field(default_factory=dict)
    head: int = BASE
    dispatched: int = BASE
    live: int = 0
    numbers: bytearray = field(default_factory=bytearray)
    """of messages among all, in the order in which they came"""

    def __len__(self) -> int:
        return len(self.numbers) // _NUMBER.size

    @property
    def end(self) -> int:
        """Address behind the last record."""
        return self.chunks[-1].base + self.chunks[-1].used if self.chunks else BASE

    def behind(self, address: int) -> list[Chunk]:
        """The chunks that reach behind an address, the oldest first."""
        found = list(takewhile(lambda one: one.base + one.used > address, reversed(self.chunks)))
        return found[::-1]

    @property
    def oldest(self) -> int:
        """Number of the oldest message."""
        return int(_NUMBER.unpack_from(self.numbers)[0])

    def chunk_size(self, size: int, coming: int) -> int:
        """Bytes of the next chunk, which begins with a record of `size` bytes of so many that are coming."""
        return max(min(max((self.live + coming) // _PART, _LEAST), _MOST), size)

    def number(self, first: int) -> None:
        """One more message."""
        self.numbers += _NUMBER.pack(first)

    def number_all(self, numbers: Ints) -> None:
        """More messages, by their numbers."""
        self.numbers += numbers.tobytes()

    def evict(self) -> int:
        """Takes the oldest message away; the bytes that it took."""
        chunk = self.chunks[0]
        size: int = _SIZE.unpack_from(chunk.data, self.head - chunk.base)[0]
        del self.numbers[: _NUMBER.size]
        self._advance(self.head + size)
        self.live -= size + BESIDE
        return size + BESIDE

    def evict_many(self, sizes: Ints, wanted: int) -> int:
        """Takes the oldest messages away until `wanted` bytes are free, or all that are given.

        sizes: of the oldest records, all in the first chunk. How many bytes are free.
        """
        costs = np.cumsum(sizes + BESIDE)
        count = min(int(np.searchsorted(costs, wanted)) + 1, len(costs))
        freed = int(costs[count - 1])
        del self.numbers[: count * _NUMBER.size]
        self._advance(self.head + freed - count * BESIDE)
        self.live -= freed
        return freed

    def clear(self) -> None:
        """Takes all messages away."""
        self.head = max([self.head, *(one.base + one.used for one in self.chunks)])
        self.live = 0
        self.numbers.clear()
        while self.chunks:
            self.chunks.pop().drop()

    def _advance(self, head: int) -> None:
        chunks = self.chunks
        while len(chunks) > 1 and head >= chunks[0].base + chunks[0].used:
            chunks.popleft().drop()
            head = max(head, chunks[0].base)
        self.head = head

    def begin(self, chunk: Chunk) -> None:
        """Further records go there."""
        self.chunks.append(chunk)
        self._advance(self.head if self.numbers else chunk.base)
