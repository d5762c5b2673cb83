"""Strategies without Java: what was recorded of it, the words of the specification, odd input."""

from __future__ import annotations

import pytest

from rmqtool.errors import UsageError
from rmqtool.query.assignment.hash_ring import HashRing, ring_hash
from rmqtool.query.assignment.queues import MessageQueue
from rmqtool.query.assignment.strategies import STRATEGIES, assign, machine_room_nearby
from tests.query.assignment.grid import ALL, CLIENTS, QUEUES, SHARE, cases, numbers_of, recorded


@pytest.mark.parametrize("name", ALL)
def test_as_java_on_a_share_of_the_grid(name: str) -> None:
    found = [
        numbers_of([ALL[name](one, queues, clients) for one in clients])
        for queues, clients in cases(range(*SHARE[0]), range(*SHARE[1]))
    ]
    assert found == recorded()[name]


@pytest.mark.parametrize("name", STRATEGIES)
def test_every_queue_has_one_owner(name: str) -> None:
    for queues, clients in cases(range(QUEUES + 1), range(1, CLIENTS + 1)):
        owned = [one for client in clients for one in STRATEGIES[name](client, queues, clients)]
        assert sorted(owned) == sorted(queues)


def test_the_vectors_of_the_specification() -> None:
    queues = [MessageQueue("TopicTest", "broker-a", number) for number in range(4)]
    assert ring_hash("c1-0") == 3886541579
    assert [ring_hash(one.text) for one in queues] == [1987926524, 4291349817, 853506239, 3652785994]
    ring = HashRing(["c1", "c2"])
    assert [ring.owner(one.text) for one in queues] == ["c1", "c2", "c2", "c1"]
    assert HashRing([]).owner("x") is None
    assert len(HashRing(["c1", "c1"])._points) == 20


def test_order_is_javas() -> None:
    """UTF-16: a supplementary character comes in front of U+E000."""
    queues = [MessageQueue("T", name, 0) for name in ("\ue000", "\U0001f600")]
    given = assign(STRATEGIES["AVG"], queues, ["\ue000", "\U0001f600"])
    assert list(given) == ["\U0001f600", "\ue000"]
    assert [one.broker_name for queue in given.values() for one in queue] == ["\U0001f600", "\ue000"]


@pytest.mark.parametrize("name", ALL)
def test_who_is_no_member_gets_nothing(name: str) -> None:
    ((queues, clients),) = cases(range(5, 6), range(2, 3))
    if name != "CONFIG":
        assert ALL[name]("nobody", queues, clients) == []
        assert ALL[name]("nobody", [], []) == []


def test_what_has_no_room_is_refused() -> None:
    nearby = machine_room_nearby(STRATEGIES["AVG"], lambda one: "", lambda one: "r")
    with pytest.raises(UsageError):
        nearby("a", [MessageQueue("T", "b", 0)], ["a"])
