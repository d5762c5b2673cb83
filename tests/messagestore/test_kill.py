"""Writers that are killed at any moment: every message that was acknowledged is there, at its place."""

from __future__ import annotations

import multiprocessing
import os
import random
import select
import signal
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from rmqtool import Message
from tests.disks import replace
from tests.helpers import rmq
from tests.messagestore.helpers import copy_of_open, open_small

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rmqtool import MessageStore
    from rmqtool.messagestore.messages import Ack

SETTINGS: list[dict[str, Any]] = [
    {"flushDiskType": "SYNC_FLUSH"},
    {"flushDiskType": "ASYNC_FLUSH", "flushIntervalCommitLog": 5},
    {"flushDiskType": "SYNC_FLUSH", "enableConsumeQueueExt": True, "mappedFileSizeConsumeQueueExt": 500},
    {
        "flushDiskType": "SYNC_FLUSH",
        "mappedFileSizeCommitLog": 1 << 16,
        "flushConsumeQueueThoroughInterval": 1,
    },
    {
        "transientStorePoolEnable": True,
        "transientStorePoolSize": 2,
        "commitIntervalCommitLog": 20,
        "flushIntervalCommitLog": 5,
    },
    {
        "flushDiskType": "SYNC_FLUSH",
        "fileReservedTime": 0,
        "deleteCommitLogFilesInterval": 1,
        "deleteConsumeQueueFilesInterval": 1,
    },
]
"""ways of flushing, extension files, a pool, segments that expire at once when that is asked for"""
LONGEST = 0.4
"""seconds behind the first acknowledgement"""


def body_of(number: int) -> bytes:
    return b"%d " % number * (number % 60)


def message(number: int) -> Message:
    return Message(f"T{number % 2}", body_of(number), queue_id=number % 3, keys=[f"key-{number}"])


def acknowledged(store: MessageStore, chance: random.Random, first: int) -> Iterator[tuple[int, Ack]]:
    """Puts messages in all ways, and gives the answer to each with its number.

    Lets the store expire now and then where files may go at once.
    """
    expires = not store.config.file_reserved_time
    number = first
    while True:
        count = chance.choice((1, 1, 1, 7, 30))
        numbers = range(number, number + count)
        number += count
        way = chance.choice(("put", "many", "async", "get"))
        if way == "get":
            store.get("T0", 0, 0)
            if expires:
                store.expire()
        if way == "many":
            yield from zip(numbers, store.put_many([message(one) for one in numbers]), strict=True)
        elif way == "async":
            futures = [store.put_async(message(one)) for one in numbers]
            for one, future in zip(numbers, futures, strict=True):
                yield one, future.result()
        else:
            for one in numbers:
                yield one, store.put(message(one))


def write(root: Path, pipe: int, seed: int, release: str, first: int, more: dict[str, Any]) -> None:
    """In a child: opens the store, puts, and tells every acknowledgement, until it is killed."""
    settings, reported = SETTINGS[seed % len(SETTINGS)] | more, b""
    pooled = "transientStorePoolEnable" in settings
    with open_small(root, release, **settings) as store:
        for number, ack in acknowledged(store, random.Random(seed), first):
            if ack.status.value == "PUT_OK":
                reported += b"%d %d\n" % (number, ack.queue_offset)
            if not pooled or (len(reported) > 200 and store.flush()):  # what is in memory only may be lost
                os.write(pipe, reported)
                reported = b""


def killed(root: Path, seed: int, release: str, first: int, **more: Any) -> dict[int, int]:
    """Numbers of the messages that were acknowledged before the kill, and their queue offsets."""
    reading, writing = os.pipe()
    child = multiprocessing.get_context("fork").Process(
        target=write, args=(root, writing, seed, release, first, more)
    )
    child.start()
    os.close(writing)
    reported, until = b"", None
    while until is None or time.monotonic() < until:
        left = 60.0 if until is None else max(until - time.monotonic(), 0)
        if select.select([reading], [], [], left)[0]:
            part = os.read(reading, 1 << 16)
            assert part, "the writer ended by itself"
            reported += part
        if until is None:
            until = time.monotonic() + random.Random(seed).random() * LONGEST
    assert child.pid is not None
    os.kill(child.pid, signal.SIGKILL)
    child.join()
    while part := os.read(reading, 1 << 16):
        reported += part
    os.close(reading)
    lines = reported[: reported.rfind(b"\n") + 1].decode().splitlines()
    return {int(number): int(offset) for number, offset in map(str.split, lines)}


def check(root: Path, release: str, seed: int, found: dict[int, int], **more: Any) -> None:
    """Every acknowledged message has its place, and queues have no gap."""
    with open_small(root, release, **SETTINGS[seed % len(SETTINGS)] | more) as store:
        queues: dict[tuple[str, int], list[str]] = {}
        for topic, queue_id in store.queues():
            table = store.get_table(topic, queue_id, columns=["queue_offset", "keys", "body"])
            low, high = store.offsets(topic, queue_id)
            assert table["queue_offset"].to_pylist() == list(range(low, high))
            assert not low or not store.config.file_reserved_time
            keys = [one[0] for one in table["keys"].to_pylist()]
            assert len(set(keys)) == len(keys)
            queues[topic, queue_id] = [""] * low + keys
            for key, body in zip(keys, table["body"].to_pylist(), strict=True):
                assert (body or b"") == body_of(int(key[4:]))
        for number, offset in found.items():
            assert queues[f"T{number % 2}", number % 3][offset] in {"", f"key-{number}"}, number
    result = rmq("verify", root)
    assert result.exit_code == 0, result.stdout


def kill_again_and_again(root: Path, seed: int, times: int) -> None:
    release = ("4.9.8", "5.3.3")[seed % 2]
    found: dict[int, int] = {}
    for life in range(times):
        found |= killed(root, seed * 100 + life * len(SETTINGS) + seed, release, 1_000_000 * life)
        check(root, release, seed * 100 + seed, found)
    assert found


@pytest.mark.share
@pytest.mark.parametrize("seed", range(6))
def test_what_was_acknowledged_survives_a_kill(tmp_path: Path, seed: int) -> None:
    kill_again_and_again(tmp_path / "store", seed, 1)


def put_keys(root: Path, first: int, count: int) -> None:
    with open_small(root) as store:
        store.put_many([message(number) for number in range(first, first + count)])


def test_the_index_has_each_record_once_after_a_kill(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As files are when headers are written, while an index file becomes full and the next one is made."""
    root, real, taken = tmp_path / "store", os.pwrite, list[Path]()
    put_keys(root, 0, 30)

    def pwrite(descriptor: int, data: Any, offset: int) -> int:
        if "/index/" in os.readlink(f"/proc/self/fd/{descriptor}") and not offset:
            taken.append(tmp_path / str(len(taken)))
            copy_of_open(root, taken[-1])
        return real(descriptor, data, offset)

    with monkeypatch.context() as patch:
        replace(patch, "pwrite", pwrite)
        put_keys(root, 30, 12)
    assert {len(os.listdir(one / "index")) for one in taken} == {2, 3}
    for one in taken[-2:]:
        open_small(one).close()
        assert rmq("verify", one).exit_code == 0


def test_an_index_file_whose_header_is_lost_is_made_again(tmp_path: Path) -> None:
    """Its name reached the disk in front of a power cut, its header did not."""
    root = tmp_path / "store"
    put_keys(root, 0, 30)
    (root / "abort").touch()
    last = max((root / "index").iterdir())
    with last.open("r+b") as file:
        file.write(bytes(40))
    open_small(root).close()
    assert rmq("verify", root).exit_code == 0


@pytest.mark.full
@pytest.mark.parametrize("seed", range(4, 54))
def test_what_was_acknowledged_survives_200_kills(tmp_path: Path, seed: int) -> None:
    kill_again_and_again(tmp_path / "store", seed, 4)
