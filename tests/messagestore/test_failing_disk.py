"""A disk that is full, or fails, at each call that writes: nothing acknowledged is lost, and it goes on."""

from __future__ import annotations

import errno
import itertools
import os
import shutil
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from rmqtool import Message
from rmqtool.errors import RmqtoolError, StoreIOError
from rmqtool.messagestore.messages import Ack, PutStatus
from tests.disks import fails_where, refuse, replace
from tests.helpers import rmq
from tests.messagestore.helpers import open_small

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable
    from pathlib import Path

WAYS: dict[str, dict[str, Any]] = {
    "sync": {
        "flushDiskType": "SYNC_FLUSH",
        "enableConsumeQueueExt": True,
        "mappedFileSizeConsumeQueueExt": 500,
    },
    "pool": {"transientStorePoolEnable": True, "transientStorePoolSize": 2, "commitIntervalCommitLog": 5},
    "warm": {"flushDiskType": "SYNC_FLUSH", "warmMapedFileEnable": True},
}
SOME = 3
"""one of so many places is tried in the usual run"""
NEVER = (PutStatus.PUT_OK, PutStatus.FLUSH_DISK_TIMEOUT)
"""what is answered where a message is stored"""


def message(number: int) -> Message:
    size = 40 if number % 9 else 900
    return Message(f"T{number % 2}", b"%d " % number * size, queue_id=number % 3, keys=[f"key-{number}"])


def life(root: Path, settings: dict[str, Any], first: int) -> dict[int, int]:
    """All ways to put and what else writes, on a disk that may fail; queue offsets of what is safe."""
    safe: dict[int, int] = {}
    reported: dict[int, int] = {}

    def note(numbers: Iterable[int], acks: Iterable[Ack]) -> None:
        for number, ack in zip(numbers, acks, strict=True):
            assert (ack.physical_offset >= 0) == (ack.status in NEVER), ack
            if ack.status is PutStatus.PUT_OK:
                reported[number] = ack.queue_offset

    with suppress(RmqtoolError):
        store = open_small(root, **settings)
        try:
            for number in range(first, first + 12):
                note([number], [store.put(message(number))])
            numbers = range(first + 12, first + 30)
            note(numbers, store.put_many([message(one) for one in numbers]))
            numbers = range(first + 30, first + 34)
            note(numbers, [one.result(30) for one in [store.put_async(message(one)) for one in numbers]])
            if settings.get("flushDiskType") == "SYNC_FLUSH" or store.flush():
                safe |= reported
            for act in (lambda: store.topics.set("Made"), lambda: store.get("T0", 0, 0), store.expire):
                with suppress(RmqtoolError):
                    act()
        finally:
            store.close()
        safe |= reported
    return safe


def check(root: Path, settings: dict[str, Any], safe: dict[int, int]) -> None:
    with open_small(root, **settings) as store:
        ack = store.put(Message("T0", b"more", queue_id=0))
        assert ack.status is PutStatus.PUT_OK, ack
        assert store.flush()
        queues: dict[tuple[str, int], list[str]] = {}
        for queue in store.queues():
            table = store.get_table(*queue, columns=["queue_offset", "keys"])
            assert table["queue_offset"].to_pylist() == list(range(table.num_rows))
            queues[queue] = [one[0] if one else "" for one in table["keys"].to_pylist()]
        for number, offset in safe.items():
            key = f"key-{number}"
            assert queues[f"T{number % 2}", number % 3][offset] == key
            assert [one.queue_offset for one in store.query_key(f"T{number % 2}", key)] == [offset]
    found = [one for one in rmq("verify", root, "--format", "ndjson").rows if "code" in one]
    assert [one for one in found if one["severity"] != "note"] == []


def once(site: str) -> Callable[[str], bool]:
    done: list[str] = []
    return lambda found: found == site and not done and not done.append(found)  # type: ignore[func-returns-value]


def from_then_on(site: str) -> Callable[[str], bool]:
    done: list[str] = []
    return lambda found: bool(done) or (found == site and not done.append(found))  # type: ignore[func-returns-value]


def ways_to_fail(
    sites: set[str], *, every: bool = False
) -> list[tuple[str, int, Callable[[str], Callable[[str], bool]]]]:
    """A full disk and one that fails, for once and for good: in turn, at some places, unless `every`."""
    kinds = [(error, how) for error in (errno.ENOSPC, errno.EIO) for how in (once, from_then_on)]
    return [
        (site, *kind)
        for place, site in enumerate(sorted(sites))
        for number, kind in enumerate(kinds)
        if every or (place % SOME == 0 and number == place // SOME % len(kinds))
    ]


def fail_everywhere(
    root: Path,
    patch: pytest.MonkeyPatch,
    settings: dict[str, Any],
    *,
    past: Collection[str] = (),
    every: bool = False,
) -> set[str]:
    """At each place that is not `past`; gives them all."""
    begun, safe = root / "begun", {}
    root.mkdir()
    with patch.context() as watched:
        sites = fails_where(watched, 0, lambda _: False)
        safe = life(begun, settings, 0)
        seen = set(sites)
        shutil.copytree(begun, root / "second")
        life(root / "second", settings, 100)
        seen |= set(sites)
    assert len(safe) == 34, safe
    for number, (site, error, how) in enumerate(ways_to_fail(seen - set(past), every=every)):
        print(f"{errno.errorcode[error]} {how.__name__} at {site}")
        copy = root / f"{number}"
        if number % 2:
            shutil.copytree(begun, copy)
        with patch.context() as failing:
            fails_where(failing, error, how(site))
            found = life(copy, settings, 100)
        check(copy, settings, found | (safe if number % 2 else {}))
        shutil.rmtree(copy)
    return seen


@pytest.mark.parametrize("as_table", [False, True])
def test_only_what_was_written_before_is_acknowledged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, as_table: bool
) -> None:
    """The second of several writes of one call fails."""
    real, writes = os.pwrite, itertools.count()
    given = [Message("T", bytes(1000), queue_id=0) for _ in range(3000)]

    def pwrite(descriptor: int, data: Any, position: int) -> int:
        if "/commitlog/" in os.readlink(f"/proc/self/fd/{descriptor}") and next(writes):
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return real(descriptor, data, position)

    with open_small(tmp_path / "store", mappedFileSizeCommitLog=1 << 24) as store:
        with monkeypatch.context() as failing:
            replace(failing, "pwrite", pwrite)
            table = pa.table({"topic": ["T"] * 3000, "body": [bytes(1000)] * 3000, "queue_id": [0] * 3000})
            answer = store.put_many(table if as_table else given)
        acks = answer.to_pylist() if as_table else [one._asdict() for one in answer]
        stored = [one["queue_offset"] for one in acks if one["status"] == PutStatus.PUT_OK]
        assert 0 < len(stored) < 3000
        assert stored == list(range(len(stored))) == list(range(store.offsets("T", 0)[1]))
        assert {(one["status"], one["physical_offset"]) for one in acks[len(stored) :]} == {
            (PutStatus.UNKNOWN_ERROR, -1)
        }
        if not as_table:
            assert acks[-1]["message"] == f"commitlog/{0:020d}: Input/output error"
        assert store.put(given[0]).queue_offset == len(stored)


@pytest.mark.parametrize("closes", [False, True])
def test_nothing_comes_back_of_a_write_that_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, closes: bool
) -> None:
    """Half of a batch is there; a record that follows in its place ends where one of the batch begins."""
    root, body, real = tmp_path / "store", bytes(200), os.pwrite
    batch = [Message("T", body, queue_id=number % 2) for number in range(400)]
    store = open_small(root, mappedFileSizeCommitLog=1 << 20)
    assert store.put(batch[0]).queue_offset == 0

    def pwrite(descriptor: int, data: Any, position: int) -> int:
        if "/commitlog/" not in os.readlink(f"/proc/self/fd/{descriptor}"):
            return real(descriptor, data, position)
        if len(data) < 1 << 16:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return real(descriptor, memoryview(data)[: 1 << 15], position)

    with monkeypatch.context() as failing:
        replace(failing, "pwrite", pwrite)
        acks = store.put_many(batch)
    assert {one.status for one in acks} == {PutStatus.UNKNOWN_ERROR}
    if closes:
        store.close()
        store = open_small(root, mappedFileSizeCommitLog=1 << 20)
    assert store.put(batch[1]).queue_offset == 0
    shutil.copytree(root, tmp_path / "killed")
    store.close()
    with open_small(tmp_path / "killed", mappedFileSizeCommitLog=1 << 20) as store:
        assert [store.offsets("T", number) for number in range(2)] == [(0, 1), (0, 1)]


def test_what_the_system_said_is_one_clear_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root, said = tmp_path / "store", "No space left on device"
    store = open_small(root, flushDiskType="SYNC_FLUSH", mappedFileSizeCommitLog=4096)
    with monkeypatch.context() as failing:
        refuse(failing, "pwrite", errno.ENOSPC, lambda first, *_: is_in_the_log(first))
        refuse(failing, "posix_fallocate", errno.ENOSPC, lambda first, *_: is_in_the_log(first))
        refuse(failing, "ftruncate", errno.ENOSPC, lambda first, *_: is_in_the_log(first))
        acks = [store.put(Message("T", bytes(3000), queue_id=0)) for _ in range(3)]
    for ack in acks:
        assert ack.status is not PutStatus.PUT_OK
        assert ack.message in (said, f"commitlog/{0:020d}: {said}")
    with monkeypatch.context() as failing:
        refuse(failing, "fdatasync", errno.EIO, is_in_the_log)
        assert store.put(Message("T", b"", queue_id=0)).status is PutStatus.FLUSH_DISK_TIMEOUT
        assert store.put(Message("T", b"")).message == "not writeable: Input/output error"
    with pytest.raises(StoreIOError, match=r"what was put last may be lost: Input/output error$"):
        store.close()


def test_the_lock_goes_where_its_file_tells_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = open_small(tmp_path / "store")
    with monkeypatch.context() as failing:
        refuse(
            failing,
            "fstat",
            errno.ESTALE,
            lambda first, *_: os.readlink(f"/proc/self/fd/{first}").endswith("/lock"),
        )
        store.close()
    open_small(tmp_path / "store").close()


def is_in_the_log(descriptor: int, *_: Any) -> bool:
    return "/commitlog/" in os.readlink(f"/proc/self/fd/{descriptor}")


@pytest.mark.timeout(120)
def test_calls_that_write_may_fail(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: set[str] = set()
    for way, settings in WAYS.items():
        seen |= fail_everywhere(tmp_path / way, monkeypatch, settings, past=seen)


@pytest.mark.full
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("way", WAYS)
def test_each_call_that_writes_may_fail_in_each_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    fail_everywhere(tmp_path / "all", monkeypatch, WAYS[way], every=True)


@pytest.mark.parametrize("new", [False, True])
def test_an_open_without_room_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, new: bool
) -> None:
    if not new:
        open_small(tmp_path / "store").close()
    with monkeypatch.context() as failing:
        fails_where(failing, errno.ENOSPC, lambda _: True)
        with pytest.raises(StoreIOError, match=r"No space left on device: .*free some room") as caught:
            open_small(tmp_path / "store")
        assert "queues" not in str(caught.value)  # of which a new store has none
    open_small(tmp_path / "store").close()
