"""A message store that is open for reading and writing: what applications call."""

from __future__ import annotations

import os
import threading
import weakref
from contextlib import ExitStack
from typing import TYPE_CHECKING, TypeVar, overload

from rmqtool.broker.offset_by_time import Boundary
from rmqtool.errors import StoreClosedError, StoreIOError, UsageError
from rmqtool.messagestore.appending import milliseconds
from rmqtool.messagestore.arguments import all_checked, demand
from rmqtool.messagestore.assembly import StoreCalls, assemble
from rmqtool.messagestore.background import Background
from rmqtool.messagestore.loading import Loader
from rmqtool.messagestore.messages import (
    Ack,
    AppendContext,
    GetResult,
    IllegalMessageError,
    Message,
    PutStatus,
    RawResult,
)
from rmqtool.messagestore.opening import find, full_disk_explained, start_store
from rmqtool.messagestore.reading import subscription_of
from rmqtool.messagestore.replication.calls import ReplicationCalls
from rmqtool.messagestore.services.calls import ServiceCalls
from rmqtool.messagestore.settings import settings_from
from rmqtool.messagestore.threads import Threads
from rmqtool.scan.table import DEFAULT_COLUMNS
from rmqtool.store.access import in_words

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from concurrent.futures import Future
    from typing import Self

    import pyarrow as pa

    from rmqtool.messagestore.assembly import Parts
    from rmqtool.messagestore.expiry import Expired
    from rmqtool.messagestore.memory.log import MemoryUse
    from rmqtool.messagestore.messages import StoredMessage
    from rmqtool.messagestore.opening import Opened, Recovery
    from rmqtool.messagestore.settings import Given, StoreSettings
    from rmqtool.messagestore.statistics import StoreStatistics
    from rmqtool.store.config import StoreConfig

Read = TypeVar("Read")

_open_stores: weakref.WeakSet[MessageStore] = weakref.WeakSet()


@all_checked("put", "put_async", "get", "get_raw", "query_key")
class MessageStore(ServiceCalls, ReplicationCalls):
    """A store of RocketMQ, open. Make it with `open`; a context manager that closes it.

    Any thread may call any method. In a process that was forked from the one that opened it, every call
    raises `StoreClosedError`.
    """

    def __init__(
        self,
        opened: Opened,
        settings: StoreSettings,
        stack: ExitStack,
        clock: Callable[[], int],
        deliver: bool,
    ) -> None:
        """Call `open`."""
        self._settings, self._opened, self._start = settings, opened, opened.start
        self.root, self.release = str(opened.store.root), opened.release
        self._why_closed: str | None = None
        self._closing = threading.Lock()
        calls = StoreCalls(self._demand_open, self._refusal, self.queues, self.offsets, self.get)
        self._take(assemble(opened, settings, stack, clock, calls))
        self._begin(stack, deliver=deliver)
        self._stack = stack.pop_all()
        _open_stores.add(self)

    def _take(self, parts: Parts) -> None:
        """Each by a name of its own: a put or a pull takes no time to find them."""
        logged, putting, pulling = parts.logged, parts.putting, parts.pulling
        self._state, self._log, self._flusher = logged.state, logged.log, logged.flusher
        self._dispatching, self._statistics = logged.dispatching, logged.statistics
        self._maker, self._memory, self._kept = putting.maker, putting.memory, putting.kept
        self.topics, self._writer, self._replication = putting.topics, putting.writer, putting.replication
        self._reader, self._mapped_pulls = pulling.reader, pulling.mapped_pulls
        self._keys, self._memory_keys = pulling.keys, pulling.memory_keys
        self._expiry, self._services = parts.expiry, parts.services

    def _begin(self, stack: ExitStack, *, deliver: bool) -> None:
        """The store is marked as open, and all that works beside it begins. stack: ends that."""
        self._state.mark_lock()
        self._state.begin(new=self._opened.new and not self._settings.slave)
        self._background = Background(
            self._settings,
            self._opened,
            self._log,
            self._flusher,
            self._dispatching,
            self._state,
            self._statistics,
            stack,
        )
        self._threads = Threads(
            self._background,
            self._dispatching,
            self._expiry,
            self._replication,
            self._writer,
            self._flusher,
            clean=self._start.clean,
            stack=stack,
        )
        if deliver and not self._settings.slave:
            stack.callback(self._services.end)
            self._services.deliver()

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
        deliver: bool = True,
    ) -> MessageStore:
        """Opens the store at `path`, as a broker of `release` would: lock, recovery, `abort`.

        config: settings under RocketMQ's names, or a `broker.conf`. recovery: what is done where a broker's
        recovery would give up intact records: `refuse`, or let it. create: make the store if there is none.
        release: by default the last one that may have written the store, the newest known for a new one.
        clock: the time in ms, for tests. deliver: delayed messages are delivered when due.
        Raises `NotAStoreError`, `NewerFormatError` (log in DLedger, queues in RocksDB), `LockedError`,
        `RecoveryLossError`, `UnfitStoreError` (a broker would not start), `UsageError`, `StoreIOError`.
        """
        settings = settings_from(config)
        with full_disk_explained(), ExitStack() as stack:
            root = find(path, settings.config, create=create)
            opened = start_store(root, settings, release, recovery, stack)
            return cls(opened, settings, stack, clock, deliver)

    def __enter__(self) -> Self:
        self._demand_open()
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def put(self, message: Message, *, context: AppendContext | None = None) -> Ack:
        """Stores a message; under SYNC_FLUSH the answer comes when it is on the medium.

        context: replays a record as it was stored, without a look at the topic table. Raises
        `StoreClosedError`; whatever else goes wrong is the status of the answer.
        """
        return self._writer.put(message, context)

    def put_async(self, message: Message, *, context: AppendContext | None = None) -> Future[Ack]:
        """As `put`, at once: the future answers when the message is as safe. Many share one flush."""
        return self._writer.put_async(message, context)

    def put_batch(
        self, messages: Iterable[Message], *, contexts: Sequence[AppendContext] | None = None
    ) -> list[Ack]:
        """Stores a client's batch: messages of one topic, all of them one behind the other or none.

        They go into one queue, that of the first, and into one segment; where the topic's `queue.type` is
        BatchCQ they are one record (an inner batch). They feed no further queues. One that no store takes
        makes all be refused. contexts: as for `put`, one a message.
        """
        return self._writer.put_batch(messages, contexts)

    def put_many(self, messages: Iterable[Message] | pa.Table) -> list[Ack] | pa.Table:
        """Stores messages in their order, with few writes and one flush; an answer for each.

        An Arrow table, or what Arrow makes one of (batches, data frames), has the columns `topic` and `body`,
        and as it likes `queue_id`, `tags`, `keys` (a list or one text), `uniq_key`, `flag`, `properties` (a
        map) and `born_timestamp`; it is answered with a table of `status`, `topic`, `queue_id`,
        `queue_offset`, `physical_offset`, `uniq_key`. Raises `UsageError` for other columns or types.
        """
        return self._writer.put_many(messages)

    def loader(self) -> Loader:
        """What puts the records of a replayable file, see `messagestore.loading`."""
        self._demand_open()
        return Loader(self._writer, self._maker, self.topics, self._start.reading.kernels)

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
        if tags is None and sql92 is None and self._why_closed is None:
            mapped = self._mapped_pulls.pull(topic, queue_id, offset, limit, GetResult)
            if mapped is not None:
                return mapped
        topic, queue_id, offset, limit = demand(
            MessageStore.get, topic, queue_id, offset, limit, tags=tags, sql92=sql92, wait=wait
        )
        wanted = subscription_of(tags, sql92)
        self._ready(topic, queue_id, offset, wait)
        found = self._read(lambda: self._reader.get(topic, queue_id, offset, limit, wanted, exact=exact))
        messages = found.messages
        self._statistics.got(len(messages), sum([len(one.raw) for one in messages]))
        return found

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

        A view stays good while it is referenced, also behind the expiry of its segment; what another process
        cuts behind this call is zeros in it.
        """
        if tags is None and self._why_closed is None:
            mapped = self._mapped_pulls.pull(topic, queue_id, offset, limit, RawResult)
            if mapped is not None:
                return mapped
        topic, queue_id, offset, limit = demand(
            MessageStore.get_raw, topic, queue_id, offset, limit, tags=tags, wait=wait
        )
        wanted = subscription_of(tags, None)
        self._ready(topic, queue_id, offset, wait)
        found = self._read(lambda: self._reader.raw(topic, queue_id, offset, limit, wanted))
        self._statistics.got(len(found.records), sum(map(len, found.records)))
        return found

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
        found = self._read(lambda: self._reader.table(topic, queue_id, offset, limit, columns))
        self._statistics.got(found.num_rows, found.nbytes)
        return found

    def message_at(self, physical_offset: int) -> StoredMessage | None:
        """The message whose record begins at a physical offset, None where none does."""
        self._demand_open()
        return self._read(lambda: self._reader.message_at(physical_offset))

    @overload
    def query_key(  # type: ignore[overload-overlap]
        self, topic: str, key: str, limit: int = ..., *, begin: int = ..., end: int | None = ...
    ) -> list[StoredMessage]: ...

    @overload
    def query_key(
        self, topic: str, key: Sequence[str], limit: int = ..., *, begin: int = ..., end: int | None = ...
    ) -> dict[str, list[StoredMessage]]: ...

    def query_key(
        self, topic: str, key: str | Sequence[str], limit: int = 32, *, begin: int = 0, end: int | None = None
    ) -> list[StoredMessage] | dict[str, list[StoredMessage]]:
        """Messages of a topic with a key, through the index; of many keys a list for each, in one pass.

        An element of `KEYS` or `UNIQ_KEY`; a broker compares hashes only, this the keys. The newest `limit`
        of a key, in the order of the log, those stored from `begin` up to, not including, `end` (ms). It sees
        every message whose put has returned. Raises `UsageError` without an index, `StoreClosedError`,
        `StoreIOError`, `UnreadableError`.
        """
        memory = self.topics.memory
        if key.__class__ is topic.__class__ is str and self._why_closed is None and topic not in memory:
            mapped = self._keys.find_mapped(topic, key, limit, begin, end)
            if mapped is not None:
                return mapped
        topic, key, limit, begin, end = demand(MessageStore.query_key, topic, key, limit, begin, end)
        self._ready(topic, 0, 0, None)
        keys = self._memory_keys if topic in memory else self._keys
        if isinstance(key, str):
            return self._read(lambda: keys.find(topic, key, limit, begin, end))
        return self._read(lambda: keys.find_each(topic, key, limit, begin, end))

    def offset_by_time(self, topic: str, queue_id: int, timestamp: int, boundary: str = "lower") -> int:
        """The queue offset that a broker answers for a point in time (ms): `lower` or `upper` boundary.

        Lower: the first message stored then or later; upper: the last one stored by then. Releases before
        5.1.1 know no boundary. 0 without such a queue.
        """
        if boundary not in set(Boundary):
            raise UsageError(f"{boundary} is not a boundary: {' or '.join(Boundary)}")
        self._ready(topic, queue_id, 0, None)
        return self._read(lambda: self._reader.offset_by_time(topic, queue_id, timestamp, Boundary(boundary)))

    def offsets(self, topic: str, queue_id: int) -> tuple[int, int]:
        """Offset of the first message of a queue, and of the next one; 0 and 0 without such a queue."""
        self._ready(topic, queue_id, 0, None)
        return self._reader.bounds(topic, queue_id)

    def segments(self) -> int:
        """How many segments of the log are in use."""
        self._demand_open()
        return len(self._start.log.files)

    @property
    def end(self) -> int:
        """Physical offset behind the last byte of the log."""
        self._demand_open()
        return self._log.end

    def queues(self) -> list[tuple[str, int]]:
        """Topic and number of every queue."""
        self._ready("", 0, 0, None)
        return sorted({*self._start.queues, *self._memory.queues(self.topics.memory)})

    @property
    def memory(self) -> MemoryUse:
        """What the topics in memory hold."""
        self._demand_open()
        return self._memory.use

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
        return self._flusher.behind

    def stats(self) -> StoreStatistics:
        """What was put and read, how fast, how far dispatch and flush are behind. Raises `StoreIOError`."""
        self._demand_open()
        return self._statistics.now()

    def _ready(self, topic: str, queue_id: int, offset: int, wait: float | None) -> None:
        """Everything written is dispatched; and with `wait`, the queue reaches behind `offset`."""
        self._demand_open()
        self._dispatching.catch_up()
        if wait is None:
            return
        self._dispatching.wait(
            wait, lambda: self._reader.bounds(topic, queue_id)[1] > offset or self._why_closed is not None
        )
        self._demand_open()

    def _read(self, work: Callable[[], Read]) -> Read:
        """What another thread closes meanwhile has no files any more. Raises `StoreClosedError`."""
        try:
            return work()
        except StoreIOError:
            self._demand_open()
            raise

    def _refusal(self) -> IllegalMessageError | None:
        """Why nothing can be stored now. Raises `StoreClosedError`."""
        if self._why_closed is not None:
            raise StoreClosedError(self._why_closed)
        if self._settings.slave:
            return IllegalMessageError(PutStatus.SERVICE_NOT_AVAILABLE, "brokerRole=SLAVE takes no messages")
        if self._writer.busy:
            return IllegalMessageError(PutStatus.OS_PAGE_CACHE_BUSY, "a put has not ended for too long")
        error = self._flusher.error or self._dispatching.error or self._background.error
        if error is None and self._expiry.full:
            return IllegalMessageError(PutStatus.SERVICE_NOT_AVAILABLE, "the disk is full")
        if error is None:
            return None
        return IllegalMessageError(PutStatus.SERVICE_NOT_AVAILABLE, f"not writeable: {in_words(error)}")

    def _demand_open(self) -> None:
        if self._why_closed is not None:
            raise StoreClosedError(self._why_closed)

    def expire(self) -> Expired:
        """Deletes what is expired now, whatever the hour (`DefaultMessageStore#executeDeleteFilesManually`).

        Segments by the age of their files, never the last one; queue files and index files that lead to
        nothing else. The same goes on in the background by `deleteWhen` and the room on the disk. Raises
        `StoreIOError`.
        """
        self._ready("", 0, 0, None)
        return self._expiry.by_hand()

    def flush(self) -> bool:
        """Everything stored by now is on the medium when it returns; False when the system refuses."""
        self._demand_open()
        return self._flusher.flush_all()

    def close(self) -> None:
        """Stops in the broker's order (`BrokerController#shutdown`); again, nothing happens.

        Raises `StoreIOError` when something could not be written; then `abort` stays, as after a crash.
        """
        try:
            if self._why_closed is None:
                self._services.end()
        finally:
            self._close_engine()

    def _close_engine(self) -> None:
        """The engine ends once the services have."""
        with self._closing:
            if self._why_closed is not None:
                return
            self._why_closed = f"the message store {self.root} was closed"
        _open_stores.discard(self)
        self._dispatching.announce()  # to readers that wait
        with self._stack:
            flushed = self._threads.end()
            self._kept.save(self.topics.memory, self._memory.offsets)
            if not flushed:
                why = in_words(self._flusher.error)
                raise StoreIOError(f"{self.root}: what was put last may be lost: {why}")
            if self._cleared() and self._writer.whole and not self._dispatching.behind:
                self._state.end()

    def _cleared(self) -> bool:
        """No write that failed has left anything behind the log's end."""
        try:
            self._log.clear_left()
        except OSError:
            return False
        return True

    def disown(self) -> None:
        """Closes it to a process that was forked; nothing is touched."""
        self._why_closed = f"the message store {self.root} belongs to the process that opened it"


def _after_fork() -> None:
    for store in list(_open_stores):
        store.disown()


os.register_at_fork(after_in_child=_after_fork)
