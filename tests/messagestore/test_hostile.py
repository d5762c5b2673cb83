"""Stores that somebody has prepared for who opens them for writing: nothing is written outside of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from fixtures.builder import HandmadeLog
from rmqtool import Message
from rmqtool.errors import UnfitStoreError, UsageError
from rmqtool.messagestore.messages import PutStatus
from rmqtool.store.writing import Folder, create, open_directory
from tests.helpers import rmq
from tests.messagestore.helpers import open_small

if TYPE_CHECKING:
    from pathlib import Path

ODD_TOPICS = ["../../../evil", "..", ".", "/abs", "a/b", "T/../../../evil", "a\0b", "n" * 256]


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


@pytest.mark.parametrize("way", ["../evil", "a/../../evil", "a/..", "a\0b"])
def test_no_name_leads_out_of_a_held_directory(tmp_path: Path, way: str) -> None:
    (tmp_path / "in" / "a").mkdir(parents=True)
    with Folder.open(str(tmp_path / "in")) as folder:
        for step in (create, open_directory):
            with pytest.raises(OSError, match="Errno 22"):
                step(folder.at(way))
    assert [str(one.relative_to(tmp_path)) for one in tmp_path.rglob("*")] == ["in", "in/a"]
