"""What applications call of the services: the part of `MessageStore` that is not the engine."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import replace
from typing import TYPE_CHECKING

from rmqtool.messagestore.messages import Ack, AppendContext, IllegalMessageError
from rmqtool.messagestore.services.consumer import Options
from rmqtool.messagestore.services.transaction import Transaction

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Unpack

    from rmqtool.messagestore.messages import Message, StoredMessage
    from rmqtool.messagestore.services.checking import Listener
    from rmqtool.messagestore.services.consumer import Consumer, Consumption, Handler
    from rmqtool.messagestore.services.groups import Groups
    from rmqtool.messagestore.services.running import Services
    from rmqtool.messagestore.services.transactions import Half
    from rmqtool.query.groups import CommittedOffset

DEFAULT_GROUP = "rmqtool"
"""producer group of transactions that name none"""


class ServiceCalls(ABC):
    """Groups, offsets, retries, delays and transactions of an open store.

    Every call raises `StoreClosedError` behind `close`, and `StoreIOError` or `UnreadableError` where files
    cannot be read or written.
    """

    _services: Services

    @abstractmethod
    def _demand_open(self) -> None: ...

    @property
    def groups(self) -> Groups:
        """Consumer groups and their settings."""
        self._demand_open()
        return self._services.groups

    # ---- progress

    def commit_offset(self, group: str, topic: str, queue_id: int, offset: int) -> None:
        """A group goes on in a queue at `offset`; on disk after `flushConsumerOffsetInterval`, or `close`.

        Raises `UsageError` for what is not an offset, or not a name.
        """
        self._demand_open()
        self._services.progress.commit(group, topic, queue_id, offset)

    def committed_offset(self, group: str, topic: str, queue_id: int) -> int | None:
        """Where a group goes on in a queue, None where it has committed nothing."""
        self._demand_open()
        return self._services.progress.query(group, topic, queue_id)

    def committed_offsets(self) -> list[CommittedOffset]:
        """All offsets that were committed, sorted by topic, group and queue."""
        self._demand_open()
        return self._services.progress.all()

    def send_back(
        self, group: str, message: StoredMessage, delay_level: int = 0, max_times: int | None = None
    ) -> Ack | None:
        """Gives a message back that a group could not consume: it comes again, in `%RETRY%group`.

        After the delay of a level, 3 and one more with each time by default. Behind `max_times`, by default
        `retryMaxTimes` of the group, or with a level below 0, it goes to `%DLQ%group`. None where the group's
        `retryQueueNums` is 0: a broker drops it then. Raises `UsageError` where the group may not consume.
        """
        self._demand_open()
        return self._services.retrying.send_back(group, message, delay_level, max_times)

    def consumer(
        self,
        group: str,
        topics: str | Sequence[str],
        *,
        on_message: Handler | None = None,
        name: str | None = None,
        **how: Unpack[Consumption],
    ) -> Consumer:
        """A member of a consumer group, which gets the messages of its share of the queues.

        on_message: called in a thread of the consumer's with each message; False or an exception gives it
        back (`send_back`), else it is committed. Without one, iterate over the consumer, which commits a
        message when the next is asked for, or `poll` and `commit`. name: of the member, the same at every
        start, by which queues are divided. how: tags (`a || b`), start (where a new group begins, `first` or
        `last`), broadcast (this member gets everything, and goes on where it was by its name), ordered (what
        fails is tried again in its place), max_reconsume (how often it is tried again before it goes to the
        dead letters; by default without end when ordered, else `retryMaxTimes` of the group), strategy
        (`AVG`, `AVG_BY_CIRCLE`, `CONSISTENT_HASH`, or one of `query.assignment.strategies`). A member that
        does not poll for 30 seconds loses its queues.

        Raises `UsageError` where the group may not consume, or has a member of that name.
        """
        self._demand_open()
        return self._services.consuming.consumer(group, topics, name, on_message, Options(**how))

    # ---- delays

    def send_delayed(self, message: Message, level: int) -> Ack:
        """Stores a message that is delivered when the delay of `level` is over (`messageDelayLevel`).

        A level above the last one is that. The answer's place is that of the message while it waits. Raises
        `UsageError` for a level below 1.
        """
        self._demand_open()
        engine = self._services.engine
        try:
            place = message.topic, engine.writer.queue_of(message)
            (topic, queue_id), properties = self._services.schedule.waiting(message, place, level)
        except IllegalMessageError as error:
            return Ack(
                error.status, message.topic, -1, -1, -1, message.uniq_key, engine.maker.host, str(error)
            )
        waiting = replace(message, topic=topic, queue_id=queue_id, properties=properties)
        return engine.writer.put(waiting, AppendContext())

    def deliver_due(self) -> int:
        """Delivers all delayed messages that are due, now; how many they were."""
        self._demand_open()
        self._services.engine.catch_up()
        return self._services.schedule.deliver()

    # ---- transactions

    def transaction(self, message: Message, group: str = DEFAULT_GROUP) -> Transaction:
        """Stores a half message; a context manager whose end commits it, and an exception rolls it back.

        group: of the producer. Raises `UsageError` for a message that no store takes.
        """
        self._demand_open()
        return Transaction(self._services.transactions, message, group)

    def prepare_transaction(self, message: Message, group: str = DEFAULT_GROUP) -> Ack:
        """Stores a half message; the `uniq_key` of the answer is what ends it.

        What is wrong is the status of the answer, as with `put`.
        """
        self._demand_open()
        return self._services.transactions.prepare(message, group)

    def open_transactions(self) -> list[Half]:
        """The half messages that wait."""
        self._demand_open()
        return self._services.transactions.open_halves()

    def commit_transaction(self, transaction_id: str) -> Ack:
        """Stores the message of an open transaction in its topic; it stays open if the answer says so.

        Raises `NoTransactionError`.
        """
        self._demand_open()
        return self._services.transactions.commit(transaction_id)

    def rollback_transaction(self, transaction_id: str) -> None:
        """Ends an open transaction; nobody gets its message. Raises `NoTransactionError`."""
        self._demand_open()
        self._services.transactions.roll_back(transaction_id)

    def check_transactions(self, listener: Listener) -> int:
        """Asks a listener about transactions older than `transactionTimeOut`; how many they were.

        It gets the half message, and answers True (commit), False (roll back) or None (not known yet). After
        `transactionCheckMax` times a half goes to `TRANS_CHECK_MAX_TIME_TOPIC`.
        """
        self._demand_open()
        return self._services.checking.check(listener)

    def listen_to_transactions(self, listener: Listener) -> None:
        """As `check_transactions`, every `transactionCheckInterval` until the store is closed."""
        self._demand_open()
        self._services.listen(listener)
