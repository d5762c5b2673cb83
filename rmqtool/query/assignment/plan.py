"""Queues of a topic in a store among clients, before and after the group has changed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rmqtool.errors import UsageError
from rmqtool.query.assignment.queues import MessageQueue, sorted_queues
from rmqtool.query.assignment.strategies import STRATEGIES, average, machine_room, machine_room_nearby
from rmqtool.query.served_queue import queue_numbers

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rmqtool.query.assignment.strategies import Strategy
    from rmqtool.store.layout import Store

_MOST = 1 << 16
"""queues of a topic; a table with more of them is damaged"""


def queues_of(store: Store, topic: str, brokers: Sequence[str]) -> list[MessageQueue]:
    """Queues that consumers may read, on each of the brokers; of a topic without an entry those on disk."""
    settings = store.topics.get(topic)
    if settings is None:
        numbers: Sequence[int] = queue_numbers(store, topic)
    else:
        numbers = range(min(settings.read_queue_nums, _MOST) if settings.readable else 0)
    return [MessageQueue(topic, broker, number) for broker in brokers for number in numbers]


def strategy_of(name: str, rooms: Sequence[str]) -> Strategy:
    """The strategy with this name. Raises `UsageError`."""
    if name in STRATEGIES:
        return STRATEGIES[name]
    if name == "MACHINE_ROOM":
        if not rooms:
            raise UsageError("MACHINE_ROOM needs --room, the rooms whose brokers are consumed")
        return machine_room(rooms)
    return machine_room_nearby(average, lambda queue: _room(queue.broker_name), _room)


def _room(name: str) -> str:
    """What stands in front of the @."""
    return name.partition("@")[0] if "@" in name else ""


def moves(
    before: Mapping[str, Sequence[MessageQueue]], after: Mapping[str, Sequence[MessageQueue]]
) -> list[tuple[MessageQueue, str | None, str | None]]:
    """Queues whose owner changes, with the one that it had and the one that it gets; None for nobody."""
    old = {queue: client for client, own in before.items() for queue in own}
    new = {queue: client for client, own in after.items() for queue in own}
    every = sorted_queues(old.keys() | new.keys())
    return [(one, old.get(one), new.get(one)) for one in every if old.get(one) != new.get(one)]
