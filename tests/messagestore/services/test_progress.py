"""Offsets and settings of consumer groups, what is given back, and their files."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from formats import properties as props
from rmqtool import Message
from rmqtool.errors import StoreClosedError, UsageError
from rmqtool.messagestore.messages import PutStatus
from rmqtool.query.groups import committed_offset, group_configs, may_consume
from rmqtool.store.config_json import ParseState, load_json_config
from rmqtool.store.layout import Store
from tests.messagestore.helpers import RELEASES, bodies, open_small


def test_offsets_are_there_again(tmp_path: Path) -> None:
    with open_small(tmp_path) as store:
        assert store.committed_offset("G", "T", 0) is None
        store.commit_offset("G", "T", 0, 7)
        store.commit_offset("G", "T", 3, 1 << 40)
        store.commit_offset("H", "T", 0, 2)
        store.commit_offset("G", "T", 0, 5)
        assert store.committed_offset("G", "T", 0) == 5
    with open_small(tmp_path) as store:
        found = [(one.topic, one.group, one.queue_id, one.offset) for one in store.committed_offsets()]
        assert found == [("T", "G", 0, 5), ("T", "G", 3, 1 << 40), ("T", "H", 0, 2)]
    with pytest.raises(StoreClosedError):
        store.commit_offset("G", "T", 0, 7)
    assert committed_offset(Store.open(tmp_path), "G", "T", 3) == 1 << 40


@pytest.mark.parametrize("release", RELEASES)
def test_the_file_is_a_brokers(tmp_path: Path, release: str) -> None:
    """Bare integer keys in one line, as fastjson writes them; the one before stays as `.bak`."""
    with open_small(tmp_path, release) as store:
        store.commit_offset("G", "T", 0, 7)
        store.commit_offset("G", "T", 1, 8)
    before = (tmp_path / "config" / "consumerOffset.json").read_text()
    assert '\t\t"T@G":{0:7,1:8\n\t\t}\n\t}\n}' in before
    assert ('"groupTopicMap":{\n\t\t"G":["T"]\n\t}' in before) == (release == "5.3.3")
    assert load_json_config(tmp_path / "config" / "consumerOffset.json").state is ParseState.FASTJSON
    with open_small(tmp_path, release) as store:
        store.commit_offset("G", "T", 1, 9)
    assert (tmp_path / "config" / "consumerOffset.json.bak").read_text() == before


def test_offsets_are_written_while_the_store_is_open(tmp_path: Path) -> None:
    with open_small(tmp_path, flushConsumerOffsetInterval=20) as store:
        store.commit_offset("G", "T", 0, 7)
        until = time.monotonic() + 30
        while committed_offset(Store.open(tmp_path), "G", "T", 0) != 7:
            assert time.monotonic() < until
            time.sleep(0.01)


def test_light_groups_have_a_table_of_their_own(tmp_path: Path) -> None:
    light: dict[str, Any] = {"enableLmq": True, "enableMultiDispatch": True}
    with open_small(tmp_path, **light) as store:
        store.commit_offset("%LMQ%a", "%LMQ%a", 0, 7)
        store.commit_offset("G", "T", 1, 8)
    found = load_json_config(tmp_path / "config" / "lmqConsumerOffset.json").data
    assert (found["lmqOffsetTable"], found["offsetTable"]) == ({"%LMQ%a@%LMQ%a": 7}, {"T@G": {"1": 8}})
    with open_small(tmp_path, **light) as store:
        assert store.committed_offset("%LMQ%a", "%LMQ%a", 0) == 7


@pytest.mark.parametrize(
    ("topic", "group", "queue_id", "offset"),
    [("", "G", 0, 0), ("a@b", "G", 0, 0), ("T", "", 0, 0), ("T", "G", -1, 0), ("T", "G", 0, -1),
     ("T", "G", 0, 1 << 63)],
)  # fmt: skip
def test_what_is_no_offset_is_refused(
    tmp_path: Path, topic: str, group: str, queue_id: int, offset: int
) -> None:
    with open_small(tmp_path) as store, pytest.raises(UsageError):
        store.commit_offset(group, topic, queue_id, offset)


@pytest.mark.parametrize("release", RELEASES)
def test_groups_are_made_and_changed(tmp_path: Path, release: str) -> None:
    with open_small(tmp_path, release) as store:
        assert (len(store.groups), store.groups.get("G")) == (0, None)
        made = store.groups.set("G", retry_max=3, retry_queues=2)
        assert (made.retry_max_times, made.retry_queue_nums, made.consume_enable) == (3, 2, True)
        store.groups.set("G", consume=False)
        assert "G" in store.groups
        assert [one.name for one in store.groups] == ["G"]
        with pytest.raises(UsageError):
            store.groups.of_consumer("G")
        assert group_configs(Store.open(tmp_path))["G"].retry_max_times == 3
        assert may_consume(Store.open(tmp_path), "G") is False
    entry = json.loads((tmp_path / "config" / "subscriptionGroup.json").read_text())
    keys = entry["subscriptionGroupTable"]["G"]
    assert list(keys) == sorted(keys)
    assert ("consumeTimeoutMinute" in keys, "forbiddenTable" in entry) == ((release == "5.3.3"),) * 2
    with open_small(tmp_path, release) as store:
        assert store.groups.delete("G")
        assert not store.groups.delete("G")
        assert store.groups.of_consumer("New").retry_max_times == 16


def test_settings_that_are_not_known_stay(tmp_path: Path) -> None:
    with open_small(tmp_path) as store:
        store.groups.set("G")
    path = tmp_path / "config" / "subscriptionGroup.json"
    known = json.loads(path.read_text())
    known["subscriptionGroupTable"]["G"] |= {"retryMaxTimes": 5, "ofLater": [1, {"a": None}], "brokerId": 7}
    known["forbiddenTable"] = {"G": {"T": 1}}
    path.write_text(json.dumps(known))
    with open_small(tmp_path) as store:
        store.groups.set("G", retry_queues=4)
    found = json.loads(path.read_text())
    entry = found["subscriptionGroupTable"]["G"]
    assert (entry["ofLater"], entry["brokerId"], entry["retryMaxTimes"]) == ([1, {"a": None}], 7, 5)
    assert found["forbiddenTable"] == {"G": {"T": 1}}


@pytest.mark.parametrize(
    ("name", "more"), [("", {}), ("a b", {}), ("a/b", {}), ("x" * 256, {}), ("G", {"retry_max": -1})]
)
def test_what_is_no_group_is_refused(tmp_path: Path, name: str, more: dict[str, int]) -> None:
    with open_small(tmp_path) as store, pytest.raises(UsageError):
        store.groups.set(name, **more)  # type: ignore[arg-type]


def test_groups_are_made_only_where_they_may_be(tmp_path: Path) -> None:
    with open_small(tmp_path, autoCreateSubscriptionGroup=False) as store:
        with pytest.raises(UsageError):
            store.groups.of_consumer("G")
        store.groups.set("G", broadcast=False)
        with pytest.raises(UsageError):
            store.groups.of_consumer("G", broadcast=True)


@pytest.mark.parametrize("release", RELEASES)
def test_what_is_given_back_comes_again_and_ends(tmp_path: Path, release: str) -> None:
    """Level 3 + tries; with the third try it is a dead letter (`retryMaxTimes` 2)."""
    now = [1_700_000_000_000]
    with open_small(tmp_path, release, clock=lambda: now[0]) as store:
        store.groups.set("G", retry_max=2)
        store.put(Message("T", b"x", queue_id=0, tags="A", keys=["k"], uniq_key="u", flag=7))
        (message,) = store.get("T", 0, 0).messages
        origin = message.physical_offset
        for times, delay in enumerate((10_000, 30_000)):
            ack = store.send_back("G", message)
            assert ack is not None
            assert (ack.status, ack.topic, ack.queue_id) == (
                PutStatus.PUT_OK, "SCHEDULE_TOPIC_XXXX", 2 + times,
            )  # fmt: skip
            now[0] += delay - 1
            assert store.deliver_due() == 0
            now[0] += 1
            assert store.deliver_due() == 1
            (message,) = store.get("%RETRY%G", 0, times).messages
            assert (message.reconsume_times, message.tags, message.keys, message.flag) == (
                times + 1, "A", ["k"], 7,
            )  # fmt: skip
            found = message.properties
            assert found[props.RETRY_TOPIC] == "T"
            assert int(found[props.ORIGIN_MESSAGE_ID][16:], 16) == origin
        ack = store.send_back("G", message)
        assert ack is not None
        assert (ack.topic, ack.queue_offset) == ("%DLQ%G", 0)
        (dead,) = store.get("%DLQ%G", 0, 0).messages
        assert (dead.body, dead.reconsume_times, dead.properties[props.DELAY]) == (b"x", 3, "0")
        kept = store.topics.get("%RETRY%G")
        assert kept is not None
        assert (kept.perm, kept.read_queue_nums) == (6, 1)


def test_what_a_group_does_not_want_back(tmp_path: Path) -> None:
    with open_small(tmp_path) as store:
        store.put(Message("T", b"x", queue_id=0))
        (message,) = store.get("T", 0, 0).messages
        ack = store.send_back("G", message, delay_level=-1)
        assert ack is not None
        assert ack.topic == "%DLQ%G"
        ack = store.send_back("G", message, delay_level=5, max_times=1)
        assert ack is not None
        assert ack.queue_id == 4
        store.groups.set("G", retry_queues=0)
        assert store.send_back("G", message) is None
        assert bodies(store, "%DLQ%G", 0) == [b"x"]


def test_old_dead_letters_are_not_read(tmp_path: Path) -> None:
    with open_small(tmp_path, "4.9.0") as store:
        store.put(Message("T", b"x", queue_id=0))
        store.send_back("G", store.get("T", 0, 0).messages[0], delay_level=-1)
        made = store.topics.get("%DLQ%G")
        assert made is not None
        assert made.perm == 2


@pytest.mark.parametrize(
    "text",
    [b'{"offsetTable":{"T@G":{0:7}', b"", b"[]", b'{"offsetTable":[]}',
     b'{"offsetTable":{"T":{0:1},"@":{"1":2}}}', b'{"offsetTable":{"T@G":{0:99999999999999999999}}}'],
)  # fmt: skip
def test_a_hostile_table_does_not_stop_it(tmp_path: Path, text: bytes) -> None:
    (tmp_path / "config").mkdir()
    for name in ("consumerOffset.json", "delayOffset.json", "subscriptionGroup.json"):
        (tmp_path / "config" / name).write_bytes(text)
    with open_small(tmp_path) as store:
        store.commit_offset("G", "T", 1, 3)
        store.groups.set("G")
        assert store.deliver_due() == 0
    with open_small(tmp_path) as store:
        assert store.committed_offset("G", "T", 1) == 3
