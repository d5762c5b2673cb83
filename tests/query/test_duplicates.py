"""What is there twice: distinguished from batches and from the copies of a broker, in bounded memory."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pyarrow as pa
import pytest

from fixtures.builder import HandmadeLog
from rmqtool.query.by_key import KeySource
from rmqtool.query.duplicates import hashes
from rmqtool.query.duplicates.found import Twice
from rmqtool.query.duplicates.hashes import Repeated, Room
from rmqtool.query.key_query import KeyQuery
from rmqtool.query.message_filter import MessageFilter
from rmqtool.query.stats.report import LogStatistics
from rmqtool.query.wanted_keys import WantedKeys
from rmqtool.scan.options import ReadOptions
from rmqtool.store.layout import Store


def twice_in(root, *, by_key=False, wanted=None, room=None):
    """Rows and summary of the whole store."""
    made = LogStatistics(
        Store.open(root),
        wanted or MessageFilter(),
        ["topic"],
        ReadOptions(),
        repeated=Repeated(by_key, room=room or Room()),
    )
    made.read()
    return list(made.duplicates()), made.summary()


def twice_of(root, keys, *, by_key=False, topic=None):
    """Offsets and summary of a query by key."""
    store = Store.open(root)
    wanted = WantedKeys(keys, topic)
    twice = Twice(store.segments, wanted, by_key=by_key)
    query = KeyQuery(store, wanted, KeySource.AUTO, ReadOptions(), twice=twice)
    listed = [row for batch, _ in query.batches(("physical_offset",)) for row in batch.to_pylist()]
    return [row["physical_offset"] for row in listed], query.summary(len(listed))


@pytest.fixture
def doubled(tmp_path):
    """A message sent twice, once more in another topic; a batch with one id; the copies of a broker."""
    log = HandmadeLog(segment_size=8192)
    batch = {"born_timestamp": 1_700_000_000_000}
    for number in range(3):
        keys = f"b{number} {'ends' if number != 1 else ''}"
        log.put("T", b"batch", {"UNIQ_KEY": "BATCH", "KEYS": keys}, **batch)
    first = log.put("T", b"once", {"UNIQ_KEY": "TWICE", "KEYS": "k again k"})
    log.put("T", b"other", {"UNIQ_KEY": "ALONE", "KEYS": "k"})
    log.put("SCHEDULE_TOPIC_XXXX", b"", {"UNIQ_KEY": "LATER"})
    log.put("T", b"", {"UNIQ_KEY": "LATER"})
    log.put("RMQ_SYS_TRANS_HALF_TOPIC", b"", {"UNIQ_KEY": "TX"})
    log.put("T", b"", {"UNIQ_KEY": "TX"})
    log.put("T", b"", {"UNIQ_KEY": "OLD-TX"}, sys_flag=4)
    log.put("T", b"", {"UNIQ_KEY": "OLD-TX"}, sys_flag=8)
    log.put("T", b"", {"UNIQ_KEY": "RETRIED"})
    log.put("%RETRY%g", b"", {"UNIQ_KEY": "RETRIED"})
    log.put("%DLQ%g", b"", {"UNIQ_KEY": "RETRIED"})
    log.put("rmq_sys_wheel_timer", b"", {"UNIQ_KEY": "TIMED"})
    log.put("T", b"", {"UNIQ_KEY": "TIMED"})
    log.put("U", b"", {"UNIQ_KEY": "TWICE"})
    second = log.put("T", b"once", {"UNIQ_KEY": "TWICE", "KEYS": "again"})
    log.put("T", b"none")
    log.write(tmp_path / "commitlog")
    return tmp_path, first.physical_offset, second.physical_offset


EXPLAINED = {"batch": 2, "delay": 1, "half": 2, "retry": 1, "dead_letter": 1, "timer": 1}


@pytest.mark.parametrize("hashes_at_once", [4, 10**6])
@pytest.mark.parametrize("bytes_at_once", [500, 10**9])
def test_duplicates_are_told_apart_from_copies_and_batches(doubled, hashes_at_once, bytes_at_once):
    """However often the keys have to be parted for them to fit into memory."""
    root, first, second = doubled
    (row,), summary = twice_in(root, room=Room(hashes_at_once, bytes_at_once))
    assert (row["key"], row["topic"], row["physical_offsets"]) == ("TWICE", "T", [first, second])
    assert (summary["duplicate_keys"], summary["duplicate_messages"]) == (1, 2)
    assert summary["copies_explained"] == EXPLAINED


def test_duplicates_by_key(doubled):
    """Also the ends of a batch without the message between them are one batch."""
    root, first, second = doubled
    rows, summary = twice_in(root, by_key=True)
    assert [(row["key"], row["physical_offsets"][0]) for row in rows] == [("again", first), ("k", first)]
    assert rows[0]["physical_offsets"] == [first, second]
    assert summary["copies_explained"] == {"batch": 1}


def test_a_batch_is_one_also_where_filters_leave_gaps(doubled):
    root, *_ = doubled
    rows, summary = twice_in(root, wanted=MessageFilter(keys=frozenset({"b0", "b2"})))
    assert rows == []
    assert summary["copies_explained"] == {"batch": 1}


def test_what_looks_like_a_batch_but_is_sent_again(tmp_path):
    """The same message directly behind itself: another send has another time of birth, or another queue."""
    log = HandmadeLog(segment_size=8192)
    for number in range(2):
        log.put("T", b"", {"UNIQ_KEY": "AGAIN"}, born_timestamp=1_700_000_000_000 + number)
    same = {"born_timestamp": 1_700_000_000_000}
    for number in range(2):
        log.put("T", b"", {"UNIQ_KEY": "SPREAD"}, queue_id=number, **same)
    for key in ("APART", "BETWEEN", "APART"):
        log.put("T", b"", {"UNIQ_KEY": key}, **same)
    log.write(tmp_path / "commitlog")
    rows, summary = twice_in(tmp_path)
    assert {row["key"]: row["messages"] for row in rows} == {"AGAIN": 2, "SPREAD": 2, "APART": 2}
    assert summary["copies_explained"] == {}


def test_a_key_that_every_message_has_is_held_together(tmp_path):
    log = HandmadeLog(segment_size=65536)
    for number in range(100):
        log.put("T", b"", {"UNIQ_KEY": f"id{number}", "KEYS": f"same {number // 3}"})
    log.write(tmp_path / "commitlog")
    rows, summary = twice_in(tmp_path, by_key=True, room=Room(10, 100))
    counts = {row["key"]: row["messages"] for row in rows}
    assert counts == {"same": 100, **{str(number): 3 for number in range(33)}}
    assert len(rows) == summary["duplicate_keys"] == 34


def test_memory_is_bounded_by_what_a_pass_remembers():
    repeated = Repeated(by_key=False, room=Room(hashes=1000))
    keys = [f"key-{number}" for number in range(20_000)]
    for start in range(0, 20_000, 500):
        column = pa.array([*keys[start : start + 500], "key-7"], pa.string())
        repeated.add(pa.RecordBatch.from_arrays([column], names=["uniq_key"]))
        assert sum(map(len, repeated._seen)) <= 1000 + 501
    shares = [repeated.share, *repeated.left]
    assert sum(1 / share.parts for share in shares) == 1
    wanted = hashes.text_hashes(pa.array(keys))
    assert sum(share.holds(wanted).astype(int) for share in shares).tolist() == [1] * 20_000


@pytest.mark.parametrize("name", ["b497-full", "b533-full"])
def test_a_batch_that_java_sent_is_there_once(golden, name):
    """5.3.3 gave the ten messages of a batch one UNIQ_KEY, 4.9.7 each its own; nothing was sent twice."""
    found = golden(name)
    of_id = Counter(
        (one["properties"]["UNIQ_KEY"], one["topic"])
        for one in found.expected["messages"]
        if "UNIQ_KEY" in one["properties"]
    )
    ids = {count for (_, topic), count in of_id.items() if topic == "TopicBatch"}
    assert ids == ({10} if name == "b533-full" else {1})
    rows, summary = twice_in(found.path)
    assert rows == []
    assert summary["copies_explained"].get("batch", 0) == max(ids) - 1


def test_a_real_batch_sent_again(golden, tmp_path):
    """The same ten records once more behind the log, with new places: two messages for one id."""
    found = golden("b533-full")
    ten = sorted(
        (one for one in found.expected["messages"] if one["topic"] == "TopicBatch"),
        key=lambda one: one["commitLogOffset"],
    )
    log = HandmadeLog(segment_size=1 << 16)
    for again in (0, 1):
        for one in ten:
            born = one["bornTimestamp"] + again
            log.put(one["topic"], b"", one["properties"], queue_id=one["queueId"], born_timestamp=born)
    log.write(tmp_path / "commitlog")
    (row,), summary = twice_in(tmp_path)
    assert (row["messages"], row["physical_offsets"]) == (2, [0, log.records[10].physical_offset])
    assert summary["copies_explained"] == {"batch": 18}


def test_a_query_by_key_lists_only_what_is_there_twice(doubled):
    root, first, second = doubled
    assert twice_of(root, ["TWICE"])[0] == [first, second]
    offsets, summary = twice_of(root, ["again"], topic="T")
    assert (offsets, summary["duplicate_messages"], summary["kept_back"]) == ([first, second], 2, 0)
    for keys in (["BATCH"], ["LATER"], ["TX", "OLD-TX"], ["RETRIED"], ["TIMED"], ["ends"], ["nobody"]):
        offsets, summary = twice_of(root, keys)
        assert (offsets, summary["duplicate_keys"]) == ([], 0), keys
    assert twice_of(root, ["BATCH"])[1]["copies_explained"] == {"batch": 2}
    assert twice_of(root, ["ends"])[1]["copies_explained"] == {"batch": 1}


def test_a_query_by_key_goes_by_the_elements_asked_for(doubled):
    root, first, _ = doubled
    offsets, summary = twice_of(root, ["k"], by_key=True)
    assert (offsets[0], len(offsets), summary["duplicate_keys"]) == (first, 2, 1)
    assert twice_of(root, ["k"])[0] == []  # two messages with their own ids
    assert twice_of(root, ["TWICE"], by_key=True)[0] == []  # no element of KEYS


def test_hashes_differ_where_texts_do():
    texts = pa.array(
        ["", "a", "b", "ab", "ba", "aa", "订单", "x" * 1000, "x" * 999, *map(str, range(20_000))]
    )
    found = hashes.text_hashes(texts)
    assert len(np.unique(found)) == len(texts)
    assert hashes.text_hashes(texts[5:300]).tolist() == found[5:300].tolist()
    assert hashes.text_hashes(pa.array([], pa.string())).tolist() == []


def test_rows_are_in_order_of_key_and_topic(tmp_path):
    """Whatever else the log holds: several machines sort what they found by these."""
    log = HandmadeLog(segment_size=8192)
    for topic, key in (
        ("b", "x"),
        ("b", "x"),
        ("ä", "y"),
        ("b", "y"),
        ("b", "y"),
        ("ä", "y"),
        ("a", "y"),
        ("a", "y"),
    ):
        log.put(topic, b"", {"UNIQ_KEY": key})
    log.write(tmp_path / "commitlog")
    rows, _ = twice_in(tmp_path)
    assert [(row["key"], row["topic"]) for row in rows] == [("x", "b"), ("y", "a"), ("y", "b"), ("y", "ä")]
