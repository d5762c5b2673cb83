"""The message store in the hands of the real stores and back: both go on with what the other wrote."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import time
import zlib
from typing import TYPE_CHECKING, Any

import pytest

from formats.commitlog import SysFlag
from rmqtool import Message, MessageStore
from rmqtool.messagestore.messages import AppendContext, PutStatus, StoredMessage
from rmqtool.store.consumer_offsets import stored_offsets
from rmqtool.store.layout import Store
from tests.helpers import rmq
from tests.interop.broker import BROKER_RELEASES, CONFIG, Broker, NameServer, Refused
from tests.interop.conftest import require
from tests.interop.javastore import JavaProcess
from tests.interop.test_engine_interop import QUEUES, java_settings, put_by_java, served_by_java
from tests.messagestore.helpers import bodies, traffic
from tests.messagestore.test_kill import SETTINGS as KILLED
from tests.messagestore.test_kill import check, killed
from tests.messagestore.test_power_cut import check as check_cut
from tests.messagestore.test_power_cut import states

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.interop.javastore import JavaStore

    OpenStore = Callable[..., JavaStore]

pytestmark = pytest.mark.interop

SIZES = {
    "mappedFileSizeCommitLog": 4096,
    "mappedFileSizeConsumeQueue": 400,
    "maxHashSlotNum": 13,
    "maxIndexNum": 40,
}


def served_here(store: MessageStore) -> dict[tuple[str, int], list[str]]:
    return {key: [hashlib.sha256(body).hexdigest() for body in bodies(store, *key)] for key in QUEUES}


@pytest.mark.share
@pytest.mark.parametrize("settings", [{}, {"flushDiskType": "SYNC_FLUSH"}], ids=["async", "sync"])
def test_both_go_on_with_what_the_other_wrote(
    java_store: OpenStore, release: str, tmp_path: Path, settings: dict[str, Any]
) -> None:
    root, sent = tmp_path / "store", 0
    expected: dict[tuple[str, int], list[str]] = {key: [] for key in QUEUES}
    for _ in range(3):
        opened = MessageStore.open(root, create=True, release=release, config=SIZES | settings)
        with opened as store:
            assert served_here(store) == expected
            store.put_many(traffic(sent, 40))
            for one in traffic(sent + 40, 10):
                store.put(one)
            sent += 50
            expected = served_here(store)
        with java_store(root, **java_settings({})) as java:
            assert served_by_java(java) == expected
            put_by_java(java, sent, 40)
            sent += 40
            expected = served_by_java(java)
    assert sum(map(len, expected.values())) == sent


def test_java_reads_what_the_shell_put(java_store: OpenStore, release: str, tmp_path: Path) -> None:
    conf, root, messages = tmp_path / "broker.conf", tmp_path / "store", traffic(0, 150)
    conf.write_text("".join(f"{name}={value}\n" for name, value in SIZES.items()))
    lines = [
        {"topic": one.topic, "queue_id": one.queue_id, "tags": one.tags, "keys": one.keys}
        | {"uniq_key": one.uniq_key, "body_hex": one.body.hex()}
        for one in messages
    ]
    assert rmq("store", "init", root, "--store-config", conf).exit_code == 0
    more = ("--store-config", conf, "--as-version", release, "--flush", "sync", "--format", "ndjson")
    result = rmq("store", "put", root, "-", *more, stdin="\n".join(map(json.dumps, lines)))
    assert (result.exit_code, result.rows[-1]["messages"]) == (0, 150)
    with java_store(root, **java_settings({})) as java:
        found = served_by_java(java)
        put_by_java(java, 150, 10)
    for key in QUEUES:
        sent = [hashlib.sha256(one.body).hexdigest() for one in messages if (one.topic, one.queue_id) == key]
        assert found[key] == sent
    assert rmq("verify", root, "--store-config", conf).exit_code == 0


def mixed(number: int) -> Message:
    """Messages of further queues, delayed, compressed, committed and plain ones in turn."""
    kind, body = number % 5, b"%d " % number * (number % 40)
    more: dict[str, Any] = {"queue_id": number % 2, "keys": [f"mixed-{number}"], "tags": f"Tag{number % 3}"}
    if kind == 0:
        return Message("Parent", body, properties={"INNER_MULTI_DISPATCH": "%LMQ%a,%LMQ%b"}, **more)
    if kind == 1:
        return Message("SCHEDULE_TOPIC_XXXX", body, properties={"DELAY": f"{number % 2 + 1}"}, **more)
    return Message(("Compressed", "Committed", "Plain")[kind - 2], body, **more)


def put_mixed(store: MessageStore, first: int, count: int) -> None:
    batches = store.topics.get("Batched")
    for number in range(first, first + count):
        one, context = mixed(number), None
        if one.topic == "Compressed":
            one.body, context = zlib.compress(one.body), AppendContext(sys_flag=SysFlag.COMPRESSED)
        if one.topic == "Committed":
            half = store.put(one, context=AppendContext(sys_flag=SysFlag.PREPARED)).physical_offset
            context = AppendContext(sys_flag=SysFlag.COMMIT, prepared_transaction_offset=half)
        assert store.put(one, context=context).status is PutStatus.PUT_OK
        if number % 7 == 0 and batches is not None:
            inner = [Message("Batched", b"inner %d" % part) for part in range(number % 4 + 1)]
            assert store.put_batch(inner)[0].status is PutStatus.PUT_OK


def units_of(store: MessageStore) -> dict[tuple[str, int], list[int]]:
    """Physical offsets of the records in every queue."""
    return {
        key: store.get_table(*key, columns=["physical_offset"])["physical_offset"].to_pylist()
        for key in store.queues()
    }


def test_java_opens_a_store_of_everything(java_store: OpenStore, release: str, tmp_path: Path) -> None:
    """Nothing is truncated, every queue has the same records in Java, and both go on."""
    root, of_5 = tmp_path / "store", release.startswith("5")
    light = {"enableMultiDispatch": True, "enableLmq": True}
    for life in range(2):
        with MessageStore.open(root, create=True, release=release, config=SIZES | light) as store:
            if of_5 and not life:
                store.topics.set("Batched", attributes={"queue.type": "BatchCQ"})
            put_mixed(store, life * 80, 80)
            expected, bounds = units_of(store), {key: store.offsets(*key) for key in store.queues()}
        assert len(os.listdir(root / "commitlog")) > 4
        with java_store(root, of_broker=True, **java_settings(light)) as java:
            assert {
                (one["topic"], one["queue"]): (one["min"], one["max"]) for one in java.call("queues")
            } == bounds
            for (topic, queue_id), offsets in expected.items():
                if topic != "Batched":
                    found = java.call("get", topic=topic, queue_id=queue_id)
                    assert [one["physicalOffset"] for one in found] == offsets
            assert {one["physicalOffset"] for one in java.records()} >= set().union(*expected.values())
            put_by_java(java, life * 10, 10)
    assert rmq("verify", root).exit_code == 0


@pytest.mark.full
@pytest.mark.parametrize("broker", BROKER_RELEASES)
def test_ten_alternations_with_a_broker(request: pytest.FixtureRequest, broker: str, tmp_path: Path) -> None:
    """A producer and a consumer of the broker that took over; it is killed each time."""
    root, sizes = tmp_path / "store", {name: CONFIG[name] for name in SIZES}
    require(request.config, broker, "broker")
    sent: list[bytes] = []
    for life in range(10):
        directory = tmp_path / str(life)
        directory.mkdir()
        with MessageStore.open(root, create=True, release=broker, config=sizes) as store:
            assert bodies(store, "Taken", 0) == sent
            mine = [b"ours %d.%d" % (life, number) * 30 for number in range(400)]
            store.put_many([Message("Taken", body, queue_id=0) for body in mine])
            sent += mine
        with Broker(broker, root, directory) as taken:
            for number in range(40):
                sent.append(b"theirs %d.%d" % (life, number))
                taken.send("Taken", sent[-1], UNIQ_KEY=f"{life}-{number}", WAIT="true")
            assert pulled(taken, "Taken", len(sent)) == sent
    with MessageStore.open(root, release=broker, config=sizes) as store:
        assert bodies(store, "Taken", 0) == sent
    left = [one["code"] for one in rmq("verify", root, "--format", "ndjson").rows if "code" in one]
    assert set(left) <= {"IDX-MISSING"}  # a broker that is killed loses the index file that it writes


def pulled(broker: Broker, topic: str, count: int) -> list[bytes]:
    """Bodies that a consumer gets from queue 0."""
    found: list[bytes] = []
    offset, until = 0, time.monotonic() + 60
    while len(found) < count and time.monotonic() < until:
        try:
            offset, raw = broker.pull(topic, offset)
        except Refused:
            time.sleep(0.05)
            continue
        while raw:
            size = int.from_bytes(raw[:4], "big")
            found.append(StoredMessage(raw[:size]).body)
            raw = raw[size:]
    return found


@pytest.mark.parametrize("seed", [0, *(pytest.param(one, marks=pytest.mark.full) for one in range(1, 12))])
def test_java_opens_what_a_killed_writer_left_first(
    java_store: OpenStore, release: str, tmp_path: Path, seed: int
) -> None:
    """Index files are large: Java names them by milliseconds, and two that are made in one are one file."""
    root, found = tmp_path / "store", {}
    large = {"maxIndexNum": 4000}
    for life in range(2):
        found |= killed(root, seed * 100 + life * len(KILLED) + seed, release, 1_000_000 * life, **large)
        given = KILLED[seed * 101 % len(KILLED)]
        sizes = {name: value for name, value in given.items() if "appedFile" in name or "Ext" in name}
        with java_store(root, **java_settings(large) | sizes) as java:
            java.call("drain")
        check(root, release, seed * 100 + seed, found, **large)


@pytest.mark.parametrize("seed", [0, *(pytest.param(one, marks=pytest.mark.full) for one in range(1, 8))])
def test_java_opens_what_a_power_cut_left_first(
    java_store: OpenStore, release: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """It leaves what lies behind the log's end, for us to refuse, and goes on in index files without header.

    Index files are large as above.
    """
    for root, settings, acks in states(tmp_path, monkeypatch, seed, release, 3, 400, maxIndexNum=4000):
        sizes = {name: value for name, value in settings.items() if name in {*SIZES, "maxIndexNum"}}
        with java_store(root, **java_settings(sizes)) as java:
            java.call("drain")
        check_cut(root, settings, release, acks, "broker", ("IDX-CYCLE",))


def files_of(root: Path) -> list[str]:
    kinds = ("commitlog", "consumequeue", "index")
    return sorted(one.relative_to(root).as_posix() for kind in kinds for one in (root / kind).rglob("*"))


def test_what_java_deletes_goes_here_too(java_store: OpenStore, release: str, tmp_path: Path) -> None:
    """Segments of four days, by hand; queues and index follow, and their first offsets are the same."""
    root, copy = tmp_path / "store", tmp_path / "copy"
    settings = {"deleteCommitLogFilesInterval": 1, "deleteConsumeQueueFilesInterval": 1}
    with MessageStore.open(root, create=True, release=release, config=SIZES) as store:
        store.put_many(traffic(0, 400))
    old = time.time() - 4 * 86_400
    for name in sorted(os.listdir(root / "commitlog"))[:9]:
        os.utime(root / "commitlog" / name, (old, old))
    shutil.copytree(root, copy)
    with java_store(root, **java_settings(settings)) as java:
        java.call("clean")
        expected = {(one["topic"], one["queue"]): one["min"] for one in java.call("queues")}
    with MessageStore.open(copy, release=release, config=SIZES | settings) as store:
        assert store.expire().segments == 9
        assert {key: store.offsets(*key)[0] for key in store.queues()} == expected
    assert files_of(copy) == files_of(root)
    assert len(os.listdir(copy / "index")) > 1


@pytest.mark.parametrize("read_only", [True, pytest.param(False, marks=pytest.mark.full)])
def test_both_make_segments_in_the_same_directories(
    java_store: OpenStore, release: str, tmp_path: Path, read_only: bool
) -> None:
    """Several paths, one of them for reading only: each goes on where the other has stopped."""
    root, sent = tmp_path / "store", 0
    places = [tmp_path / name for name in ("b", "a", "c")]
    paths = {"storePathCommitLog": ",".join(map(str, places))}
    for life in range(3):
        if life == 1 and read_only:
            paths["readOnlyCommitLogStorePaths"] = str(places[2])
            had = sorted(os.listdir(places[2]))
        with MessageStore.open(root, create=True, release=release, config=SIZES | paths) as store:
            store.put_many(traffic(sent, 100))
            sent += 100
            expected = served_here(store)
        with java_store(root, **java_settings({}) | paths) as java:
            assert served_by_java(java) == expected
            put_by_java(java, sent, 100)
            sent += 100
        made = [[int(name) // 4096 for name in sorted(os.listdir(place))] for place in sorted(places)]
        assert all(made)
        if not read_only:
            assert all(number % 3 == place for place, numbers in enumerate(made) for number in numbers)
        elif life:
            assert sorted(os.listdir(places[2])) == had
    with MessageStore.open(root, release=release, config=SIZES | paths) as store:
        assert sum(map(len, served_here(store).values())) == sent


def committed(root: Path, topic: str, group: str) -> dict[int, int]:
    """Offsets by queue that a broker has on the disk."""
    stored = stored_offsets(Store.open(root))
    return {one.queue_id: one.offset for one in stored if (one.topic, one.group) == (topic, group)}


@pytest.mark.full
@pytest.mark.parametrize("broker", BROKER_RELEASES)
def test_producers_and_consumers_of_the_broker_that_took_over(
    request: pytest.FixtureRequest, broker: str, tmp_path: Path
) -> None:
    """RocketMQ's own clients: what was put is consumed once, in order; what they send is served here."""
    root, sizes = tmp_path / "store", {name: CONFIG[name] for name in SIZES}
    for artifact in ("broker", "namesrv", "client"):
        require(request.config, broker, artifact)
    expected: dict[int, list[bytes]] = {number: [] for number in range(4)}
    consumed: dict[int, list[tuple[int, bytes]]] = {number: [] for number in range(4)}
    client = JavaProcess(broker, tmp_path, "client", artifact="client")
    try:
        for life in range(4):
            directory = tmp_path / str(life)
            directory.mkdir()
            with MessageStore.open(root, create=True, release=broker, config=sizes) as store:
                for number in range(160):
                    queue_id, body = number % 4, b"put %d.%d" % (life, number) * 20
                    store.put(Message("Taken", body, queue_id=queue_id, keys=[f"{life}-{number}"]))
                    expected[queue_id].append(body)
            with (
                NameServer(broker, directory) as names,
                Broker(broker, root, directory, namesrvAddr=names.address) as taken,
            ):
                bodies_sent = [b"sent %d.%d" % (life, number) for number in range(60)]
                answers = client.call(
                    "produce",
                    address=names.address,
                    group="PG",
                    topic="Taken",
                    bodies=[body.hex() for body in bodies_sent],
                )
                for body, (queue_id, queue_offset) in zip(bodies_sent, answers, strict=True):
                    assert queue_offset == len(expected[queue_id]), "numbers go on where ours ended"
                    expected[queue_id].append(body)
                more = {"address": names.address, "group": "CG", "topic": "Taken"}
                for queue_id, queue_offset, body in client.call("consume", count=220, polls=60, **more):
                    consumed[queue_id].append((queue_offset, bytes.fromhex(body)))
                assert consumed == {key: list(enumerate(found)) for key, found in expected.items()}
                ends = {key: len(found) for key, found in expected.items()}
                if life % 2:
                    taken.stop()
                until = time.monotonic() + 30  # a broker that will be killed writes its offsets every second
                while committed(root, "Taken", "CG") != ends and time.monotonic() < until:
                    time.sleep(0.1)
                assert committed(root, "Taken", "CG") == ends
    finally:
        client.kill()
    with MessageStore.open(root, release=broker, config=sizes) as store:
        assert {key: bodies(store, "Taken", key) for key in expected} == expected
    assert rmq("verify", root).exit_code == 0
