"""Topics that are kept in memory beside topics on disk."""

from __future__ import annotations

import asyncio
import threading
from itertools import count
from typing import TYPE_CHECKING

import orjson
import pytest

from rmqtool import Message, MessageStore
from rmqtool.broker.get_message import GetMessageStatus
from rmqtool.errors import UsageError
from rmqtool.messagestore.log_files import LogFiles
from rmqtool.messagestore.memory.available import available, default_bound
from rmqtool.messagestore.memory.topic_log import BASE
from rmqtool.messagestore.messages import AppendContext, PutStatus
from rmqtool.store.layout import Store
from tests.messagestore.helpers import bodies, open_small

if TYPE_CHECKING:
    from pathlib import Path

TABLE = "config/rmqtool-memory.json"


def with_memory(root: Path, **settings: object) -> MessageStore:
    store = open_small(root, **settings)  # type: ignore[arg-type]
    store.topics.set("M", read_queues=2, write_queues=2, memory=True)
    store.topics.set("D", read_queues=2, write_queues=2)
    return store


def message(number: int, topic: str = "M", queue_id: int = 0, **fields: object) -> Message:
    return Message(topic, b"%d" % number, queue_id=queue_id, **fields)  # type: ignore[arg-type]


def test_both_kinds_in_one_call(tmp_path: Path) -> None:
    """Lists, tables and single messages go where their topics are; only those on disk reach the log."""
    with with_memory(tmp_path / "store") as store:
        for many in (4, 100):
            given = [message(number, "MD"[number % 2], number % 4 // 2) for number in range(many)]
            acks = store.put_many(given)
            assert {one.status for one in acks} == {PutStatus.PUT_OK}
            assert [one.physical_offset >= BASE for one in acks] == [one.topic == "M" for one in acks]
        end = store.end
        assert bodies(store, "M", 1) == [b"2"] + [b"%d" % number for number in range(2, 100, 4)]
        assert bodies(store, "D", 0) == [b"1"] + [b"%d" % number for number in range(1, 100, 4)]
        assert store.put(message(7)).queue_offset == len(bodies(store, "M", 0)) - 1
        assert store.put_async(message(8)).result().physical_offset >= BASE
        assert store.end == end
        store.flush()
        log = b"".join(one.read_bytes() for one in (tmp_path / "store" / "commitlog").iterdir())
    assert log.count(b"\x01M") == 0
    assert not (tmp_path / "store" / "consumequeue" / "M").exists()


@pytest.mark.parametrize("role", [{"brokerRole": "SYNC_MASTER", "inSyncReplicas": 2}, {}])
def test_nothing_is_waited_for(tmp_path: Path, role: dict[str, object]) -> None:
    """Neither the medium nor slaves, which would not come."""
    with with_memory(tmp_path / "store", flushDiskType="SYNC_FLUSH", slaveTimeout=60_000, **role) as store:
        found = [store.put(message(1)), store.put_async(message(2)).result(0), *store.put_batch([message(3)])]
        found += store.put_many([message(number) for number in range(50)])
        assert {one.status for one in found} == {PutStatus.PUT_OK}
        assert store.end == 0


def test_who_waits_is_reported(tmp_path: Path) -> None:
    with with_memory(tmp_path / "store") as store:
        putter = threading.Timer(0.05, store.put, [message(1)])
        putter.start()
        found = store.get("M", 0, 0, wait=30)
        putter.join()
    assert [one.body for one in found.messages] == [b"1"]


def test_with_asyncio(tmp_path: Path) -> None:
    async def work(store: MessageStore) -> set[PutStatus]:
        futures = [asyncio.wrap_future(store.put_async(message(number))) for number in range(3)]
        return {one.status for one in await asyncio.gather(*futures)}

    with with_memory(tmp_path / "store") as store:
        assert asyncio.run(work(store)) == {PutStatus.PUT_OK}


def test_filters_times_and_keys(tmp_path: Path) -> None:
    clock = count(1_700_000_000_000, 1000)
    with with_memory(tmp_path / "store", clock=lambda: next(clock)) as store:
        for number in range(20):
            tags = "even" if number % 2 == 0 else "odd"
            store.put(message(number, tags=tags, keys=["all", f"k{number}"], properties={"n": str(number)}))
        found = store.get("M", 0, 0, tags="odd")
        assert [one.body for one in found.messages] == [b"%d" % number for number in range(1, 20, 2)]
        found = store.get("M", 0, 0, sql92="n > 16")
        assert [one.body for one in found.messages] == [b"17", b"18", b"19"]
        seventh = store.get("M", 0, 7, 1).messages[0].store_timestamp
        assert store.offset_by_time("M", 0, seventh) == 7
        assert store.offset_by_time("M", 0, seventh + 1, "upper") == 7
        assert [one.body for one in store.query_key("M", "all", 3)] == [b"17", b"18", b"19"]
        keyed = store.query_key("M", ["k3", "all", "none"], 2, end=seventh)
        assert {key: [one.body for one in some] for key, some in keyed.items()} == {
            "k3": [b"3"],
            "all": [b"5", b"6"],
            "none": [],
        }


def test_views_outlive_eviction(tmp_path: Path) -> None:
    with with_memory(tmp_path / "store", memoryTopicMaxBytes=2000) as store:
        store.put(message(1))
        view = store.get_raw("M", 0, 0).records[0]
        before = bytes(view)
        store.put_many([message(2, keys=["x" * 100]) for _ in range(50)])
        assert view == before
        assert store.get("M", 0, 0).status is GetMessageStatus.OFFSET_TOO_SMALL
        assert store.memory.evicted > 0


def test_a_message_that_has_no_room_is_refused(tmp_path: Path) -> None:
    """And those that are there stay."""
    with with_memory(tmp_path / "store", memoryTopicMaxBytes=2000) as store:
        store.put(message(1))
        for ack in (
            store.put(Message("M", bytes(2000))),
            store.put_many([message(2), Message("M", bytes(2000))])[1],
            store.put_many([message(2), *[Message("M", bytes(2000))] * 20])[1],
        ):
            assert ack.status is PutStatus.MESSAGE_ILLEGAL
            assert "memoryTopicMaxBytes" in ack.message
        assert bodies(store, "M", 0) == [b"1", b"2", b"2"]


def test_what_a_memory_topic_does_not_take(tmp_path: Path) -> None:
    with with_memory(tmp_path / "store", enableMultiDispatch=True, enableLmq=True) as store:
        further = store.put(message(1, properties={"INNER_MULTI_DISPATCH": "%LMQ%a"}))
        half = store.put(message(1), context=AppendContext(sys_flag=4))
        elsewhere = store.put(message(1), context=AppendContext(queue_offset=7))
        assert {one.status for one in (further, half, elsewhere)} == {PutStatus.MESSAGE_ILLEGAL}
        for name in ("SCHEDULE_TOPIC_XXXX", "RMQ_SYS_TRANS_HALF_TOPIC", "%RETRY%group", "%DLQ%group"):
            with pytest.raises(UsageError, match="cannot be kept in memory"):
                store.topics.set(name, memory=True)
        for name, memory in (("M", False), ("D", True)):
            with pytest.raises(UsageError, match="cannot move"):
                store.topics.set(name, memory=memory)
        assert store.memory.messages == 0


def test_offsets_go_on_behind_a_restart(tmp_path: Path) -> None:
    """So that groups, whose offsets stay, get what comes."""
    with with_memory(tmp_path / "store") as store:
        store.put_many([message(number) for number in range(3)])
        store.commit_offset("group", "M", 0, 2)
    with open_small(tmp_path / "store") as store:
        assert store.topics.get("M").memory  # type: ignore[union-attr]
        assert store.offsets("M", 0) == (3, 3)
        assert store.get("M", 0, 3).next_begin_offset == 3
        assert store.put(message(3)).queue_offset == 3
        assert ("M", 0) in store.queues()


def test_a_crash_forgets_no_committed_offset(tmp_path: Path) -> None:
    with with_memory(tmp_path / "store") as store:
        store.commit_offset("group", "M", 1, 5)
    (tmp_path / "store" / TABLE).unlink()
    with open_small(tmp_path / "store") as store:
        assert store.put(message(3, queue_id=1)).queue_offset == 5


def test_the_mark_outlives_a_broker(tmp_path: Path) -> None:
    """Who writes `topics.json` drops it; what it put into the log then comes in front."""
    root = tmp_path / "store"
    with with_memory(root):
        pass
    topics = orjson.loads((root / "config" / "topics.json").read_bytes())
    assert topics["topicConfigTable"]["M"].pop("memory") is True
    del topics["topicConfigTable"]["D"]
    (root / TABLE).rename(tmp_path / "kept")
    (root / f"{TABLE}.bak").unlink(missing_ok=True)
    (root / "config" / "topics.json").write_bytes(orjson.dumps(topics))
    with open_small(root) as store:  # as the broker
        store.put_many([message(number) for number in range(3)])
    (tmp_path / "kept").rename(root / TABLE)
    assert Store.open(root).topics["M"].memory
    with open_small(root) as store:
        assert store.topics.memory == {"M"}
        assert store.put(message(3, keys=["k"])).queue_offset == 3
        assert bodies(store, "M", 0) == [b"0", b"1", b"2", b"3"]
        assert store.offsets("M", 0) == (0, 4)
        assert store.get_table("M", 0, columns=["body"])["body"].to_pylist() == [b"0", b"1", b"2", b"3"]
        assert store.offset_by_time("M", 0, 0) == 0
        assert [one.body for one in store.query_key("M", "k")] == [b"3"]
        last = store.get("M", 0, 3).messages[0].store_timestamp
        assert store.offset_by_time("M", 0, last + 1) == 4


@pytest.mark.parametrize("content", [b"[]", b"{", b'{"memoryTopics":{"M":{"x":1,"0":-1,"1":1e99}}}'])
def test_a_spoiled_table_is_no_trouble(tmp_path: Path, content: bytes) -> None:
    with with_memory(tmp_path / "store"):
        pass
    (tmp_path / "store" / TABLE).write_bytes(content)
    with open_small(tmp_path / "store") as store:
        assert store.put(message(1)).queue_offset == 0


def test_deleted_with_its_messages(tmp_path: Path) -> None:
    with with_memory(tmp_path / "store") as store:
        store.put(message(1))
        store.topics.delete("M")
        assert store.memory.bytes == store.memory.messages == 0
        store.topics.set("M", read_queues=1, write_queues=1)
        assert store.put(message(1)).physical_offset == 0
        assert bodies(store, "M", 0) == [b"1"]


def test_many_threads(tmp_path: Path) -> None:
    """Readers beside writers and evictions see whole messages in order."""
    with with_memory(tmp_path / "store", memoryTopicMaxBytes=20_000) as store:
        wrong: list[object] = []
        ended = threading.Event()

        def read(queue_id: int) -> None:
            at = 0
            while not ended.is_set():
                found = store.get("M", queue_id, at)
                numbers = [one.queue_offset for one in found.messages]
                if numbers != list(range(at, at + len(numbers))) or any(
                    one.body != b"%d" % one.queue_offset for one in found.messages
                ):
                    wrong.append((at, numbers))
                at = found.next_begin_offset

        readers = [threading.Thread(target=read, args=(queue_id,)) for queue_id in (0, 1)]
        for one in readers:
            one.start()
        for number in range(0, 2000, 2):
            store.put_many([message(number + more, queue_id=queue) for more in (0, 1) for queue in (0, 1)])
        ended.set()
        for one in readers:
            one.join()
        assert not wrong


def test_bytes_that_may_be_had(tmp_path: Path) -> None:
    """The machine's, and what each control group above the process has left."""
    groups = tmp_path / "sys/fs/cgroup"
    (groups / "a" / "b").mkdir(parents=True)
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "proc/meminfo").write_text("MemTotal: 9 kB\nMemAvailable:    8000 kB\n")
    (tmp_path / "proc/self/cgroup").write_text("0::/a/b\n")
    assert available(tmp_path) == 8000 << 10
    (groups / "a" / "memory.max").write_text("1000000\n")
    (groups / "a" / "memory.current").write_text("600000\n")
    (groups / "a" / "b" / "memory.max").write_text("max\n")
    (groups / "a" / "b" / "memory.current").write_text("600000\n")
    assert available(tmp_path) == 400_000
    (groups / "a" / "memory.stat").write_text("anon 1\ninactive_file 100000\n")
    assert available(tmp_path) == 500_000
    assert default_bound(tmp_path) == 375_000
    (tmp_path / "proc/self/cgroup").write_text("4:memory:/docker/x\n")
    (groups / "memory").mkdir()
    (groups / "memory" / "memory.limit_in_bytes").write_text("300000\n")
    (groups / "memory" / "memory.usage_in_bytes").write_text("100000\n")
    assert available(tmp_path) == 200_000


def test_services_deliver_into_memory(tmp_path: Path) -> None:
    """Delays and transactions wait on disk; what is delivered is in memory, and groups consume it."""
    clock = count(1_700_000_000_000, 2000)
    with with_memory(tmp_path / "store", clock=lambda: next(clock), deliver=False) as store:
        store.send_delayed(message(1), 1)
        for number in range(40):
            store.send_delayed(message(100 + number, queue_id=1), 1)
        with store.transaction(message(2)):
            assert store.offsets("M", 0) == (0, 0)
        waiting = store.end
        store.deliver_due()
        assert bodies(store, "M", 0) == [b"2", b"1"]
        assert bodies(store, "M", 1) == [b"%d" % (100 + number) for number in range(40)]
        assert store.end == waiting
        with store.consumer("group", "M", name="one") as consumer:
            seen = []
            for one in consumer:
                seen.append(one.body)
                if len(seen) == 42:
                    break
        assert sorted(seen) == sorted([b"1", b"2", *[b"%d" % (100 + number) for number in range(40)]])
        last = store.get("M", 0, 0).messages[0]
        assert store.send_back("group", last).physical_offset < BASE  # type: ignore[union-attr]


def test_what_has_no_room_holds_up_no_delays(tmp_path: Path) -> None:
    """Alone and among many, with a flush that is waited for: it is passed over, others are there once."""
    clock = count(1_700_000_000_000, 2000)
    config = {
        "memoryTopicMaxBytes": 60_000,
        "flushDiskType": "SYNC_FLUSH",
        "mappedFileSizeCommitLog": 1 << 20,
    }
    for many in (3, 60):
        root = tmp_path / str(many)
        with with_memory(root, clock=lambda: next(clock), deliver=False, **config) as store:
            for number in range(many):
                store.send_delayed(message(number, "MD"[number % 2]), 1)
                if number == many // 2:
                    store.send_delayed(Message("M", bytes(61_000), queue_id=0), 1)
            for _ in range(4):
                store.deliver_due()
            store.flush()  # what is not on the medium is not shown
            assert bodies(store, "M", 0) == [b"%d" % number for number in range(0, many, 2)]
            assert bodies(store, "D", 0) == [b"%d" % number for number in range(1, many, 2)]


@pytest.mark.parametrize("many", [6, 60])
def test_behind_what_the_disk_refuses_nothing_is_stored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, many: int
) -> None:
    """Of a call with topics of both kinds, so that who tries the rest again stores nothing twice."""
    with with_memory(tmp_path / "store") as store:
        store.put(message(0, "D"))

        def full(*_: object) -> None:
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(LogFiles, "append", full)
        given = [Message("MD"[number % 2], bytes(40), queue_id=0) for number in range(many)]
        statuses = [one.status for one in store.put_many(given)]
        monkeypatch.undo()
        assert statuses == [PutStatus.PUT_OK] + [PutStatus.UNKNOWN_ERROR] * (many - 1)
        assert store.memory.messages == 1
