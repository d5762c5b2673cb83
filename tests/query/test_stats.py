"""Sums over stores of real brokers, by Java's records; duplicates; what retention frees."""

from __future__ import annotations

import json
import os
from collections import defaultdict
from dataclasses import replace

import pytest

from fixtures.builder import HandmadeLog
from formats.system_topics import SYSTEM_TOPIC_SET
from rmqtool.query.duplicates.copies import Copy, copy_of
from rmqtool.query.message_filter import MessageFilter
from rmqtool.query.stats import groups
from rmqtool.query.stats.report import LogStatistics
from rmqtool.query.stats.retention import Needs, forecast
from rmqtool.scan.options import ReadOptions
from rmqtool.store.config import StoreConfig
from rmqtool.store.layout import Store

NAMES = ["v470-basic", "v498-basic", "v498-ipv6", "v533-basic", "v533-tx", "v533-compressed", "v533-edge"]


def statistics(root, by=("topic",), wanted=None, **options):
    found = LogStatistics(Store.open(root), wanted or MessageFilter(), list(by), ReadOptions(), **options)
    found.read()
    return found


def summed(records, key):
    """Java's records → by key: messages, bytes, largest, first and last store time."""
    made = defaultdict(list)
    for one in records:
        made[key(one)].append(one)
    return {
        name: (
            len(some),
            sum(one["storeSize"] for one in some),
            max(one["storeSize"] for one in some),
            min(one["storeTimestamp"] for one in some),
            max(one["storeTimestamp"] for one in some),
        )
        for name, some in made.items()
    }


KEYS = {
    "topic": lambda one: (one["topic"],),
    "queue": lambda one: (one["topic"], one["queueId"]),
    "tag": lambda one: (one["tags"],),
    "hour": lambda one: (one["storeTimestamp"] // 3_600_000 * 3_600_000,),
    "day": lambda one: (one["storeTimestamp"] // 86_400_000 * 86_400_000,),
    "kind": lambda one: (str(copy_of(one["topic"])),),
}


@pytest.mark.share
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    "by", [("topic",), ("queue",), ("tag",), ("hour",), ("day", "topic"), ("kind", "tag")]
)
def test_sums_are_those_of_the_records_of_java(golden, monkeypatch, name, by):
    monkeypatch.setattr(groups, "MERGE_AT", 3)
    found = golden(name)
    made = statistics(found.path, by)
    wanted = summed(found.expected["records"], lambda one: sum((KEYS[name](one) for name in by), ()))
    facts = "messages", "bytes", "largest", "first_timestamp", "last_timestamp"
    got = {
        tuple(row[key] for key in made.groups.keys): tuple(row[one] for one in facts)
        for row in made.groups.rows()
    }
    assert got == wanted
    summary = made.summary()
    assert (summary["messages"], summary["bytes"]) == (
        len(found.expected["records"]),
        sum(one["storeSize"] for one in found.expected["records"]),
    )
    assert summary["complete"] is True
    assert summary["largest"]["store_size"] == max(one["storeSize"] for one in found.expected["records"])


def test_hosts_are_counted_without_their_ports(golden):
    found = golden("v533-ipv6")
    made = statistics(found.path, ("host",))
    wanted = summed(found.expected["records"], lambda one: one["bornHost"][0])
    assert {row["messages"] for row in made.groups.rows()} == {one[0] for one in wanted.values()}
    assert any(row["host"].startswith("[") for row in made.groups.rows())
    assert not any(row["host"].endswith("]:50123") for row in made.groups.rows())


def test_internal_topics_have_their_share(golden):
    found = golden("b533-full")
    made = statistics(found.path)
    rows = {row["topic"]: row for row in made.groups.rows()}
    summary = made.summary()
    assert 0 < summary["internal_messages"] < summary["messages"]
    assert rows["SCHEDULE_TOPIC_XXXX"]["messages"] <= summary["internal_messages"]
    assert copy_of("TopicBasic") is Copy.OWN
    assert copy_of("%DLQ%g") is Copy.DEAD_LETTER
    assert all(copy_of(topic) is not Copy.OWN for topic in SYSTEM_TOPIC_SET)


def test_compression_gain(golden):
    found = golden("v533-compressed")
    made = statistics(found.path, plain=True)
    row = {
        name: sum(one[name] for one in made.groups.rows())
        for name in ("compressed", "plain_bytes", "body_bytes")
    }
    assert row["compressed"] == sum(one["sysFlag"] & 1 for one in found.expected["records"])
    assert row["plain_bytes"] > row["body_bytes"]


def test_a_limit_and_an_interrupt_are_said(golden):
    found = golden("v533-basic")
    short = statistics(found.path, wanted=MessageFilter(limit=7))
    assert (short.summary()["messages"], short.summary()["incomplete_reason"]) == (7, "limit")

    def interrupted(size):
        raise KeyboardInterrupt

    reading = replace(ReadOptions(), advance=interrupted)
    made = LogStatistics(Store.open(found.path), MessageFilter(), ["topic"], reading)
    made.read()
    assert made.summary()["incomplete_reason"] == "interrupted"
    assert list(made.duplicates()) == []


def test_what_waits_for_a_group(golden):
    """By Java's queues and the offsets that the groups committed."""
    found = golden("b533-full")
    store = Store.open(found.path)
    needs = Needs(store)
    statistics(found.path, needs=needs)
    ends = {
        (topic, int(number)): one["max"]
        for topic, queues in found.expected["queues"].items()
        for number, one in queues.items()
    }
    rows = {row["group"]: row for row in needs.rows()}
    seen = 0
    for group, entries in found.expected["consumerOffsets"].items():
        if group not in rows or not isinstance(entries, list):
            continue
        if any((one["topic"], one["queueId"]) not in ends for one in entries):
            continue
        lag = sum(max(ends[one["topic"], one["queueId"]] - one["consumerOffset"], 0) for one in entries)
        if rows[group]["queues"] == len(entries):
            assert rows[group]["waiting_messages"] == lag, group
            seen += 1
    assert seen > 3


@pytest.mark.parametrize("committed", [0, 4, 9, 10])
def test_the_message_at_the_committed_offset_is_the_first_that_waits(tmp_path, committed):
    log = HandmadeLog()
    for _ in range(10):
        log.put("T", b"x" * 60)
    log.write(tmp_path / "commitlog")
    (tmp_path / "config").mkdir()
    offsets = {"offsetTable": {"T@g": {"0": committed}}}
    (tmp_path / "config" / "consumerOffset.json").write_text(json.dumps(offsets))
    store = Store.open(tmp_path)
    needs = Needs(store)
    statistics(tmp_path, needs=needs)
    (row,) = needs.rows()
    left = log.records[committed:]
    assert row["waiting_messages"] == len(left)
    assert row["waiting_bytes"] == sum(len(one.data) for one in left)
    assert row["needs_physical_offset"] == (left[0].physical_offset if left else None)


def test_retention_goes_by_modification_time_from_the_oldest_on(tmp_path):
    log = HandmadeLog(segment_size=4096)
    for _ in range(100):
        log.put("T", b"x" * 60)
    paths = log.write(tmp_path / "commitlog")
    now = 1_800_000_000_000
    hours = [200, 100, 10, 100, 0]
    for path, age in zip(paths, hours, strict=False):
        stamp = (now - age * 3_600_000) * 1_000_000
        os.utime(path, ns=(stamp, stamp))
    store = Store.open(tmp_path)
    needs = [{"group": "g", "needs_physical_offset": 5000}, {"group": "h", "needs_physical_offset": None}]
    rows = forecast(store, needs, now)
    assert [row["free_now"] for row in rows] == [True, True, *[False] * (len(rows) - 2)]
    assert [row["needed_by"] for row in rows[:3]] == [[], ["g"], ["g"]]
    assert rows[-1]["free_timestamp"] is None
    longer = Store.open(tmp_path, config=StoreConfig(fileReservedTime=150))
    assert [row["free_now"] for row in forecast(longer, needs, now)][:2] == [True, False]
