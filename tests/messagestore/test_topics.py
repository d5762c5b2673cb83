"""Topics of an open store: which are made, which are refused, and who may change them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rmqtool import Message
from rmqtool.errors import ExitCode, StoreClosedError, UsageError
from rmqtool.messagestore.messages import PutStatus
from tests.helpers import rmq
from tests.messagestore.helpers import RELEASES, open_small

if TYPE_CHECKING:
    from pathlib import Path


def test_queues_are_taken_in_turn_and_topics_made(tmp_path: Path) -> None:
    with open_small(tmp_path / "store") as store:
        acks = [store.put(Message("New", b"x")) for _ in range(5)]
        assert [one.queue_id for one in acks] == [0, 1, 2, 3, 0]
        store.topics.set("Two", write_queues=2)
        assert [store.put(Message("Two", b"x")).queue_id for _ in range(3)] == [0, 1, 0]
        store.topics.set("Closed", perm=4)
        refused = store.put(Message("Closed", b"x"))
        assert (refused.status, refused.physical_offset) == (PutStatus.MESSAGE_ILLEGAL, -1)
    with open_small(tmp_path / "store", autoCreateTopicEnable=False) as store:
        assert {one.name: one.write_queue_nums for one in store.topics} == {"New": 4, "Two": 2, "Closed": 4}
        assert store.put(Message("Other", b"x")).status is PutStatus.MESSAGE_ILLEGAL
        assert store.put(Message("Two", b"x", queue_id=2)).status is PutStatus.MESSAGE_ILLEGAL


def test_a_closed_store_changes_no_topics(tmp_path: Path) -> None:
    """Its descriptors may be those of another one by then."""
    closed = open_small(tmp_path / "closed")
    closed.topics.set("Closed")
    closed.close()
    with open_small(tmp_path / "other") as other:
        other.topics.set("Other")
        for change in (lambda: closed.topics.set("New"), lambda: closed.topics.delete("Closed")):
            with pytest.raises(StoreClosedError):
                change()
    assert b"Closed" not in (tmp_path / "other/config/topics.json").read_bytes()
    with pytest.raises(StoreClosedError), closed:
        pass


def test_more_queues_than_a_broker_can_count_are_refused(tmp_path: Path) -> None:
    with open_small(tmp_path / "store") as store, pytest.raises(UsageError, match="2147483647 queues"):
        store.topics.set("T", read_queues=1 << 31)


@pytest.mark.parametrize("release", RELEASES)
def test_a_topic_that_no_message_can_go_to_is_not_made(tmp_path: Path, release: str) -> None:
    with open_small(tmp_path / "store", release) as store:
        assert store.topics.set("t" * 127).name == "t" * 127
        for length in (128, 200):
            with pytest.raises(UsageError, match=f"the topic has {length} characters"):
                store.topics.set("t" * length)
        assert store.topics.set("%RETRY%" + "g" * 121)  # brokers make it without a look
        assert store.topics.set("t" * 127, perm=4).perm == 4


def test_read_queues_that_nobody_consumed_do_not_go(tmp_path: Path) -> None:
    with open_small(tmp_path / "store") as store:
        store.topics.set("T", read_queues=4, write_queues=4)
        store.put(Message("T", b"1", queue_id=3))
        assert store.topics.set("T", read_queues=4, write_queues=2).read_queue_nums == 4
        with pytest.raises(UsageError, match=r"queue 3 of topic T: not all messages were consumed"):
            store.topics.set("T", read_queues=3)
        assert store.topics.set("T", read_queues=3, force=True).read_queue_nums == 3
        assert store.topics.set("T", read_queues=2).read_queue_nums == 2


def test_what_brokers_pass_over_among_topics_is_left(tmp_path: Path) -> None:
    root = tmp_path / "store"
    with open_small(root) as store:
        store.put(Message("T", b"1", queue_id=0))
    (root / "consumequeue/.DS_Store").write_text("x")
    assert rmq("store", "put", root, "T", "--body", "2").exit_code == ExitCode.OK


def test_what_a_put_of_a_table_left_when_it_was_cut_off_goes(tmp_path: Path) -> None:
    root = tmp_path / "store"
    with open_small(root) as store:
        store.topics.set("One")
        (root / "config" / ".topics.json.tmp").write_text("{half")
        store.topics.set("Two")
    there = sorted(one.name for one in (root / "config").iterdir())
    assert there == ["consumerOffset.json", "topics.json", "topics.json.bak"]
