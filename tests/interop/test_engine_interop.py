"""Stores written through `rmqtool.broker` alone, in the hands of the real stores and back."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

import pytest

from formats.commitlog import Message
from formats.properties import INNER_MULTI_DISPATCH, INNER_MULTI_QUEUE_OFFSET
from tests.broker.engine import Engine, message
from tests.broker.test_engine import EXTENDED, SETTINGS, served, traffic

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from tests.interop.javastore import JavaStore

    OpenStore = Callable[..., JavaStore]

pytestmark = pytest.mark.interop

QUEUES = [(f"Topic{topic}", queue_id) for topic in range(2) for queue_id in range(3)]
LIGHT = ("%LMQ%one", 0)
WITH_LIGHT = [*QUEUES, LIGHT]
FURTHER = {"enableMultiDispatch": "true", "enableLmq": "true"}


def java_settings(extra: dict[str, Any]) -> dict[str, Any]:
    return {
        name: value == "true" if isinstance(value, str) else value
        for name, value in (SETTINGS | extra).items()
    }


def served_by_java(
    store: JavaStore, queues: Sequence[tuple[str, int]] = QUEUES
) -> dict[tuple[str, int], list[str]]:
    """Digests of bodies by queue, as Java's getMessage delivers them, at the queue offsets that they name."""
    records = {one["physicalOffset"]: one for one in store.records()}
    found = {}
    for topic, queue_id in queues:
        units = store.call("get", topic=topic, queue_id=queue_id)
        given = [records[one["physicalOffset"]] for one in units]
        if (topic, queue_id) != LIGHT:
            assert [one["queueOffset"] for one in given] == list(range(len(given)))
        assert [one["tagsCode"] for one in units] == [one["javaTagsCode"] for one in given]
        found[topic, queue_id] = [one["bodySha256"] for one in given]
    return found


def served_here(engine: Engine) -> dict[tuple[str, int], list[str]]:
    return {key: [hashlib.sha256(body).hexdigest() for body in served(engine, *key)] for key in WITH_LIGHT}


def naming_a_light_queue(engine: Engine, messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Every third of them goes to a light queue, too, with the queue offset that is next there."""
    queue = engine.start.queues.get(LIGHT)
    slot = 0 if queue is None else queue.max_offset
    for one in messages[::3]:
        one["properties"] += f"{INNER_MULTI_DISPATCH}\x01{LIGHT[0]}\x02".encode()
        one["properties"] += f"{INNER_MULTI_QUEUE_OFFSET}\x01{slot}\x02".encode()
        slot += 1
    return messages


def put_by_java(store: JavaStore, first: int, count: int) -> None:
    for number in range(first, first + count):
        body = b"java %d" % number * (number % 40)
        store.put(f"Topic{number % 2}", body, queue_id=number % 3, keys=f"key-{number}", tags="TagJ")
    store.call("drain")


@pytest.mark.share
@pytest.mark.parametrize("extra", [FURTHER, EXTENDED | FURTHER], ids=["light", "extension"])
@pytest.mark.parametrize(
    ("crashes", "rounds"),
    [
        (True, 2),
        *(pytest.param(*one, marks=pytest.mark.full) for one in ((False, 2), (False, 10), (True, 10))),
    ],
)
def test_both_go_on_with_what_the_other_wrote(
    java_store: OpenStore,
    release: str,
    tmp_path: Path,
    extra: dict[str, Any],
    crashes: bool,
    rounds: int,
) -> None:
    root, sent = tmp_path / "store", 0
    expected: dict[tuple[str, int], list[str]] = {key: [] for key in WITH_LIGHT}
    for _ in range(rounds):
        with Engine(root, release, **SETTINGS, **extra) as engine:
            assert served_here(engine) == expected
            engine.put(naming_a_light_queue(engine, traffic(sent, 50)))
            sent += 50
            expected = served_here(engine)
            if crashes:
                engine.crash()
        with java_store(root, **java_settings(extra)) as store:
            assert served_by_java(store, WITH_LIGHT) == expected
            put_by_java(store, sent, 40)
            sent += 40
            expected = served_by_java(store, WITH_LIGHT)
    assert sum(len(expected[key]) for key in QUEUES) == sent
    assert len(expected[LIGHT]) == 17 * rounds


def test_java_decodes_every_field(java_store: OpenStore, release: str, tmp_path: Path) -> None:
    root = tmp_path / "store"
    sent = message(
        "T" * 127,
        body=b"body",
        properties=b"KEYS\x01k\x02",
        queue_id=7,
        flag=-1,
        sys_flag=2,
        reconsume_times=3,
        prepared_transaction_offset=-5,
        born_host=(bytes(range(16)), 1 << 15),
        store_host=(bytes([10, 0, 0, 1]), 65535),
    )
    with Engine(root, release, **SETTINGS) as engine:
        engine.put([sent])
        stored = Message.parse(engine.get("T" * 127, 7, 0)[1][0])
    with java_store(root, **java_settings({})) as store:
        (found,) = store.records()
    assert found["bodySha256"] == hashlib.sha256(b"body").hexdigest()
    names = {
        "flag": "flag",
        "queueId": "queue_id",
        "reconsumeTimes": "reconsume_times",
        "sysFlag": "sys_flag",
    }
    names |= {"preparedTransactionOffset": "prepared_transaction_offset", "storeTimestamp": "store_timestamp"}
    assert {java: found[java] for java in names} == {java: stored[ours] for java, ours in names.items()}
