"""Delayed messages wait, come when they are due, and come once, also behind a kill."""

from __future__ import annotations

import random
import shutil
import time
from pathlib import Path
from typing import Any

import pytest

from formats import properties as props
from formats.tags_code import SCHEDULE_TOPIC
from rmqtool import Message, MessageStore
from rmqtool.errors import UsageError
from rmqtool.messagestore.messages import AppendContext, PutStatus
from rmqtool.store.config_json import load_json_config
from tests.helpers import rmq
from tests.messagestore.helpers import RELEASES, SMALL, bodies, copy_of_open, open_small

START = 1_700_000_000_000


class Clock:
    """Time that goes when it is told to."""

    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> int:
        return self.now


def delayed(number: int, queue_id: int = 0) -> Message:
    return Message("T", b"%d" % number, queue_id=queue_id, keys=[f"k{number}"], tags="A", flag=number)


@pytest.mark.parametrize("release", RELEASES)
def test_a_message_comes_when_it_is_due(tmp_path: Path, release: str) -> None:
    clock = Clock()
    with open_small(tmp_path, release, clock=clock, deliver=False) as store:
        sent = Message(
            "T", b"x", queue_id=2, tags="A", keys=["k"], uniq_key="u", flag=9, born_timestamp=START - 5,
            born_host=(bytes([1, 2, 3, 4]), 99), properties={"a": "b"},
        )  # fmt: skip
        ack = store.send_delayed(sent, 3)
        assert (ack.status, ack.topic, ack.queue_id) == (PutStatus.PUT_OK, SCHEDULE_TOPIC, 2)
        clock.now += 9_999
        assert (store.deliver_due(), bodies(store, "T", 2)) == (0, [])
        clock.now += 1
        assert (store.deliver_due(), store.deliver_due()) == (1, 0)
        (found,) = store.get("T", 2, 0).messages
        assert (found.body, found.tags, found.keys, found.uniq_key, found.flag) == (b"x", "A", ["k"], "u", 9)
        assert (found.born_timestamp, found.born_host) == (START - 5, "1.2.3.4:99")
        assert found.store_timestamp == clock.now
        expected = {"a": "b", "DELAY": "3", "REAL_TOPIC": "T", "REAL_QID": "2"}
        assert {name: found.properties[name] for name in expected} == expected
        assert store.query_key("T", "k") == [found]


def test_levels_are_those_of_the_setting(tmp_path: Path) -> None:
    clock = Clock()
    with open_small(tmp_path, clock=clock, deliver=False, messageDelayLevel="2s 1s 1m") as store:
        for number, level in enumerate((1, 2, 3, 99)):
            store.send_delayed(delayed(number), level)
        found = []
        for step in (1000, 1000, 57_999, 1):
            clock.now += step
            found.append(store.deliver_due())
        assert (found, bodies(store, "T", 0)) == ([1, 1, 0, 2], [b"1", b"0", b"2", b"3"])
        with pytest.raises(UsageError):
            store.send_delayed(delayed(0), 0)
        assert store.send_delayed(Message("a/b", b"x"), 1).status is PutStatus.MESSAGE_ILLEGAL


@pytest.mark.parametrize("release", RELEASES)
def test_it_goes_on_where_it_was(tmp_path: Path, release: str) -> None:
    clock = Clock()
    with open_small(tmp_path, release, clock=clock, deliver=False) as store:
        for number in range(30):
            store.send_delayed(delayed(number), 1 + number % 2)
        clock.now += 1000
        assert store.deliver_due() == 15
    text = (tmp_path / "config" / "delayOffset.json").read_text()
    assert '"offsetTable":{1:15,2:0\n\t}' in text or '"offsetTable":{1:15\n\t}' in text
    clock.now += 10_000
    with open_small(tmp_path, release, clock=clock, deliver=False) as store:
        assert (store.deliver_due(), len(bodies(store, "T", 0))) == (15, 30)


def test_a_thread_delivers(tmp_path: Path) -> None:
    with open_small(tmp_path, messageDelayLevel="1s") as store:
        began = time.monotonic()
        store.send_delayed(delayed(1), 1)
        assert store.get("T", 0, 0, wait=30).messages[0].body == b"1"
        assert time.monotonic() - began >= 1


def test_a_clock_that_was_set_back_does_not_hold_it(tmp_path: Path) -> None:
    clock = Clock()
    with open_small(tmp_path, clock=clock, deliver=False) as store:
        store.send_delayed(delayed(1), 1)
        clock.now -= 3_600_000
        assert store.deliver_due() == 1


@pytest.mark.parametrize("release", RELEASES)
def test_extension_files_do_not_hide_the_time(tmp_path: Path, release: str) -> None:
    clock = Clock()
    with open_small(tmp_path, release, clock=clock, deliver=False, enableConsumeQueueExt=True) as store:
        store.send_delayed(delayed(1), 1)
        clock.now += 999
        assert store.deliver_due() == 0
        clock.now += 1
        assert store.deliver_due() == 1


def test_what_can_go_nowhere_is_passed_over(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A broker stops its level at the first two of these."""
    clock = Clock()
    with open_small(tmp_path, clock=clock, deliver=False) as store:
        for more in (
            {}, {props.REAL_TOPIC: "T", props.REAL_QID: "x"}, {props.REAL_TOPIC: "T", props.REAL_QID: "-1"},
            {props.REAL_TOPIC: "../T", props.REAL_QID: "0"},
            {props.REAL_TOPIC: "RMQ_SYS_TRANS_HALF_TOPIC", props.REAL_QID: "0"},
            {props.REAL_TOPIC: "T", props.REAL_QID: "0"},
        ):  # fmt: skip
            properties = {props.DELAY: "1", **more}
            store.put(
                Message(SCHEDULE_TOPIC, b"x", queue_id=0, properties=properties), context=AppendContext()
            )
        clock.now += 1000
        assert (store.deliver_due(), bodies(store, "T", 0)) == (1, [b"x"])
        assert len(caplog.messages) == 5


def test_many_queues_and_segments(tmp_path: Path) -> None:
    clock = Clock()
    with open_small(tmp_path, clock=clock, deliver=False) as store:
        for number in range(300):
            store.send_delayed(delayed(number, number % 3), 1 + number % 4)
        clock.now += 30_000
        assert store.deliver_due() == 300
        got = sorted(int(one) for queue_id in range(3) for one in bodies(store, "T", queue_id))
        assert got == list(range(300))


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("written", [None, 3])
def test_a_kill_delivers_nothing_twice(tmp_path: Path, release: str, written: int | None) -> None:
    """The log tells what was delivered since `delayOffset.json` was written, if it was at all."""
    clock = Clock()
    with open_small(tmp_path / "a", release, clock=clock, deliver=False) as store:
        for number in range(40):
            same = Message("T", b"same", queue_id=number % 2, uniq_key="u") if number % 5 == 0 else None
            store.send_delayed(same or delayed(number, number % 2), 1 + number % 2)
            clock.now += 100
        if written is not None:
            store.deliver_due()
            store._services.schedule.save()
        clock.now += 700
        some = store.deliver_due()
        assert 0 < some < 40
        store.put(Message("T", b"1", queue_id=0))
        copy_of_open(tmp_path / "a", tmp_path / "b")
    with open_small(tmp_path / "b", release, clock=clock, deliver=False) as store:
        assert store.deliver_due() == 0
        clock.now += 60_000
        store.deliver_due()
        got = bodies(store, "T", 0) + bodies(store, "T", 1)
        expected = [b"same" if number % 5 == 0 else b"%d" % number for number in range(40)] + [b"1"]
        assert sorted(got) == sorted(expected)


def test_multi_dispatch_is_counted_when_it_is_delivered(tmp_path: Path) -> None:
    clock = Clock()
    light: dict[str, Any] = {"enableLmq": True, "enableMultiDispatch": True}
    with open_small(tmp_path, "5.3.3", clock=clock, deliver=False, **light) as store:
        named = {"INNER_MULTI_DISPATCH": "%LMQ%a"}
        store.send_delayed(Message("T", b"x", queue_id=0, properties=named), 1)
        assert store.offsets("%LMQ%a", 0) == (0, 0)
        clock.now += 1000
        store.deliver_due()
        assert store.offsets("%LMQ%a", 0) == (0, 1)


def test_trailers_are_made_again(tmp_path: Path) -> None:
    clock = Clock()
    with open_small(tmp_path, "5.3.3", clock=clock, deliver=False, enabledAppendPropCRC=True) as store:
        store.send_delayed(delayed(1), 1)
        clock.now += 1000
        assert store.deliver_due() == 1
        assert store.get("T", 0, 0).messages[0].raw.count(b"__CRC32#") == 1


def test_a_full_disk_delivers_later(tmp_path: Path) -> None:
    clock = Clock()
    with open_small(tmp_path, clock=clock, deliver=False) as store:
        store.send_delayed(delayed(1), 1)
        clock.now += 1000
        store._expiry.full = True
        assert store.deliver_due() == 0
        store._expiry.full = False
        assert store.deliver_due() == 1


def test_a_slave_delivers_nothing(tmp_path: Path) -> None:
    clock = Clock()
    with open_small(tmp_path, clock=clock) as store:
        store.send_delayed(delayed(1), 1)
    clock.now += 1000
    with open_small(tmp_path, clock=clock, brokerRole="SLAVE") as store:
        assert store.deliver_due() == 0
        assert not store._services._threads


def test_offsets_outside_of_their_queue_are_put_right(tmp_path: Path) -> None:
    clock = Clock()
    with open_small(tmp_path, clock=clock, deliver=False) as store:
        store.send_delayed(delayed(1), 1)
    path = tmp_path / "config" / "delayOffset.json"
    path.write_text('{"offsetTable":{1:77,40:3}}')
    clock.now += 1000
    with open_small(tmp_path, clock=clock, deliver=False) as store:
        assert store.deliver_due() == 0
        store.send_delayed(delayed(2), 1)
        clock.now += 1000
        assert store.deliver_due() == 1
    assert load_json_config(path).data["offsetTable"] == {"1": 2, "40": 3}
    shutil.rmtree(tmp_path)


def test_without_delays_nothing_is_written(tmp_path: Path) -> None:
    with MessageStore.open(tmp_path, create=True, config=SMALL) as store:
        store.put(Message("T", b"x"))
        assert store.deliver_due() == 0
    assert not (tmp_path / "config" / "delayOffset.json").exists()
    assert not (tmp_path / "config" / "consumerOffset.json.bak").exists()


def test_verify_knows_the_levels_of_the_setting(tmp_path: Path) -> None:
    conf = tmp_path / "broker.conf"
    conf.write_text("messageDelayLevel=7s 8s\n")
    with open_small(tmp_path / "store", messageDelayLevel="7s 8s") as store:
        store.send_delayed(delayed(1), 2)
    found = rmq("verify", tmp_path / "store", "--store-config", conf, "--format", "ndjson")
    assert [one["code"] for one in found.rows if one.get("severity") == "error"] == []
    assert rmq("verify", tmp_path / "store").exit_code == 1  # by the defaults these times are wrong


def test_a_crash_is_settled_also_where_nothing_was_delivered(tmp_path: Path) -> None:
    """A broker that opens the store next finds an offset behind what was delivered in front of the kill."""
    clock = Clock()
    with open_small(tmp_path / "a", clock=clock, deliver=False) as store:
        store.send_delayed(delayed(1), 1)
        clock.now += 1000
        assert store.deliver_due() == 1
        copy_of_open(tmp_path / "a", tmp_path / "b")
    with open_small(tmp_path / "b", clock=clock):
        pass
    assert load_json_config(tmp_path / "b" / "config" / "delayOffset.json").data["offsetTable"] == {"1": 1}


def never(*_: object, **__: object) -> None:
    raise AssertionError("one by one")


@pytest.mark.share
@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("odd", [0.0, 0.02])
def test_columns_deliver_what_one_by_one_does(tmp_path: Path, release: str, odd: float) -> None:
    """Also among messages that are not for columns; the log is the same, byte for byte."""
    found = []
    for number, least in enumerate((2, 1 << 30)):
        clock, root = Clock(), tmp_path / str(number)
        with (
            pytest.MonkeyPatch.context() as patch,
            open_small(root, release, clock=clock, deliver=False, **WIDE) as store,
        ):
            patch.setattr("rmqtool.messagestore.services.schedule.LEAST", least)
            if not odd and least == 2:
                patch.setattr("rmqtool.messagestore.services.schedule.copy_of", never)
            fill(store, random.Random(5), odd)
            clock.now += 60_000
            assert store.deliver_due() == 400
            log = sorted((root / "commitlog").iterdir())
            segments = [(path.name, path.read_bytes()) for path in log]
            found.append([one for one in segments if any(one[1])])  # less those that were made ahead
            assert store.offsets("T0", 0)[1] == 67
    assert found[0] == found[1]


WIDE = {"mappedFileSizeCommitLog": 1 << 20}


def fill(store: MessageStore, dice: random.Random, share: float) -> None:
    for number in range(400):
        odd: dict[str, Any] = {}
        if dice.random() < share:
            odd = dice.choice([
                {"born_host": (bytes(15) + b"\1", 7)}, {"properties": {"p": "\u00fc"}},
                {"properties": {"e": ""}}, {"properties": {"INNER_X": "1"}}, {"tags": "\u00e4"},
            ])  # fmt: skip
        message = Message(
            f"T{number % 2}", b"%d" % number * dice.randrange(60), queue_id=number % 3, keys=[f"k{number}"],
            uniq_key=f"u{number}", born_timestamp=number, flag=number, **odd,
        )  # fmt: skip
        assert store.send_delayed(message, 1).physical_offset >= 0


def test_what_lies_far_apart_is_delivered_too(tmp_path: Path) -> None:
    clock = Clock()
    with open_small(tmp_path, clock=clock, deliver=False, mappedFileSizeCommitLog=1 << 20) as store:
        for number in range(100):
            store.send_delayed(delayed(number), 1)
            if number % 3 == 0:
                store.put(Message("Between", bytes(20_000)))
        clock.now += 1000
        assert (store.deliver_due(), len(bodies(store, "T", 0))) == (100, 100)
