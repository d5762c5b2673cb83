"""Readers and writers that wait: for a message, a flush, a close, or a put that does not end."""

from __future__ import annotations

import math
import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from rmqtool import Message
from rmqtool.errors import StoreClosedError
from rmqtool.messagestore.dispatching import Dispatching
from rmqtool.messagestore.messages import PutStatus
from tests.disks import replace
from tests.messagestore.helpers import RELEASES, bodies, open_small

if TYPE_CHECKING:
    from pathlib import Path


def test_close_ends_the_readers_that_wait(tmp_path: Path) -> None:
    store = open_small(tmp_path / "store")
    with ThreadPoolExecutor() as pool:
        waiting = pool.submit(lambda: store.get("T", 0, 0, wait=60))
        time.sleep(0.1)
        began = time.monotonic()
        store.close()
        with pytest.raises(StoreClosedError):
            waiting.result(60)
        assert time.monotonic() - began < 10


@pytest.mark.parametrize("wait", [math.nan, -1.0, 0.0])
def test_a_wait_of_no_time_ends_at_once(tmp_path: Path, wait: float) -> None:
    with open_small(tmp_path / "store") as store:
        reader = threading.Thread(target=lambda: store.get("T", 0, 0, wait=wait), daemon=True)
        reader.start()
        reader.join(10)
        assert not reader.is_alive()


def test_an_endless_wait_ends_with_a_message(tmp_path: Path) -> None:
    with open_small(tmp_path / "store") as store, ThreadPoolExecutor() as pool:
        waiting = pool.submit(lambda: store.get("T", 0, 0, wait=math.inf))
        store.put(Message("T", b"x", queue_id=0))
        assert [one.body for one in waiting.result(10).messages] == [b"x"]


def test_a_get_waits_for_the_next_message(tmp_path: Path) -> None:
    with open_small(tmp_path / "store") as store:
        begin = time.monotonic()
        assert store.get("T", 0, 0, wait=0.2).messages == []
        assert time.monotonic() - begin >= 0.2
        later = threading.Timer(0.2, store.put, [Message("T", b"late", queue_id=0)])
        later.start()
        assert [one.body for one in store.get("T", 0, 0, wait=30).messages] == [b"late"]
        assert time.monotonic() - begin < 20


def test_who_waits_does_not_wait_for_the_pause_of_dispatching(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Dispatching, "pauses", (600.0, 600.0))
    with open_small(tmp_path / "store") as store:
        store.put(Message("T", b"first", queue_id=0))
        while store.dispatch_behind:
            time.sleep(0.001)
        later = threading.Timer(0.05, store.put, [Message("T", b"late", queue_id=0)])
        later.start()
        assert [one.body for one in store.get("T", 0, 1, wait=60).messages] == [b"late"]
        later.join()


@pytest.mark.parametrize("release", RELEASES)
def test_sync_flush_acknowledges_what_is_on_the_medium(
    tmp_path: Path, release: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[int] = []
    whole = os.fdatasync

    def fdatasync(descriptor: int) -> None:
        whole(descriptor)
        synced.append(descriptor)

    replace(monkeypatch, "fdatasync", fdatasync)
    with open_small(tmp_path / "store", release, flushDiskType="SYNC_FLUSH") as store:
        for number in range(3):
            before = len(synced)
            assert store.put(Message("T", b"%d" % number, queue_id=0)).status is PutStatus.PUT_OK
            assert len(synced) > before
            assert store.flush_behind == 0
        before = len(synced)
        acks = store.put_many([Message("T", b"m", queue_id=0)] * 10)
        assert {one.status for one in acks} == {PutStatus.PUT_OK}
        assert len(synced) <= before + 2
        futures = [store.put_async(Message("T", b"f", queue_id=0)) for _ in range(20)]
        assert [one.result(10).queue_offset for one in futures] == list(range(13, 33))
        assert len(synced) < before + 20
        store.put(Message("T", b"w", queue_id=0, properties={"WAIT": "false"}))
        assert store.flush()
        assert len(bodies(store, "T", 0)) == 34


def test_a_put_that_does_not_end_makes_others_fail(tmp_path: Path) -> None:
    """`DefaultMessageStore#isOSPageCacheBusy`."""
    with open_small(tmp_path / "store", osPageCacheBusyTimeOutMills=20) as store:
        assert store.put(Message("T", b"1")).status is PutStatus.PUT_OK
        append = store._log.append

        def slow(*given: object) -> None:
            entered.set()
            left.wait()
            append(*given)  # type: ignore[arg-type]

        entered, left = threading.Event(), threading.Event()
        store._log.append = slow  # type: ignore[method-assign]
        first = threading.Thread(target=store.put, args=(Message("T", b"2"),))
        first.start()
        entered.wait()
        time.sleep(0.05)
        assert store.put(Message("T", b"3")).status is PutStatus.OS_PAGE_CACHE_BUSY
        assert store.put_many([Message("T", b"4")])[0].status is PutStatus.OS_PAGE_CACHE_BUSY
        left.set()
        first.join()
        assert store.put(Message("T", b"5")).status is PutStatus.PUT_OK
