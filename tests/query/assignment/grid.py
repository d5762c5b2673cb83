"""Queues and clients by their numbers, and the strategies with the settings that the tests give them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rmqtool.query.assignment.queues import MessageQueue, sorted_clients, sorted_queues
from rmqtool.query.assignment.strategies import STRATEGIES, configured, machine_room, machine_room_nearby

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rmqtool.query.assignment.strategies import Strategy

QUEUES, CLIENTS = 20, 10
SHARE = (1, 21, 6), (1, 11, 3)
"""of the grid, as ranges, what was recorded of Java"""
ROOMS = ("r0", "r2")
ALL: dict[str, Strategy] = {
    **STRATEGIES,
    "MACHINE_ROOM": machine_room(ROOMS),
    "MACHINE_ROOM_NEARBY": machine_room_nearby(
        STRATEGIES["AVG"],
        lambda one: one.broker_name.partition("@")[0],
        lambda one: one.partition("@")[0],
    ),
    "CONFIG": configured([MessageQueue("T", "r0@b", 7)]),
}


def queues_of(count: int) -> list[MessageQueue]:
    """Of a topic on brokers in four rooms, in order."""
    return sorted_queues(
        MessageQueue("Topic-\u00fc", f"r{number % 4}@broker-{number % 3}", number) for number in range(count)
    )


def clients_of(count: int) -> list[str]:
    """Members in three rooms, in order; some ids order otherwise by code points."""
    marks = ["\U0001f600"] * 4 + ["\ue000"]
    names = (f"r{number % 3}@10.0.0.{number}@{marks[number % 5]}{number}" for number in range(count))
    return sorted_clients(names)


def cases(queues: range, clients: range) -> list[tuple[list[MessageQueue], list[str]]]:
    """Every number of queues with every number of clients."""
    return [(queues_of(one), clients_of(other)) for one in queues for other in clients]


def numbers_of(given: Sequence[Sequence[Sequence[Any]]]) -> list[list[int]]:
    """Queues of each client by their numbers."""
    return [[one[2] for one in queues] for queues in given]


def recorded() -> Any:
    """By strategy and case, numbers of the queues that Java 5.3.3 gives each client."""
    return json.loads(Path(__file__).with_name("java.json").read_text(encoding="utf-8"))
