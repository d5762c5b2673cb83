"""Replication between two of our stores; `tests/interop/test_replication_interop.py` has the real ones."""

from __future__ import annotations

import random
import time
from typing import TYPE_CHECKING, Any

import pytest

from rmqtool import Message, MessageStore
from rmqtool.messagestore.messages import PutStatus
from tests.helpers import rmq
from tests.messagestore.helpers import RELEASES, bodies, of_queue, open_small, traffic

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

FAST = {"haSendHeartbeatInterval": 50, "haHousekeepingInterval": 2000}


def master(root: Path, **settings: Any) -> MessageStore:
    return open_small(root, **{**FAST, **settings})


def slave(root: Path, **settings: Any) -> MessageStore:
    return open_small(root, **{**FAST, "brokerRole": "SLAVE", **settings})


def until(reached: Callable[[], bool], seconds: float = 20) -> None:
    """Waits for it; a failure where it never comes."""
    end = time.monotonic() + seconds
    while not reached():
        assert time.monotonic() < end, "it never came"
        time.sleep(0.005)


def log_of(root: Path, end: int) -> bytes:
    """The commit log from its first segment on, up to a physical offset."""
    segments = sorted((root / "commitlog").iterdir())
    first = int(segments[0].name)
    return b"".join(one.read_bytes() for one in segments)[: end - first]


@pytest.mark.parametrize("release", RELEASES)
def test_a_slave_has_what_its_master_has(tmp_path: Path, release: str) -> None:
    one, other = tmp_path / "master", tmp_path / "slave"
    sent = traffic(0, 300)
    with master(one, release=release) as store:
        _, port = store.listen(port=0)
        with slave(other, release=release) as copy:
            following = copy.follow("127.0.0.1", port)
            store.put_many(sent[:150])
            for message in sent[150:]:
                store.put(message)
            end = store.put(sent[0]).physical_offset
            until(lambda: any(offset > end for _, offset in store.slaves))
            assert following.caught_up.wait(10)
            for key in store.queues():
                assert bodies(copy, *key) == bodies(store, *key)
            assert [one.body for one in copy.query_key("Topic1", "key-77")] == [sent[77].body]
            refused = copy.put(sent[0])
            assert refused.status is PutStatus.SERVICE_NOT_AVAILABLE
    assert log_of(one, end) == log_of(other, end)
    assert rmq("verify", other).exit_code == 0


def test_a_late_slave_begins_with_the_last_segment(tmp_path: Path) -> None:
    with master(tmp_path / "master") as store:
        store.put_many(traffic(0, 200))
        _, port = store.listen(port=0)
        with slave(tmp_path / "slave") as copy:
            copy.follow("127.0.0.1", port)
            end = store.put(traffic(0, 1)[0]).physical_offset
            until(lambda: any(offset > end for _, offset in store.slaves))
            low = min(int(one.name) for one in (tmp_path / "slave/commitlog").iterdir())
            assert low == end - end % 4096 > 0
            low, high = copy.offsets("Topic0", 0)
            assert 0 < low < high == store.offsets("Topic0", 0)[1]
    assert rmq("verify", tmp_path / "slave").exit_code == 0


def test_it_goes_on_where_it_was(tmp_path: Path) -> None:
    """Behind cut connections, in the middle of records too, and behind restarts of either side."""
    chance = random.Random(7)
    sent: list[Message] = []
    port = 0
    for _ in range(4):
        with master(tmp_path / "master", haTransferBatchSize=97) as store:
            _, port = store.listen(port=port)
            for _ in range(3):
                with slave(tmp_path / "slave") as copy:
                    following = copy.follow("127.0.0.1", port)
                    more = traffic(len(sent), chance.randrange(10, 40))
                    sent += more
                    store.put_many(more)
                    if chance.random() < 0.5:
                        until(lambda s=store: bool(s.slaves))
                        continue  # closed wherever it is
                    end = store.end
                    until(lambda e=end, s=store: any(offset >= e for _, offset in s.slaves))
                    assert following.error is None
    with master(tmp_path / "master") as store, slave(tmp_path / "slave") as copy:
        _, port = store.listen(port=0)
        copy.follow("127.0.0.1", port)
        end = store.end
        until(lambda: any(offset >= end for _, offset in store.slaves))
        for key in store.queues():
            assert bodies(copy, *key) == bodies(store, *key) == of_queue(sent, *key)
    assert log_of(tmp_path / "master", end) == log_of(tmp_path / "slave", end)
    assert rmq("verify", tmp_path / "slave").exit_code == 0
