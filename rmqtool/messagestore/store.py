"""A message store that is open for reading and writing: what applications call."""

from __future__ import annotations

import os
import threading
import time
import weakref
from concurrent.futures import Future
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import numpy as np

from rmqtool.broker.log_view import LogView
from rmqtool.broker.offset_by_time import Boundary, broker_offset
from rmqtool.broker.queue_view import QueueView
from rmqtool.errors import RmqtoolError, StoreClosedError, UsageError
from rmqtool.messagestore.appending import Appender, NotAppendedError, Place, milliseconds
from rmqtool.messagestore.dispatching import Dispatching
from rmqtool.messagestore.expiry import Expiry
from rmqtool.messagestore.flushing import Flusher, FlushService, FutureAcks, Periodic
from rmqtool.messagestore.log_files import LogFiles
from rmqtool.messagestore.log_reader import LogReader
from rmqtool.messagestore.messages import Ack, AppendContext, GetResult, Message, PutStatus, RawResult
from rmqtool.messagestore.opening import find, start_store
from rmqtool.messagestore.queue_reader import UnitFiles
from rmqtool.messagestore.reading import Reader, subscription_of
from rmqtool.messagestore.records import IllegalMessageError, Prepared, RecordMaker
from rmqtool.messagestore.settings import settings_from
from rmqtool.messagestore.state_files import StateFiles
from rmqtool.messagestore.topics import Topics
from rmqtool.scan.table import DEFAULT_COLUMNS
from rmqtool.store.kinds import FileKind
from rmqtool.store.layout import Store

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Self

    import pyarrow as pa

    from rmqtool.messagestore.expiry import Expired
    from rmqtool.messagestore.messages import StoredMessage
    from rmqtool.messagestore.opening import Opened, Recovery
    from rmqtool.messagestore.settings import Given, StoreSettings
    from rmqtool.store.config import StoreConfig
    from rmqtool.store.config_json import TopicConfig

_PLAIN = AppendContext()
_STORED = frozenset({PutStatus.PUT_OK, PutStatus.FLUSH_DISK_TIMEOUT})
_CHECKPOINT = 1.0
"""seconds between two checkpoints, as since 5.0"""
_open_stores: weakref.WeakSet[MessageStore] = weakref.WeakSet()


class MessageStore:
    """A store of RocketMQ, open. Make it with `open`; a context manager that closes it.

    Any thread may call any method. In a process that was forked from the one that opened it, every call
    raises `StoreClosedError`.
    """

    def __init__(
        self, opened: Opened, settings: StoreSettings, stack: ExitStack, clock: Callable[[], int]
    ) -> None:
        """Call `open`."""
        self._stack, self._settings, self._opened = stack, settings, opened
        self._start, self.root, self.release = opened.start, str(opened.store.root), opened.release
        config, start, folder = settings.config, opened.start, opened.held.folder
        self._maker = RecordMaker(opened.release, config, settings.host)
        self._state = StateFiles(opened.held, of_5=start.traits.abort_is_written)
        self.topics = Topics(
            opened.store.topics,
            self._state,
            create=settings.create_topics,
            queues=settings.default_queues,
        )
        self._log = LogFiles(self.root, start.log)
        self._flusher = Flusher(self._log, on_flush=self._wake)
        reader = LogReader(folder, start.log)
        self._sync = settings.sync_flush
        shows_flushed = self._sync and start.traits.confirms_flushed
        self._dispatching = Dispatching(
            start,
            reader,
            opened.files,
            opened.index,
            (lambda: self._flusher.flushed) if shows_flushed else (lambda: self._log.end),
        )
        offsets = {key: queue.max_offset for key, queue in start.queues.items()}
        kernels = start.reading.kernels
        self._appender = Appender(self._log, offsets, kernels, trailer=self._maker.trailer, clock=clock)
        units = UnitFiles(folder)
        self._reader = Reader(reader, units, start.queues, start.traits, settings.limits, kernels)
        self._expiry = Expiry(
            self.root,
            config,
            start,
            self._appender.lock,
            self._flusher,
            self._dispatching,
            reader,
            units,
            clock,
        )
        self._futures = FutureAcks(self._flusher, settings.sync_flush_timeout)
        self._why_closed: str | None = None
        self._closing = threading.Lock()
        stack.callback(units.close)
        stack.callback(reader.close)
        stack.callback(self._log.close)
        self._state.mark_lock()
        self._state.begin()
        self._begin(config)
        _open_stores.add(self)

    def _begin(self, config: Any) -> None:
        """Starts what works in the background."""
        self._flushing = (
            None
            if self._sync
            else FlushService(
                self._flusher,
                config.flush_interval_commit_log / 1000,
                config.flush_commit_log_least_pages,
                config.flush_commit_log_thorough_interval / 1000,
            )
        )
        self._queues_synced = time.monotonic()
        self._logical = int(self._start.checkpoint.logics_msg_timestamp)
        self._physical = int(self._start.checkpoint.physic_msg_timestamp)
        self._indexed = self._index_timestamp()
        self._checkpoints = Periodic("rmqtool-checkpoint", _CHECKPOINT, self._keep_checkpoint)
        self._dispatching.begin()
        self._expiry.begin()

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str],
        *,
        config: Given = None,
        recovery: Recovery = "refuse",
        create: bool = False,
        release: str | None = None,
        clock: Callable[[], int] = milliseconds,
    ) -> MessageStore:
        """Opens the store at `path`, as a broker of `release` would: lock, recovery, `abort`.

        config: settings under RocketMQ's names, or a `broker.conf`. recovery: what is done where a broker's
        recovery would give up intact records: `refuse`, or let it. create: make the store if there is none.
        release: by default the last one that may have written the store, the newest known for a new one.
        clock: the time in ms, for tests. Raises `NotAStoreError`, `LockedError`, `RecoveryLossError`,
        `UnfitStoreError` (a broker would not start), `UsageError` (settings), `StoreIOError`.
        """
        settings = settings_from(config)
        root = find(path, create=create)
        with ExitStack() as stack:
            opened = start_store(root, settings, release, recovery, stack)
            return cls(opened, settings, stack.pop_all(), clock)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def put(self, message: Message, *, context: AppendContext | None = None) -> Ack:
        """Stores a message; under SYNC_FLUSH the answer comes when it is on the medium.

        context: replays a record as it was stored, without a look at the topic table. Raises
        `StoreClosedError`; whatever else goes wrong is the status of the answer.
        """
        appended = self._append(message, context)
        if isinstance(appended, Ack):
            return appended
        queue_id, record, place = appended
        status = PutStatus.PUT_OK
        if self._sync:
            status = self._flushed(record, place.end)
        return self._ack(message, queue_id, record, place, status)

    def put_async(self, message: Message, *, context: AppendContext | None = None) -> Future[Ack]:
        """As `put`, at once; the future has the answer when the message is as safe as `put` makes it.

        Many of them share one flush.
        """
        future: Future[Ack] = Future()
        appended = self._append(message, context)
        if isinstance(appended, Ack):
            future.set_result(appended)
            return future
        queue_id, record, place = appended
        if not self._sync or not record.waits:
            future.set_result(self._ack(message, queue_id, record, place, PutStatus.PUT_OK))
            return future

        def answer(flushed: bool) -> None:
            status = PutStatus.PUT_OK if flushed else PutStatus.FLUSH_DISK_TIMEOUT
            future.set_result(self._ack(message, queue_id, record, place, status))

        self._futures.add(place.end, answer)
        return future

    def put_batch(
        self, messages: Iterable[Message], *, contexts: Sequence[AppendContext] | None = None
    ) -> list[Ack]:
        """Stores a client's batch: messages of one topic, all of them one behind the other or none.

        They go into one queue, that of the first, and into one segment. One that no store takes makes all be
        refused. contexts: as for `put`, one a message.
        """
        given = list(messages)
        if not given:
            return []
        try:
            refused = self._refusal()
            if refused is not None:
                raise refused
            todo = self._batch(given, contexts)
        except IllegalMessageError as error:
            return [self._failed(one, error.status, str(error)) for one in given]
        return self._answers(given, todo, self._appender.append_each(todo, together=True))

    def _batch(
        self, given: list[Message], contexts: Sequence[AppendContext] | None
    ) -> list[tuple[str, int, Prepared]]:
        first = given[0]
        if any(one.topic != first.topic for one in given):
            raise IllegalMessageError(PutStatus.MESSAGE_ILLEGAL, "a batch has one topic")
        queue_id = self._queue_of(first) if contexts is None else first.queue_id or 0
        todo = [
            (one.topic, queue_id, self._maker.prepare(one, _PLAIN if contexts is None else contexts[number]))
            for number, one in enumerate(given)
        ]
        size = sum(record.size for _, _, record in todo)
        if size > self._maker.most_batch:
            raise IllegalMessageError(PutStatus.MESSAGE_ILLEGAL, f"a batch of {size} bytes")
        return todo

    def put_many(self, messages: Iterable[Message] | pa.Table) -> list[Ack] | pa.Table:
        """Stores messages in their order, with few writes and one flush; an answer for each.

        An Arrow table has the columns `topic` and `body`, and as it likes `queue_id`, `tags`, `keys` (a list
        or one text), `uniq_key`, `flag`, `properties` (a map) and `born_timestamp`; it is answered with a
        table of `status`, `topic`, `queue_id`, `queue_offset`, `physical_offset`, `uniq_key`. Raises
        `UsageError` for other columns or types.
        """
        if hasattr(messages, "to_batches"):
            return self._put_table(messages)
        given = list(messages)
        if not given:
            return []
        refused = self._refusal()
        acks: list[Ack | None] = [None] * len(given)
        todo: list[tuple[str, int, Prepared]] = []
        numbers: list[int] = []
        for number, message in enumerate(given):
            try:
                if refused is not None:
                    raise refused
                todo.append((message.topic, self._queue_of(message), self._maker.prepare(message)))
                numbers.append(number)
            except IllegalMessageError as error:
                acks[number] = self._failed(message, error.status, str(error))
        stored = self._answers([given[number] for number in numbers], todo, self._appender.append_each(todo))
        for number, ack in zip(numbers, stored, strict=True):
            acks[number] = ack
        return [ack for ack in acks if ack is not None]

    def _put_table(self, table: pa.Table) -> pa.Table:
        import pyarrow as pa

        from rmqtool.messagestore.columns import ANSWER, AT_ONCE, answer_of, batch_of, check_columns

        check_columns(table)
        done: list[tuple[Any, Any, str]] = []
        for part in table.to_batches(AT_ONCE):
            refused = self._refusal()
            batch = batch_of(part, self._maker, self.topics, self._topic_of)
            physical, failed = np.full(len(batch.columns), -1, np.int64), PutStatus.UNKNOWN_ERROR
            if refused is not None:
                failed = refused.status
            else:
                try:
                    _, physical = self._appender.append_columns(batch.columns, batch.keys, batch.which)
                except NotAppendedError as error:
                    failed = error.status
            self._wake()
            done.append((batch, physical, failed.value))
        status = PutStatus.PUT_OK
        timeout = self._settings.sync_flush_timeout
        if self._sync and done and not self._flusher.flush_to(self._log.end, timeout):
            status = PutStatus.FLUSH_DISK_TIMEOUT
        answers = [answer_of(batch, physical, status.value, failed) for batch, physical, failed in done]
        return pa.Table.from_batches(answers, ANSWER)

    def _answers(
        self,
        messages: list[Message],
        records: list[tuple[str, int, Prepared]],
        places: list[Place | NotAppendedError],
    ) -> list[Ack]:
        """Answers for records that were appended together, behind one flush."""
        self._wake()
        ends = [place.end for place in places if isinstance(place, Place)]
        status = PutStatus.PUT_OK
        if self._sync and ends and not self._flusher.flush_to(ends[-1], self._settings.sync_flush_timeout):
            status = PutStatus.FLUSH_DISK_TIMEOUT
        return [
            self._ack(message, queue_id, record, place, status)
            if isinstance(place, Place)
            else self._failed(message, place.status, str(place))
            for message, (_, queue_id, record), place in zip(messages, records, places, strict=True)
        ]

    def _append(self, message: Message, context: AppendContext | None) -> Ack | tuple[int, Prepared, Place]:
        try:
            refused = self._refusal()
            if refused is not None:
                raise refused
            if context is None:
                queue_id = self._queue_of(message)
                record = self._maker.prepare(message)
            else:
                queue_id = message.queue_id or 0
                record = self._maker.prepare(message, context)
            place = self._appender.append(message.topic, queue_id, record)
        except (IllegalMessageError, NotAppendedError) as error:
            return self._failed(message, error.status, str(error))
        if self._dispatching.idle:
            self._dispatching.wake()
        return queue_id, record, place

    def _refusal(self) -> IllegalMessageError | None:
        """Why nothing can be stored now. Raises `StoreClosedError`."""
        if self._why_closed is not None:
            raise StoreClosedError(self._why_closed)
        error: Exception | None = self._flusher.error or self._dispatching.error
        if error is None and self._expiry.full:
            return IllegalMessageError(PutStatus.SERVICE_NOT_AVAILABLE, "the disk is full")
        if error is None:
            return None
        return IllegalMessageError(PutStatus.SERVICE_NOT_AVAILABLE, f"the store is not writeable: {error}")

    def _topic_of(self, name: str) -> TopicConfig:
        """The topic of a message. Raises `IllegalMessageError` for one that takes none."""
        topic = self.topics.get(name)
        if topic is None:
            self._maker.topic(name)  # none is made for a name that no topic has
            topic = self.topics.for_message(name)
        if topic is None:
            raise IllegalMessageError(PutStatus.MESSAGE_ILLEGAL, f"there is no topic {name}")
        if not topic.writeable:
            raise IllegalMessageError(PutStatus.MESSAGE_ILLEGAL, f"topic {name} is not writeable")
        return topic

    def _queue_of(self, message: Message) -> int:
        topic = self._topic_of(message.topic)
        if message.queue_id is None:
            return self.topics.next_queue(topic)
        if not 0 <= message.queue_id < topic.write_queue_nums:
            why = f"topic {topic.name} has {topic.write_queue_nums} write queues, not {message.queue_id}"
            raise IllegalMessageError(PutStatus.MESSAGE_ILLEGAL, why)
        return message.queue_id

    def _flushed(self, record: Prepared, end: int) -> PutStatus:
        if not record.waits:
            self._futures.add(end, bool)
            return PutStatus.PUT_OK
        if self._flusher.flush_to(end, self._settings.sync_flush_timeout):
            return PutStatus.PUT_OK
        return PutStatus.FLUSH_DISK_TIMEOUT

    def _ack(self, message: Message, queue_id: int, record: Prepared, place: Place, status: PutStatus) -> Ack:
        slot, physical, _ = place
        uniq_key = record.uniq_key or None
        return Ack._make((status, message.topic, queue_id, slot, physical, uniq_key, record.store_host, ""))

    def _failed(self, message: Message, status: PutStatus, why: str) -> Ack:
        queue_id = -1 if message.queue_id is None else message.queue_id
        return Ack(status, message.topic, queue_id, -1, -1, message.uniq_key, self._settings.host, why)

    def get(
        self,
        topic: str,
        queue_id: int,
        offset: int,
        limit: int = 32,
        *,
        tags: str | None = None,
        sql92: str | None = None,
        exact: bool = True,
        wait: float | None = None,
    ) -> GetResult:
        """Messages of a queue from `offset` on, as a broker answers a pull of at most `limit`.

        It sees every message whose put has returned. tags: `a || b`; sql92: an expression over properties;
        exact: False gives what a broker sends, tags of the same hash included. wait: seconds to wait for the
        next message at the end of the queue. Raises `UsageError` for a filter that no broker takes,
        `StoreClosedError`, `StoreIOError`, `UnreadableError`.
        """
        wanted = subscription_of(tags, sql92)
        self._ready(topic, queue_id, offset, wait)
        return self._reader.get(topic, queue_id, offset, limit, wanted, exact=exact)

    def get_raw(
        self,
        topic: str,
        queue_id: int,
        offset: int,
        limit: int = 32,
        *,
        tags: str | None = None,
        wait: float | None = None,
    ) -> RawResult:
        """As `get` with `exact=False`, the records as views of the mapped segments: nothing is copied.

        A view stays good while it is referenced, also behind the expiry of its segment.
        """
        wanted = subscription_of(tags, None)
        self._ready(topic, queue_id, offset, wait)
        return self._reader.raw(topic, queue_id, offset, limit, wanted)

    def get_table(
        self,
        topic: str,
        queue_id: int,
        offset: int = 0,
        limit: int = 100_000,
        *,
        columns: Sequence[str] = DEFAULT_COLUMNS,
    ) -> pa.Table:
        """Messages of a queue from `offset` on as Arrow, at most `limit`: columns of the record table.

        Not cut by a broker's limits of one pull. Raises as `get`, and `UsageError` for an unknown column.
        """
        self._ready(topic, queue_id, offset, None)
        return self._reader.table(topic, queue_id, offset, limit, columns)

    def message_at(self, physical_offset: int) -> StoredMessage | None:
        """The message whose record begins at a physical offset, None where none does."""
        self._demand_open()
        return self._reader.message_at(physical_offset)

    def offset_by_time(self, topic: str, queue_id: int, timestamp: int, boundary: str = "lower") -> int:
        """The queue offset that a broker answers for a point in time (ms): `lower` or `upper` boundary.

        Lower: the first message stored then or later; upper: the last one stored by then. Releases before
        5.1.1 know no boundary. 0 without such a queue.
        """
        if boundary not in set(Boundary):
            raise UsageError(f"{boundary} is no boundary: {' or '.join(Boundary)}")
        self._ready(topic, queue_id, 0, None)
        store = Store.open(self.root, config=self._settings.config)
        kinds = (FileKind.BATCHCONSUMEQUEUE, FileKind.CONSUMEQUEUE)
        queues = [one for kind in kinds for one in store.queues(kind)]
        queue = next((one for one in queues if (one.topic, one.queue_id) == (topic, queue_id)), None)
        if queue is None:
            return 0
        with LogView(store.segments) as log, QueueView(queue, log, self._start.traits) as view:
            return broker_offset(view, timestamp, Boundary(boundary))

    def offsets(self, topic: str, queue_id: int) -> tuple[int, int]:
        """Offset of the first message of a queue, and of the next one; 0 and 0 without such a queue."""
        self._ready(topic, queue_id, 0, None)
        queue = self._reader.queue(topic, queue_id)
        return (0, 0) if queue is None else (max(queue.min_offset, 0), queue.max_offset)

    def queues(self) -> list[tuple[str, int]]:
        """Topic and number of every queue."""
        self._ready("", 0, 0, None)
        return sorted(self._start.queues)

    @property
    def config(self) -> StoreConfig:
        """Settings that were given, with the defaults of others."""
        return self._settings.config

    @property
    def dispatch_behind(self) -> int:
        """Bytes of the log that are not in queues and index yet."""
        return self._dispatching.behind

    @property
    def flush_behind(self) -> int:
        """Bytes of the log that are not known to be on the medium."""
        return max(self._log.end - self._flusher.flushed, 0)

    def _ready(self, topic: str, queue_id: int, offset: int, wait: float | None) -> None:
        """Everything written is dispatched; and with `wait`, the queue reaches behind `offset`."""
        self._demand_open()
        self._dispatching.catch_up()
        if wait is None:
            return
        until = time.monotonic() + wait
        dispatching = self._dispatching
        with dispatching.arrived:
            dispatching.waiting += 1
            try:
                while self._end_of(topic, queue_id) <= offset and self._why_closed is None:
                    left = until - time.monotonic()
                    if left <= 0:
                        break
                    dispatching.arrived.wait(left)
            finally:
                dispatching.waiting -= 1
        self._demand_open()

    def _end_of(self, topic: str, queue_id: int) -> int:
        queue = self._start.queues.get((topic, queue_id))
        return 0 if queue is None else queue.max_offset

    def _demand_open(self) -> None:
        if self._why_closed is not None:
            raise StoreClosedError(self._why_closed)

    def _wake(self) -> None:
        if self._dispatching.idle:
            self._dispatching.wake()

    def expire(self) -> Expired:
        """Deletes what is expired now, whatever the hour (`DefaultMessageStore#executeDeleteFilesManually`).

        Segments by the age of their files, never the last one; queue files and index files that lead to
        nothing else. The same goes on in the background by `deleteWhen` and the room on the disk. Raises
        `StoreIOError`.
        """
        self._demand_open()
        self._dispatching.catch_up()
        return self._expiry.by_hand()

    def flush(self) -> bool:
        """Everything stored by now is on the medium when it returns; False when the system refuses."""
        self._demand_open()
        return self._flusher.flush_all()

    def _keep_checkpoint(self) -> None:
        """What brokers write every second, with queues that are synced less often."""
        interval = self._settings.config.flush_consume_queue_thorough_interval / 1000
        before = self._physical, self._logical
        try:
            if time.monotonic() - self._queues_synced >= interval:
                self._sync_queues()
            self._physical = max(self._physical, self._flusher.timestamp)
            if before != (self._physical, self._logical):
                self._write_checkpoint()
        except RmqtoolError as error:
            self._dispatching.error = error

    def _sync_queues(self) -> None:
        dispatching = self._dispatching
        with dispatching.lock:
            stamp, indexed = dispatching.timestamp, self._index_timestamp()
            dispatching.files.sync()
        self._logical, self._indexed = max(self._logical, stamp), indexed
        self._queues_synced = time.monotonic()

    def _index_timestamp(self) -> int:
        index = self._opened.index
        return 0 if index is None else index.timestamp

    def _write_checkpoint(self) -> None:
        confirm = max(self._start.confirm, 0)
        self._state.checkpoint(self._physical, self._logical, self._indexed, confirm)

    def close(self) -> None:
        """Stops in the broker's order (`DefaultMessageStore#shutdown`); again, nothing happens.

        Raises `StoreIOError` when something could not be written; then `abort` stays, as after a crash.
        """
        with self._closing:
            if self._why_closed is not None:
                return
            self._why_closed = f"the message store {self.root} was closed"
        _open_stores.discard(self)
        with self._stack:
            self._expiry.close()
            self._checkpoints.close()
            if self._flushing is not None:
                self._flushing.close()
            self._futures.close()
            with self._appender.lock:  # what is being put is in the log behind this
                pass
            flushed = self._flusher.flush_all()
            self._dispatching.stop()
            self._dispatching.catch_up()
            self._dispatching.close()
            self._physical = max(self._physical, self._flusher.timestamp)
            self._logical = max(self._logical, self._dispatching.timestamp)
            self._indexed = self._index_timestamp()
            self._write_checkpoint()
            if flushed and not self._dispatching.behind:
                self._state.end()

    def disown(self) -> None:
        """Closes it to a process that was forked; nothing is touched."""
        self._why_closed = f"the message store {self.root} belongs to the process that opened it"


def _after_fork() -> None:
    for store in list(_open_stores):
        store.disown()


os.register_at_fork(after_in_child=_after_fork)
