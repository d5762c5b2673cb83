"""Other embedded stores, measured with the records that the message store would keep."""

from __future__ import annotations

import os
import random
import threading
import time
from itertools import count
from typing import TYPE_CHECKING

from rmqtool.broker.encoder import encode_record
from rmqtool.messagestore.bench.competitors import COMPETITORS, Keyed
from rmqtool.messagestore.bench.work import LOOKUPS, SETTINGS, SYNCED, TOGETHER, LocalEngine, in_threads
from rmqtool.messagestore.messages import Message, StoredMessage
from rmqtool.messagestore.records import RecordMaker
from rmqtool.messagestore.settings import settings_from
from rmqtool.store.releases import RELEASES

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from rmqtool.messagestore.bench.competitors import Competitor


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


class EmbeddedEngine(LocalEngine):
    """They get the same records, made by the same code, in the time that is measured."""

    def __init__(self, root: Path, engine: str, given: list[Message]) -> None:
        os.mkdir(root / "async")
        os.mkdir(root / "sync")
        self._given, self._records = given, Records()
        self._synced = given[: max(len(given) // SYNCED, 1)]
        self._store: Competitor = COMPETITORS[engine](root / "async", sync=False)
        self._sync: Competitor = COMPETITORS[engine](root / "sync", sync=True)
        self._turn = threading.Lock()
        self._there = 0
        chance, some = random.Random(len(given)), max(len(given) // LOOKUPS, 1)  # noqa: S311
        self._places = [chance.random() for _ in range(some)]
        self._wanted = [message.keys[0].encode() for message in chance.choices(given, k=some)]
        self._put_many()
        self._sync.put((self._records.of(given[0]),))

    def close(self) -> None:
        """See `Engine.close`."""
        self._store.close()
        self._sync.close()

    def works(self) -> dict[str, Callable[[], int]]:
        """See `LocalEngine.works`."""
        store = self._store
        found: dict[str, Callable[[], int]] = {
            "put": self._put,
            "put_many": self._put_many,
            "put_sync": lambda: self._put_synced(self._synced),
            "put_sync_16": lambda: in_threads(lambda: self._put_synced(self._synced), len(self._synced)),
            "consume_raw": lambda: sum(1 for _ in store.scan()),
            "consume_objects": lambda: len([StoredMessage(one) for one in store.scan()]),
            "get_random": self._random,
        }
        if isinstance(store, Keyed):
            found["key"] = lambda: self._key(store)
        return found

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

    def _random(self) -> int:
        for place in self._places:
            self._store.get(int(place * self._there))
        return len(self._places)

    def _key(self, store: Keyed) -> int:
        for key in self._wanted:
            store.find(key)
        return len(self._wanted)
