"""One transaction of an application: a context that commits, or rolls back where it fails."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from rmqtool.errors import NoTransactionError, StoreIOError, UsageError
from rmqtool.messagestore.messages import PutStatus

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self

    from rmqtool.messagestore.messages import Ack, Message
    from rmqtool.messagestore.services.transactions import Transactions

_OF_MESSAGE = frozenset({PutStatus.MESSAGE_ILLEGAL, PutStatus.PROPERTIES_SIZE_EXCEEDED})


class Transaction:
    """The half message is stored when this is made; `ack` is the answer to that, `id` names it.

    Leaving the block commits; an exception that leaves it rolls back. Without an end, the half waits to be
    asked about.
    """

    def __init__(self, transactions: Transactions, message: Message, group: str) -> None:
        """Raises `UsageError` for a message that no store takes, `StoreIOError` where it is not stored."""
        self._transactions = transactions
        self.ack = transactions.prepare(message, group)
        if self.ack.physical_offset < 0:
            kind = UsageError if self.ack.status in _OF_MESSAGE else StoreIOError
            raise kind(f"the half message was not stored: {self.ack.status.value}: {self.ack.message}")
        self.id = self.ack.uniq_key or ""
        self.ended = False

    def commit(self) -> Ack:
        """Stores the message in its topic. Raises `NoTransactionError`, `StoreIOError`."""
        ack = self._transactions.commit(self.id)
        if ack.physical_offset < 0:
            raise StoreIOError(
                f"transaction {self.id} is not committed and waits: {ack.status.value}: {ack.message}"
            )
        self.ended = True
        return ack

    def rollback(self) -> None:
        """Nobody gets the message. Raises `NoTransactionError`, `StoreIOError`."""
        self._transactions.roll_back(self.id)
        self.ended = True

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.ended:
            return
        if kind is None:
            self.commit()
            return
        with suppress(NoTransactionError):
            self.rollback()
