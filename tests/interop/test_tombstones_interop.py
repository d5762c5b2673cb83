"""A real broker on a store with a tombstone in each topic that it reads itself: every service goes on.

The first start writes real traffic; the middle record of each kind is overwritten; the second is watched.
"""

from __future__ import annotations

import functools
import json
import shutil
import time
from typing import TYPE_CHECKING

import pytest

from fixtures.builder import FIRST_TIME
from formats.batch import inner_messages
from formats.commitlog import SysFlag
from rmqtool.repair.filler import filler
from rmqtool.repair.tombstone import tombstone
from tests.interop.broker import BROKER_RELEASES, Broker
from tests.interop.conftest import require
from tests.interop.javastore import JavaStore
from tests.interop.tombstones import (
    EAGER,
    HALF,
    LATER_MS,
    MARK,
    OP,
    PLAN,
    QUIET,
    RETRY,
    REVIVE,
    SCHEDULE,
    TIMER,
    TOO_OFTEN,
    Stored,
    bodies,
    entomb,
    entomb_kept,
    entomb_small,
    fill,
    log,
    middle_ones,
    naive,
    of,
    overwrite,
    place_of,
    records,
    settings,
    traffic,
    wait_for,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = pytest.mark.interop

TIMER_NOTES_SECONDS = 2.5


@pytest.fixture(params=[pytest.param(BROKER_RELEASES[0], marks=pytest.mark.full), BROKER_RELEASES[1]])
def broker_release(request: pytest.FixtureRequest) -> str:
    return require(request.config, request.param, "broker")


def before(release: str, directory: Path, how: Callable[[Path, Stored], None]) -> Path:
    """A store with tombstones and two fillers in it, as a broker of this release wrote it, less its queues.

    The broker was killed: stopped in order, 5.x would revive at once. But its timer has noted how far it is.
    """
    root = directory / "store"
    with Broker(release, root, directory, **settings(release, QUIET)) as broker:
        traffic(broker)
        time.sleep(TIMER_NOTES_SECONDS)
    for record in middle_ones(root):
        how(root, record)
    fill(root, of(root, "Lost")[1])
    for derived in ("consumequeue", "batchconsumequeue", "compaction"):
        shutil.rmtree(root / derived, ignore_errors=True)
    return root


@pytest.mark.parametrize(
    "how",
    [
        pytest.param(entomb, marks=pytest.mark.full),
        pytest.param(entomb_kept, marks=pytest.mark.full),
        pytest.param(entomb_small, marks=pytest.mark.full),
    ],
)
def test_every_service_passes_over_its_tombstone(
    broker_release: str, tmp_path: Path, how: Callable[[Path, Stored], None]
) -> None:
    root = before(broker_release, tmp_path, how)
    old = log(root)
    with Broker(broker_release, root, tmp_path, **settings(broker_release, EAGER)) as broker:
        assert [one.data for one in log(root)[: len(old)]] == [one.data for one in old]
        broker.send("Delayed", b"delayed new", DELAY=2)
        half = broker.prepare("Committed", b"committed new", "N" * 32)
        broker.commit("Committed", half)
        half = broker.prepare("Pending", b"pending new", "P" * 32)
        queue_stays_aligned(broker)
        delayed_go_on(broker)
        transactions_go_on(broker)
        if broker_release.startswith("5."):
            other_queues_stay_aligned(broker)
            timed_go_on(broker)
            popped_go_on(broker)


def queue_stays_aligned(broker: Broker) -> None:
    broker.send("Ordinary", b"ordinary new")
    assert pulled(broker, "Ordinary", 0) == [b"ordinary 0", MARK, b"ordinary 2", b"ordinary new"]
    assert pulled(broker, "Ordinary", 2) == [b"ordinary 2", b"ordinary new"]
    broker.send("Light", b"light new", INNER_MULTI_DISPATCH="%LMQ%b")
    assert pulled(broker, "%LMQ%b", 0) == [b"light 0", MARK, b"light 2", b"light new"]


def other_queues_stay_aligned(broker: Broker) -> None:
    """Inner batches of one, two and three messages, the second lost; a key that keeps its last good value."""
    assert broker.send_batch("Batch", [b"new"], UNIQ_KEY="B" * 32)["queueOffset"] == "6"
    lost = of(broker.root, "Batch")[1]
    if lost.message.sys_flag & SysFlag.INNER_BATCH:  # it has room for two
        assert [one.queue_offset for one in inner_messages(bytes(lost.message.body), 1)] == [1, 2]
    assert pulled_offsets(broker, "Batch", 1) == [1, 3, 6]
    assert pulled_offsets(broker, "Batch", 3) == [3, 6]
    broker.send("Compacted", b"compacted new", KEYS="k")
    assert pulled(broker, "Compacted", 0) == [b"compacted 0", b"compacted 2", b"compacted new"]


def pulled_offsets(broker: Broker, topic: str, offset: int) -> list[int]:
    found: list[int] = []

    def all_there() -> bool:
        found[:] = [one.message.queue_offset for one in records(broker.pull(topic, offset)[1])]
        return found[-1:] == [6]

    wait_for(all_there, lambda: found)
    return found


def pulled(broker: Broker, topic: str, offset: int) -> list[bytes]:
    """What a pull brings, once it brings the new message."""
    found: list[bytes] = []

    def all_there() -> bool:
        found[:] = [one.body for one in records(broker.pull(topic, offset)[1])]
        return any(one.endswith(b" new") for one in found)

    wait_for(all_there, lambda: found)
    return found


def delayed_go_on(broker: Broker) -> None:
    expected = {b"delayed 0", b"delayed 2", b"delayed new"}
    wait_for(lambda: expected <= set(bodies(broker.root, "Delayed")), lambda: bodies(broker.root, "Delayed"))
    assert len(bodies(broker.root, "Delayed")) == 3
    small = [one for one in of(broker.root, SCHEDULE) if one.properties["REAL_TOPIC"] == "TBW102"]
    assert len(of(broker.root, "TBW102")) == len(small)


def transactions_go_on(broker: Broker) -> None:
    """Nobody answers: after two checks a pending one is given up. So is the one whose op message was lost.

    So is the tombstone, at once; 5.x does not store it again without a body.
    """
    expected = {b"pending 0", b"pending 2", b"pending new", b"committed 1"}
    given_up = functools.partial(bodies, broker.root, TOO_OFTEN)
    wait_for(lambda: expected <= set(given_up()), lambda: (given_up(), offsets(broker)))
    stored_again = MARK in given_up()
    # a check that began before the commit may ask for it all the same
    assert set(given_up()) - {b"committed new"} == expected | ({MARK} if stored_again else set()), given_up()
    assert stored_again or not any(
        one.message.body_length for one in of(broker.root, HALF) if one.body == MARK
    )
    assert b"committed new" in bodies(broker.root, "Committed")
    halves, ops = len(of(broker.root, HALF)), len(of(broker.root, OP))
    wait_for(lambda: offsets(broker) == (halves, ops), lambda: (halves, ops, offsets(broker)))


def offsets(broker: Broker) -> tuple[int, int]:
    """How far the check of transactions is in its two queues."""
    path = broker.root / "config" / "lmqConsumerOffset.json"  # its place where light queues are on
    text = path.read_text() if path.exists() else "{}"
    table = json.loads(text.replace("{0:", '{"0":')).get("offsetTable", {})
    read = [
        table.get(f"{topic}@CID_RMQ_SYS_TRANS", table.get(f"{topic}@CID_SYS_RMQ_TRANS", {}))
        for topic in (HALF, OP)
    ]
    return read[0].get("0", 0), read[1].get("0", 0)


def timed_go_on(broker: Broker) -> None:
    broker.send("Timed", b"timed new", TIMER_DELAY_MS=3000)
    expected = {b"timed 0", b"timed 2", b"timed 3", b"timed 5", b"timed new"}
    wait_for(lambda: expected <= set(bodies(broker.root, "Timed")), lambda: bodies(broker.root, "Timed"))
    assert set(bodies(broker.root, "Timed")) == expected


def popped_go_on(broker: Broker) -> None:
    """Two of three check points are left; the message under the lost one is not revived."""
    left = [json.loads(one.body)["so"] for one in of(broker.root, REVIVE)[:3] if one.body != MARK]
    expected = {b"popped %d" % number for number in left}
    revived = functools.partial(bodies, broker.root, RETRY)
    wait_for(lambda: expected <= set(revived()), revived)
    assert set(revived()) == expected
    broker.send("Popped", b"popped new")
    # a pop may bring what was revived first, or what was popped before the crash
    wait_for(lambda: b"popped new" in broker.pop("Popped", 1500), revived)
    wait_for(lambda: b"popped new" in revived(), revived)


# ---- what other forms would do --------------------------------------------------------------------

NAIVE = {
    "delay level": ("4.9.7", SCHEDULE, b"", "Delayed", b"delayed 2"),
    "timer": ("5.3.3", TIMER, b"", "Timed", b"timed 5"),
    "op message without body": ("4.9.7", OP, b"T\x01", TOO_OFTEN, b"pending 2"),
    "check point with its tag": ("5.3.3", REVIVE, b"TAGS\x01ck\x02", RETRY, b"popped"),
}
"""Where, with which properties (an open one takes all the room), and the message that then never comes."""


@pytest.mark.full
@pytest.mark.parametrize("case", NAIVE)
def test_a_form_for_any_topic_stops_a_service(
    case: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    release, topic, properties, behind, missing = NAIVE[case]
    require(request.config, release, "broker")
    root = tmp_path / "store"
    with Broker(release, root, tmp_path, **settings(release, QUIET)) as broker:
        traffic(broker)
        time.sleep(TIMER_NOTES_SECONDS)
    naive(root, [one for one in middle_ones(root) if one.topic == topic][-1], properties)
    with Broker(release, root, tmp_path, **settings(release, EAGER)) as broker:
        time.sleep(LATER_MS / 1000 + 15)
        assert not any(body.startswith(missing) for body in bodies(broker.root, behind))


# ---- the checksum of a whole record ---------------------------------------------------------------


def test_a_store_that_insists_on_its_checksums_keeps_all(
    tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    require(request.config, "5.3.3")
    root = tmp_path / "store"
    with JavaStore("5.3.3", root, enabledAppendPropCRC=True) as store:
        for number in range(4):
            store.put("Ordinary", b"%d" % number * 200, tags="TagA")
    whole, second, third, _ = log(root)
    assert whole.data[-20:].startswith(b"__CRC32#")
    overwrite(root, second, tombstone(place_of(second), len(second.data), PLAN, crc_trailer=True))
    overwrite(root, third, filler(len(third.data), third.position, FIRST_TIME, crc_trailer=True))
    (root / "abort").touch()
    with JavaStore("5.3.3", root, enabledAppendPropCRC=True, forceVerifyPropCRC=True) as store:
        assert store.loaded
        assert [one["physicalOffset"] for one in store.records()] == [one.position for one in log(root)]
        assert store.call("bounds")["max"] == 4 * len(whole.data)
