"""Writers that are killed at any moment: every message that was acknowledged is there, at its place."""

from __future__ import annotations

import multiprocessing
import os
import random
import select
import signal
import time
from typing import TYPE_CHECKING, Any

import pytest

from rmqtool import Message
from tests.helpers import rmq
from tests.messagestore.helpers import open_small

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

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
]
LONGEST = 0.4
"""seconds behind the first acknowledgement"""


def body_of(number: int) -> bytes:
    return b"%d " % number * (number % 60)


def message(number: int) -> Message:
    return Message(f"T{number % 2}", body_of(number), queue_id=number % 3, keys=[f"key-{number}"])


def acknowledged(store: MessageStore, chance: random.Random, first: int) -> Iterator[tuple[int, Ack]]:
    """Puts messages in all ways, and gives the answer to each with its number."""
    number = first
    while True:
        count = chance.choice((1, 1, 1, 7, 30))
        numbers = range(number, number + count)
        number += count
        way = chance.choice(("put", "many", "async", "get"))
        if way == "get":
            store.get("T0", 0, 0)
        if way == "many":
            yield from zip(numbers, store.put_many([message(one) for one in numbers]), strict=True)
        elif way == "async":
            futures = [store.put_async(message(one)) for one in numbers]
            for one, future in zip(numbers, futures, strict=True):
                yield one, future.result()
        else:
            for one in numbers:
                yield one, store.put(message(one))


def write(root: Path, pipe: int, seed: int, release: str, first: int) -> None:
    """In a child: opens the store, puts, and tells every acknowledgement, until it is killed."""
    settings = SETTINGS[seed % len(SETTINGS)]
    with open_small(root, release, **settings) as store:
        for number, ack in acknowledged(store, random.Random(seed), first):
            if ack.status.value == "PUT_OK":
                os.write(pipe, b"%d %d\n" % (number, ack.queue_offset))


def killed(root: Path, seed: int, release: str, first: int) -> dict[int, int]:
    """Numbers of the messages that were acknowledged before the kill, and their queue offsets."""
    reading, writing = os.pipe()
    child = multiprocessing.get_context("fork").Process(
        target=write, args=(root, writing, seed, release, first)
    )
    child.start()
    os.close(writing)
    told, until = b"", None
    while until is None or time.monotonic() < until:
        left = 60.0 if until is None else max(until - time.monotonic(), 0)
        if select.select([reading], [], [], left)[0]:
            part = os.read(reading, 1 << 16)
            assert part, "the writer ended by itself"
            told += part
        if until is None:
            until = time.monotonic() + random.Random(seed).random() * LONGEST
    assert child.pid is not None
    os.kill(child.pid, signal.SIGKILL)
    child.join()
    while part := os.read(reading, 1 << 16):
        told += part
    os.close(reading)
    lines = told[: told.rfind(b"\n") + 1].decode().splitlines()
    return {int(number): int(offset) for number, offset in map(str.split, lines)}


def check(root: Path, release: str, seed: int, found: dict[int, int]) -> None:
    """Every acknowledged message has its place, and queues have no gap."""
    with open_small(root, release, **SETTINGS[seed % len(SETTINGS)]) as store:
        queues: dict[tuple[str, int], list[str]] = {}
        for topic, queue_id in store.queues():
            table = store.get_table(topic, queue_id, columns=["queue_offset", "keys", "body"])
            low, high = store.offsets(topic, queue_id)
            assert (low, table["queue_offset"].to_pylist()) == (0, list(range(high)))
            keys = [one[0] for one in table["keys"].to_pylist()]
            assert len(set(keys)) == len(keys)
            queues[topic, queue_id] = keys
            for key, body in zip(keys, table["body"].to_pylist(), strict=True):
                assert (body or b"") == body_of(int(key[4:]))
        for number, offset in found.items():
            assert queues[f"T{number % 2}", number % 3][offset] == f"key-{number}", number
    result = rmq("verify", root)
    assert result.exit_code == 0, result.stdout


def kill_again_and_again(root: Path, seed: int, times: int) -> None:
    release = ("4.9.8", "5.3.3")[seed % 2]
    found: dict[int, int] = {}
    for life in range(times):
        found |= killed(root, seed * 100 + life * len(SETTINGS) + seed, release, 1_000_000 * life)
        check(root, release, seed * 100 + seed, found)
    assert found


@pytest.mark.parametrize("seed", range(4))
def test_what_was_acknowledged_survives_a_kill(tmp_path: Path, seed: int) -> None:
    kill_again_and_again(tmp_path / "store", seed, 1)


@pytest.mark.full
@pytest.mark.parametrize("seed", range(4, 54))
def test_what_was_acknowledged_survives_200_kills(tmp_path: Path, seed: int) -> None:
    kill_again_and_again(tmp_path / "store", seed, 4)
