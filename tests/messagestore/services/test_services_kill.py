"""Writers with delays and transactions that are killed: nothing early, nothing lost, nothing twice."""

from __future__ import annotations

import multiprocessing
import os
import random
import select
import signal
import time
from collections import Counter
from pathlib import Path

import pytest

from formats import properties as props
from formats.tags_code import SCHEDULE_TOPIC
from rmqtool import Message, MessageStore
from rmqtool.errors import NoTransactionError
from rmqtool.messagestore.messages import StoredMessage
from tests.helpers import rmq
from tests.messagestore.helpers import RELEASES, open_small

FASTER = 20
"""as fast as its clock goes, so that delays of seconds are over soon"""
LEVELS = {1: 1000, 2: 3000}
SETTINGS = {
    "messageDelayLevel": "1s 3s", "mappedFileSizeCommitLog": 1 << 15, "flushDelayOffsetInterval": 50,
    "flushConsumerOffsetInterval": 30, "transactionOpBatchInterval": 40, "transactionTimeOut": 0,
    "transactionCheckMax": 1_000_000,
}  # fmt: skip


def fast() -> int:
    return time.time_ns() // (1_000_000 // FASTER)


def opened(root: Path, release: str) -> MessageStore:
    return open_small(root, release, clock=fast, deliver=False, **SETTINGS)


def work(root: Path, pipe: int, seed: int, release: str) -> None:
    """In a child: sends, delivers, commits and rolls back, and tells what was answered, until its end."""
    dice, number = random.Random(seed), 0
    with opened(root, release) as store:
        while True:
            number += 1
            key, way = f"{seed}-{number}", dice.random()
            if way < 0.5:
                level = dice.choice((1, 2))
                sent = Message(
                    "D", key.encode(), queue_id=number % 2, uniq_key=key, properties={"n": str(level)}
                )
                assert store.send_delayed(sent, level).physical_offset >= 0
                os.write(pipe, f"delayed {key}\n".encode())
            elif way < 0.8:
                tx = store.transaction(Message("X", key.encode(), queue_id=number % 2, uniq_key=key))
                os.write(pipe, f"half {key}\n".encode())
                end = dice.choice(("commit", "rollback", "open"))
                if end != "open":
                    getattr(tx, end)()
                    os.write(pipe, f"{end} {key}\n".encode())
            elif way < 0.95:
                store.deliver_due()
            else:
                store.check_transactions(lambda half: None)


def killed(root: Path, seed: int, release: str) -> list[tuple[str, str]]:
    """What was answered in front of the kill."""
    reading, writing = os.pipe()
    child = multiprocessing.get_context("fork").Process(target=work, args=(root, writing, seed, release))
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
            until = time.monotonic() + random.Random(seed).random() * 0.4
    assert child.pid is not None
    os.kill(child.pid, signal.SIGKILL)
    child.join()
    while part := os.read(reading, 1 << 16):
        reported += part
    os.close(reading)
    lines = reported[: reported.rfind(b"\n") + 1].decode().splitlines()
    return [tuple(one.split(" ")) for one in lines]  # type: ignore[misc]


def finish(root: Path, release: str, answered: list[tuple[str, str]]) -> None:
    """Delivers and commits what is left, and looks at all of it."""
    ended: dict[str, set[str]] = {way: set() for way in ("delayed", "half", "commit", "rollback")}
    for way, key in answered:
        ended[way].add(key)
    with opened(root, release) as store:
        store.check_transactions(lambda half: True)
        assert store.open_transactions() == []
        last = fast()
        while fast() <= last + max(LEVELS.values()):
            time.sleep(0.01)
        store.deliver_due()
        waited = {one.uniq_key: one.store_timestamp for one in everything(store, SCHEDULE_TOPIC)}
        delivered = everything(store, "D")
        assert Counter(one.uniq_key for one in delivered) == Counter(waited.keys()), "each once"
        assert ended["delayed"] <= waited.keys()
        for one in delivered:
            delay = LEVELS[int(one.properties["n"])]
            assert one.store_timestamp >= waited[one.uniq_key] + delay, "not early"
            assert one.properties[props.REAL_TOPIC] == "D"
        found = Counter(one.uniq_key for one in everything(store, "X"))
        assert max(found.values(), default=1) == 1, "each once"
        assert ended["commit"] | (ended["half"] - ended["rollback"]) <= found.keys()
        assert not ended["rollback"] & found.keys()
        for key in ended["half"]:
            with pytest.raises(NoTransactionError):
                store.commit_transaction(key)
    conf = root.parent / "broker.conf"
    conf.write_text("messageDelayLevel=1s 3s\n")
    result = rmq("verify", root, "--store-config", conf, "--format", "ndjson")
    assert [one for one in result.rows if one.get("severity") == "error"] == []


def everything(store: MessageStore, topic: str) -> list[StoredMessage]:
    found: list[StoredMessage] = []
    for of, queue_id in store.queues():
        if of == topic:
            at, end = store.offsets(topic, queue_id)
            while at < end:
                answer = store.get(topic, queue_id, at)
                found += answer.messages
                at = answer.next_begin_offset
    return found


def kill_again_and_again(root: Path, seed: int, times: int) -> None:
    release = RELEASES[seed % 2]
    answered: list[tuple[str, str]] = []
    for life in range(times):
        told = killed(root, seed * 100 + life, release)
        if told and told[-1][0] == "half":  # it may have been rolled back
            told.pop()
        answered += told
    finish(root, release, answered)
    assert answered


@pytest.mark.share
@pytest.mark.parametrize("seed", range(4))
def test_nothing_comes_early_or_twice_or_not_at_all(tmp_path: Path, seed: int) -> None:
    kill_again_and_again(tmp_path / "store", seed, 3)


@pytest.mark.full
@pytest.mark.parametrize("seed", range(4, 54))
def test_after_200_kills(tmp_path: Path, seed: int) -> None:
    kill_again_and_again(tmp_path / "store", seed, 4)
