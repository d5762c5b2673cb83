"""Queues and clients as clients order them before they are divided (`RebalanceImpl#rebalanceByTopic`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable


class MessageQueue(NamedTuple):
    """A queue of a topic on a broker (`MessageQueue`)."""

    topic: str
    broker_name: str
    queue_id: int

    @property
    def text(self) -> str:
        """`MessageQueue#toString`, by which consistent hashing places it."""
        return f"MessageQueue [topic={self.topic}, brokerName={self.broker_name}, queueId={self.queue_id}]"


def utf16(text: str) -> bytes:
    """What orders texts as Java does (`String#compareTo`)."""
    return text.encode("utf-16-be", "surrogatepass")


def sorted_queues(queues: Iterable[MessageQueue]) -> list[MessageQueue]:
    """By topic, broker name and number (`MessageQueue#compareTo`)."""
    return sorted(queues, key=lambda one: (utf16(one.topic), utf16(one.broker_name), one.queue_id))


def sorted_clients(clients: Iterable[str]) -> list[str]:
    """By their ids."""
    return sorted(clients, key=utf16)
