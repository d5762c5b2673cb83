"""Counters of an open store, in its process and in others."""

from __future__ import annotations

import errno
import json
import os
import shutil
import stat
import threading
import time
from typing import TYPE_CHECKING

import pytest

from rmqtool import Message
from rmqtool.errors import StoreIOError
from rmqtool.messagestore.messages import PutStatus
from rmqtool.messagestore.statistics import Statistics, publish, published
from rmqtool.store.kinds import STATUS_FILE
from rmqtool.store.lock import probe
from rmqtool.store.writing import Folder
from tests.disks import refuse
from tests.helpers import held, rmq
from tests.messagestore.helpers import open_small, traffic

if TYPE_CHECKING:
    from pathlib import Path


def test_puts_and_gets_are_counted(tmp_path: Path) -> None:
    with open_small(tmp_path / "store") as store:
        store.put_many(traffic(0, 20))
        ack = store.put(Message("T", b"body", queue_id=0))
        store.put_async(Message("T", b"body", queue_id=0)).result()
        store.put(Message("T", b"refused", queue_id=99))
        found = store.get("T", 0, ack.queue_offset)
        store.get("T", 0, 2)
        reported = store.stats()
        store.flush()
        assert (reported.put.messages, reported.get.messages, reported.get.hit, reported.get.miss) == (
            22,
            2,
            1,
            1,
        )
        assert reported.get.bytes == sum(len(one.raw) for one in found.messages)
        assert reported.put.per_second > 0
        assert reported.put.latency_ms is not None
        assert 0 < reported.put.latency_ms.p50 <= reported.put.latency_ms.p99 <= reported.put.latency_ms.max
        assert reported.dispatch_behind_bytes == store.stats().flush_behind_bytes == 0
        assert 0 < reported.disk_ratio <= 1


def test_others_see_what_the_writer_publishes(tmp_path: Path) -> None:
    root = tmp_path / "store"
    with open_small(root) as store:
        root.chmod(0o750)
        store.put_many(traffic(0, 20))
        with Folder.open(str(root)) as folder:
            publish(folder, store.stats())
        assert stat.S_IMODE(os.stat(root / STATUS_FILE).st_mode) == 0o640
        reported = json.loads(rmq("store", "status", root, "--json").stdout)
        assert (reported["writer"], reported["put"]["messages"]) == (True, 20)
        assert reported["put"]["latency_ms"]["p99"] > 0
        assert rmq("verify", root, "--quick").exit_code == 0
        shutil.copy(root / STATUS_FILE, tmp_path)
    assert not (root / STATUS_FILE).exists()
    shutil.copy(tmp_path / STATUS_FILE, root)  # of a writer that was killed
    reported = json.loads(rmq("store", "status", root, "--json").stdout)
    assert (reported["writer"], reported["put"]["messages"], reported["flush_behind_bytes"]) == (
        False,
        None,
        None,
    )
    assert (reported["dispatch_behind_bytes"], reported["disk_ratio"] > 0) == (0, True)
    page = rmq("store", "status", root)
    assert (page.exit_code, "No writer" in page.stdout) == (0, True)


@pytest.mark.parametrize(
    "more",
    [
        {"pid": []},
        {"pid": {}},
        {"put": 5, "get": [], "dispatch_behind_bytes": "\x9b"},
        {"put": {"latency_ms": {"p50": 1}}},
        {"put": {"messages": 1e308, "latency_ms": {"p50": -1, "p99": 1e308, "max": 2**63}}},
        {
            "flush_behind_bytes": -1e308,
            "dispatch_behind_bytes": 1e308,
            "get": {"bytes": 2**64 - 1, "hit": {}},
        },
    ],
    ids=str,
)
def test_a_status_that_somebody_made_up(tmp_path: Path, more: dict[str, object]) -> None:
    root = tmp_path / "store"
    open_small(root).close()
    with held(root):
        made_up = {"pid": probe(root).pid, "time": int(time.time() * 1000)} | more
        (root / STATUS_FILE).write_text(json.dumps(made_up))
        for form in ((), ("--json",)):
            done = rmq("store", "status", root, *form)
            assert (done.exit_code, "\x9b" in done.stdout) == (0, False), done.stderr


def wait_for(path: Path) -> None:
    until = time.monotonic() + 20
    while not path.exists():
        assert time.monotonic() < until, path
        time.sleep(0.02)


def test_a_disk_that_does_not_say_its_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Counters come again, and with them checkpoints, which the same thread writes; so does expiry."""
    settings = {"cleanResourceInterval": 10}
    with monkeypatch.context() as patch:
        patch.setattr("rmqtool.messagestore.expiry.FIRST_RUN", 0.01)
        refuse(patch, "statvfs", errno.EIO)
        store = open_small(tmp_path / "store", **settings)
        with store:
            for act in (store.stats, store.expire):
                with pytest.raises(StoreIOError, match="Input/output error"):
                    act()
            time.sleep(1.5)
            assert not (tmp_path / "store" / STATUS_FILE).exists()
            patch.undo()
            assert store.put(Message("T", b"")).status is PutStatus.PUT_OK
            wait_for(tmp_path / "store" / STATUS_FILE)
            names = {one.name for one in threading.enumerate()}
            assert {"rmqtool-checkpoint", "rmqtool-clean"} <= names


def test_a_store_that_is_moved_while_it_is_open(tmp_path: Path) -> None:
    with open_small(tmp_path / "store") as store:
        (tmp_path / "store").rename(tmp_path / "moved")
        assert store.put_many(traffic(0, 100))[-1].status is PutStatus.PUT_OK
        assert 0 < store.stats().disk_ratio < 1
        assert store.expire().segments == 0
        store.topics.set("Made")
        wait_for(tmp_path / "moved" / STATUS_FILE)
    assert not (tmp_path / "store").exists()
    with open_small(tmp_path / "moved") as store:
        assert store.topics.get("Made") is not None
        assert sum(store.offsets(*queue)[1] for queue in store.queues()) == 100


@pytest.mark.parametrize(
    "content", [b"", b"[]", b'{"time": "x"}', b'{"time": 1e999}', b"\xff", b"[" * 70_000]
)
def test_a_file_of_others_says_nothing(tmp_path: Path, content: bytes) -> None:
    with open_small(tmp_path / "store"):
        (tmp_path / "store" / STATUS_FILE).write_bytes(content)
        assert published(str(tmp_path / "store")) is None


def test_no_link_in_its_place_is_followed(tmp_path: Path) -> None:
    root, other = tmp_path / "store", tmp_path / "other"
    other.write_bytes(b"of another")
    with open_small(root) as store, Folder.open(str(root)) as folder:
        for name in (STATUS_FILE, f".{STATUS_FILE}.tmp"):
            (root / name).unlink(missing_ok=True)
            (root / name).symlink_to(other)
        assert published(str(root)) is None
        publish(folder, store.stats())
    assert other.read_bytes() == b"of another"


def test_rates_are_those_of_the_last_seconds() -> None:
    statistics = Statistics("/", lambda: (0, 0))
    statistics.put(1000, 0)
    for _ in range(11):
        statistics.tick()
    reported = statistics.now()
    assert (reported.put.messages, reported.put.per_second, reported.put.latency_ms) == (1000, 0.0, None)
