"""What a get answers: statuses, filters, offsets by time, records and tables."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from rmqtool import Message
from rmqtool.broker.get_message import GetMessageStatus
from rmqtool.errors import UsageError
from rmqtool.messagestore.messages import AppendContext, PutStatus
from tests.messagestore.helpers import RELEASES, of_queue, open_small, traffic

if TYPE_CHECKING:
    from pathlib import Path


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
