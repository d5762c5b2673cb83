"""Each message to memory or to the log, by its topic, and each reader to where messages of a queue are."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rmqtool.broker.offset_by_time import Boundary
from rmqtool.messagestore.appending import NotAppendedError
from rmqtool.messagestore.memory.topic_log import BASE
from rmqtool.messagestore.messages import IllegalMessageError, PutStatus
from rmqtool.scan.fields import Field

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import TypeVar

    import numpy.typing as npt
    import pyarrow as pa

    from rmqtool.broker.encoder import MessageColumns
    from rmqtool.messagestore.appending import Appender, Place
    from rmqtool.messagestore.memory.log import MemoryLog
    from rmqtool.messagestore.memory.reading import MemoryReader
    from rmqtool.messagestore.messages import GetResult, RawResult, StoredMessage
    from rmqtool.messagestore.reading import Reader, ReadQueue, StoredReader
    from rmqtool.messagestore.records import Prepared
    from rmqtool.messagestore.topics import Topics
    from rmqtool.query.subscription import Subscription

    Ints = npt.NDArray[np.int64]
    Key = tuple[str, int]
    Copy = tuple[str, int, Prepared]
    Result = TypeVar("Result", GetResult, RawResult)


class RoutedAppender:
    """See `Appender`; nothing of a memory topic reaches the log, and the end of such a record is 0."""

    def __init__(self, appender: Appender, memory: MemoryLog, topics: Topics) -> None:
        self.stored, self.memory, self._topics = appender, memory, topics
        self.kernels = appender.kernels

    def end_of(self, keys: Sequence[Key]) -> int:
        """Physical offset behind the last record, 0 where none of these queues is in the log."""
        kept = self._topics.memory
        return self.stored.end if not kept or any(name not in kept for name, _ in keys) else 0

    def append(self, topic: str, queue_id: int, record: Prepared) -> Place:
        """One record. Raises `NotAppendedError`, `IllegalMessageError`."""
        if topic not in self._topics.memory:
            return self.stored.append(topic, queue_id, record)
        _refuse_odd(record)

        def encode(slot: int, address: int, now: int) -> bytes:
            if record.queue_offset not in {None, slot}:
                why = f"a memory topic gives its offsets itself: {slot}, not {record.queue_offset}"
                raise IllegalMessageError(PutStatus.MESSAGE_ILLEGAL, why)
            stamp = now if record.store_timestamp is None else record.store_timestamp
            return self.stored.encoded(record, queue_id, slot, address, stamp)

        return self.memory.append(topic, queue_id, record.size, encode)

    def append_each(
        self, records: Sequence[Copy], *, together: bool = False
    ) -> list[Place | NotAppendedError]:
        """Records one behind the other; together: as a client's batch, all in the same topic."""
        kept = self._topics.memory
        there = [number for number, one in enumerate(records) if one[0] in kept] if kept else []
        if not there:
            return self.stored.append_each(records, together=together)
        mine = set(there)
        others = [number for number in range(len(records)) if number not in mine]
        rest = self.stored.append_each([records[number] for number in others], together=together)
        found = dict(zip(others, rest, strict=True))
        ended: NotAppendedError | None = None
        for number, (topic, queue_id, record) in enumerate(records):
            place = found.get(number)
            if isinstance(place, NotAppendedError) and place.status is not PutStatus.MESSAGE_ILLEGAL:
                ended = place  # nothing that follows is stored, wherever it goes
            if number in mine:
                found[number] = ended or self._attempt(topic, queue_id, record)
        return [found[number] for number in range(len(records))]

    def _attempt(self, topic: str, queue_id: int, record: Prepared) -> Place | NotAppendedError:
        try:
            return self.append(topic, queue_id, record)
        except IllegalMessageError as error:
            return NotAppendedError(error.status, str(error))
        except NotAppendedError as error:
            return error

    def append_columns(
        self, columns: MessageColumns, keys: Sequence[Key], which: Ints
    ) -> tuple[Ints, NotAppendedError | None]:
        """See `Appender.append_columns`; of topics of both kinds those in the log come first."""
        kept = self._topics.memory
        in_memory = np.array([name in kept for name, _ in keys], np.bool_)
        if not in_memory.any():
            return self.stored.append_columns(columns, keys, which)
        if in_memory.all():
            return self.memory.append_columns(columns, keys, which)
        physical, failed = np.full(len(columns), -1, np.int64), None
        mine, sizes = in_memory[which], columns.rows[:, Field.STORE_SIZE]
        large = np.flatnonzero(mine & (sizes > self.memory.most))
        end = int(large[0]) if len(large) else len(columns)
        """those behind it are not appended, wherever they go"""
        for chosen, to in ((~mine, self.stored), (mine, self.memory)):
            numbers = np.flatnonzero(chosen[:end])
            part = columns.part(numbers)
            physical[numbers], error = to.append_columns(part, keys, which[numbers])
            columns.rows[numbers] = part.rows
            if error is not None:
                end, failed = int(numbers[np.argmax(physical[numbers] < 0)]), error
        if failed is None and len(large):
            failed = self.memory.too_large(int(sizes[large[0]]))
        return physical, failed


def _refuse_odd(record: Prepared) -> None:
    """What a memory topic does not take. Raises `IllegalMessageError`."""
    if record.late is not None:
        raise IllegalMessageError(PutStatus.MESSAGE_ILLEGAL, "a memory topic feeds no further queues")
    if record.messages != 1:
        why = "a memory topic takes neither inner batches nor open transactions"
        raise IllegalMessageError(PutStatus.MESSAGE_ILLEGAL, why)


class RoutedReader:
    """See `Reader`. What a memory topic had in the log before it was one comes in front."""

    def __init__(self, stored: StoredReader, memory: MemoryReader, topics: Topics) -> None:
        self._stored, self._memory, self._topics = stored, memory, topics

    def queue(self, topic: str, queue_id: int) -> ReadQueue | None:
        """Where further messages of a queue are, None where it has none."""
        found = self._memory.queue(topic, queue_id) if topic in self._topics.memory else None
        return found or self._stored.queue(topic, queue_id)

    def bounds(self, topic: str, queue_id: int) -> tuple[int, int]:
        """Queue offset of the first message, and of the next one; twice 0 without the queue."""
        parts: list[ReadQueue | None] = [self._stored.queue(topic, queue_id)]
        if topic in self._topics.memory:
            parts.append(self._memory.queue(topic, queue_id))
        there = [(max(one.min_offset, 0), one.max_offset) for one in parts if one is not None]
        held = [one for one in there if one[0] < one[1]] or there
        return (held[0][0], there[-1][1]) if there else (0, 0)

    def _of(self, topic: str, queue_id: int, offset: int) -> Reader:
        """Who has the message at an offset, or would say that it is not there."""
        if topic not in self._topics.memory:
            return self._stored
        before = self._stored.queue(topic, queue_id)
        if before is None or offset >= before.max_offset:
            return self._memory
        return self._stored

    def _whole(self, result: Result, topic: str, queue_id: int) -> Result:
        """The answer of one part, with the ends of both."""
        if topic not in self._topics.memory or self._stored.queue(topic, queue_id) is None:
            return result
        low, high = self.bounds(topic, queue_id)
        return result._replace(min_offset=low, max_offset=high)

    def get(
        self, topic: str, queue_id: int, offset: int, limit: int, wanted: Subscription | None, *, exact: bool
    ) -> GetResult:
        """See `Reader.get`."""
        found = self._of(topic, queue_id, offset).get(topic, queue_id, offset, limit, wanted, exact=exact)
        return self._whole(found, topic, queue_id)

    def raw(
        self, topic: str, queue_id: int, offset: int, limit: int, wanted: Subscription | None
    ) -> RawResult:
        """See `Reader.raw`."""
        found = self._of(topic, queue_id, offset).raw(topic, queue_id, offset, limit, wanted)
        return self._whole(found, topic, queue_id)

    def table(self, topic: str, queue_id: int, offset: int, limit: int, columns: Sequence[str]) -> pa.Table:
        """See `Reader.table`."""
        found = self._stored.table(topic, queue_id, offset, limit, columns)
        if topic not in self._topics.memory:
            return found
        import pyarrow as pa

        left = limit - found.num_rows
        return pa.concat_tables([found, self._memory.table(topic, queue_id, offset, left, columns)])

    def offset_by_time(self, topic: str, queue_id: int, timestamp: int, boundary: Boundary) -> int:
        """See `Reader.offset_by_time`."""
        if topic not in self._topics.memory:
            return self._stored.offset_by_time(topic, queue_id, timestamp, boundary)
        before, after = self._stored.queue(topic, queue_id), self._memory.queue(topic, queue_id)
        if before is not None and (after is None or self._is_before(topic, queue_id, timestamp, boundary)):
            return self._stored.offset_by_time(topic, queue_id, timestamp, boundary)
        return self._memory.offset_by_time(topic, queue_id, timestamp, boundary)

    def _is_before(self, topic: str, queue_id: int, timestamp: int, boundary: Boundary) -> bool:
        """Whether what is looked for is in the log: the last there, or the first here, decides."""
        lower = boundary is Boundary.LOWER
        part: Reader = self._stored if lower else self._memory
        queue = part.queue(topic, queue_id)
        if queue is None:
            return not lower
        at = queue.max_offset - 1 if lower else queue.min_offset
        stamps = [one.store_timestamp for one in part.get(topic, queue_id, at, 1, None, exact=False).messages]
        return any(one >= timestamp for one in stamps) if lower else all(one > timestamp for one in stamps)

    def message_at(self, physical_offset: int) -> StoredMessage | None:
        """See `Reader.message_at`; an address of memory leads there."""
        return (self._memory if physical_offset >= BASE else self._stored).message_at(physical_offset)
