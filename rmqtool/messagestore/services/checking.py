"""Asking back about transactions that wait too long (`TransactionalMessageServiceImpl#check`).

Other than a broker this settles a half by an op message also where it is put back or given up: each is looked
at by itself, and a broker that takes over finds none twice.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from formats import properties as props
from formats.java import java_parse_int
from formats.system_topics import CHECK_MAX_TOPIC, HALF_TOPIC
from rmqtool.errors import NoTransactionError, StoreIOError
from rmqtool.messagestore.appending import NotAppendedError
from rmqtool.messagestore.messages import IllegalMessageError
from rmqtool.messagestore.services.copying import copy_of, properties_of
from rmqtool.messagestore.topics import READ, WRITE

if TYPE_CHECKING:
    from collections.abc import Callable

    from rmqtool.messagestore.messages import StoredMessage
    from rmqtool.messagestore.services.engine import Engine
    from rmqtool.messagestore.services.transactions import Half, Transactions

    Listener = Callable[[StoredMessage], bool | None]
    """asked with the half message: True commits it, False rolls it back, None does not know yet"""

_LOG = logging.getLogger(__name__)
_HOUR = 3_600_000


class Checking:
    """Asks a listener about stale halves, one round a call."""

    def __init__(self, engine: Engine, transactions: Transactions) -> None:
        self._engine, self._transactions = engine, transactions

    def check(self, listener: Listener) -> int:
        """One round; how many halves the listener was asked about. Raises `StoreIOError`, `UnreadableError`.

        What was checked `transactionCheckMax` times, or is older than `fileReservedTime`, goes to
        `TRANS_CHECK_MAX_TIME_TOPIC`.
        """
        began, asked = self._engine.clock(), 0
        for half in self._transactions.open_halves():
            try:
                message = self._transactions.message(half)
                if self._given_up(message):
                    self._move(half, message, CHECK_MAX_TOPIC, properties_of(message))
                elif message.store_timestamp < began and self._is_stale(message):
                    times = java_parse_int(message.properties.get(props.TRANSACTION_CHECK_TIMES, "")) or 0
                    more = {props.TRANSACTION_CHECK_TIMES: str(max(times, 0) + 1)}
                    self._move(half, message, HALF_TOPIC, {**properties_of(message), **more})
                    asked += 1
                    self._ask(listener, self._transactions.find(half.transaction_id))
            except NoTransactionError:
                continue  # it has ended meanwhile
        self._transactions.advance()
        return asked

    def _given_up(self, message: StoredMessage) -> bool:
        """`#needDiscard`, `#needSkip`."""
        settings = self._engine.settings
        checked = message.properties.get(props.TRANSACTION_CHECK_TIMES)
        if checked is not None and (java_parse_int(checked) or -1) >= settings.transaction_check_max:
            return True
        age = self._engine.clock() - message.born_timestamp
        return age > settings.config.file_reserved_time * _HOUR

    def _is_stale(self, message: StoredMessage) -> bool:
        immune = self._engine.settings.transaction_timeout
        own = java_parse_int(message.properties.get(props.CHECK_IMMUNITY_TIME_IN_SECONDS, ""), 64)
        if own is not None and own != -1:
            immune = own * 1000
        age = self._engine.clock() - message.born_timestamp
        return age > immune or age < 0

    def _move(self, half: Half, message: StoredMessage, topic: str, properties: dict[str, str]) -> None:
        """Stores a half elsewhere, and settles it where it was."""
        if topic == CHECK_MAX_TOPIC and topic not in self._engine.topics:
            self._engine.topics.set(topic, read_queues=1, write_queues=1, perm=READ | WRITE)
        with self._transactions.lock:
            if half not in self._transactions.open_halves():
                raise NoTransactionError(half.transaction_id)
            try:
                (found,) = self._engine.append([copy_of(self._engine.maker, message, (topic, 0), properties)])
            except IllegalMessageError as error:
                raise StoreIOError(f"transaction {half.transaction_id} is not moved: {error}") from error
            if isinstance(found, NotAppendedError):
                raise StoreIOError(f"transaction {half.transaction_id} is not moved: {found}")
            self._transactions.delete_half(half)

    def _ask(self, listener: Listener, half: Half) -> None:
        try:
            answer = listener(self._transactions.message(half))
        except Exception:  # noqa: BLE001 - of an application, which must not end the rounds
            _LOG.exception("the listener did not decide about transaction %s", half.transaction_id)
            return
        if answer is None:
            return
        if not answer:
            self._transactions.roll_back(half.transaction_id)
            return
        ack = self._transactions.commit(half.transaction_id)
        if ack.physical_offset < 0:
            _LOG.warning("transaction %s is not committed: %s", half.transaction_id, ack.message)
