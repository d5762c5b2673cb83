"""The strategies (`AllocateMessageQueueStrategy`): each answers what one client gets.

Queues and clients come in order; a client that is not among them gets nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeVar

from formats.java import java_split
from rmqtool.errors import UsageError
from rmqtool.query.assignment.hash_ring import HashRing
from rmqtool.query.assignment.queues import sorted_clients, sorted_queues, utf16

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from rmqtool.query.assignment.queues import MessageQueue

Thing = TypeVar("Thing")
Strategy = Callable[[str, Sequence["MessageQueue"], Sequence[str]], list["MessageQueue"]]
"""client, all queues, all clients: the queues of the client"""


def average(client: str, queues: Sequence[MessageQueue], clients: Sequence[str]) -> list[MessageQueue]:
    """Neighbouring queues, the first clients one more (`AllocateMessageQueueAveragely#allocate`)."""
    if client not in clients:
        return []
    index, most = clients.index(client), len(clients)
    more = len(queues) % most
    size = max(len(queues) // most + (index < more), 1)
    start = index * size + (0 if index < more else more)
    return list(queues[start : start + size])


def circle(client: str, queues: Sequence[MessageQueue], clients: Sequence[str]) -> list[MessageQueue]:
    """In turn (`AllocateMessageQueueAveragelyByCircle#allocate`)."""
    return list(queues[clients.index(client) :: len(clients)]) if client in clients else []


def consistent_hash(
    client: str, queues: Sequence[MessageQueue], clients: Sequence[str]
) -> list[MessageQueue]:
    """By a ring of hashes, so that few queues move (`AllocateMessageQueueConsistentHash#allocate`)."""
    if client not in clients:
        return []
    ring = HashRing(clients)
    return [one for one in queues if ring.owner(one.text) == client]


def machine_room(rooms: Iterable[str]) -> Strategy:
    """Queues of brokers named `room@broker` in these rooms (`AllocateMessageQueueByMachineRoom#allocate`)."""
    known = frozenset(rooms)

    def allocate(client: str, queues: Sequence[MessageQueue], clients: Sequence[str]) -> list[MessageQueue]:
        if client not in clients:
            return []
        parts = [(java_split(one.broker_name, "@"), one) for one in queues]
        ours = [one for names, one in parts if len(names) == _ROOM_AND_BROKER and names[0] in known]
        index, (each, more) = clients.index(client), divmod(len(ours), len(clients))
        rest = [ours[index + each * len(clients)]] if more > index else []
        return [*ours[each * index : each * (index + 1)], *rest]

    return allocate


_ROOM_AND_BROKER = 2


def machine_room_nearby(
    inner: Strategy, room_of_queue: Callable[[MessageQueue], str], room_of_client: Callable[[str], str]
) -> Strategy:
    """Queues to clients of their room, those of other rooms to all (`AllocateMachineRoomNearby#allocate`).

    Raises `UsageError` where a queue or client has no room.
    """

    def allocate(client: str, queues: Sequence[MessageQueue], clients: Sequence[str]) -> list[MessageQueue]:
        if client not in clients:
            return []
        by_room = _grouped(queues, room_of_queue, "queue")
        members = _grouped(clients, room_of_client, "client")
        own = room_of_client(client)
        found = inner(client, by_room.pop(own), members[own]) if own in by_room else []
        for room in sorted(by_room, key=utf16):
            if room not in members:
                found += inner(client, by_room[room], clients)
        return found

    return allocate


def _grouped(things: Iterable[Thing], room_of: Callable[[Thing], str], what: str) -> dict[str, list[Thing]]:
    found: dict[str, list[Thing]] = {}
    for one in things:
        room = room_of(one)
        if not room:
            raise UsageError(f"{what} {one} has no machine room")
        found.setdefault(room, []).append(one)
    return found


def configured(queues: Iterable[MessageQueue]) -> Strategy:
    """These queues, whoever asks (`AllocateMessageQueueByConfig#allocate`)."""
    fixed = list(queues)
    return lambda _client, _queues, _clients: list(fixed)


STRATEGIES: Mapping[str, Strategy] = {
    "AVG": average,
    "AVG_BY_CIRCLE": circle,
    "CONSISTENT_HASH": consistent_hash,
}
"""those without settings, by RocketMQ's names (`AllocateMessageQueueStrategy#getName`)"""


def assign(
    strategy: Strategy, queues: Iterable[MessageQueue], clients: Iterable[str]
) -> dict[str, list[MessageQueue]]:
    """What each client gets, clients and queues in any order."""
    ordered, everyone = sorted_queues(queues), sorted_clients(clients)
    return {one: strategy(one, ordered, everyone) for one in everyone}
