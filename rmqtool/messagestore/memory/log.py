"""All messages that are kept in memory only, bounded by their bytes.

Over the bound a message takes the place of the oldest of its own topic, or of the oldest of all where its
topic has none. Each costs as much as it was to put it: a topic's oldest is at its front, and topics lie in a
heap by their oldest, which is set right when it is asked for.
"""

from __future__ import annotations

import heapq
import threading
from bisect import bisect_right
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from rmqtool.broker.dispatch import Dispatcher
from rmqtool.errors import StoreIOError
from rmqtool.messagestore.appending import NotAppendedError, Place
from rmqtool.messagestore.memory.available import default_bound
from rmqtool.messagestore.memory.queues import MemoryQueue
from rmqtool.messagestore.memory.topic_log import BASE, BESIDE, Chunk, TopicLog
from rmqtool.messagestore.messages import PutStatus
from rmqtool.scan.events import Records
from rmqtool.scan.fields import ROW_WIDTH, STATUS_WIDTH, Check, Field, Status

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    import numpy.typing as npt

    from rmqtool.broker.encoder import MessageColumns
    from rmqtool.broker.queue_records import QueueRecords
    from rmqtool.broker.traits import Traits
    from rmqtool.scan.kernel_types import Kernels

    Ints = npt.NDArray[np.int64]
    Key = tuple[str, int]
    Encode = Callable[[int, int, int], bytes]
    """a record at a queue offset and an address, stored at a time (ms)"""

SEGMENT = 1 << 61
"""all addresses are in one segment, as far as places in a segment are counted"""
_APART = 64 << 10
"""addresses between two chunks that nothing has"""
_CLEAR = 64
"""chunks from which on it is worth while to look for those that are gone"""
_ROWS = 1 << 13
_MANY = 32 << 10
"""bytes to be freed from which on many messages are evicted together"""


class MemoryUse(NamedTuple):
    """What topics in memory hold. bound: the most bytes; evicted: messages that went for others."""

    bytes: int
    bound: int
    messages: int
    evicted: int


class Settled(NamedTuple):
    """A queue that has a unit for every message that is there. behind: queue offset of the next message."""

    topic: TopicLog
    queue: MemoryQueue
    behind: int


class MemoryLog:
    """Messages of memory topics; any thread may call any method.

    bound: bytes, 0 for three quarters of what is available when the first message comes. begin: queue offsets
    at which the queues of a topic begin. arrived: called when messages have come.
    """

    def __init__(
        self,
        bound: int,
        kernels: Kernels,
        traits: Traits,
        begin: Callable[[str], dict[int, int]],
        *,
        clock: Callable[[], int],
        trailer: bool,
        arrived: Callable[[], object],
    ) -> None:
        self.lock = threading.RLock()
        self.kernels, self.traits = kernels, traits
        self._bound, self._begin, self._clock, self._trailer = bound, begin, clock, trailer
        self._arrived = arrived
        self._topics: dict[str, TopicLog] = {}
        self._bases: list[int] = []
        self._chunks: list[Chunk] = []
        """in the order of their addresses, those that are gone taken away now and then"""
        self._clear_at = _CLEAR
        self._next = BASE
        self._number = self._evicted = self._used = 0
        self._by_age: list[tuple[int, int, TopicLog]] = []
        """heap: number of a message no younger than the topic's oldest, once for each topic with messages"""
        self._waiting: set[TopicLog] = set()
        """topics that are in the heap"""
        self._dispatcher: Dispatcher | None = None
        self._rows = np.empty((_ROWS, ROW_WIDTH), np.int64)
        self._status = np.zeros(STATUS_WIDTH, np.int64)

    @property
    def bound(self) -> int:
        """The most bytes that messages may take."""
        if not self._bound:
            self._bound = default_bound()
        return self._bound

    @property
    def use(self) -> MemoryUse:
        """What is there."""
        with self.lock:
            messages = sum(map(len, self._topics.values()))
            return MemoryUse(self._used, self.bound, messages, self._evicted)

    @property
    def offsets(self) -> dict[str, dict[int, int]]:
        """The next queue offsets of the queues that have had messages, by topic."""
        with self.lock:
            return {name: dict(one.offsets) for name, one in self._topics.items()}

    def _topic(self, name: str) -> TopicLog:
        found = self._topics.get(name)
        if found is None:
            found = self._topics[name] = TopicLog(name, self._begin(name))
        return found

    def forget(self, name: str) -> None:
        """A topic is deleted, its messages with it."""
        with self.lock:
            topic = self._topics.pop(name, None)
            if topic is not None:
                self._used -= topic.live
                topic.clear()
                self._clear_chunks()

    # ---- put

    def append(self, name: str, queue_id: int, size: int, encode: Encode) -> Place:
        """One record of `size` bytes. Raises `NotAppendedError`, and what `encode` raises."""
        cost = size + BESIDE
        with self.lock:
            if size > self.most:
                raise self.too_large(size)
            topic = self._topic(name)
            chunk = self._chunk_for(topic, size, size)
            slot, at = topic.offsets.get(queue_id, 0), chunk.used
            data = encode(slot, chunk.base + at, self._clock())
            if self._used + cost > self.bound:
                self._make_room(topic, cost)
            chunk.data[at : at + size] = data
            self._count(topic, chunk, size, cost)
            topic.number(self._number)
            self._number += 1
            topic.offsets[queue_id] = slot + 1
        self._arrived()
        return Place(slot, chunk.base + at, 0)

    def append_columns(
        self, columns: MessageColumns, keys: Sequence[Key], which: Ints
    ) -> tuple[Ints, NotAppendedError | None]:
        """See `Appender.append_columns`."""
        addresses, sizes = np.full(len(columns), -1, np.int64), columns.rows[:, Field.STORE_SIZE]
        failed, count = None, len(columns)
        with self.lock:
            large = np.flatnonzero(sizes > self.most)
            if len(large):
                count = int(large[0])
                failed = self.too_large(int(sizes[count]))
            topics = [self._topic(name) for name, _ in keys]
            queues = [(one, queue_id) for one, (_, queue_id) in zip(topics, keys, strict=True)]
            following = [one.offsets.get(queue_id, 0) for one, queue_id in queues]
            counted = np.array(following, np.int64)
            self.kernels.encoding.number_rows(which, counted, columns.rows, self._clock())
            for topic, chosen in self._parts(topics, which[:count], sizes):
                self._put(topic, chosen, columns, sizes, addresses)
            self._number += count
            counts = np.bincount(which[:count], minlength=len(keys)).tolist()
            for (topic, queue_id), first, more in zip(queues, following, counts, strict=True):
                topic.offsets[queue_id] = first + more
        self._arrived()
        return addresses, failed

    def _parts(self, topics: list[TopicLog], which: Ints, sizes: Ints) -> Iterator[tuple[TopicLog, Ints]]:
        """Numbers of rows by topic: those of one together where nothing is evicted, else in their order."""
        distinct = list(dict.fromkeys(topics))
        numbers = {topic: number for number, topic in enumerate(distinct)}
        of_row = np.array([numbers[one] for one in topics], np.int64)[which]
        if (
            len(distinct) > 1
            and self._used + int(sizes[: len(which)].sum()) + BESIDE * len(which) > self.bound
        ):
            borders = np.flatnonzero(np.diff(of_row)) + 1
            for part in np.split(np.arange(len(which)), borders):
                yield distinct[of_row[part[0]]], part
            return
        for number, topic in enumerate(distinct):
            yield topic, np.flatnonzero(of_row == number)

    def _put(
        self, topic: TopicLog, chosen: Ints, columns: MessageColumns, sizes: Ints, addresses: Ints
    ) -> None:
        """Rows of one topic, in their order; as many at once as can be there together."""
        while len(chosen):
            costs = np.cumsum(sizes[chosen] + BESIDE)
            free = self.bound - self._used + topic.live
            count = max(int(np.searchsorted(costs, free, "right")), 1)
            self._make_room(topic, int(costs[count - 1]))
            self._write(topic, chosen[:count], columns, sizes, addresses)
            chosen = chosen[count:]

    def _write(
        self, topic: TopicLog, chosen: Ints, columns: MessageColumns, sizes: Ints, addresses: Ints
    ) -> None:
        while len(chosen):
            ends = np.cumsum(sizes[chosen])
            chunk = self._chunk_for(topic, int(ends[0]), int(ends[-1]))
            count = int(np.searchsorted(ends, chunk.room, "right"))
            part, length = chosen[:count], int(ends[count - 1])
            places, at = ends[:count] - sizes[part], chunk.used
            addresses[part] = chunk.base + at + places
            columns.rows[part, Field.STORED_PHYSICAL_OFFSET] = addresses[part]
            out = np.frombuffer(chunk.data, np.uint8)[at : at + length]
            columns.encode(part, places, out, self.kernels, crc_trailer=self._trailer)
            self._count(topic, chunk, length, length + count * BESIDE)
            topic.number_all(self._number + part)
            chosen = chosen[count:]

    def _count(self, topic: TopicLog, chunk: Chunk, size: int, cost: int) -> None:
        chunk.used += size
        topic.live += cost
        self._used += cost
        if topic not in self._waiting:
            self._waiting.add(topic)
            heapq.heappush(self._by_age, (self._number, id(topic), topic))

    def _chunk_for(self, topic: TopicLog, size: int, coming: int) -> Chunk:
        """Where the next record of a topic goes. coming: bytes of it and those behind it."""
        if topic.chunks and topic.chunks[-1].room >= size:
            return topic.chunks[-1]
        chunk = Chunk(self._next, np.empty(topic.chunk_size(size, coming), np.uint8).data, topic)
        self._next += len(chunk.data) + _APART
        if len(self._chunks) >= self._clear_at:
            self._clear_chunks()
        self._bases.append(chunk.base)
        self._chunks.append(chunk)
        topic.begin(chunk)
        return chunk

    def _clear_chunks(self) -> None:
        """Forgets chunks whose messages are gone."""
        self._chunks = [one for one in self._chunks if one.data]
        self._bases = [one.base for one in self._chunks]
        self._clear_at = 2 * len(self._chunks) + _CLEAR

    # ---- evict

    @property
    def most(self) -> int:
        """Bytes of the largest record that there is room for."""
        return self.bound - BESIDE

    def too_large(self, size: int) -> NotAppendedError:
        """What is said of a larger one."""
        why = f"a record of {size} bytes, and memory topics have {self.bound} (memoryTopicMaxBytes)"
        return NotAppendedError(PutStatus.MESSAGE_ILLEGAL, why)

    def _make_room(self, topic: TopicLog, cost: int) -> None:
        """Evicts what is over the bound with so many bytes more."""
        while (wanted := self._used + cost - self.bound) > 0:
            self._used -= self._evict(topic if len(topic) else self._oldest(), wanted)

    def _evict(self, topic: TopicLog, wanted: int) -> int:
        before = len(topic)
        freed = self._evict_many(topic, wanted) if wanted > _MANY else topic.evict()
        self._evicted += before - len(topic)
        return freed

    def _evict_many(self, topic: TopicLog, wanted: int) -> int:
        chunk = topic.chunks[0]
        count = self._walk(chunk, chunk.low, Check.FRAME)[0]
        return topic.evict_many(self._rows[:count, Field.STORE_SIZE], wanted) if count else topic.evict()

    def _oldest(self) -> TopicLog:
        """The topic of the oldest message of all."""
        heap = self._by_age
        while True:
            number, key, topic = heap[0]
            if not len(topic):
                heapq.heappop(heap)
                self._waiting.discard(topic)
            elif topic.oldest != number:
                heapq.heapreplace(heap, (topic.oldest, key, topic))
            else:
                return topic

    # ---- queues

    def _walk(self, chunk: Chunk, start: int, check: Check) -> tuple[int, int]:
        """Rows of the records from a place in a chunk on: how many, and where they end."""
        position = chunk.base - BASE
        window = chunk.window
        self.kernels.walk(window, start, position, SEGMENT, BASE, int(check), self._rows, self._status)
        return int(self._status[Status.COUNT]), int(self._status[Status.POSITION]) - position

    def _take_units(self, key: Key, run: QueueRecords) -> None:
        topic = self._topics.get(key[0])
        if topic is not None and len(run):
            topic.queues.setdefault(key[1], MemoryQueue()).add(run)

    def records(self, chunk: Chunk, at: int = 0) -> Iterator[Records]:
        """Records of a chunk from a place on, also those that were evicted. Use it with the lock held."""
        while at < chunk.used:
            count, at = self._walk(chunk, at, Check.TEXT)
            if not count:
                raise StoreIOError(f"topic {chunk.topic.name}: what lies in memory is not a record")
            yield Records(self._rows[:count], chunk.window, chunk.base - BASE)

    def _settle(self, topic: TopicLog) -> None:
        """Every message that is there has a unit, and no other one."""
        dispatcher = self._dispatcher
        if dispatcher is None:
            dispatcher = self._dispatcher = Dispatcher(self._take_units, self.kernels)
        for chunk in topic.behind(topic.dispatched):
            at = max(topic.dispatched, topic.head, chunk.base)
            for run in self.records(chunk, at - chunk.base):
                dispatcher.take(run, BASE)
            topic.dispatched = chunk.base + chunk.used
        dispatcher.flush()
        for queue in topic.queues.values():
            queue.trim(topic.head)

    def queue(self, name: str, queue_id: int) -> Settled | None:
        """A queue of a memory topic as it is now, None where the topic has had none of that number."""
        with self.lock:
            topic = self._topic(name)
            if queue_id not in topic.offsets:
                return None
            if topic.dispatched < topic.end:
                self._settle(topic)
            queue = topic.queues.setdefault(queue_id, MemoryQueue())
            return Settled(topic, queue, topic.offsets[queue_id])

    def queues(self, names: Iterable[str]) -> list[Key]:
        """Topic and number of every queue of memory topics that has had messages."""
        with self.lock:
            return [(name, queue_id) for name in names for queue_id in self._topic(name).offsets]

    def chunks_of(self, name: str) -> list[Chunk]:
        """Where the messages of a topic are, the oldest first."""
        with self.lock:
            topic = self._topics.get(name)
            return list(topic.chunks) if topic is not None and len(topic) else []

    def chunk_at(self, address: int) -> Chunk | None:
        """The chunk around an address of a message that is there."""
        with self.lock:
            number = bisect_right(self._bases, address) - 1
            if number < 0:
                return None
            chunk = self._chunks[number]
            there = max(chunk.topic.head, chunk.base) <= address < chunk.base + chunk.used
            return chunk if there and len(chunk.topic) else None
