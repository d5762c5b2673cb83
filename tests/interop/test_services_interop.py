"""Groups, delays, retries and transactions in the hands of real brokers, and theirs in ours."""

from __future__ import annotations

import contextlib
import shutil
import time
from typing import TYPE_CHECKING, Any

import pytest

from formats import properties as props
from formats.system_topics import CHECK_MAX_TOPIC, HALF_TOPIC, TRANSACTION_GROUP
from rmqtool import Message, MessageStore
from rmqtool.messagestore.messages import StoredMessage
from rmqtool.query.groups import committed_offset, group_configs
from rmqtool.store.layout import Store
from tests.helpers import rmq
from tests.interop.broker import BROKER_RELEASES, CONFIG, Broker, NameServer, Refused
from tests.interop.conftest import require
from tests.interop.javastore import JavaProcess
from tests.messagestore.helpers import bodies

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from fixtures import Golden

pytestmark = pytest.mark.interop

QUERY_OFFSET, UPDATE_OFFSET, SEND_BACK = 14, 15, 36
SIZES = {name: one for name, one in CONFIG.items() if "Size" in name or "Num" in name}
CHECKS: dict[str, Any] = {
    "transactionCheckInterval": 300,
    "transactionTimeOut": 1,
    "transactionCheckMax": 10**6,
}
SLOW_CHECKS = {**CHECKS, "transactionCheckInterval": 3000, "transactionOpBatchInterval": 10}
"""a half that is asked about again before its op message is written is committed twice by 5.3.3"""
DELAYS = "1s 2s 4s 1h"
SECONDS = 60


ON = {
    name: [pytest.param(one, marks=[pytest.mark.full] * (one != name)) for one in BROKER_RELEASES]
    for name in BROKER_RELEASES
}
"""a broker takes twenty seconds: each test has one in the usual run"""


@pytest.fixture
def broker(request: pytest.FixtureRequest) -> str:
    return require(request.config, request.param, "broker")


def records(answer: bytes) -> Iterator[StoredMessage]:
    while answer:
        size = int.from_bytes(answer[:4], "big")
        yield StoredMessage(answer[:size])
        answer = answer[size:]


def pulled(taken: Broker, topic: str, count: int) -> list[StoredMessage]:
    """Messages of queue 0, waited for."""
    found: list[StoredMessage] = []
    offset, until = 0, time.monotonic() + SECONDS
    while len(found) < count and time.monotonic() < until:
        try:
            offset, raw = taken.pull(topic, offset)
        except Refused:
            time.sleep(0.05)
            continue
        found += records(raw)
    return found


def queried(taken: Broker, group: str, topic: str, queue_id: int = 0) -> int:
    fields = {"consumerGroup": group, "topic": topic, "queueId": queue_id}
    return int(taken.request(QUERY_OFFSET, fields)[0]["offset"])


@pytest.mark.parametrize("broker", ON["5.3.3"], indirect=True)
def test_a_broker_goes_on_with_what_waits_here(broker: str, tmp_path: Path) -> None:
    root, directory = tmp_path / "store", tmp_path / "broker"
    directory.mkdir()
    settings = SIZES | {"messageDelayLevel": DELAYS}
    with MessageStore.open(root, create=True, release=broker, config=settings) as store:
        store.put_many([Message("T", b"%d" % one, queue_id=0) for one in range(10)])
        store.topics.set("InMemory", read_queues=1, write_queues=1, memory=True)
        store.put(Message("InMemory", b"gone when the store is closed", queue_id=0))
        (first, second) = store.get("T", 0, 0, limit=2).messages
        store.groups.set("CG", retry_max=1)
        store.commit_offset("CG", "T", 0, 7)
        store.send_back("CG", first)
        store.send_back("CG", second, delay_level=-1)
        sent = [store.send_delayed(Message("D", b"level %d" % one, queue_id=0), one) for one in (1, 2, 3, 4)]
        half = [store.transaction(Message("X", b"half %d" % one, queue_id=0), "PG") for one in range(4)]
        half[0].commit()
        half[1].rollback()
        stored = {ack.queue_id: store.message_at(ack.physical_offset) for ack in sent}
    with Broker(broker, root, directory, messageDelayLevel=DELAYS, **CHECKS) as taken:
        assert queried(taken, "CG", "T") == 7
        delivered = sorted(pulled(taken, "D", 3), key=lambda one: one.body)  # overdue levels race
        assert [one.body for one in delivered] == [b"level 1", b"level 2", b"level 3"]
        for one, level in zip(delivered, (1000, 2000, 4000), strict=True):
            was = stored[int(one.properties[props.DELAY]) - 1]
            assert was is not None
            assert one.store_timestamp >= was.store_timestamp + level
        (again,) = pulled(taken, "%RETRY%CG", 1)
        assert (again.body, again.reconsume_times, again.properties[props.RETRY_TOPIC]) == (b"0", 1, "T")
        (dead,) = pulled(taken, "%DLQ%CG", 1)
        assert (dead.body, dead.properties[props.ORIGIN_MESSAGE_ID]) == (b"1", second_id(second))
        assert [one.body for one in pulled(taken, "X", 1)] == [b"half 0"]
        taken.send("InMemory", b"on disk")
        taken.create_topic("Another", "")  # for which it writes the table, without the mark
        checked = pulled(taken, HALF_TOPIC, 6)  # the open halves, put back by the broker's check
        assert [one.body for one in checked[4:6]] == [b"half 2", b"half 3"]
        assert {one.properties[props.TRANSACTION_CHECK_TIMES] for one in checked[4:6]} == {"1"}
        taken.stop()
    assert rmq("verify", root, "--store-config", directory / "broker.conf").exit_code == 0
    with MessageStore.open(root, release=broker, config=settings) as store:
        assert store.committed_offset("CG", "T", 0) == 7
        assert store.topics.memory == {"InMemory"}
        store.put(Message("InMemory", b"in memory", queue_id=0))
        assert bodies(store, "InMemory", 0) == [b"on disk", b"in memory"]
        waiting = {one.transaction_id for one in store.open_transactions()}
        assert waiting == {half[2].id, half[3].id}
        store.commit_transaction(half[2].id)
        assert bodies(store, "X", 0) == [b"half 0", b"half 2"]
        assert store.deliver_due() == 0


@pytest.mark.full
@pytest.mark.parametrize("broker", BROKER_RELEASES, indirect=True)
def test_a_real_producer_says_what_became_of_our_halves(
    broker: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """The broker that took them over asks it, commits and rolls back; none is left here then."""
    root, directory = tmp_path / "store", tmp_path / "broker"
    directory.mkdir()
    for artifact in ("namesrv", "client"):
        require(request.config, broker, artifact)
    with MessageStore.open(root, create=True, release=broker, config=SIZES) as store:
        for topic in ("X", "Other"):
            store.topics.set(topic, read_queues=1, write_queues=1)
        for number in range(6):
            store.prepare_transaction(Message("X", b"half %d" % number, queue_id=0), group="PG")
        assert len(store.open_transactions()) == 6
    good = [b"half %d" % number for number in (0, 2, 5)]
    client = JavaProcess(broker, tmp_path, "client", artifact="client")
    try:
        with (
            NameServer(broker, directory) as names,
            Broker(broker, root, directory, namesrvAddr=names.address, **SLOW_CHECKS) as taken,
        ):
            asked = client.call(
                "answer_checks",
                address=names.address,
                group="PG",
                topic="X",
                sends_to="Other",
                committed=[one.hex() for one in good],
                count=6,
            )
            assert [bytes.fromhex(one) for one in asked] == [b"half %d" % number for number in range(6)]
            assert sorted(one.body for one in pulled(taken, "X", 3)) == good
            taken.stop()
    finally:
        client.kill()
    with MessageStore.open(root, release=broker, config=SIZES) as store:
        assert store.open_transactions() == []
        assert sorted(bodies(store, "X", 0)) == good


def second_id(message: StoredMessage) -> str:
    from rmqtool.messagestore.messages import offset_id

    host = message.header["store_host.ip"], message.header["store_host.port"]
    return offset_id(host, message.physical_offset)


@pytest.mark.parametrize("broker", ON["4.9.7"], indirect=True)
@pytest.mark.full
def test_we_go_on_with_what_waits_at_a_broker(broker: str, tmp_path: Path) -> None:
    """Killed in the middle of it, before it has written how far it was: nothing comes twice."""
    root, directory = tmp_path / "store", tmp_path / "broker"
    directory.mkdir()
    with Broker(broker, root, directory, messageDelayLevel=DELAYS, transactionCheckInterval=10**9) as taken:
        taken.send("T", b"plain", WAIT="true")
        for number in range(12):
            level = number % 3 + 1
            taken.send("D", b"%d" % number, DELAY=str(level), UNIQ_KEY=f"u{number}", WAIT="true")
        halves = [taken.prepare("X", b"half %d" % one, f"tx{one}") for one in range(4)]
        taken.commit("X", halves[1])
        with contextlib.suppress(Refused):  # which makes the group
            taken.pull("T", 0)
        taken.request(UPDATE_OFFSET, {"consumerGroup": "CG", "topic": "T", "queueId": 0, "commitOffset": 1})
        some = len(pulled(taken, "D", 4))
        assert some >= 4
        assert [one.body for one in pulled(taken, "X", 1)] == [b"half 1"]
        until = time.monotonic() + SECONDS
        while committed_offset(Store.open(root), "CG", "T", 0) != 1 and time.monotonic() < until:
            time.sleep(0.05)
    settings = SIZES | {"messageDelayLevel": DELAYS, "transactionTimeOut": 0}
    with MessageStore.open(root, release=broker, config=settings, deliver=False) as store:
        assert store.committed_offset("CG", "T", 0) == 1
        store.deliver_due()
        until = time.monotonic() + SECONDS
        while len(bodies(store, "D", 0)) < 12 and time.monotonic() < until:
            store.deliver_due()
            time.sleep(0.05)
        assert sorted(map(int, bodies(store, "D", 0))) == list(range(12))
        for one in store.get("D", 0, 0).messages:
            assert one.properties[props.REAL_TOPIC] == "D"
        asked: list[bytes] = []

        def listener(half: StoredMessage) -> bool:
            asked.append(half.body)
            return half.body != b"half 3"

        time.sleep(0.01)
        store.check_transactions(listener)
        assert (asked, store.open_transactions()) == ([b"half 0", b"half 2", b"half 3"], [])
        assert sorted(bodies(store, "X", 0)) == [b"half 0", b"half 1", b"half 2"]
    with Broker(broker, root, directory, messageDelayLevel=DELAYS, **CHECKS) as taken:
        assert queried(taken, "CG", "T") == 1
        assert len(pulled(taken, "D", 12)) == 12
        assert queried(taken, TRANSACTION_GROUP, HALF_TOPIC) == 7
        sent = taken.send("D", b"last", DELAY="1", WAIT="true")
        assert sent
        assert [one.body for one in pulled(taken, "D", 13)][12:] == [b"last"]


@pytest.mark.full
@pytest.mark.parametrize("broker", BROKER_RELEASES, indirect=True)
def test_a_broker_takes_our_groups(broker: str, tmp_path: Path) -> None:
    """What is given back to it follows the settings of the group; a file it has written is ours."""
    root, directory = tmp_path / "store", tmp_path / "broker"
    directory.mkdir()
    with MessageStore.open(root, create=True, release=broker, config=SIZES) as store:
        store.put(Message("T", b"x", queue_id=0))
        store.groups.set("Never", retry_max=0)
        store.groups.set("Closed", consume=False)
        (message,) = store.get("T", 0, 0).messages
    with Broker(broker, root, directory) as taken:
        fields = {
            "offset": message.physical_offset, "group": "Never", "delayLevel": 0, "originMsgId": "",
            "originTopic": "T", "unitMode": "false",
        }  # fmt: skip
        taken.request(SEND_BACK, fields)
        (dead,) = pulled(taken, "%DLQ%Never", 1)
        assert dead.body == b"x"
        taken.stop()
    found = group_configs(Store.open(root))
    assert (found["Never"].retry_max_times, found["Closed"].consume_enable) == (0, False)
    with MessageStore.open(root, release=broker, config=SIZES) as store:
        assert len(store.groups) >= 2
        ack = store.send_back("Never", message)
        assert ack is not None
        ours = store.message_at(ack.physical_offset)
        assert ours is not None
        same = (dead.topic, dead.reconsume_times, dict(dead.properties), dead.sys_flag, dead.flag)
        assert same == (ours.topic, ours.reconsume_times, dict(ours.properties), ours.sys_flag, ours.flag)


@pytest.mark.parametrize("name", ["b497-full", "b533-full"])
def test_a_recorded_broker_is_finished(name: str, golden: Callable[[str], Golden], tmp_path: Path) -> None:
    """Delays of hours are delivered at their time, halves that it had asked about are asked about again."""
    found = golden(name)
    root = tmp_path / "store"
    shutil.copytree(found.path, root)
    now = [0]
    config = {
        key: one
        for line in found.config_path.read_text().splitlines()
        if (key := line.partition("=")[0].strip()) in SIZES and (one := line.partition("=")[2].strip())
    }
    stored = {(one.group, one.topic, one.queue_id): one.offset for one in _committed(root)}
    with MessageStore.open(
        root, release=found.release, config=config, clock=lambda: now[0], deliver=False
    ) as store:
        for (group, topic, queue_id), offset in stored.items():
            assert store.committed_offset(group, topic, queue_id) == offset
        units = {one: store.offsets("SCHEDULE_TOPIC_XXXX", one)[1] for one in range(18)}
        waiting = sum(end - store._services.schedule.offset(level + 1) for level, end in units.items() if end)
        now[0] = max((one.store_timestamp for one in _waiting(store, units)), default=0) + 3 * 3_600_000
        assert (store.deliver_due(), store.deliver_due()) == (waiting, 0)
        halves, given_up = len(store.open_transactions()), store.offsets(CHECK_MAX_TOPIC, 0)[1]
        assert store.check_transactions(lambda half: True) == halves
        assert store.open_transactions() == []
        assert store.offsets(CHECK_MAX_TOPIC, 0)[1] == given_up


def _committed(root: Path) -> Any:
    from rmqtool.query.groups import committed_offsets

    return committed_offsets(Store.open(root))


def _waiting(store: MessageStore, units: dict[int, int]) -> Iterator[StoredMessage]:
    for queue_id, end in units.items():
        if end:
            yield from store.get("SCHEDULE_TOPIC_XXXX", queue_id, end - 1).messages
