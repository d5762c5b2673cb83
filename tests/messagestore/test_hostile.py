"""Stores that somebody has prepared for who opens them for writing: nothing is written outside of them."""

from __future__ import annotations

import os
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from fixtures.builder import HandmadeLog
from rmqtool import Message
from rmqtool.errors import RmqtoolError, StoreIOError, UnfitStoreError, UsageError
from rmqtool.messagestore.messages import PutStatus
from rmqtool.store.layout import Store
from rmqtool.store.writing import Folder, create, open_directory
from tests.fuzz.commands import tree
from tests.helpers import rmq
from tests.messagestore.helpers import RELEASES, open_small, traffic

if TYPE_CHECKING:
    from pathlib import Path

ODD_TOPICS = ["../../../evil", "..", ".", "/abs", "a/b", "T/../../../evil", "a\0b", "n" * 256]


@pytest.mark.share
@pytest.mark.parametrize("topic", ODD_TOPICS)
def test_a_topic_that_leads_elsewhere_in_the_log(tmp_path: Path, topic: str) -> None:
    root = tmp_path / "some" / "store"
    log = HandmadeLog(segment_size=4096)
    log.put("T", b"x")
    log.put(topic, b"y")
    log.write(root / "commitlog")
    (root / "abort").touch()
    with pytest.raises(UnfitStoreError, match="no directory of the store can have this name"):
        open_small(root)
    made = {str(one.relative_to(tmp_path)) for one in tmp_path.rglob("*") if one.is_file()}
    assert made <= {
        f"some/store/{one}"
        for one in ("abort", f"commitlog/{0:020d}", f"consumequeue/T/0/{0:020d}")
    }  # fmt: skip
    done = rmq("store", "put", root, "T", "--body", "x")
    assert (done.exit_code, done.stderr.count("\n")) == (1, 1)
    done = rmq("recover", root, "--policy", "broker")
    assert done.exit_code == 2 if ".." in topic else done.exit_code in {0, 1}, done.stderr


@pytest.mark.parametrize("topic", ODD_TOPICS)
def test_a_topic_that_leads_elsewhere_in_a_message(tmp_path: Path, topic: str) -> None:
    with open_small(tmp_path / "some" / "store", enableLmq=True, enableMultiDispatch=True) as store:
        assert store.put(Message(topic, b"x", queue_id=0)).status is PutStatus.MESSAGE_ILLEGAL
        further = {"INNER_MULTI_DISPATCH": f"%LMQ%/{topic}"}
        assert store.put(Message("T", b"x", properties=further)).status is PutStatus.MESSAGE_ILLEGAL
        with pytest.raises(UsageError):
            store.topics.set(topic)
    assert [one.name for one in tmp_path.iterdir()] == ["some"]
    assert [one.name for one in (tmp_path / "some").iterdir()] == ["store"]


def test_a_further_queue_that_leads_elsewhere(tmp_path: Path) -> None:
    root = tmp_path / "some" / "store"
    log = HandmadeLog(segment_size=4096)
    further = {"INNER_MULTI_DISPATCH": "%LMQ%/../../../../evil", "INNER_MULTI_QUEUE_OFFSET": "0"}
    log.put("T", b"x", further)
    log.write(root / "commitlog")
    (root / "abort").touch()
    with pytest.raises(UnfitStoreError, match="no directory of the store can have this name"):
        open_small(root, "4.9.8", enableLmq=True, enableMultiDispatch=True)
    assert {one.name for one in tmp_path.iterdir()} == {"some"}


@pytest.mark.parametrize("step", ["log_files.data_behind", "expiry.Expiry.follow", "expiry.Expiry.begin"])
def test_nothing_goes_on_behind_an_open_that_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    """A thread would write by the numbers of descriptors that are others' by then."""
    with open_small(tmp_path / "store") as store:
        store.put_many(traffic(0, 20))
    (tmp_path / "store" / "abort").touch()
    before = threading.enumerate()

    def fail(*_: object, **__: object) -> None:
        raise StoreIOError("no")

    monkeypatch.setattr(f"rmqtool.messagestore.{step}", fail)
    with pytest.raises(StoreIOError, match="no"):
        open_small(tmp_path / "store")
    assert set(threading.enumerate()) <= set(before)


def test_a_directory_that_was_let_go_of_leads_nowhere(tmp_path: Path) -> None:
    with Folder.open(str(tmp_path)) as folder:
        pass
    with Folder.open(str(tmp_path)), pytest.raises(OSError, match="Errno 9"):
        create(folder.at("x"))


@pytest.mark.parametrize("place", ["config/topics.json", "config/topics.json.bak"])
def test_no_topics_are_read_through_a_link(tmp_path: Path, place: str) -> None:
    root, secret = tmp_path / "store", tmp_path / "secret"
    with open_small(root) as store:
        store.topics.set("Theirs")
    (root / "config/topics.json").rename(secret)
    (root / place).symlink_to(secret)
    done = rmq("store", "topic", root, "T", "--perm", "6")
    assert (done.exit_code, done.stderr.startswith(f"rmqtool: {place} is a link")) == (2, True)
    assert set(os.listdir(root / "config")) == {"consumerOffset.json", os.path.basename(place)}


@pytest.mark.parametrize(
    "place", ["config", "config/topics.json", "commitlog", f"commitlog/{0:020d}", "consumequeue/T/0", "index"]
)
def test_what_becomes_a_link_while_a_store_is_opened_is_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    root, there = tmp_path / "store", tmp_path / "there"
    with open_small(there) as store:
        store.put_many([Message("Secret", b"x", queue_id=0, keys=["k"])] * 30)
    with open_small(root) as store:
        store.put_many([Message("T", b"x", queue_id=0, keys=["k"])] * 30)
    (there / "consumequeue" / "Secret").rename(there / "consumequeue" / "T")
    (root / "abort").touch()
    listed = Store.open

    def swapped(*words: Any, **more: Any) -> Store:
        found = listed(*words, **more)
        (root / place).rename(root / "gone")
        (root / place).symlink_to(there / place)
        return found

    monkeypatch.setattr(Store, "open", swapped)
    before = tree(there)
    with suppress(RmqtoolError), open_small(root) as store:
        store.topics.set("X")
    assert tree(there) == before
    inside = [one for one in root.rglob("*") if not one.is_symlink() and there not in one.resolve().parents]
    assert not [
        one for one in inside if "Secret" in one.name or (one.is_file() and b"Secret" in one.read_bytes())
    ]


@pytest.mark.parametrize("way", ["../evil", "a/../../evil", "a/..", "a\0b"])
def test_no_name_leads_out_of_a_held_directory(tmp_path: Path, way: str) -> None:
    (tmp_path / "in" / "a").mkdir(parents=True)
    with Folder.open(str(tmp_path / "in")) as folder:
        for step in (create, open_directory):
            with pytest.raises(OSError, match="Errno 22"):
                step(folder.at(way))
    assert [str(one.relative_to(tmp_path)) for one in tmp_path.rglob("*")] == ["in", "in/a"]


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("value", ["abc", "", " 3", "3.5", "2147483648"])
def test_a_delay_that_is_no_number_does_not_make_a_store_unreadable(
    tmp_path: Path, release: str, value: str
) -> None:
    """Brokers take a record with it for broken, and at the next start drop it and all that follows."""
    topic, properties = "SCHEDULE_TOPIC_XXXX", {"DELAY": value}
    delayed = Message(topic, b"", queue_id=0, properties=properties)
    columns = {"topic": pa.string(), "body": pa.binary(), "properties": pa.map_(pa.string(), pa.string())}
    row = {"topic": topic, "body": b"", "properties": list(properties.items())}
    with open_small(tmp_path, release) as store:
        acks = [store.put(delayed), *store.put_many([delayed] * 2), *store.put_batch([delayed] * 2)]
        acks += store.put_many([delayed] * 20)
        assert {ack.status for ack in acks} <= {PutStatus.MESSAGE_ILLEGAL, PutStatus.PUT_OK}
        if value:  # of an empty one nothing is stored in a table
            assert {ack.status for ack in acks} == {PutStatus.MESSAGE_ILLEGAL}
            answer = store.put_many(pa.Table.from_pylist([row], pa.schema(columns)))
            assert answer["status"].to_pylist() == ["MESSAGE_ILLEGAL"]
        good = Message(topic, b"", queue_id=0, properties={"DELAY": "3"})
        assert store.put(good).status is PutStatus.PUT_OK
    with open_small(tmp_path, release) as store:  # nothing is lost
        assert store.put(Message("T", b"")).status is PutStatus.PUT_OK
