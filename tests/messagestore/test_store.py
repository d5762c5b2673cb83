"""The engine by itself: what is put is got, across rolls, stops, crashes and threads."""

from __future__ import annotations

import itertools
import shutil
import threading
from typing import TYPE_CHECKING

import pytest

from formats.checkpoint import Checkpoint
from formats.commitlog import encode_message
from formats.index import Header
from rmqtool import Message, MessageStore
from rmqtool.broker import start as start_module
from rmqtool.errors import StoreClosedError
from rmqtool.messagestore.messages import AppendContext, PutStatus
from rmqtool.store.layout import Store
from tests.helpers import rmq
from tests.messagestore.helpers import RELEASES, SMALL, bodies, of_queue, open_small, traffic

if TYPE_CHECKING:
    from pathlib import Path


QUEUES = [(f"Topic{topic}", queue_id) for topic in range(2) for queue_id in range(3)]


@pytest.mark.parametrize("release", RELEASES)
def test_what_is_put_is_got_across_rolls_and_stops(tmp_path: Path, release: str) -> None:
    sent: list[Message] = []
    for count in (1, 70, 40):
        with open_small(tmp_path / "store", release) as store:
            more = traffic(len(sent), count)
            acks = [store.put(one) for one in more[: count // 2]] + store.put_many(more[count // 2 :])
            assert {one.status for one in acks} == {PutStatus.PUT_OK}
            sent += more
            for topic, queue_id in QUEUES:
                assert bodies(store, topic, queue_id) == of_queue(sent, topic, queue_id)
    assert not (tmp_path / "store" / "abort").exists()
    result = rmq("verify", tmp_path / "store")
    assert result.exit_code == 0, result.stdout


@pytest.mark.parametrize("release", RELEASES)
def test_the_release_of_an_empty_store_is_known(tmp_path: Path, release: str) -> None:
    with open_small(tmp_path / "store", release):
        pass
    first = Store.open(tmp_path / "store").release
    assert first.known
    assert (first.last == RELEASES[1]) == (release == RELEASES[1])


def test_an_answer_names_the_place(tmp_path: Path) -> None:
    with open_small(tmp_path / "store") as store:
        first = store.put(Message("T", b"one", tags="a"))
        second = store.put(Message("T", b"two", queue_id=first.queue_id, uniq_key="ID"))
        assert (first.queue_offset, second.queue_offset) == (0, 1)
        assert second.uniq_key == "ID"
        assert second.offset_msg_id == f"0A00000100002A9F{second.physical_offset:016X}"
        found = store.message_at(second.physical_offset)
        assert found is not None
        assert (found.body, found.uniq_key, found.queue_offset) == (b"two", "ID", 1)
        assert store.message_at(second.physical_offset + 1) is None
        assert store.message_at(1 << 40) is None


def test_all_fields_come_back(tmp_path: Path) -> None:
    sent = Message(
        "T\N{SNOWMAN}", b"body", tags="red", keys=["a", "b"], flag=-7, properties={"color": "\N{SNOWMAN}"},
        born_timestamp=5, born_host=(bytes(range(16)), 77),
    )  # fmt: skip
    with open_small(tmp_path / "store") as store:
        ack = store.put(sent)
        (found,) = store.get(sent.topic, ack.queue_id, 0).messages
    assert (found.topic, found.body, found.tags, found.keys) == (sent.topic, b"body", "red", ["a", "b"])
    assert (found.flag, found.born_timestamp, found.born_host) == (
        -7,
        5,
        "[1:203:405:607:809:a0b:c0d:e0f]:77",
    )
    assert found.properties["color"] == "\N{SNOWMAN}"
    assert found.store_host == "10.0.0.1:10911"


@pytest.mark.share
@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("torn", [False, True])
def test_after_a_crash_everything_is_there(tmp_path: Path, release: str, torn: bool) -> None:
    root, copy, sent = tmp_path / "store", tmp_path / "copy", traffic(0, 90)
    with open_small(root, release) as store:
        store.put_many(sent)
        store.get("Topic0", 0, 0)
        shutil.copytree(root, copy)  # as the disk is when the process is killed now
    if torn:
        last = max(path for path in (copy / "commitlog").iterdir() if any(path.read_bytes()))
        data = last.read_bytes()
        end = len(data.rstrip(b"\0"))
        last.write_bytes(data[: end - 150] + bytes(len(data) - end + 150))
        sent = sent[:-1]
    assert (copy / "abort").exists()
    for _ in range(2):
        with open_small(copy, release) as store:
            for topic, queue_id in QUEUES:
                assert bodies(store, topic, queue_id) == of_queue(sent, topic, queue_id)
            more = traffic(len(sent), 10)
            store.put_many(more)
            sent = sent + more
    assert rmq("verify", copy).exit_code == 0


def test_the_checkpoint_knows_the_index_files_that_are_full(tmp_path: Path) -> None:
    """A start after a crash deletes those that it does not know (`IndexService#load`)."""
    root, times = tmp_path / "store", itertools.count(1_700_000_000_000)
    with MessageStore.open(root, create=True, config=SMALL, clock=lambda: next(times)) as store:
        for one in traffic(0, 90):
            store.put(one)
    full, _ = sorted((root / "index").iterdir())[-2:]
    known = Checkpoint.parse((root / "checkpoint").read_bytes()).index_msg_timestamp
    assert known == Header.parse(full.read_bytes()[: Header.sizeof()]).end_timestamp


def test_a_closed_store_says_so(tmp_path: Path) -> None:
    store = open_small(tmp_path / "store")
    store.close()
    store.close()
    for call in (
        lambda: store.put(Message("T", b"")),
        lambda: store.get("T", 0, 0),
        store.flush,
        store.queues,
    ):
        with pytest.raises(StoreClosedError):
            call()


def test_threads_share_a_store(tmp_path: Path) -> None:
    with open_small(tmp_path / "store", mappedFileSizeCommitLog=1 << 16) as store:
        store.topics.set("T", write_queues=2)

        def put(number: int) -> None:
            for count in range(50):
                store.put(Message("T", b"%d-%d" % (number, count), queue_id=number % 2))

        threads = [threading.Thread(target=put, args=(number,)) for number in range(8)]
        for one in threads:
            one.start()
        for one in threads:
            one.join()
        found = [body for queue in range(2) for body in bodies(store, "T", queue)]
    assert len(found) == len(set(found)) == 400
    for number in range(8):
        own = [body for body in found if body.startswith(b"%d-" % number)]
        assert own == [b"%d-%d" % (number, count) for count in range(50)]


def test_records_are_replayed_as_they_were_stored(tmp_path: Path) -> None:
    context = AppendContext(
        store_timestamp=1_700_000_000_123, store_host=(bytes(16), 1), reconsume_times=3,
        prepared_transaction_offset=-5, sys_flag=2, properties=b"KEYS\x01k\x02",
    )  # fmt: skip
    message = Message("T", b"body", queue_id=9, flag=4, born_timestamp=7, born_host=(bytes([1, 2, 3, 4]), 5))
    with open_small(tmp_path / "store") as store:
        ack = store.put(message, context=context)
        found = store.message_at(ack.physical_offset)
    assert found is not None
    assert found.raw == encode_message(
        "T", b"body", b"KEYS\x01k\x02", queue_id=9, flag=4, sys_flag=2, born_timestamp=7,
        born_host=(bytes([1, 2, 3, 4]), 5), store_timestamp=1_700_000_000_123, store_host=(bytes(16), 1),
        reconsume_times=3, prepared_transaction_offset=-5,
    )  # fmt: skip


@pytest.mark.parametrize(("stopped", "times"), [("in order", 1), ("killed", 2)])
def test_the_log_of_a_store_that_was_stopped_in_order_is_read_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stopped: str, times: int
) -> None:
    with open_small(tmp_path / "store") as store:
        store.put_many(traffic(0, 90))
    if stopped == "killed":
        (tmp_path / "store" / "abort").touch()
    read = []
    whole = start_module.recover_log
    monkeypatch.setattr(start_module, "recover_log", lambda *given: read.append(1) or whole(*given))
    with open_small(tmp_path / "store") as store:
        assert len(read) == times
        assert store.put(Message("Topic0", b"further", queue_id=0)).status is PutStatus.PUT_OK
        assert bodies(store, "Topic0", 0)[-1] == b"further"
    assert rmq("verify", tmp_path / "store").exit_code == 0
