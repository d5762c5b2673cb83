"""What is measured: the same messages through the same API into each store, and out of it."""

from __future__ import annotations

import os
import random
import threading
import time
from contextlib import closing, suppress
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from rmqtool.broker.encoder import encode_record
from rmqtool.messagestore.bench.competitors import COMPETITORS, WITHOUT_KEYS, Competitor
from rmqtool.messagestore.messages import Message, StoredMessage
from rmqtool.messagestore.records import RecordMaker
from rmqtool.messagestore.settings import settings_from
from rmqtool.messagestore.store import MessageStore
from rmqtool.store.releases import RELEASES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

WORKS = (
    "put", "put_many", "put_sync", "put_sync_16", "consume_table", "consume_raw", "consume_objects",
    "get_random", "key", "key_many",
)  # fmt: skip
ENGINES = ("rmqtool", *COMPETITORS)
TOGETHER = 1000
_SYNCED, _LOOKUPS = 100, 10
"""of so many messages one is put synced, or looked up"""
_WRITERS = 16
_TOPIC, _QUEUES = "BenchTopic", 4
SETTINGS: dict[str, Any] = {
    "mappedFileSizeCommitLog": 1 << 28,
    "maxHashSlotNum": 500_000,
    "maxIndexNum": 2_000_000,
    "brokerIP1": "127.0.0.1",
}


@dataclass(frozen=True, slots=True)
class Bench:
    """One figure. count: messages."""

    work: str
    engine: str
    body_bytes: int
    count: int
    seconds: float

    @property
    def per_second(self) -> float:
        """Messages a second."""
        return self.count / self.seconds


def messages(body_bytes: int, number: int) -> list[Message]:
    """Messages with a tag and a key of their own, and one body."""
    body = os.urandom(body_bytes)
    return [Message(_TOPIC, body, tags="TagA", keys=[f"key-{one}"]) for one in range(number)]


def table_of(given: Sequence[Message]) -> pa.Table:
    """The same as columns."""
    columns = {name: [getattr(one, name) for one in given] for name in ("topic", "body", "tags", "keys")}
    return pa.table(columns)


class Records:
    """What a message store makes of messages, for those that only keep it."""

    def __init__(self) -> None:
        settings = settings_from(SETTINGS)
        self._maker = RecordMaker(RELEASES[-1], settings.config, settings.host)
        self._offsets = count()

    def of(self, message: Message) -> tuple[bytes, bytes]:
        """Key and record."""
        one, offset = self._maker.prepare(message), next(self._offsets)
        now = (time.time_ns() // 1_000_000, *one.store_host)
        record = encode_record(one.fields, 0, offset, offset * one.size, now, now, one.body, one.tail)
        return message.keys[0].encode(), record


def missing(engine: str) -> str | None:
    """Why an engine cannot be measured here, None when it can."""
    if engine not in COMPETITORS:
        return None
    module = {"rocksdb": "rocksdict", "leveldb": "plyvel", "lmdb": "lmdb"}.get(engine)
    if module is not None:
        try:
            __import__(module)
        except ImportError:
            return f"{module} is not installed: pip install 'rmqtool[bench]'"
    return None


def measured(
    root: Path, engine: str, works: Sequence[str], body_bytes: int, number: int, rounds: int = 1
) -> Iterator[Bench]:
    """The works that an engine can do, in an empty directory. The best of some rounds counts."""
    given = messages(body_bytes, number)
    opened = _Ours if engine == "rmqtool" else _Theirs
    with suppress(FileExistsError):
        os.mkdir(root)
    run = opened(root, engine, given)
    with closing(run):
        run.fill()
        for work in works:
            action = run.works().get(work)
            if action is None:
                continue
            best: tuple[float, int] | None = None
            for _ in range(rounds):
                began = time.perf_counter()
                done = action()
                seconds = time.perf_counter() - began
                best = min(best or (seconds, done), (seconds, done))
            if best is not None:
                yield Bench(work, engine, body_bytes, best[1], best[0])


class _Ours:
    def __init__(self, root: Path, engine: str, given: list[Message]) -> None:
        del engine
        self._given = given
        self._tables = [table_of(given[at : at + TOGETHER]) for at in range(0, len(given), TOGETHER)]
        self._synced = given[: max(len(given) // _SYNCED, 1)]
        self._store = MessageStore.open(root / "async", create=True, config=SETTINGS)
        synced = {**SETTINGS, "flushDiskType": "SYNC_FLUSH"}
        self._sync = MessageStore.open(root / "sync", create=True, config=synced)
        self._chance = random.Random(len(given))  # noqa: S311

    def close(self) -> None:
        self._store.close()
        self._sync.close()

    def works(self) -> dict[str, Callable[[], int]]:
        return {
            "put": self._put,
            "put_many": self._put_many,
            "put_sync": self._put_sync,
            "put_sync_16": self._put_sync_16,
            "consume_table": self._table,
            "consume_raw": lambda: self._consume(self._store.get_raw),
            "consume_objects": lambda: self._consume(self._store.get),
            "get_random": self._random,
            "key": self._key,
            "key_many": self._key_many,
        }

    def _put(self) -> int:
        for message in self._given:
            self._store.put(message)
        return len(self._given)

    def _put_many(self) -> int:
        for table in self._tables:
            self._store.put_many(table)
        return len(self._given)

    def _put_sync(self) -> int:
        for message in self._synced:
            self._sync.put(message)
        return len(self._synced)

    def _put_sync_16(self) -> int:
        return _in_threads(lambda: [self._sync.put(message) for message in self._synced], len(self._synced))

    def fill(self) -> None:
        """All messages once, so that whatever is measured finds some; kernels are loaded, files are made."""
        self._put_many()
        self._sync.put(self._given[0])
        self._store.get_table(_TOPIC, 0, 0, 1)
        self._store.queues()

    def _filled(self) -> list[tuple[int, int, int]]:
        """Queues with messages: number, first offset, end."""
        queues = [number for topic, number in self._store.queues() if topic == _TOPIC]
        return [(number, *self._store.offsets(_TOPIC, number)) for number in queues]

    def _table(self) -> int:
        queues = self._filled()
        return sum(self._store.get_table(_TOPIC, number, at, end).num_rows for number, at, end in queues)

    def _consume(self, get: Callable[..., Any]) -> int:
        done = 0
        for number, begin, end in self._filled():
            at = begin
            while at < end:
                at = get(_TOPIC, number, at, 32).next_begin_offset
            done += end - begin
        return done

    def _random(self) -> int:
        queues, some = self._filled(), max(len(self._given) // _LOOKUPS, 1)
        for _ in range(some):
            number, begin, end = self._chance.choice(queues)
            self._store.get_raw(_TOPIC, number, self._chance.randrange(begin, end), 1)
        return some

    def _wanted(self) -> list[str]:
        self._filled()
        some = max(len(self._given) // _LOOKUPS, 1)
        return [message.keys[0] for message in self._chance.choices(self._given, k=some)]

    def _key(self) -> int:
        wanted = self._wanted()
        for key in wanted:
            self._store.query_key(_TOPIC, key, 1)
        return len(wanted)

    def _key_many(self) -> int:
        wanted = self._wanted()
        self._store.query_key(_TOPIC, wanted, 1)
        return len(wanted)


class _Theirs:
    """They get the same records, made by the same code, in the time that is measured."""

    def __init__(self, root: Path, engine: str, given: list[Message]) -> None:
        os.mkdir(root / "async")
        os.mkdir(root / "sync")
        self._given, self._engine, self._records = given, engine, Records()
        self._synced = given[: max(len(given) // _SYNCED, 1)]
        self._store: Competitor = COMPETITORS[engine](root / "async", sync=False)
        self._sync: Competitor = COMPETITORS[engine](root / "sync", sync=True)
        self._turn = threading.Lock()
        self._there = 0
        self._chance = random.Random(len(given))  # noqa: S311

    def close(self) -> None:
        self._store.close()
        self._sync.close()

    def works(self) -> dict[str, Callable[[], int]]:
        found = {
            "put": self._put,
            "put_many": self._put_many,
            "put_sync": lambda: self._put_synced(self._synced),
            "put_sync_16": lambda: _in_threads(lambda: self._put_synced(self._synced), len(self._synced)),
            "consume_raw": lambda: sum(1 for _ in self._store.scan()),
            "consume_objects": lambda: len([StoredMessage(one) for one in self._store.scan()]),
            "get_random": self._random,
        }
        return found if self._engine in WITHOUT_KEYS else found | {"key": self._key}

    def _put(self) -> int:
        for message in self._given:
            self._store.put((self._records.of(message),))
        self._there += len(self._given)
        return len(self._given)

    def _put_many(self) -> int:
        for at in range(0, len(self._given), TOGETHER):
            self._store.put([self._records.of(one) for one in self._given[at : at + TOGETHER]])
        self._there += len(self._given)
        return len(self._given)

    def _put_synced(self, given: Sequence[Message]) -> int:
        for message in given:
            with self._turn:
                self._sync.put((self._records.of(message),))
        return len(given)

    def fill(self) -> None:
        """All messages once, so that whatever is measured finds some."""
        self._put_many()
        self._sync.put((self._records.of(self._given[0]),))

    def _random(self) -> int:
        store, some = self._store, max(len(self._given) // _LOOKUPS, 1)
        for _ in range(some):
            store.get(self._chance.randrange(self._there))
        return some

    def _key(self) -> int:
        store, some = self._store, max(len(self._given) // _LOOKUPS, 1)
        for message in self._chance.choices(self._given, k=some):
            store.find(message.keys[0].encode())
        return some


def _in_threads(work: Callable[[], Any], each: int) -> int:
    threads = [threading.Thread(target=work) for _ in range(_WRITERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return each * _WRITERS
