"""Light queues, further queues and inner batches: what a put counts, what is refused, what readers get."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from formats.batch import inner_messages
from formats.commitlog import SysFlag
from formats.properties import decode
from rmqtool import Message, MessageStore
from rmqtool.errors import UnreadableError, UsageError
from rmqtool.messagestore.messages import AppendContext, PutStatus
from tests.helpers import rmq
from tests.messagestore.helpers import RELEASES, SMALL, open_small

if TYPE_CHECKING:
    from pathlib import Path

LIGHT = {"enableMultiDispatch": True, "enableLmq": True}
BATCHES = {"queue.type": "BatchCQ"}


def light(names: str, body: bytes = b"x", topic: str = "T", **further: Any) -> Message:
    return Message(topic, body, queue_id=1, properties={"INNER_MULTI_DISPATCH": names}, **further)


def held(store: MessageStore, topic: str, queue_id: int) -> list[bytes | None]:
    """Bodies in a queue, whose messages may have offsets of their own queues."""
    return [body or b"" for body in store.get_table(topic, queue_id, columns=["body"])["body"].to_pylist()]


@pytest.mark.parametrize("release", RELEASES)
def test_every_way_of_putting_counts_light_queues(tmp_path: Path, release: str) -> None:
    def messages(first: int) -> list[Message]:
        return [
            light("%LMQ%a,%LMQ%b" if one % 2 else "%LMQ%a", b"%d" % one) for one in range(first, first + 9)
        ]

    table = pa.table(
        {
            "topic": ["T"] * 3,
            "body": [b"27", b"28", b"29"],
            "properties": pa.array(
                [[("INNER_MULTI_DISPATCH", "%LMQ%a")]] * 3, pa.map_(pa.string(), pa.string())
            ),
        }
    )
    for _ in range(2):
        with open_small(tmp_path / "store", release, **LIGHT) as store:
            start = store.offsets("%LMQ%a", 0)[1]
            for one in messages(0):
                assert store.put(one).status is PutStatus.PUT_OK
            assert {ack.status for ack in store.put_many(messages(9))} == {PutStatus.PUT_OK}
            assert {one.result().status for one in map(store.put_async, messages(18))} == {PutStatus.PUT_OK}
            assert set(store.put_many(table)["status"].to_pylist()) == {"PUT_OK"}
            assert held(store, "%LMQ%a", 0)[start:] == [b"%d" % one for one in range(30)]
            found = store.get("%LMQ%a", 0, start + 1).messages[0]
            assert (found.topic, found.properties["INNER_MULTI_QUEUE_OFFSET"]) == (
                "T",
                f"{start + 1},{start // 30 * 13}",
            )
            assert store.offsets("%LMQ%b", 0)[1] == (start // 30 + 1) * 13
    assert rmq("verify", tmp_path / "store").exit_code == 0


def test_a_name_without_prefix_is_a_queue_of_its_own_in_4(tmp_path: Path) -> None:
    with open_small(tmp_path / "store", "4.9.8", **LIGHT) as store:
        store.put(light("plain,%LMQ%a", b"1"))
        assert (held(store, "plain", 1), held(store, "%LMQ%a", 0)) == ([b"1"], [b"1"])


@pytest.mark.parametrize(
    "names", ["plain,%LMQ%a", "%LMQ%a,plain", "%LMQ%a,%LMQ%a", "T,%LMQ%a", "%LMQ%a,,%LMQ%b", "%LMQ%a/b", ".."]
)
def test_lists_that_would_cost_queues_are_refused(tmp_path: Path, names: str) -> None:
    with open_small(tmp_path / "store", "5.3.3", **LIGHT) as store:
        good, bad = light("%LMQ%a", b"good"), light(names, b"bad")
        assert store.put(bad).status is PutStatus.MESSAGE_ILLEGAL
        statuses = [ack.status for ack in store.put_many([good, bad, good])]
        assert statuses == [PutStatus.PUT_OK, PutStatus.MESSAGE_ILLEGAL, PutStatus.PUT_OK]
        assert held(store, "%LMQ%a", 0) == held(store, "T", 1) == [b"good"] * 2


def test_offsets_are_the_stores(tmp_path: Path) -> None:
    with open_small(tmp_path / "store", "5.3.3", **LIGHT) as store:
        for name in ("INNER_MULTI_QUEUE_OFFSET", "INNER_NUM", "INNER_BASE"):
            ack = store.put(Message("T", b"", properties={name: "7"}))
            assert (ack.status, name in ack.message) == (PutStatus.MESSAGE_ILLEGAL, True)


def test_a_list_too_long_is_refused_at_its_turn(tmp_path: Path) -> None:
    """The room for offsets is only known in the log (`CommitLog#handlePropertiesForLmqMsg`)."""
    long = light("%LMQ%a", b"long", keys=["k" * 32_680])
    with MessageStore.open(tmp_path / "store", create=True, config={**LIGHT, "maxIndexNum": 40}) as store:
        statuses = [ack.status for ack in store.put_many([light("%LMQ%a"), long, light("%LMQ%a")])]
        assert statuses == [PutStatus.PUT_OK, PutStatus.MESSAGE_ILLEGAL, PutStatus.PUT_OK]
        assert store.put(long).status is PutStatus.MESSAGE_ILLEGAL
        assert store.offsets("%LMQ%a", 0) == (0, 2)


@pytest.mark.parametrize(
    "settings", [{}, {"enableMultiDispatch": True}, {"enableLmq": True}], ids=["none", "dispatch", "light"]
)
def test_settings_that_are_off(tmp_path: Path, settings: dict[str, bool]) -> None:
    with open_small(tmp_path / "store", "4.9.8", **settings) as store:
        assert store.put(light("%LMQ%a")).status is PutStatus.PUT_OK
        assert store.queues() == ([("%LMQ%a", 1)] if "enableMultiDispatch" in settings else []) + [("T", 1)]


def test_a_batch_of_a_batch_topic_is_one_record(tmp_path: Path) -> None:
    root = tmp_path / "store"
    for life in range(2):
        with open_small(root, "5.3.3", mapperFileSizeBatchConsumeQueue=92) as store:
            if not life:
                store.topics.set("B", write_queues=1, read_queues=1, attributes=BATCHES)
            base = store.offsets("B", 0)[1]
            acks = store.put_batch(
                [Message("B", b"%d" % one, keys=[f"k{one}"], flag=one) for one in range(5)]
            )
            assert [ack.queue_offset for ack in acks] == list(range(base, base + 5))
            assert {(ack.status, ack.physical_offset) for ack in acks} == {
                (PutStatus.PUT_OK, acks[0].physical_offset)
            }
            single = store.put(Message("B", b"single"))
            assert single.queue_offset == base + 5
            found = store.get("B", 0, base).messages
            assert [one.queue_offset for one in found] == [base, base + 5]
            assert (found[0].properties["INNER_NUM"], found[0].properties["INNER_BASE"]) == ("5", str(base))
            parts = found[0].inner_messages()
            assert found[1].inner_messages() == []
            assert [(one.queue_offset, one.flag, one.body) for one in parts] == [
                (base + one, one, b"%d" % one) for one in range(5)
            ]
            assert [one.properties["UNIQ_KEY"] for one in parts] == [ack.uniq_key for ack in acks]
            inside = [one.message for one in inner_messages(found[0].body, base)]
            assert [(one.body, one.flag) for one in inside] == [(b"%d" % one, one) for one in range(5)]
            assert [decode(one.properties)["UNIQ_KEY"] for one in inside] == [ack.uniq_key for ack in acks]
            assert store.offsets("B", 0) == (0, base + 6)
            store.put_many([Message("Plain", b"")] * 2)
    assert rmq("verify", root).exit_code == 0
    assert {one.name for one in (root / "batchconsumequeue").iterdir()} == {"B"}


def test_types_of_queues_do_not_change(tmp_path: Path) -> None:
    with open_small(tmp_path / "store", "5.3.3") as store:
        store.topics.set("B", attributes=BATCHES)
        for name, attributes in (("B", {}), ("P", {"queue.type": "Other"})):
            with pytest.raises(UsageError, match=r"queue\.type"):
                store.topics.set(name, attributes=attributes)
        store.topics.set("P")
        with pytest.raises(UsageError, match="cannot change"):
            store.topics.set("P", attributes=BATCHES)
    with open_small(tmp_path / "old", "4.9.8") as store, pytest.raises(UsageError, match="not supported"):
        store.topics.set("B", attributes=BATCHES)


def test_topics_of_batch_queues_stay_in_the_table(tmp_path: Path) -> None:
    """A table without them makes 5.x refuse the queues, so that one made later has them, too."""
    root = tmp_path / "store"
    with open_small(root, "5.3.3") as store:
        store.topics.set("B", attributes=BATCHES)
        store.put_batch([Message("B", b"1", queue_id=2)])
    (root / "config" / "topics.json").unlink()
    with open_small(root, "5.3.3") as store:
        store.put(Message("Other", b""))
    with MessageStore.open(root, config=SMALL, release="5.3.3") as store:
        assert store.offsets("B", 2) == (0, 1)


def test_bodies_that_do_not_decompress_or_are_no_batch(tmp_path: Path) -> None:
    compressed, batch = (
        AppendContext(sys_flag=SysFlag.COMPRESSED),
        AppendContext(sys_flag=SysFlag.INNER_BATCH),
    )
    with open_small(tmp_path / "store") as store:
        acks = [
            store.put(Message("T", zlib.compress(b"plain" * 99)), context=compressed),
            store.put(Message("T", b"no stream"), context=compressed),
            store.put(Message("T", b"no batch"), context=batch),
        ]
        good, bad, odd = (store.message_at(ack.physical_offset) for ack in acks)
    assert good is not None
    assert bad is not None
    assert odd is not None
    assert (good.plain_body(), good.inner_messages()) == (b"plain" * 99, [])
    with pytest.raises(UnreadableError, match="commit log: bytes"):
        bad.plain_body()
    with pytest.raises(UnreadableError, match="no inner batch"):
        odd.inner_messages()
