"""A member of a consumer group: gets the messages of its queues in their order, and commits what is done."""

from __future__ import annotations

import logging
import threading
import time
from typing import TYPE_CHECKING, Literal, NamedTuple, TypedDict

from formats.system_topics import retry_topic
from rmqtool.errors import RmqtoolError, StoreClosedError, UsageError
from rmqtool.messagestore.arguments import checked

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from types import TracebackType
    from typing import Self

    from rmqtool.messagestore.messages import Ack, StoredMessage
    from rmqtool.messagestore.services.engine import Engine
    from rmqtool.messagestore.services.groups import Groups
    from rmqtool.messagestore.services.membership import Membership, Ownership
    from rmqtool.messagestore.services.progress import BroadcastProgress, Progress
    from rmqtool.messagestore.services.retrying import Retrying
    from rmqtool.query.assignment.strategies import Strategy

    Key = tuple[str, int]
    Handler = Callable[[StoredMessage], bool | None]
    """False, or an exception: the message is given back; anything else: it is done"""

Start = Literal["first", "last"]
_LOG = logging.getLogger(__name__)
_SLICE = 0.1
"""seconds behind which a consumer that waits looks for queues that it got meanwhile"""
PAUSE = 1.0
"""seconds in front of another try in order (`suspendCurrentQueueTimeMillis`)"""


class Tables(NamedTuple):
    """What a consumer works with."""

    engine: Engine
    groups: Groups
    progress: Progress
    broadcast: BroadcastProgress
    retrying: Retrying


class Consumption(TypedDict, total=False):
    """How a consumer consumes, as `MessageStore.consumer` takes it; see `Options`."""

    tags: str | None
    start: Start
    broadcast: bool
    ordered: bool
    max_reconsume: int | None
    strategy: str | Strategy


class Options(NamedTuple):
    """tags: `a || b`, all without. start: where a group begins that has committed nothing in a queue.

    broadcast: every member gets everything, and goes on where it was by itself. ordered: what fails is tried
    again in its place, and nothing comes in front of it. max_reconsume: how often a message is tried again
    before it goes to the dead letters (`maxReconsumeTimes`); by default without end when ordered, else
    `retryMaxTimes` of the group. strategy: `AVG`, `AVG_BY_CIRCLE`, `CONSISTENT_HASH`, or one of
    `query.assignment.strategies`.
    """

    tags: str | None = None
    start: Start = "first"
    broadcast: bool = False
    ordered: bool = False
    max_reconsume: int | None = None
    strategy: str | Strategy = "AVG"


class Consumer:
    """Make it with `MessageStore.consumer`. A context manager that leaves the group.

    One thread at a time may poll; `close` may be called by any.
    """

    def __init__(
        self,
        tables: Tables,
        membership: Membership,
        group: str,
        name: str,
        topics: Sequence[str],
        options: Options,
        on_message: Handler | None,
    ) -> None:
        self.group, self.name = group, name
        self.error: RmqtoolError | None = None
        """why it ended by itself"""
        self._tables, self._engine, self._membership = tables, tables.engine, membership
        self._options, self._handler = options, on_message
        self._topics = list(topics)
        if not options.broadcast:
            self._topics.append(retry_topic(group))
        self._owned: dict[Key, Ownership] = {}
        self._positions: dict[Key, int] = {}
        self._tried: dict[Key, tuple[int, int]] = {}
        """by queue, the offset of a message that fails in its place, and how often it was tried before"""
        self._turn = 0
        self._closed = threading.Event()
        membership.join(name, self._topics)
        self._thread: threading.Thread | None = None
        if on_message is not None:
            self._thread = threading.Thread(target=self._run, name=f"rmqtool-consumer-{name}", daemon=True)
            self._thread.start()

    # ---- what an application calls

    @checked
    def poll(self, limit: int = 32, wait: float = 0.0) -> list[StoredMessage]:
        """The next messages of the queues that it owns, at most `limit`; waits so many seconds for one.

        Each call is a sign of life, and lets go of queues that are another member's. What is not committed
        when a queue goes comes to its next owner. Raises `StoreClosedError`, `UsageError` where the group may
        not consume any more, `StoreIOError`, `UnreadableError`.
        """
        until = time.monotonic() + wait
        while True:
            self._demand_open()
            self._tables.groups.of_consumer(self.group, broadcast=self._options.broadcast)
            self._rebalance()
            found = self._fetch(limit)
            left = until - time.monotonic()
            if found or left <= 0:
                return found
            self._engine.wait(min(left, _SLICE))

    @checked
    def commit(self, message: StoredMessage) -> bool:
        """Everything up to this message is done in its queue; False where the queue is another's now."""
        key = message.topic, message.queue_id
        ownership = self._owned.get(key)
        if ownership is None:
            return False
        return self._commit(key, ownership, message.queue_offset + max(len(message.inner_messages()), 1))

    @checked
    def send_back(self, message: StoredMessage, delay_level: int = 0) -> Ack | None:
        """Gives a message back, to come again later; see `MessageStore.send_back`. Commit it afterwards."""
        return self._tables.retrying.send_back(self.group, message, delay_level)

    def heartbeat(self) -> bool:
        """A sign of life of a handler that takes long; False where its queues are others' already."""
        return self._membership.beat(self.name)

    @property
    def queues(self) -> list[Key]:
        """Topic and number of the queues that it owns."""
        return sorted(key for key, one in self._owned.items() if self._membership.owns(key, one))

    def __iter__(self) -> Iterator[StoredMessage]:
        """Messages without an end, until it is closed; each is committed when the next is asked for."""
        while not self._closed.is_set():
            try:
                found = self.poll(wait=PAUSE)
            except StoreClosedError:
                return
            for message in found:
                if self._is_ours(message):
                    yield message
                    self.commit(message)
                if self._closed.is_set():
                    return

    def close(self) -> None:
        """Leaves the group; what is being handled is finished, and what is not committed comes again."""
        self._closed.set()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join()
        self._membership.leave(self.name)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # ---- queues

    def _demand_open(self) -> None:
        if self._closed.is_set():
            raise StoreClosedError(f"consumer {self.name} was closed")

    def _rebalance(self) -> None:
        owned = self._membership.take(self.name, self._topics)
        for key in [one for one, ownership in self._owned.items() if owned.get(one) != ownership]:
            self._positions.pop(key, None)
            self._tried.pop(key, None)
        self._owned = owned

    def _begin(self, key: Key) -> int:
        """Where a queue begins that was taken (`RebalancePushImpl#computePullFromWhere`)."""
        committed = self._committed(key)
        if committed is not None:
            return committed
        self._engine.catch_up()
        low, high = self._engine.offsets(*key)
        return high if self._options.start == "last" and key[0] != retry_topic(self.group) else low

    def _fetch(self, limit: int) -> list[StoredMessage]:
        """From one queue after the other, the next one first at the next call."""
        found: list[StoredMessage] = []
        keys = sorted(self._owned)
        turn, self._turn = self._turn, self._turn + 1
        for number in range(len(keys)):
            key = keys[(turn + number) % len(keys)]
            found += self._fetch_queue(key, limit - len(found))
            if len(found) >= limit:
                break
        return found

    def _fetch_queue(self, key: Key, limit: int) -> list[StoredMessage]:
        at = self._positions.get(key)
        if at is None:
            at = self._positions[key] = self._begin(key)
        tags = None if key[0] == retry_topic(self.group) else self._options.tags
        answer = self._engine.get(*key, at, limit, tags=tags)
        self._positions[key] = answer.next_begin_offset
        if not answer.messages and answer.next_begin_offset != at:
            committed = self._committed(key)
            if committed is None or committed == at:  # nothing in front of it is under way
                self._commit(key, self._owned[key], answer.next_begin_offset)
        return answer.messages

    def _commit(self, key: Key, ownership: Ownership, offset: int) -> bool:
        def work() -> None:
            if self._options.broadcast:
                self._tables.broadcast.commit(self.group, self.name, *key, offset)
            else:
                self._tables.progress.commit(self.group, *key, offset)

        return self._membership.guarded(key, ownership, work)

    def _committed(self, key: Key) -> int | None:
        """Where the group, or this member of a broadcast, goes on in a queue."""
        if self._options.broadcast:
            return self._tables.broadcast.query(self.group, self.name, *key)
        return self._tables.progress.query(self.group, *key)

    def _is_ours(self, message: StoredMessage) -> bool:
        key = message.topic, message.queue_id
        ownership = self._owned.get(key)
        return ownership is not None and self._membership.owns(key, ownership)

    # ---- a handler

    def _run(self) -> None:
        try:
            while not self._closed.is_set():
                self._handle(self.poll(wait=PAUSE))
        except StoreClosedError:
            pass
        except RmqtoolError as error:
            self.error = error
            _LOG.warning("consumer %s of group %s has ended: %s", self.name, self.group, error)
        finally:
            self._membership.leave(self.name)

    def _handle(self, messages: Sequence[StoredMessage]) -> None:
        stopped: set[Key] = set()
        for message in messages:
            key = message.topic, message.queue_id
            if self._closed.is_set():
                return
            if key in stopped or not self._is_ours(message):
                continue
            if self._done(message):
                self.commit(message)
            else:  # it comes once more, and what is behind it does not come in front of it
                stopped.add(key)
                self._positions[key] = message.queue_offset
        if stopped:
            self._closed.wait(PAUSE)

    def _done(self, message: StoredMessage) -> bool:
        """Whether a message is behind us: handled, or given back."""
        try:
            good = self._handler is None or self._handler(message) is not False
        except Exception:  # noqa: BLE001 - of an application, whose message comes again
            _LOG.exception("consumer %s of group %s: a message was not handled", self.name, self.group)
            good = False
        if good or self._options.broadcast:
            return True
        if self._options.ordered:
            return self._given_up(message)
        try:
            ack = self._tables.retrying.send_back(self.group, message, max_times=self._options.max_reconsume)
        except UsageError:  # an inner batch is tried again in its place
            return False
        return ack is None or ack.physical_offset >= 0

    def _given_up(self, message: StoredMessage) -> bool:
        """Whether one that failed in its place has gone to the dead letters.

        `ConsumeMessageOrderlyService#checkReconsumeTimes`.
        """
        most, key = self._options.max_reconsume, (message.topic, message.queue_id)
        offset, times = self._tried.get(key, (-1, 0))
        if offset != message.queue_offset:
            times = message.reconsume_times
        if most is None or times < most:
            self._tried[key] = message.queue_offset, times + 1
            return False
        try:
            ack = self._tables.retrying.send_back(self.group, message, -1, reconsumed=times)
        except UsageError:
            return False
        return ack is None or ack.physical_offset >= 0
