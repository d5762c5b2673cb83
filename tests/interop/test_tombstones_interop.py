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

from formats.commitlog import Message
from tests.interop.broker import BROKER_RELEASES, Broker
from tests.interop.conftest import require
from tests.interop.tombstones import (
    EAGER,
    HALF,
    LATER_MS,
    MARK,
    OP,
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
    settings,
    traffic,
    wait_for,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = pytest.mark.interop

TIMER_NOTES_SECONDS = 2.5


@pytest.fixture(params=BROKER_RELEASES)
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
    shutil.rmtree(root / "consumequeue")
    return root


@pytest.mark.parametrize(
    "how",
    [
        entomb,
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
            timed_go_on(broker)
            popped_go_on(broker)


def queue_stays_aligned(broker: Broker) -> None:
    broker.send("Ordinary", b"ordinary new")
    assert pulled(broker, 0) == [b"ordinary 0", MARK, b"ordinary 2", b"ordinary new"]
    assert pulled(broker, 2) == [b"ordinary 2", b"ordinary new"]


def pulled(broker: Broker, offset: int) -> list[bytes]:
    found = []

    def all_there() -> bool:
        found[:] = []
        _, data = broker.pull("Ordinary", offset)
        while data:
            size = int.from_bytes(data[:4], "big")
            found.append(Stored(0, Message.parse_exact(data[:size]), data[:size]).body)
            data = data[size:]
        return found[-1:] == [b"ordinary new"]

    wait_for(all_there, lambda: found)
    return found


def delayed_go_on(broker: Broker) -> None:
    expected = {b"delayed 0", b"delayed 2", b"delayed new"}
    wait_for(lambda: expected <= set(bodies(broker.root, "Delayed")), lambda: bodies(broker.root, "Delayed"))
    assert len(bodies(broker.root, "Delayed")) == 3


def transactions_go_on(broker: Broker) -> None:
    """Nobody answers: after two checks a pending one is given up. So is the one whose op message was lost."""
    expected = {b"pending 0", b"pending 2", b"pending new", b"committed 1", MARK}
    wait_for(lambda: expected <= given_up(broker), lambda: (given_up(broker), offsets(broker)))
    assert given_up(broker) == expected
    assert b"committed new" in bodies(broker.root, "Committed")
    halves, ops = len(of(broker.root, HALF)), len(of(broker.root, OP))
    wait_for(lambda: offsets(broker) == (halves, ops), lambda: (halves, ops, offsets(broker)))


def given_up(broker: Broker) -> set[bytes]:
    return {body.rstrip() for body in bodies(broker.root, TOO_OFTEN)}


def offsets(broker: Broker) -> tuple[int, int]:
    """How far the check of transactions is in its two queues."""
    path = broker.root / "config" / "consumerOffset.json"
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
