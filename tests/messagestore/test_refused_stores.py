"""Stores that are not opened for writing: nothing in them is changed then."""

from __future__ import annotations

import multiprocessing
import os
import shutil
from typing import TYPE_CHECKING

import pytest

from rmqtool import Message, MessageStore
from rmqtool.errors import (
    ExitCode,
    LockedError,
    NewerFormatError,
    NotAStoreError,
    RecoveryLossError,
    StoreClosedError,
    StoreIOError,
    UnfitStoreError,
    UsageError,
)
from rmqtool.messagestore.messages import PutStatus
from rmqtool.store import lock
from tests.fuzz.commands import tree
from tests.helpers import rmq
from tests.messagestore.helpers import SMALL, open_small, traffic

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from fixtures import Golden


def test_a_store_is_not_opened_at_the_price_of_intact_records(tmp_path: Path) -> None:
    root = tmp_path / "store"
    with open_small(root) as store:
        acks = store.put_many(traffic(0, 90))
        last = acks[-1].physical_offset // 4096 * 4096
        hurt = next(one for one in acks if one.physical_offset >= last)
        store.flush()
    (root / "abort").touch()
    path = root / "commitlog" / f"{last:020d}"
    data = bytearray(path.read_bytes())
    data[hurt.physical_offset - last + 90] ^= 1
    path.write_bytes(data)
    before = {one: one.read_bytes() for one in sorted(root.rglob("*")) if one.is_file()}
    with pytest.raises(RecoveryLossError) as caught:
        open_small(root)
    kept = sum(one.physical_offset < hurt.physical_offset for one in acks)
    assert caught.value.messages == len(acks) - kept - 1
    assert "rmqtool recover" in str(caught.value)
    assert caught.value.exit_code is ExitCode.DAMAGE
    assert {one: one.read_bytes() for one in before} == before
    with MessageStore.open(root, config=SMALL, recovery="broker") as store:
        assert sum(store.offsets(*queue)[1] for queue in store.queues()) == kept


def test_what_cannot_be_opened(tmp_path: Path) -> None:
    with pytest.raises(NotAStoreError):
        MessageStore.open(tmp_path / "none")
    (tmp_path / "file").touch()
    with pytest.raises(UsageError):
        MessageStore.open(tmp_path / "file", create=True)
    with open_small(tmp_path / "store") as store:
        store.put(Message("T", b"x"))
    (tmp_path / "store" / "commitlog" / "00000000000000004096").write_bytes(b"short")
    with pytest.raises(UnfitStoreError):
        MessageStore.open(tmp_path / "store", config=SMALL)


@pytest.mark.share
@pytest.mark.parametrize("create", [False, True])
@pytest.mark.parametrize("name", ["b533-dledger", "b497-dledger", "b533-rocksdb", "b533-rocksdb-double"])
def test_a_store_in_files_that_are_not_written_here_is_refused(
    fresh_golden: Callable[[str], Golden], name: str, create: bool
) -> None:
    """DLedger's got an empty log beside its own, and its queues were emptied to fit that one."""
    root = fresh_golden(name).path
    before = tree(root)
    with pytest.raises(NewerFormatError, match=r"DLedger|RocksDB"):
        MessageStore.open(root, create=create)
    assert tree(root) == before
    assert rmq("store", "put", root, "T", "--body", "x").exit_code == ExitCode.NEWER_FORMAT


def test_queues_without_their_log_are_not_emptied(tmp_path: Path) -> None:
    root = tmp_path / "store"
    with open_small(root) as store:
        store.put(Message("T", b"x"))
    (root / "commitlog").rename(tmp_path / "away")
    before = tree(root)
    with pytest.raises(NotAStoreError, match="has queues, but no commit log"):
        open_small(root)
    assert tree(root) == before


def test_the_lock_is_held_whatever_this_process_does(tmp_path: Path) -> None:
    root = tmp_path / "store"
    with open_small(root) as store:
        store.put(Message("T", b"x"))
        with pytest.raises(LockedError):
            open_small(root)
        assert rmq("info", root).exit_code == 0
        rmq("doctor", root)
        child = multiprocessing.get_context("fork").Process(target=_closed_here, args=(store, root))
        child.start()
        child.join()
        assert child.exitcode == 0
        assert _held_for_others(root)
        assert store.put(Message("T", b"y")).status is PutStatus.PUT_OK
    assert (root / "lock").read_bytes() == b"lock"
    assert not _held_for_others(root)


def _closed_here(store: MessageStore, root: Path) -> None:
    """In a child: the store is closed to it, and the lock is its parent's."""
    with pytest.raises(StoreClosedError):
        store.put(Message("T", b"z"))
    with pytest.raises(StoreClosedError):
        store.topics.set("Child")
    assert b"Child" not in (root / "config/topics.json").read_bytes()
    store.close()
    assert lock.probe(root).held
    os._exit(0)


def _held_for_others(root: Path) -> bool:
    context = multiprocessing.get_context("spawn")
    with context.Pool(1) as pool:
        return bool(pool.apply(lock.probe, (root,)).held)


@pytest.mark.parametrize(
    "place", ["lock", "checkpoint", "config", f"commitlog/{0:020d}", "consumequeue/T", "index"]
)
def test_nothing_is_written_behind_a_link(tmp_path: Path, place: str) -> None:
    root, there = tmp_path / "store", tmp_path / "there"
    with open_small(root) as store:
        store.put(Message("T", b"1", keys=["k"]))
    (root / place).rename(there)
    (root / place).symlink_to(there)
    before = tree(tmp_path)
    refused = rmq("store", "put", root, "T", "--body", "2")
    assert refused.exit_code == ExitCode.USAGE
    assert refused.stderr.startswith(f"rmqtool: {place} is a link")
    assert tree(tmp_path) == before


@pytest.mark.parametrize(
    "place", ["commitlog", "index", "consumequeue", "consumequeue/T", "consumequeue/New", "consumequeue/T/3"]
)
def test_nothing_is_written_where_no_directory_can_be(tmp_path: Path, place: str) -> None:
    root = tmp_path / "store"
    with open_small(root) as store:
        store.put(Message("T", b"1", queue_id=0))
    if (root / place).exists():
        shutil.rmtree(root / place)
    os.mkfifo(root / place)
    before = tree(tmp_path)
    refused = rmq("store", "put", root, "T", "--body", "2")
    assert (refused.exit_code, tree(tmp_path)) == (ExitCode.USAGE, before)
    shown = {"commitlog": f"{root} has no commit log"}.get(place, f"{place} is not a directory")
    assert refused.stderr.startswith(f"rmqtool: {shown}"), refused.stderr


@pytest.mark.parametrize(
    ("place", "again"),
    [(f"commitlog/{0:020d}", "commitlog/00"), (f"consumequeue/T/0/{0:020d}", "consumequeue/T/0/+0")],
)
def test_two_files_of_one_place_are_not_written(tmp_path: Path, place: str, again: str) -> None:
    """A record went into one segment and was looked for in the other: PUT_OK, and then an error."""
    root = tmp_path / "store"
    with open_small(root) as store:
        store.put(Message("T", b"1", queue_id=0))
    shutil.copy(root / place, root / again)
    before = tree(tmp_path)
    refused = rmq("store", "put", root, "T", "--body", "2")
    assert (refused.exit_code, tree(tmp_path)) == (ExitCode.USAGE, before)
    assert (
        refused.stderr
        == f"rmqtool: {' and '.join(sorted((place, again)))} begin at the same offset: nothing was changed\n"
    )


@pytest.mark.parametrize(
    "place",
    ["abort", "checkpoint", "lock", f"commitlog/{4096:020d}", f"consumequeue/T/0/{400:020d}", "index/1"],
)
def test_nothing_is_written_where_no_file_can_be(tmp_path: Path, place: str) -> None:
    root = tmp_path / "store"
    with open_small(root) as store:
        store.put(Message("T", b"1", queue_id=0))
    (root / place).unlink(missing_ok=True)
    (root / place / "inner").mkdir(parents=True)
    before = tree(tmp_path)
    refused = rmq("store", "put", root, "T", "--body", "2")
    assert (refused.exit_code, tree(tmp_path)) == (ExitCode.USAGE, before)
    assert refused.stderr.startswith(f"rmqtool: {place} is not a file: nothing was changed"), refused.stderr


def test_a_link_that_took_the_place_of_the_lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (there := tmp_path / "there").write_bytes(b"others'")
    (tmp_path / "store").mkdir()
    (tmp_path / "store" / "lock").symlink_to(there)
    monkeypatch.setattr("rmqtool.messagestore.opening.refuse_odd_places", lambda *_: None)
    with pytest.raises(StoreIOError, match="lock: is not the file that was locked"):
        open_small(tmp_path / "store")
    assert there.read_bytes() == b"others'"
