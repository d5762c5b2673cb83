"""What is read from a store that is open: pulls, records by place, whole stretches of a queue as columns."""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import numpy as np

from formats.consumequeue import is_ext_address
from formats.java import java_hash
from rmqtool.broker.get_message import GetMessageStatus, Pull, ServedQueue, pull
from rmqtool.broker.offset_by_time import broker_offset
from rmqtool.errors import StoreIOError, UsageError
from rmqtool.messagestore.messages import GetResult, RawResult, StoredMessage
from rmqtool.messagestore.queue_reader import QueueReader, TimedReader
from rmqtool.query.subscription import FilterType, Subscription
from rmqtool.scan.events import Records
from rmqtool.scan.fields import ROW_WIDTH, STATUS_WIDTH, Check, Field, Status
from rmqtool.scan.pieces import pieces

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    import numpy.typing as npt
    import pyarrow as pa

    from rmqtool.broker.get_message import Delivered, Passes, PullLimits
    from rmqtool.broker.offset_by_time import Boundary, TimedQueue
    from rmqtool.broker.start import AnyQueue, Key
    from rmqtool.broker.traits import Traits
    from rmqtool.messagestore.log_reader import LogReader
    from rmqtool.messagestore.queue_reader import UnitFiles
    from rmqtool.scan.kernel_types import Kernels
    from rmqtool.store.bytes import Window

    Ints = npt.NDArray[np.int64]
    Data = TypeVar("Data", bytes, memoryview)
    Made = TypeVar("Made")

_NEAR = 16 << 10
"""bytes between two records up to which those between them are read, too"""
_ROWS = 1 << 14
_BYTES = 16 << 20
"""of records that become columns together"""


@lru_cache(maxsize=256)
def subscription_of(tags: str | None, sql92: str | None) -> Subscription | None:
    """The filter of a get, None without one. Raises `UsageError` for what no broker takes."""
    if tags is not None and sql92 is not None:
        raise UsageError("tags and sql92 cannot be combined")
    if sql92 is not None:
        return Subscription.of(sql92, FilterType.SQL92)
    made = None if tags is None else Subscription.of(tags)
    return None if made is None or made.takes_all else made


class ReadLog(Protocol):
    """What a reader asks of a log; `LogReader` says what each answers."""

    @property
    def segment_size(self) -> int:
        """Bytes of a segment."""
        ...

    def path_of(self, base: int) -> str:
        """The segment that begins at `base`."""
        ...

    def read(self, physical_offset: int, size: int) -> Window:
        """Bytes of one segment."""
        ...

    def whole(self, physical_offset: int) -> tuple[int, Window] | None:
        """All bytes of a segment."""
        ...

    def copy(self, physical_offset: int, size: int) -> bytes:
        """The bytes of `read`."""
        ...

    def copies(self, delivered: Sequence[Delivered]) -> list[bytes]:
        """The bytes of `records`."""
        ...

    def records(self, delivered: Sequence[Delivered]) -> list[memoryview]:
        """Records that are delivered."""
        ...

    def record(self, physical_offset: int) -> bytes | None:
        """The record that begins there."""
        ...

    def retried(self, work: Callable[[], Made]) -> Made:
        """Does what reads windows."""
        ...


class ReadQueue(ServedQueue, Protocol):
    """A queue of messages that lie in such a log."""

    @property
    def batch(self) -> bool:
        """Whether units are of 46 bytes."""
        ...


class Reader(ABC):
    """Reads queues; what they are a subclass says.

    reads_slave: a slave may be suggested (`PullMessageProcessor#processRequest`).
    """

    def __init__(self, log: ReadLog, limits: PullLimits, kernels: Kernels, *, reads_slave: bool) -> None:
        self._log, self._limits, self._kernels, self._reads_slave = log, limits, kernels, reads_slave

    @abstractmethod
    def queue(self, topic: str, queue_id: int) -> ReadQueue | None:
        """A queue, None where there is none."""

    @abstractmethod
    def _timed(self, queue: Any) -> TimedQueue:
        """A queue as the search for an offset by time asks for it."""

    def pull(
        self,
        topic: str,
        queue_id: int,
        offset: int,
        limit: int,
        wanted: Subscription | None,
        read: Callable[[Sequence[Delivered]], list[Data]],
    ) -> tuple[Pull, list[Data]]:
        """One pull as a broker answers it, and its records, which `read` makes of what is delivered."""
        view = self.queue(topic, queue_id)
        passes = None if wanted is None else self._passes(wanted)
        if view is None:  # a broker makes the queue (`ConsumeQueueStore#findOrCreateConsumeQueue`)
            return Pull(GetMessageStatus.NO_MESSAGE_IN_QUEUE, 0, 0, 0), []
        while True:
            floor = view.min_offset
            try:
                answer = pull(view, offset, limit, passes, self._limits)
                found = read(answer.delivered)
            except StoreIOError:
                if view.min_offset == floor:
                    raise
                continue  # what was read has expired meanwhile
            low, delivered = view.min_offset, answer.delivered
            if low == floor:
                return answer, found
            if floor <= offset < low:  # nobody is sent past what has gone meanwhile without a word
                if delivered and delivered[0].queue_offset <= offset and len(found) == len(delivered):
                    return answer, found
            elif answer.status is not GetMessageStatus.OFFSET_FOUND_NULL:
                return answer, found  # else a broker sends a consumer behind what is left of the file

    def get(
        self, topic: str, queue_id: int, offset: int, limit: int, wanted: Subscription | None, *, exact: bool
    ) -> GetResult:
        """One pull, its messages by themselves. exact: compare the tags, not their hashes alone."""
        answer, records = self.pull(topic, queue_id, offset, limit, wanted, self._log.copies)
        messages = [StoredMessage(one) for one in records]
        if exact and wanted is not None and wanted.type is FilterType.TAG:
            messages = [one for one in messages if one.tags in wanted.tags]
            if not messages and answer.status is GetMessageStatus.FOUND:
                answer.status = GetMessageStatus.NO_MATCHED_MESSAGE
        return GetResult(
            answer.status,
            messages,
            answer.next_begin_offset,
            answer.min_offset,
            answer.max_offset,
            answer.suggest_pulling_from_slave and self._reads_slave,
        )

    def raw(
        self, topic: str, queue_id: int, offset: int, limit: int, wanted: Subscription | None
    ) -> RawResult:
        """One pull without a copy."""
        answer, records = self.pull(topic, queue_id, offset, limit, wanted, self._log.records)
        return RawResult(
            answer.status,
            records,
            answer.next_begin_offset,
            answer.min_offset,
            answer.max_offset,
            answer.suggest_pulling_from_slave and self._reads_slave,
        )

    def _passes(self, wanted: Subscription) -> Passes:
        if wanted.type is FilterType.TAG:
            return lambda code, offset, size: wanted.passes_unit(
                self._tags_code(offset, size) if is_ext_address(code) else code
            )
        return lambda _code, offset, size: self._matches(wanted, offset, size)

    def _tags_code(self, offset: int, size: int) -> int | None:
        """What the extension unit of a record says, by its tags; None as in `_matches`."""
        raw = self._log.copy(offset, size)
        return None if len(raw) < size else java_hash(StoredMessage(raw).tags or "")

    def _matches(self, wanted: Subscription, offset: int, size: int) -> bool:
        """`ExpressionMessageFilter#isMatchedByCommitLog`; what is not there is for the pull to find out."""
        import pyarrow as pa

        from rmqtool.scan.table import PROPERTIES

        raw = self._log.copy(offset, size)
        if len(raw) < size:
            return True
        properties = pa.array([list(StoredMessage(raw).properties.items())], PROPERTIES)
        return bool(wanted.sql92.passes(properties)[0])

    def offset_by_time(self, topic: str, queue_id: int, timestamp: int, boundary: Boundary) -> int:
        """What a broker answers for a point in time (ms), 0 without such a queue."""
        while (found := self.queue(topic, queue_id)) is not None:
            floor = found.min_offset
            try:
                return broker_offset(self._timed(found), timestamp, boundary)
            except StoreIOError:
                if found.min_offset == floor:
                    raise  # nothing has expired meanwhile
        return 0

    def message_at(self, physical_offset: int) -> StoredMessage | None:
        """The record that begins there (`DefaultMessageStore#lookMessageByOffset`); None where none does."""
        raw = self._log.record(physical_offset)
        if raw is None:
            return None
        window = np.frombuffer(raw, np.uint8)
        rows, status = np.zeros((1, ROW_WIDTH), np.int64), np.zeros(STATUS_WIDTH, np.int64)
        self._kernels.walk(window, 0, 0, len(window), physical_offset, int(Check.FRAME), rows, status)
        return StoredMessage(raw) if status[Status.COUNT] else None

    def table(self, topic: str, queue_id: int, offset: int, limit: int, columns: Sequence[str]) -> pa.Table:
        """Messages of a queue from `offset` on as rows of the record table, at most `limit`.

        Nothing is left out for its size or its age, as a pull would. Raises `UsageError` for an unknown
        column.
        """
        from rmqtool.scan.table import COLUMNS

        unknown = [name for name in columns if name not in COLUMNS]
        if unknown:
            raise UsageError(f"the record table has no column {unknown[0]}")
        if not columns:  # of which Arrow counts no rows
            return self.table(topic, queue_id, offset, limit, ("physical_offset",)).select([])
        return self._log.retried(lambda: self._table(topic, queue_id, offset, limit, columns))

    def _table(self, topic: str, queue_id: int, offset: int, limit: int, columns: Sequence[str]) -> pa.Table:
        import pyarrow as pa

        from rmqtool.scan.table import table_schema, to_batch

        batches = []
        view = self.queue(topic, queue_id)
        for records, base, path in () if view is None else self._stretches(view, offset, limit):
            batches.append(to_batch(records, base=base, path=path, kernels=self._kernels, columns=columns))
        return pa.Table.from_batches(batches, table_schema(columns))

    def _stretches(self, view: ReadQueue, offset: int, limit: int) -> Iterator[tuple[Records, int, str]]:
        at, end = max(offset, view.min_offset), min(view.max_offset, offset + limit)
        while at < end:
            found = view.slice_from(at, end - at)
            if found is None or not len(found[1]):
                return
            first, units = found
            yield from self._records(
                units["physical_offset"].astype(np.int64), units["size"].astype(np.int64)
            )
            at = int(units["base_offset"][-1] + units["batch_size"][-1]) if view.batch else first + len(units)

    def _records(self, offsets: Ints, sizes: Ints) -> Iterator[tuple[Records, int, str]]:
        """Records of units, as many at once as lie in one file, whatever lies between them."""
        size, at = self._log.segment_size, 0
        while at < len(offsets):
            some = offsets[at : at + _ROWS]
            whole = self._log.whole(int(some[0]))
            if whole is None:
                here = some // size == some[0] // size
            else:
                ends = some + np.maximum(sizes[at : at + _ROWS], 0)
                here = (some >= whole[0]) & (ends <= whole[0] + len(whole[1]))
            count = len(here) if here.all() else max(int(np.argmin(here)), 1)
            if whole is None or not here[0]:
                yield from self._copied(some[:count], sizes[at : at + count])
            else:
                yield from self._in_window(whole[1], whole[0], some[:count])
            at += count

    def _copied(self, offsets: Ints, sizes: Ints) -> Iterator[tuple[Records, int, str]]:
        """Those that lie near each other are read together, from a file that is not mapped."""
        ends = offsets + sizes
        for part in pieces(offsets, ends, _NEAR, _BYTES):
            first = int(offsets[part.start])
            window = self._log.read(first, int(ends[part.stop - 1]) - first)
            yield from self._in_window(window, first, offsets[part])

    def _in_window(self, window: Window, begin: int, offsets: Ints) -> Iterator[tuple[Records, int, str]]:
        """The records of a window that begins at a physical offset, in parts of some megabytes."""
        size = self._log.segment_size
        position, base = begin % size, begin - begin % size
        rows = np.empty((len(offsets), ROW_WIDTH), np.int64)
        count = self._kernels.records_at(window, offsets - begin, position, size, base, int(Check.ALL), rows)
        ends, at = np.cumsum(rows[:count, Field.STORE_SIZE]), 0
        while at < count:
            before = int(ends[at - 1]) if at else 0
            until = max(int(np.searchsorted(ends, before + _BYTES, "right")), at + 1)
            yield Records(rows[at:until], window, position), base, self._log.path_of(base)
            at = until


class StoredReader(Reader):
    """Reads what is dispatched into queues on disk. queues: by topic and queue id."""

    def __init__(
        self,
        log: LogReader,
        files: UnitFiles,
        queues: Mapping[Key, AnyQueue],
        traits: Traits,
        limits: PullLimits,
        kernels: Kernels,
        *,
        reads_slave: bool,
    ) -> None:
        super().__init__(log, limits, kernels, reads_slave=reads_slave)
        self._stored, self._files, self._queues, self._traits = log, files, queues, traits
        self._readers: dict[Key, QueueReader] = {}

    def queue(self, topic: str, queue_id: int) -> QueueReader | None:
        """A queue, None where there is none."""
        key = topic, queue_id
        found = self._queues.get(key)
        if found is None:
            self._readers.pop(key, None)
            return None
        reader = self._readers.get(key)
        if reader is None or reader.queue is not found:
            reader = self._readers[key] = QueueReader(found, self._stored, self._traits, self._files)
        return reader

    def _timed(self, queue: Any) -> TimedReader:
        return TimedReader(queue, self._files)
