"""Segments that cannot be made, flushed or written: a status, and what was acknowledged stays."""

from __future__ import annotations

import errno
import os
import time
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest

from rmqtool import Message
from rmqtool.broker.mapped_files import MappedFiles
from rmqtool.errors import StoreIOError
from rmqtool.messagestore.log_files import LogFiles
from rmqtool.messagestore.log_places import open_places
from rmqtool.messagestore.messages import PutStatus
from rmqtool.store.config import config_of
from tests.disks import refuse
from tests.helpers import rmq
from tests.messagestore.helpers import bodies, open_small

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("refused", [errno.EIO, errno.ENOSPC])
def test_a_flush_that_fails_is_never_taken_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, refused: int
) -> None:
    root = tmp_path / "store"
    store = open_small(root, flushDiskType="SYNC_FLUSH")
    assert store.put(Message("T", b"safe", queue_id=0)).status is PutStatus.PUT_OK

    with monkeypatch.context() as patched:
        refuse(patched, "fdatasync", refused)
        assert store.put(Message("T", b"lost", queue_id=0)).status is PutStatus.FLUSH_DISK_TIMEOUT
    assert store.put(Message("T", b"more", queue_id=0)).status is PutStatus.SERVICE_NOT_AVAILABLE
    assert not store.flush()
    with pytest.raises(StoreIOError, match="may be lost"):
        store.close()
    assert (root / "abort").exists()
    with open_small(root) as again:
        assert bodies(again, "T", 0)[0] == b"safe"


@pytest.mark.parametrize("call", ["posix_fallocate", "pwrite"])
def test_a_full_disk_is_a_status(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str) -> None:
    with open_small(tmp_path / "store", mappedFileSizeCommitLog=1 << 20) as store:
        store.put(Message("T", b"one", queue_id=0))
        big = Message("T", bytes((1 << 20) - 150), queue_id=0)  # opens the next segment, and goes by pwrite
        with monkeypatch.context() as patched:
            refuse(patched, call, errno.ENOSPC, lambda *given: call != "pwrite" or len(given[1]) > 1000)
            ack = store.put(big)
            assert (ack.status, ack.queue_offset, bool(ack.message)) == (PutStatus.UNKNOWN_ERROR, -1, True)
            many = store.put_many([big] * 3)
            assert {one.status for one in many} == {PutStatus.UNKNOWN_ERROR}
        assert store.put(Message("T", b"three", queue_id=0)).queue_offset == 1
        assert bodies(store, "T", 0) == [b"one", b"three"]
    assert rmq("verify", tmp_path / "store").exit_code == 0


@pytest.mark.parametrize("call", ["open", "link", "fsync"])
def test_the_segment_that_cannot_be_made_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    with (
        open_small(tmp_path / "store", mappedFileSizeCommitLog=4096) as store,
        monkeypatch.context() as patched,
    ):
        store.topics.set("T", write_queues=1)
        refuse(patched, call, errno.EIO)
        assert store.put(Message("T", b"")).message == f"commitlog/{0:020}: Input/output error"


def test_a_segment_that_cannot_be_made_leaves_no_descriptor_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a file system without files that have no name, too; it is tried again with each put."""
    with (
        open_small(tmp_path / "store", mappedFileSizeCommitLog=4096) as store,
        monkeypatch.context() as patched,
    ):
        store.topics.set("T", write_queues=1)
        refuse(patched, "ftruncate", errno.ENOSPC)
        refuse(
            patched,
            "open",
            errno.EOPNOTSUPP,
            lambda _, flags=0, *more: flags & os.O_TMPFILE == os.O_TMPFILE,
        )
        assert store.put(Message("T", b"")).status is PutStatus.CREATE_MAPPED_FILE_FAILED
        before = len(os.listdir("/proc/self/fd"))
        statuses = {store.put(Message("T", b"")).status for _ in range(30)}
        assert statuses == {PutStatus.CREATE_MAPPED_FILE_FAILED}
        assert len(os.listdir("/proc/self/fd")) < before + 10


def test_no_segment_can_be_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with open_small(tmp_path / "store", mappedFileSizeCommitLog=1 << 16) as store:
        with monkeypatch.context() as patched:
            refuse(patched, "ftruncate", errno.ENOSPC)
            store.topics.set("T", write_queues=1)
            body = bytes(60_000)
            statuses = [store.put(Message("T", body)).status for _ in range(5)]
        assert statuses[-1] is PutStatus.CREATE_MAPPED_FILE_FAILED
        assert store.put(Message("T", body)).status is PutStatus.PUT_OK
        stored = statuses.count(PutStatus.PUT_OK) + 1
        assert store.offsets("T", 0)[1] == stored


@pytest.mark.timeout(30)
@pytest.mark.parametrize("size", [100, 70_000])
@pytest.mark.parametrize("guarded", [True, False])
def test_a_segment_that_another_process_cuts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int, guarded: bool
) -> None:
    """Without a guard a write through a mapping would end the process by SIGBUS."""
    if not guarded:
        monkeypatch.setattr("rmqtool.store.faults.installed", lambda: False)
    store = open_small(tmp_path, mappedFileSizeCommitLog=1 << 20)
    assert store.put(Message("T", b"whole", queue_id=0)).status == PutStatus.PUT_OK
    assert store.offsets("T", 0) == (0, 1)  # dispatched: nothing reads it any more behind the cut
    os.truncate(tmp_path / "commitlog" / f"{0:020d}", 0)
    for _ in range(2):
        ack = store.put(Message("T", bytes(size)))
        assert ack.status in {PutStatus.UNKNOWN_ERROR, PutStatus.SERVICE_NOT_AVAILABLE}
        assert "cut" in ack.message
    assert not store.flush()
    assert store.put(Message("T", b"more")).status == PutStatus.SERVICE_NOT_AVAILABLE
    with suppress(StoreIOError):
        store.close()
    assert (tmp_path / "abort").exists()


def test_a_segment_in_use_is_not_taken_for_one_that_was_made_ahead(tmp_path: Path) -> None:
    """The thread that makes segments looks while the log is not reported yet that the next one is in use."""
    (tmp_path / "commitlog").mkdir()
    log = LogFiles(open_places(tmp_path, config_of({})), MappedFiles(4096, "commitlog"))
    segments = [tmp_path / "commitlog" / f"{number * 4096:020}" for number in range(4)]
    log.place_for(100)
    log.write(f"commitlog/{segments[1].name}", 4096, 0, b"")
    until = time.monotonic() + 2
    while not segments[3].exists() and time.monotonic() < until:
        time.sleep(0.001)
    log.close()
    assert [one.exists() for one in segments] == [True, True, False, False]
