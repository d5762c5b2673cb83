"""Replication with the real store on one side: what the slave has is what the master has, byte for byte."""

from __future__ import annotations

import json
import random
from typing import TYPE_CHECKING, Any

import pytest

from rmqtool import MessageStore
from tests.helpers import free_port, rmq
from tests.interop.javastore import JavaStore
from tests.messagestore.cutting import Cutting
from tests.messagestore.helpers import traffic
from tests.messagestore.test_replication import log_of, until

if TYPE_CHECKING:
    from pathlib import Path

FILES: dict[str, Any] = {
    "mappedFileSizeCommitLog": 1 << 16,
    "mappedFileSizeConsumeQueue": 4000,
    "maxHashSlotNum": 100,
    "maxIndexNum": 400,
    "haSendHeartbeatInterval": 200,
    "haHousekeepingInterval": 5000,
}
LONGEST = 1800
"""seconds: real slaves wait five behind each cut, and queues are compared message by message"""
OURS = FILES | {"brokerIP1": "10.0.0.1"}
THEIRS = FILES | {"brokerRole": "SLAVE"}


def queues_of_java(store: JavaStore) -> dict[tuple[str, int], list[int]]:
    """Physical offsets of each queue."""
    return {
        (one["topic"], one["queue"]): [
            message["physicalOffset"]
            for message in store.call("get", topic=one["topic"], queue_id=one["queue"])
        ]
        for one in store.call("queues")
    }


def queues_of_ours(store: MessageStore) -> dict[tuple[str, int], list[int]]:
    found: dict[tuple[str, int], list[int]] = {}
    for topic, number in store.queues():
        low, high = store.offsets(topic, number)
        table = store.get_table(topic, number, low, high - low, columns=["physical_offset"])
        found[topic, number] = table["physical_offset"].to_pylist()
    return found


def of_our_master(root: Path, release: str, count: int, cuts: int, restarts: int) -> None:
    """A real slave follows us over a way that is cut; it ends and starts again now and then."""
    chance = random.Random(count + cuts)
    with MessageStore.open(root / "master", create=True, config=OURS, release=release) as store:
        _, port = store.listen(port=0)
        sent = 0
        store.put(traffic(0, 1)[0])
        with Cutting(port, chance, cuts, 100, 60_000) as way:
            for _ in range(restarts + 1):
                with JavaStore(release, root / "slave", **THEIRS) as slave:
                    slave.call("follow", address=f"127.0.0.1:{way.port}")
                    # one that has nothing would begin with the last segment
                    until(lambda: slave.call("bounds")["max"] > 0, 60)
                    for at in range(sent, sent + count // (restarts + 1), 100):
                        store.put_many(traffic(at, 100))
                    sent += count // (restarts + 1)
                    until(lambda: slave.call("bounds")["max"] >= store.end, 600)
                    slave.call("drain")
                    assert queues_of_java(slave) == queues_of_ours(store)
        end = store.end
    assert log_of(root / "slave", end) == log_of(root / "master", end)
    # a real slave indexes a record before all of it is there: its index is its own
    found = rmq("verify", root / "slave", "--format", "ndjson").stdout.splitlines()
    codes = {row["code"] for row in map(json.loads, found) if row.get("type") == "finding"}
    assert {code for code in codes if not code.startswith("IDX-")} == set()


def of_a_real_master(root: Path, release: str, count: int, cuts: int, restarts: int) -> None:
    """We follow a real master."""
    chance = random.Random(count + cuts)
    port = free_port()
    config = {**OURS, "brokerRole": "SLAVE"}
    with JavaStore(release, root / "master", **FILES, haListenPort=port) as master:
        sent = 0
        with Cutting(port, chance, cuts, 100, 60_000) as way:
            for _ in range(restarts + 1):
                with MessageStore.open(root / "slave", create=True, config=config, release=release) as store:
                    following = store.follow("127.0.0.1", way.port)
                    for number in range(sent, sent + count // (restarts + 1)):
                        one = traffic(number, 1)[0]
                        master.put(
                            one.topic, one.body, queue_id=one.queue_id, tags=one.tags, keys=one.keys[0]
                        )
                        if number == 0:  # one that has nothing would begin with the last segment
                            until(lambda: store.end > 0, 60)
                    sent += count // (restarts + 1)
                    end = master.call("bounds")["max"]
                    until(lambda: store.end >= end, 600)  # noqa: B023
                    master.call("drain")
                    assert queues_of_ours(store) == queues_of_java(master)
                    assert following.error is None
    assert log_of(root / "slave", end) == log_of(root / "master", end)
    assert rmq("verify", root / "slave").exit_code == 0


def test_a_real_slave_follows_us(tmp_path: Path, release: str) -> None:
    of_our_master(tmp_path, release, 1000, 1, 1)


def test_we_follow_a_real_master(tmp_path: Path, release: str) -> None:
    of_a_real_master(tmp_path, release, 900, 2, 1)


@pytest.mark.full
@pytest.mark.timeout(LONGEST)
def test_a_real_slave_follows_us_over_50_cuts(tmp_path: Path, release: str) -> None:
    of_our_master(tmp_path, release, 100_000, 50, 4)


@pytest.mark.full
@pytest.mark.timeout(LONGEST)
def test_we_follow_a_real_master_over_50_cuts(tmp_path: Path, release: str) -> None:
    of_a_real_master(tmp_path, release, 100_000, 50, 4)
