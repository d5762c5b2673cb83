"""The engine by itself: what is put is got, across rolls, stops, crashes and threads."""

from __future__ import annotations

import errno
import itertools
import math
import multiprocessing
import os
import shutil
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pytest

from formats.checkpoint import Checkpoint
from formats.commitlog import encode_message
from formats.index import Header
from rmqtool import Message, MessageStore
from rmqtool.broker import start as start_module
from rmqtool.broker.get_message import GetMessageStatus
from rmqtool.broker.mapped_files import MappedFiles
from rmqtool.errors import (
    ExitCode,
    LockedError,
    NewerFormatError,
    NotAStoreError,
    RecoveryLossError,
    StoreClosedError,
    StoreIOError,
    UnfitStoreError,
    UsageError,
)
from rmqtool.messagestore.dispatching import Dispatching
from rmqtool.messagestore.log_files import LogFiles
from rmqtool.messagestore.log_places import open_places
from rmqtool.messagestore.messages import AppendContext, PutStatus
from rmqtool.store import lock
from rmqtool.store.config import config_of
from rmqtool.store.layout import Store
from tests.disks import refuse, replace
from tests.fuzz.commands import tree
from tests.helpers import rmq
from tests.messagestore.helpers import RELEASES, SMALL, bodies, of_queue, open_small, traffic

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from fixtures import Golden

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


@pytest.mark.parametrize(
    ("release", "message", "status"),
    [
        ("5.3.3", Message("", b""), PutStatus.MESSAGE_ILLEGAL),
        ("5.3.3", Message("T" * 128, b""), PutStatus.MESSAGE_ILLEGAL),
        ("5.3.3", Message("%RETRY%" + "T" * 120, b""), PutStatus.PUT_OK),
        ("5.3.3", Message("%RETRY%" + "T" * 249, b""), PutStatus.MESSAGE_ILLEGAL),
        ("4.9.8", Message("%RETRY%" + "T" * 121, b""), PutStatus.MESSAGE_ILLEGAL),
        ("5.3.3", Message("T", bytes(101)), PutStatus.MESSAGE_ILLEGAL),
        ("5.3.3", Message("T", bytes(100)), PutStatus.PUT_OK),
        ("5.3.3", Message("T", b"", properties={"a": "v" * 40_000}), PutStatus.PROPERTIES_SIZE_EXCEEDED),
        ("4.9.8", Message("T", b"", properties={"a": "v" * 40_000}), PutStatus.MESSAGE_ILLEGAL),
        ("4.9.8", Message("T", b"", properties={"a": "é" * 20_000}), PutStatus.PROPERTIES_SIZE_EXCEEDED),
        ("5.3.3", Message("T", b"", properties={"KEYS": "v"}), PutStatus.MESSAGE_ILLEGAL),
        ("5.3.3", Message("T", b"", tags="a\x02b"), PutStatus.MESSAGE_ILLEGAL),
        ("5.3.3", Message("T", None), PutStatus.MESSAGE_ILLEGAL),  # type: ignore[arg-type]
        ("5.3.3", Message("T", bytearray(b"x")), PutStatus.PUT_OK),
        ("5.3.3", Message("T", b"", flag=1 << 31), PutStatus.MESSAGE_ILLEGAL),
        ("5.3.3", Message("T", b"", properties={"a": "v" * 4000}), PutStatus.MESSAGE_ILLEGAL),
    ],
)  # fmt: skip
def test_messages_that_no_store_takes(
    tmp_path: Path, release: str, message: Message, status: PutStatus
) -> None:
    with open_small(tmp_path / "store", release, maxMessageSize=100) as store:
        ack = store.put(message)
        assert ack.status is status
        assert [one.status for one in store.put_many([message, Message("U", b"")])] == [
            status,
            PutStatus.PUT_OK,
        ]
        assert bool(ack.message) is (status is not PutStatus.PUT_OK)


def test_statuses_of_a_get(tmp_path: Path) -> None:
    with open_small(tmp_path / "store") as store:
        assert store.get("T", 0, 0).status is GetMessageStatus.NO_MESSAGE_IN_QUEUE
        store.put_many(
            [Message("T", b"%d" % number, queue_id=0, tags=f"t{number % 2}") for number in range(40)]
        )
        assert store.get("T", 0, 40).status is GetMessageStatus.OFFSET_OVERFLOW_ONE
        assert store.get("T", 0, 41).status is GetMessageStatus.OFFSET_OVERFLOW_BADLY
        found = store.get("T", 0, 3, 5)
        assert [one.body for one in found.messages] == [b"3", b"4", b"5", b"6", b"7"]
        assert (found.next_begin_offset, found.min_offset, found.max_offset) == (8, 0, 40)
        assert [one.body for one in store.get("T", 0, 0, 3, tags="t1 || t5").messages] == [b"1", b"3", b"5"]
        assert store.get("T", 0, 0, tags="none").status is GetMessageStatus.NO_MATCHED_MESSAGE


def test_a_get_looks_behind_as_many_units_as_it_may_answer(tmp_path: Path) -> None:
    with open_small(tmp_path / "store") as store:
        for number in range(12):
            store.put(Message("Topic0", b"%d" % number, queue_id=0, tags="late" if number > 8 else "early"))
        found = store.get("Topic0", 0, 0, 2, tags="late")
        assert [one.body for one in found.messages] == [b"9", b"10"]
        assert found.next_begin_offset == 11
        records = store.get_raw("Topic0", 0, 10, 5).records
        assert [bytes(one) for one in records] == [one.raw for one in store.get("Topic0", 0, 10).messages]
        assert len(records) == 2


def test_tags_of_one_hash_are_told_apart(tmp_path: Path) -> None:
    with open_small(tmp_path / "store") as store:
        store.put_many([Message("T", tag.encode(), queue_id=0, tags=tag) for tag in ("Aa", "BB", "Aa")])
        assert [one.body for one in store.get("T", 0, 0, tags="BB").messages] == [b"BB"]
        assert len(store.get("T", 0, 0, tags="BB", exact=False).messages) == 3


def test_a_filter_by_properties(tmp_path: Path) -> None:
    with open_small(tmp_path / "store") as store:
        store.put_many(
            [Message("T", b"%d" % age, queue_id=0, properties={"age": str(age)}) for age in range(20)]
        )
        assert [one.body for one in store.get("T", 0, 0, sql92="age >= 17").messages] == [b"17", b"18", b"19"]
        with pytest.raises(UsageError):
            store.get("T", 0, 0, sql92="age >=")


@pytest.mark.parametrize("release", RELEASES)
def test_offsets_by_time(tmp_path: Path, release: str) -> None:
    with open_small(tmp_path / "store", release) as store:
        for number in range(60):
            context = AppendContext(store_timestamp=1_700_000_000_000 + number // 2 * 10)
            store.put(Message("T", b"x" * 50, queue_id=0), context=context)
        assert store.offset_by_time("T", 0, 1_700_000_000_000 + 100) in {19, 20}  # 4.x: by file times
        assert store.offset_by_time("T", 0, 0) == 0
        assert store.offset_by_time("None", 0, 0) == 0
        if release == "5.3.3":
            assert store.offset_by_time("T", 0, 1_700_000_000_000 + 95) == 20
            assert store.offset_by_time("T", 0, 1_700_000_000_000 + 105, "upper") == 21
        with pytest.raises(UsageError):
            store.offset_by_time("T", 0, 0, "middle")


def test_records_are_served_without_a_copy(tmp_path: Path) -> None:
    with open_small(tmp_path / "store") as store:
        store.put_many(traffic(0, 12))
        raw = store.get_raw("Topic0", 0, 0)
        assert [one.raw for one in store.get("Topic0", 0, 0).messages] == [bytes(one) for one in raw.records]
        assert all(one.readonly for one in raw.records)
    assert raw.records[0][4:8].hex() == "daa320a7"


def test_a_queue_as_a_table(tmp_path: Path) -> None:
    sent = traffic(0, 200)
    with open_small(tmp_path / "store") as store:
        store.put_many(sent)
        table = store.get_table("Topic1", 2, columns=["topic", "queue_id", "queue_offset", "tags", "body"])
        wanted = of_queue(sent, "Topic1", 2)
        assert [body or b"" for body in table["body"].to_pylist()] == wanted
        assert table["queue_offset"].to_pylist() == list(range(len(wanted)))
        assert set(table["topic"].to_pylist()) == {"Topic1"}
        part = store.get_table("Topic1", 2, 7, 5, columns=["queue_offset"])
        assert part["queue_offset"].to_pylist() == list(range(7, 12))
        assert store.get_table("Nothing", 0).num_rows == 0
        with pytest.raises(UsageError, match="no column bodies"):
            store.get_table("Nothing", 0, columns=["bodies"])


@pytest.mark.parametrize("in_memory", [False, True])
def test_a_table_has_few_batches_however_far_its_records_lie_apart(tmp_path: Path, in_memory: bool) -> None:
    queues, each = 40, 50
    files = {"mappedFileSizeCommitLog": 8 << 20, "mappedFileSizeConsumeQueue": 20 * each}
    with open_small(tmp_path / "store", **files) as store:
        store.topics.set("T", read_queues=queues, write_queues=queues, memory=in_memory)
        every = [
            Message("T", b"%d" % number * 300, queue_id=number % queues) for number in range(queues * each)
        ]
        store.put_many(every)
        for number in (0, 17):
            table = store.get_table("T", number)
            assert table["body"].to_pylist() == [one.body for one in every[number::queues]]
            assert table["queue_offset"].to_pylist() == list(range(each))
            assert in_memory or table["body"].num_chunks == 1


def test_a_table_of_entries_that_repeat_a_large_record_is_made_in_parts(tmp_path: Path) -> None:
    """Entries of no size: no number in the data bounds what lies in memory for one batch."""
    with open_small(tmp_path / "store", mappedFileSizeCommitLog=8 << 20) as store:
        store.put(Message("T", os.urandom(3 << 20), queue_id=0))
        store.put(Message("T", b"x", queue_id=0))
    (path,) = (tmp_path / "store/consumequeue/T/0").iterdir()
    entry = bytes(8) + (1).to_bytes(4, "big") + path.read_bytes()[12:20]
    with path.open("r+b") as file:
        file.write(entry * 14)
    with open_small(tmp_path / "store", mappedFileSizeCommitLog=8 << 20) as store:
        table = store.get_table("T", 0)
    assert table.num_rows >= 10
    assert max(chunk.nbytes for chunk in table["body"].chunks) <= 16 << 20


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


def test_a_store_is_not_opened_at_the_price_of_intact_records(tmp_path: Path) -> None:
    root = tmp_path / "store"
    with open_small(root) as store:
        acks = store.put_many(traffic(0, 90))
        last = acks[-1].physical_offset // 4096 * 4096
        hurt = next(one for one in acks if one.physical_offset >= last)
        store.flush()
    (root / "abort").touch()
    path = root / "commitlog" / f"{last:020d}"
    data = bytearray(path.read_bytes())
    data[hurt.physical_offset - last + 90] ^= 1
    path.write_bytes(data)
    before = {one: one.read_bytes() for one in sorted(root.rglob("*")) if one.is_file()}
    with pytest.raises(RecoveryLossError) as caught:
        open_small(root)
    kept = sum(one.physical_offset < hurt.physical_offset for one in acks)
    assert caught.value.messages == len(acks) - kept - 1
    assert "rmqtool recover" in str(caught.value)
    assert caught.value.exit_code is ExitCode.DAMAGE
    assert {one: one.read_bytes() for one in before} == before
    with MessageStore.open(root, config=SMALL, recovery="broker") as store:
        assert sum(store.offsets(*queue)[1] for queue in store.queues()) == kept


def test_what_cannot_be_opened(tmp_path: Path) -> None:
    with pytest.raises(NotAStoreError):
        MessageStore.open(tmp_path / "none")
    (tmp_path / "file").touch()
    with pytest.raises(UsageError):
        MessageStore.open(tmp_path / "file", create=True)
    with open_small(tmp_path / "store") as store:
        store.put(Message("T", b"x"))
    (tmp_path / "store" / "commitlog" / "00000000000000004096").write_bytes(b"short")
    with pytest.raises(UnfitStoreError):
        MessageStore.open(tmp_path / "store", config=SMALL)


@pytest.mark.parametrize("beside", [1, 40])
@pytest.mark.parametrize(
    "odd",
    [
        Message(None, b""),  # type: ignore[arg-type]
        Message(b"T", b""),  # type: ignore[arg-type]
        Message("T", "text"),  # type: ignore[arg-type]
        Message("T", b"", queue_id="0"),  # type: ignore[arg-type]
        Message("T", b"", queue_id=-1),
        Message("T", b"", keys=[5]),  # type: ignore[list-item]
        Message("T", b"", properties=5),  # type: ignore[arg-type]
        Message("T", b"", flag="0"),  # type: ignore[arg-type]
        Message("T", b"", born_timestamp=1 << 63),
        Message("T", b"", born_timestamp="now"),  # type: ignore[arg-type]
        Message("T", b"", born_host="10.0.0.1:1"),  # type: ignore[arg-type]
        Message("T", b"", born_host=(bytes(5), 1)),
        Message("T", b"", born_host=(bytes(4), 1 << 16)),
    ],
)
def test_an_odd_message_is_illegal_and_those_beside_it_are_put(
    tmp_path: Path, odd: Message, beside: int
) -> None:
    """It was an exception, was stored in another way, or took the others with it."""
    with open_small(tmp_path / "store") as store:
        store.topics.set("T")
        assert store.put(odd).status is PutStatus.MESSAGE_ILLEGAL
        assert store.put_async(odd).result(10).status is PutStatus.MESSAGE_ILLEGAL
        assert store.put_batch([odd])[0].status is PutStatus.MESSAGE_ILLEGAL
        others = [Message("T", b"", queue_id=0)] * beside
        statuses = [ack.status for ack in store.put_many([*others, odd, *others])]
        assert statuses.pop(beside) is PutStatus.MESSAGE_ILLEGAL
        assert set(statuses) == {PutStatus.PUT_OK}
        assert store.offsets("T", 0) == (0, 2 * beside)


def test_numbers_of_numpy_are_numbers(tmp_path: Path) -> None:
    seven = np.int64(7)
    message = Message("T", b"", queue_id=np.int64(1), born_timestamp=seven, flag=seven)  # type: ignore[arg-type]
    with open_small(tmp_path / "store") as store:
        acks = [store.put(message), store.put_async(message).result(10), *store.put_many([message] * 40)]
        assert {ack.status for ack in acks} == {PutStatus.PUT_OK}
        assert store.offsets("T", 1) == (0, 42)


def test_a_born_time_before_1970_stays(tmp_path: Path) -> None:
    with open_small(tmp_path / "store") as store:
        acks = store.put_many([Message("T", b"", queue_id=0, born_timestamp=-5)] * 40)
        assert {store.message_at(ack.physical_offset).born_timestamp for ack in acks} == {-5}


def test_a_queue_below_0_in_a_table_is_illegal(tmp_path: Path) -> None:
    table = pa.table({"topic": ["T", "T", "T"], "body": [b""] * 3, "queue_id": [0, -1, None]})
    with open_small(tmp_path / "store") as store:
        answer = store.put_many(table)
    assert answer["status"].to_pylist() == ["PUT_OK", "MESSAGE_ILLEGAL", "PUT_OK"]
    assert answer["queue_id"][1].as_py() == -1


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"storeType": "defaultRocksDB"}, "storeType"),
        ({"enableDLegerCommitLog": True}, "enableDLegerCommitLog"),
        ({"mappedFileSizeCommitLog": 1 << 31}, "mappedFileSizeCommitLog"),
        ({"flushDiskType": "NEVER"}, "flushDiskType"),
        ({"mappedFileSizeComitLog": 4096}, "mappedFileSizeCommitLog is"),
        ({"mappedfilesizecommitlog": 4096}, "mappedFileSizeCommitLog is"),
        ({"FLUSHDISKTYPE": "SYNC_FLUSH"}, "flushDiskType is"),
        ({"messageDelayLevel": "1x"}, "messageDelayLevel"),
        ({"brokerRole": "LEADER"}, "brokerRole"),
        ({"brokerIP1": "no..where"}, "brokerIP1=no..where: no address and no known host"),
    ],
)
def test_settings_that_are_refused(tmp_path: Path, settings: dict[str, object], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        MessageStore.open(tmp_path / "store", create=True, config=settings)
    assert not (tmp_path / "store").exists()


@pytest.mark.parametrize("create", [False, True])
@pytest.mark.parametrize("name", ["b533-dledger", "b497-dledger", "b533-rocksdb", "b533-rocksdb-double"])
def test_a_store_in_files_that_are_not_written_here_is_refused(
    fresh_golden: Callable[[str], Golden], name: str, create: bool
) -> None:
    """DLedger's got an empty log beside its own, and its queues were emptied to fit that one."""
    root = fresh_golden(name).path
    before = tree(root)
    with pytest.raises(NewerFormatError, match=r"DLedger|RocksDB"):
        MessageStore.open(root, create=create)
    assert tree(root) == before
    assert rmq("store", "put", root, "T", "--body", "x").exit_code == ExitCode.NEWER_FORMAT


def test_queues_without_their_log_are_not_emptied(tmp_path: Path) -> None:
    root = tmp_path / "store"
    with open_small(root) as store:
        store.put(Message("T", b"x"))
    (root / "commitlog").rename(tmp_path / "away")
    before = tree(root)
    with pytest.raises(NotAStoreError, match="has queues, but no commit log"):
        open_small(root)
    assert tree(root) == before


def test_a_broker_conf_and_unknown_settings(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    conf = tmp_path / "broker.conf"
    conf.write_text("brokerName=a\nmappedFileSizeCommitLog=4096\nsomethingOfOurOwn=1\nmaxMsgsNumBatch=64\n")
    with MessageStore.open(tmp_path / "store", create=True, config=conf) as store:
        store.put(Message("T", b"x"))
    assert (tmp_path / "store" / "commitlog" / ("0" * 20)).stat().st_size == 4096
    assert "somethingOfOurOwn" in caplog.text
    assert "maxMsgsNumBatch has no effect" in caplog.text
    assert "brokerName" not in caplog.text


def test_the_lock_is_held_whatever_this_process_does(tmp_path: Path) -> None:
    root = tmp_path / "store"
    with open_small(root) as store:
        store.put(Message("T", b"x"))
        with pytest.raises(LockedError):
            open_small(root)
        assert rmq("info", root).exit_code == 0
        rmq("doctor", root)
        child = multiprocessing.get_context("fork").Process(target=_closed_here, args=(store, root))
        child.start()
        child.join()
        assert child.exitcode == 0
        assert _held_for_others(root)
        assert store.put(Message("T", b"y")).status is PutStatus.PUT_OK
    assert (root / "lock").read_bytes() == b"lock"
    assert not _held_for_others(root)


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


def test_close_ends_the_readers_that_wait(tmp_path: Path) -> None:
    store = open_small(tmp_path / "store")
    with ThreadPoolExecutor() as pool:
        waiting = pool.submit(lambda: store.get("T", 0, 0, wait=60))
        time.sleep(0.1)
        began = time.monotonic()
        store.close()
        with pytest.raises(StoreClosedError):
            waiting.result(60)
        assert time.monotonic() - began < 10


@pytest.mark.parametrize("wait", [math.nan, -1.0, 0.0])
def test_a_wait_of_no_time_ends_at_once(tmp_path: Path, wait: float) -> None:
    with open_small(tmp_path / "store") as store:
        reader = threading.Thread(target=lambda: store.get("T", 0, 0, wait=wait), daemon=True)
        reader.start()
        reader.join(10)
        assert not reader.is_alive()


def test_an_endless_wait_ends_with_a_message(tmp_path: Path) -> None:
    with open_small(tmp_path / "store") as store, ThreadPoolExecutor() as pool:
        waiting = pool.submit(lambda: store.get("T", 0, 0, wait=math.inf))
        store.put(Message("T", b"x", queue_id=0))
        assert [one.body for one in waiting.result(10).messages] == [b"x"]


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


def _closed_here(store: MessageStore, root: Path) -> None:
    """In a child: the store is closed to it, and the lock is its parent's."""
    with pytest.raises(StoreClosedError):
        store.put(Message("T", b"z"))
    with pytest.raises(StoreClosedError):
        store.topics.set("Child")
    assert b"Child" not in (root / "config/topics.json").read_bytes()
    store.close()
    assert lock.probe(root).held
    os._exit(0)


def _held_for_others(root: Path) -> bool:
    context = multiprocessing.get_context("spawn")
    with context.Pool(1) as pool:
        return bool(pool.apply(lock.probe, (root,)).held)


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


def test_a_get_waits_for_the_next_message(tmp_path: Path) -> None:
    with open_small(tmp_path / "store") as store:
        begin = time.monotonic()
        assert store.get("T", 0, 0, wait=0.2).messages == []
        assert time.monotonic() - begin >= 0.2
        later = threading.Timer(0.2, store.put, [Message("T", b"late", queue_id=0)])
        later.start()
        assert [one.body for one in store.get("T", 0, 0, wait=30).messages] == [b"late"]
        assert time.monotonic() - begin < 20


def test_who_waits_does_not_wait_for_the_pause_of_dispatching(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Dispatching, "pauses", (600.0, 600.0))
    with open_small(tmp_path / "store") as store:
        store.put(Message("T", b"first", queue_id=0))
        while store.dispatch_behind:
            time.sleep(0.001)
        later = threading.Timer(0.05, store.put, [Message("T", b"late", queue_id=0)])
        later.start()
        assert [one.body for one in store.get("T", 0, 1, wait=60).messages] == [b"late"]
        later.join()


@pytest.mark.parametrize("release", RELEASES)
def test_sync_flush_acknowledges_what_is_on_the_medium(
    tmp_path: Path, release: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[int] = []
    whole = os.fdatasync

    def fdatasync(descriptor: int) -> None:
        whole(descriptor)
        synced.append(descriptor)

    replace(monkeypatch, "fdatasync", fdatasync)
    with open_small(tmp_path / "store", release, flushDiskType="SYNC_FLUSH") as store:
        for number in range(3):
            before = len(synced)
            assert store.put(Message("T", b"%d" % number, queue_id=0)).status is PutStatus.PUT_OK
            assert len(synced) > before
            assert store.flush_behind == 0
        before = len(synced)
        acks = store.put_many([Message("T", b"m", queue_id=0)] * 10)
        assert {one.status for one in acks} == {PutStatus.PUT_OK}
        assert len(synced) <= before + 2
        futures = [store.put_async(Message("T", b"f", queue_id=0)) for _ in range(20)]
        assert [one.result(10).queue_offset for one in futures] == list(range(13, 33))
        assert len(synced) < before + 20
        store.put(Message("T", b"w", queue_id=0, properties={"WAIT": "false"}))
        assert store.flush()
        assert len(bodies(store, "T", 0)) == 34


@pytest.mark.parametrize("refused", [errno.EIO, errno.ENOSPC])
def test_a_flush_that_fails_is_never_taken_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, refused: int
) -> None:
    root = tmp_path / "store"
    store = open_small(root, flushDiskType="SYNC_FLUSH")
    assert store.put(Message("T", b"safe", queue_id=0)).status is PutStatus.PUT_OK

    with monkeypatch.context() as patched:
        refuse(patched, "fdatasync", refused)
        assert store.put(Message("T", b"lost", queue_id=0)).status is PutStatus.FLUSH_DISK_TIMEOUT
    assert store.put(Message("T", b"more", queue_id=0)).status is PutStatus.SERVICE_NOT_AVAILABLE
    assert not store.flush()
    with pytest.raises(StoreIOError, match="may be lost"):
        store.close()
    assert (root / "abort").exists()
    with open_small(root) as again:
        assert bodies(again, "T", 0)[0] == b"safe"


@pytest.mark.parametrize("call", ["posix_fallocate", "pwrite"])
def test_a_full_disk_is_a_status(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str) -> None:
    with open_small(tmp_path / "store", mappedFileSizeCommitLog=1 << 20) as store:
        store.put(Message("T", b"one", queue_id=0))
        big = Message("T", bytes((1 << 20) - 150), queue_id=0)  # opens the next segment, and goes by pwrite
        with monkeypatch.context() as patched:
            refuse(patched, call, errno.ENOSPC, lambda *given: call != "pwrite" or len(given[1]) > 1000)
            ack = store.put(big)
            assert (ack.status, ack.queue_offset, bool(ack.message)) == (PutStatus.UNKNOWN_ERROR, -1, True)
            many = store.put_many([big] * 3)
            assert {one.status for one in many} == {PutStatus.UNKNOWN_ERROR}
        assert store.put(Message("T", b"three", queue_id=0)).queue_offset == 1
        assert bodies(store, "T", 0) == [b"one", b"three"]
    assert rmq("verify", tmp_path / "store").exit_code == 0


@pytest.mark.parametrize("call", ["open", "link", "fsync"])
def test_the_segment_that_cannot_be_made_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    with (
        open_small(tmp_path / "store", mappedFileSizeCommitLog=4096) as store,
        monkeypatch.context() as patched,
    ):
        store.topics.set("T", write_queues=1)
        refuse(patched, call, errno.EIO)
        assert store.put(Message("T", b"")).message == f"commitlog/{0:020}: Input/output error"


def test_a_segment_that_cannot_be_made_leaves_no_descriptor_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a file system without files that have no name, too; it is tried again with each put."""
    with (
        open_small(tmp_path / "store", mappedFileSizeCommitLog=4096) as store,
        monkeypatch.context() as patched,
    ):
        store.topics.set("T", write_queues=1)
        refuse(patched, "ftruncate", errno.ENOSPC)
        refuse(
            patched,
            "open",
            errno.EOPNOTSUPP,
            lambda _, flags=0, *more: flags & os.O_TMPFILE == os.O_TMPFILE,
        )
        assert store.put(Message("T", b"")).status is PutStatus.CREATE_MAPPED_FILE_FAILED
        before = len(os.listdir("/proc/self/fd"))
        statuses = {store.put(Message("T", b"")).status for _ in range(30)}
        assert statuses == {PutStatus.CREATE_MAPPED_FILE_FAILED}
        assert len(os.listdir("/proc/self/fd")) < before + 10


def test_no_segment_can_be_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with open_small(tmp_path / "store", mappedFileSizeCommitLog=1 << 16) as store:
        with monkeypatch.context() as patched:
            refuse(patched, "ftruncate", errno.ENOSPC)
            store.topics.set("T", write_queues=1)
            body = bytes(60_000)
            statuses = [store.put(Message("T", body)).status for _ in range(5)]
        assert statuses[-1] is PutStatus.CREATE_MAPPED_FILE_FAILED
        assert store.put(Message("T", body)).status is PutStatus.PUT_OK
        stored = statuses.count(PutStatus.PUT_OK) + 1
        assert store.offsets("T", 0)[1] == stored


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


@pytest.mark.timeout(30)
@pytest.mark.parametrize("size", [100, 70_000])
@pytest.mark.parametrize("guarded", [True, False])
def test_a_segment_that_another_process_cuts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int, guarded: bool
) -> None:
    """Without a guard a write through a mapping would end the process by SIGBUS."""
    if not guarded:
        monkeypatch.setattr("rmqtool.store.faults.installed", lambda: False)
    store = open_small(tmp_path, mappedFileSizeCommitLog=1 << 20)
    assert store.put(Message("T", b"whole", queue_id=0)).status == PutStatus.PUT_OK
    assert store.offsets("T", 0) == (0, 1)  # dispatched: nothing reads it any more behind the cut
    os.truncate(tmp_path / "commitlog" / f"{0:020d}", 0)
    for _ in range(2):
        ack = store.put(Message("T", bytes(size)))
        assert ack.status in {PutStatus.UNKNOWN_ERROR, PutStatus.SERVICE_NOT_AVAILABLE}
        assert "cut" in ack.message
    assert not store.flush()
    assert store.put(Message("T", b"more")).status == PutStatus.SERVICE_NOT_AVAILABLE
    with suppress(StoreIOError):
        store.close()
    assert (tmp_path / "abort").exists()


def test_read_queues_that_nobody_consumed_do_not_go(tmp_path: Path) -> None:
    with open_small(tmp_path / "store") as store:
        store.topics.set("T", read_queues=4, write_queues=4)
        store.put(Message("T", b"1", queue_id=3))
        assert store.topics.set("T", read_queues=4, write_queues=2).read_queue_nums == 4
        with pytest.raises(UsageError, match=r"queue 3 of topic T: not all messages were consumed"):
            store.topics.set("T", read_queues=3)
        assert store.topics.set("T", read_queues=3, force=True).read_queue_nums == 3
        assert store.topics.set("T", read_queues=2).read_queue_nums == 2


@pytest.mark.parametrize(
    "place", ["lock", "checkpoint", "config", f"commitlog/{0:020d}", "consumequeue/T", "index"]
)
def test_nothing_is_written_behind_a_link(tmp_path: Path, place: str) -> None:
    root, there = tmp_path / "store", tmp_path / "there"
    with open_small(root) as store:
        store.put(Message("T", b"1", keys=["k"]))
    (root / place).rename(there)
    (root / place).symlink_to(there)
    before = tree(tmp_path)
    refused = rmq("store", "put", root, "T", "--body", "2")
    assert refused.exit_code == ExitCode.USAGE
    assert refused.stderr.startswith(f"rmqtool: {place} is a link")
    assert tree(tmp_path) == before


@pytest.mark.parametrize(
    "place", ["commitlog", "index", "consumequeue", "consumequeue/T", "consumequeue/New", "consumequeue/T/3"]
)
def test_nothing_is_written_where_no_directory_can_be(tmp_path: Path, place: str) -> None:
    root = tmp_path / "store"
    with open_small(root) as store:
        store.put(Message("T", b"1", queue_id=0))
    if (root / place).exists():
        shutil.rmtree(root / place)
    os.mkfifo(root / place)
    before = tree(tmp_path)
    refused = rmq("store", "put", root, "T", "--body", "2")
    assert (refused.exit_code, tree(tmp_path)) == (ExitCode.USAGE, before)
    shown = {"commitlog": f"{root} has no commit log"}.get(place, f"{place} is not a directory")
    assert refused.stderr.startswith(f"rmqtool: {shown}"), refused.stderr


@pytest.mark.parametrize(
    ("place", "again"),
    [(f"commitlog/{0:020d}", "commitlog/00"), (f"consumequeue/T/0/{0:020d}", "consumequeue/T/0/+0")],
)
def test_two_files_of_one_place_are_not_written(tmp_path: Path, place: str, again: str) -> None:
    """A record went into one segment and was looked for in the other: PUT_OK, and then an error."""
    root = tmp_path / "store"
    with open_small(root) as store:
        store.put(Message("T", b"1", queue_id=0))
    shutil.copy(root / place, root / again)
    before = tree(tmp_path)
    refused = rmq("store", "put", root, "T", "--body", "2")
    assert (refused.exit_code, tree(tmp_path)) == (ExitCode.USAGE, before)
    assert (
        refused.stderr
        == f"rmqtool: {' and '.join(sorted((place, again)))} begin at the same offset: nothing was changed\n"
    )


def test_what_brokers_pass_over_among_topics_is_left(tmp_path: Path) -> None:
    root = tmp_path / "store"
    with open_small(root) as store:
        store.put(Message("T", b"1", queue_id=0))
    (root / "consumequeue/.DS_Store").write_text("x")
    assert rmq("store", "put", root, "T", "--body", "2").exit_code == ExitCode.OK


@pytest.mark.parametrize(
    "place",
    ["abort", "checkpoint", "lock", f"commitlog/{4096:020d}", f"consumequeue/T/0/{400:020d}", "index/1"],
)
def test_nothing_is_written_where_no_file_can_be(tmp_path: Path, place: str) -> None:
    root = tmp_path / "store"
    with open_small(root) as store:
        store.put(Message("T", b"1", queue_id=0))
    (root / place).unlink(missing_ok=True)
    (root / place / "inner").mkdir(parents=True)
    before = tree(tmp_path)
    refused = rmq("store", "put", root, "T", "--body", "2")
    assert (refused.exit_code, tree(tmp_path)) == (ExitCode.USAGE, before)
    assert refused.stderr.startswith(f"rmqtool: {place} is not a file: nothing was changed"), refused.stderr


def test_a_link_that_took_the_place_of_the_lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (there := tmp_path / "there").write_bytes(b"others'")
    (tmp_path / "store").mkdir()
    (tmp_path / "store" / "lock").symlink_to(there)
    monkeypatch.setattr("rmqtool.messagestore.opening.refuse_odd_places", lambda *_: None)
    with pytest.raises(StoreIOError, match="lock: is not the file that was locked"):
        open_small(tmp_path / "store")
    assert there.read_bytes() == b"others'"


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


def test_a_put_that_does_not_end_makes_others_fail(tmp_path: Path) -> None:
    """`DefaultMessageStore#isOSPageCacheBusy`."""
    with open_small(tmp_path / "store", osPageCacheBusyTimeOutMills=20) as store:
        assert store.put(Message("T", b"1")).status is PutStatus.PUT_OK
        append = store._log.append

        def slow(*given: object) -> None:
            entered.set()
            left.wait()
            append(*given)  # type: ignore[arg-type]

        entered, left = threading.Event(), threading.Event()
        store._log.append = slow  # type: ignore[method-assign]
        first = threading.Thread(target=store.put, args=(Message("T", b"2"),))
        first.start()
        entered.wait()
        time.sleep(0.05)
        assert store.put(Message("T", b"3")).status is PutStatus.OS_PAGE_CACHE_BUSY
        assert store.put_many([Message("T", b"4")])[0].status is PutStatus.OS_PAGE_CACHE_BUSY
        left.set()
        first.join()
        assert store.put(Message("T", b"5")).status is PutStatus.PUT_OK


def test_a_slave_takes_no_messages_and_answers_gets(tmp_path: Path) -> None:
    with open_small(tmp_path / "store") as store:
        ack = store.put(Message("T", b"1"))
    for reads in (False, True):
        settings = {"brokerRole": "SLAVE", "slaveReadEnable": reads, "accessMessageInMemoryMaxRatio": 0}
        with open_small(tmp_path / "store", **settings) as store:
            assert store.put(Message("T", b"2")).status is PutStatus.SERVICE_NOT_AVAILABLE
            found = store.get("T", ack.queue_id, 0)
            assert [one.body for one in found.messages] == [b"1"]
            assert found.suggest_pulling_from_slave is reads


def test_a_segment_in_use_is_not_taken_for_one_that_was_made_ahead(tmp_path: Path) -> None:
    """The thread that makes segments looks while the log is not reported yet that the next one is in use."""
    (tmp_path / "commitlog").mkdir()
    log = LogFiles(open_places(tmp_path, config_of({})), MappedFiles(4096, "commitlog"))
    segments = [tmp_path / "commitlog" / f"{number * 4096:020}" for number in range(4)]
    log.place_for(100)
    log.write(f"commitlog/{segments[1].name}", 4096, 0, b"")
    until = time.monotonic() + 2
    while not segments[3].exists() and time.monotonic() < until:
        time.sleep(0.001)
    log.close()
    assert [one.exists() for one in segments] == [True, True, False, False]


@pytest.mark.parametrize("release", RELEASES)
def test_tags_behind_an_extension(tmp_path: Path, release: str) -> None:
    """The unit has an address in place of the hash (`ConsumeQueue#putMessagePositionInfoWrapper`)."""
    with open_small(tmp_path / "store", release, enableConsumeQueueExt=True) as store:
        for tags in ("TagA", None, "TagB", "Aa", "BB"):
            store.put(Message("T", b"", queue_id=0, tags=tags))
        for exact in (True, False):
            found = store.get("T", 0, 0, tags="TagA || TagB", exact=exact)
            assert [one.queue_offset for one in found.messages] == [0, 2]
        assert store.get("T", 0, 0, tags="TagC").status is GetMessageStatus.NO_MATCHED_MESSAGE
        found = store.get("T", 0, 0, tags="Aa", exact=False)  # and what has the same hash
        assert [one.tags for one in found.messages] == ["Aa", "BB"]
