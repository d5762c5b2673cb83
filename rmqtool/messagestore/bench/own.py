"""The message store, measured."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

from rmqtool.messagestore.bench.work import (
    LOOKUPS,
    SETTINGS,
    SYNCED,
    TOGETHER,
    TOPIC,
    LocalEngine,
    in_threads,
    table_of,
)
from rmqtool.messagestore.store import MessageStore

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from rmqtool.messagestore.messages import Message


class MessageStoreEngine(LocalEngine):
    """The message store, once flushed in the background and once synced. memory: its topic is in memory."""

    def __init__(self, root: Path, given: list[Message], *, memory: bool = False) -> None:
        self._given = given
        self._tables = [table_of(given[at : at + TOGETHER]) for at in range(0, len(given), TOGETHER)]
        self._synced = given[: max(len(given) // SYNCED, 1)]
        self._store = MessageStore.open(root / "async", create=True, config=SETTINGS)
        synced = {**SETTINGS, "flushDiskType": "SYNC_FLUSH"}
        self._sync = MessageStore.open(root / "sync", create=True, config=synced)
        for store in (self._store, self._sync):
            if memory:
                store.topics.set(TOPIC, memory=True)
        chance, some = random.Random(len(given)), max(len(given) // LOOKUPS, 1)  # noqa: S311
        self._places = [(chance.random(), chance.random()) for _ in range(some)]
        """of messages to get: parts of the queues, and of the queue"""
        self._wanted = [message.keys[0] for message in chance.choices(given, k=some)]
        self._put_many()  # whatever is measured finds some; kernels are loaded, files are made
        self._sync.put(given[0])
        self._store.get_table(TOPIC, 0, 0, 1)
        self._store.queues()

    def close(self) -> None:
        """See `Engine.close`."""
        self._store.close()
        self._sync.close()

    def works(self) -> dict[str, Callable[[], int]]:
        """See `LocalEngine.works`."""
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
        return in_threads(lambda: [self._sync.put(message) for message in self._synced], len(self._synced))

    def _filled(self) -> list[tuple[int, int, int]]:
        """Queues with messages: number, first offset, end."""
        queues = [number for topic, number in self._store.queues() if topic == TOPIC]
        return [(number, *self._store.offsets(TOPIC, number)) for number in queues]

    def _table(self) -> int:
        queues = self._filled()
        return sum(self._store.get_table(TOPIC, number, at, end).num_rows for number, at, end in queues)

    def _consume(self, get: Callable[..., Any]) -> int:
        done = 0
        for number, begin, end in self._filled():
            at = begin
            while at < end:
                at = get(TOPIC, number, at, 32).next_begin_offset
            done += end - begin
        return done

    def _random(self) -> int:
        queues = self._filled()
        for which, place in self._places:
            number, begin, end = queues[int(which * len(queues))]
            self._store.get_raw(TOPIC, number, begin + int(place * (end - begin)), 1)
        return len(self._places)

    def _key(self) -> int:
        self._filled()
        for key in self._wanted:
            self._store.query_key(TOPIC, key, 1)
        return len(self._wanted)

    def _key_many(self) -> int:
        self._filled()
        self._store.query_key(TOPIC, self._wanted, 1)
        return len(self._wanted)
