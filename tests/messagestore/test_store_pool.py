"""The transient store pool and warmed segments: what is in files, what readers see, what a kill loses."""

from __future__ import annotations

import os
import shutil
import time
from typing import TYPE_CHECKING, Any

import pytest

from rmqtool import Message, MessageStore
from rmqtool.messagestore import warm_up
from rmqtool.messagestore.messages import PutStatus
from tests.disks import replace
from tests.helpers import rmq
from tests.messagestore.helpers import POOLED, RELEASES, SMALL, bodies, open_small

if TYPE_CHECKING:
    from pathlib import Path


def message(number: int) -> Message:
    return Message("T", b"%d" % number, queue_id=0)


def copied(root: Path, to: Path) -> Path:
    """The files as a kill would leave them."""
    shutil.copytree(root, to)
    return to


@pytest.mark.parametrize("release", RELEASES)
def test_what_is_not_committed_is_in_no_file_and_seen_by_nobody(tmp_path: Path, release: str) -> None:
    root = tmp_path / "store"
    with open_small(root, release, **POOLED) as store:
        for number in range(3):
            assert store.put(message(number)).status is PutStatus.PUT_OK
        assert store.flush()
        for number in range(3, 90):  # some segments
            assert store.put(message(number)).queue_offset == number
        assert bodies(store, "T", 0) == [b"0", b"1", b"2"]
        assert store.get("T", 0, 3, wait=0.01).messages == []
        assert store.flush_behind > 8192 > store.dispatch_behind
        left = copied(root, tmp_path / "killed")
        assert store.flush()
        assert len(bodies(store, "T", 0)) == 90
    assert rmq("verify", root).exit_code == 0
    with open_small(left, release) as store:
        assert bodies(store, "T", 0) == [b"0", b"1", b"2"]
        assert store.put(message(3)).queue_offset == 3
    assert rmq("verify", left).exit_code == 0


def test_a_transaction_is_committed_at_once(tmp_path: Path) -> None:
    """Its half message is in no file yet: none was said to be open."""
    with open_small(tmp_path / "store", **POOLED) as store:
        for number in range(20):
            with store.transaction(message(number)):
                pass
        waiting = store.prepare_transaction(message(20))
        store.rollback_transaction(waiting.uniq_key or "")
        assert store.flush()
        assert bodies(store, "T", 0) == [b"%d" % number for number in range(20)]


def test_files_are_the_same_with_a_pool_and_without(tmp_path: Path) -> None:
    for name, settings in (("with", POOLED | {"transientStorePoolSize": 2}), ("without", {})):
        with MessageStore.open(
            tmp_path / name, create=True, config=SMALL | settings, clock=lambda: 1_700_000_000_000
        ) as store:
            for number in range(200):
                store.put(Message("T", b"%d" % number * 40, queue_id=0, uniq_key=f"{number}"))
                if number % 50 == 49:
                    store.flush()
    logs = [sorted((tmp_path / name / "commitlog").iterdir()) for name in ("with", "without")]
    assert [(one.name, one.read_bytes()) for one in logs[0]] == [
        (one.name, one.read_bytes()) for one in logs[1]
    ]


def test_an_empty_pool_refuses_or_is_committed(tmp_path: Path) -> None:
    few = POOLED | {"transientStorePoolSize": 1}
    with open_small(tmp_path / "fast", fastFailIfNoBufferInStorePool=True, **few) as store:
        statuses = [store.put(message(number)).status for number in range(40)]
        assert set(statuses[-10:]) == {PutStatus.CREATE_MAPPED_FILE_FAILED}
        store.flush()
        assert store.put(message(40)).status is PutStatus.PUT_OK
    with open_small(tmp_path / "slow", **few) as store:
        assert {store.put(message(number)).status for number in range(40)} == {PutStatus.PUT_OK}
        found = len(bodies(store, "T", 0))
        assert 0 < found < 40  # segments in front of the last one
        left = copied(tmp_path / "slow", tmp_path / "killed")
        store.flush()
        assert len(bodies(store, "T", 0)) == 40
    with open_small(left) as store:  # nothing intact behind a segment that is not there
        assert len(bodies(store, "T", 0)) == found


@pytest.mark.parametrize(
    ("settings", "seen"),
    [
        ({"commitIntervalCommitLog": 1, "commitCommitLogLeastPages": 0}, True),
        (
            {
                "commitIntervalCommitLog": 1,
                "commitCommitLogLeastPages": 1,
                "commitCommitLogThoroughInterval": 1,
            },
            True,
        ),
        (
            {
                "commitIntervalCommitLog": 1,
                "commitCommitLogLeastPages": 1,
                "commitCommitLogThoroughInterval": 3_600_000,
            },
            False,
        ),
    ],
)
def test_when_it_commits(tmp_path: Path, settings: dict[str, int], seen: bool) -> None:
    with open_small(tmp_path / "store", **POOLED | settings) as store:
        store.put(message(0))
        assert len(store.get("T", 0, 0, wait=5 if seen else 0.05).messages) == seen


@pytest.mark.parametrize(
    ("release", "settings", "pooled"),
    [
        ("4.9.8", {}, True),
        ("4.9.8", {"flushDiskType": "SYNC_FLUSH"}, False),
        ("5.3.3", {"flushDiskType": "SYNC_FLUSH"}, True),
    ],
)
def test_where_there_is_a_pool(tmp_path: Path, release: str, settings: dict[str, str], pooled: bool) -> None:
    """`MessageStoreConfig#isTransientStorePoolEnable`; a put that waits for the medium commits."""
    with open_small(tmp_path / "store", release, **POOLED, **settings) as store:
        unwaited = Message("T", b"x", properties={"WAIT": "false"}, queue_id=0)
        assert store.put(message(0)).status is PutStatus.PUT_OK
        assert len(store.get("T", 0, 0).messages) == (not pooled or bool(settings))
        store.put(unwaited)


@pytest.mark.parametrize("flush", ["ASYNC_FLUSH", "SYNC_FLUSH"])
def test_segments_are_warmed_page_by_page(
    tmp_path: Path, flush: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """`DefaultMappedFile#warmMappedFile`; what the system refuses is a warning."""
    size, calls = 16 << 12, {"pages": 0, "forced": 0}
    pwrite, fdatasync = os.pwrite, os.fdatasync

    def counted(descriptor: int, data: Any, position: int) -> int:
        calls["pages"] += data == b"\0" and position % 4096 == 0
        return pwrite(descriptor, data, position)

    def forced(descriptor: int) -> None:
        calls["forced"] += 1
        fdatasync(descriptor)

    class Refusing:
        def mlock(self, *_: object) -> int:
            return -1

    replace(monkeypatch, "pwrite", counted)
    replace(monkeypatch, "fdatasync", forced)
    monkeypatch.setattr(warm_up, "libc", Refusing)
    settings = {"mappedFileSizeCommitLog": size, "flushDiskType": flush}
    settings |= {"warmMapedFileEnable": True, "flushLeastPagesWhenWarmMapedFile": 4}
    with open_small(tmp_path / "store", **settings) as store:
        store.topics.set("T")
        store.put(message(0))
        until = time.monotonic() + 5
        while calls["pages"] < 48 and time.monotonic() < until:
            time.sleep(0.01)
        assert calls["pages"] == 48  # the segment in use and two ahead
        assert calls["forced"] >= 3 * 5 if flush == "SYNC_FLUSH" else calls["forced"] < 3
        assert [
            one.stat().st_blocks * 512 >= size for one in (tmp_path / "store" / "commitlog").iterdir()
        ] == [True] * 3
        store.put_many([message(number) for number in range(1, 2000)])
        assert bodies(store, "T", 0) == [b"%d" % number for number in range(2000)]
    assert caplog.text.count("mlock") == 1
