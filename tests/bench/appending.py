"""Messages put into a store, against SQLite and a plain file that get the same records."""

from __future__ import annotations

import os
import sqlite3
from contextlib import ExitStack, closing
from itertools import count
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from rmqtool import Message, MessageStore
from rmqtool.broker.encoder import encode_record
from rmqtool.messagestore.messages import PutStatus
from rmqtool.messagestore.records import RecordMaker
from rmqtool.messagestore.settings import settings_from
from tests.bench.measure import Figure, in_turn

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

TOGETHER = 1000
MESSAGES, SYNCED = 20_000, 200
SETTINGS: dict[str, Any] = {
    "mappedFileSizeCommitLog": 1 << 28,
    "maxHashSlotNum": 500_000,
    "maxIndexNum": 2_000_000,
}
RELEASE = "5.3.3"


class Records:
    """What a store makes of messages, for those that only keep it."""

    def __init__(self) -> None:
        settings = settings_from(SETTINGS)
        self._maker = RecordMaker(RELEASE, settings.config, settings.host)
        self._offsets = count()

    def of(self, message: Message) -> bytes:
        one, offset = self._maker.prepare(message), next(self._offsets)
        now = (1_700_000_000_000, *one.store_host)
        return encode_record(one.fields, 0, offset, offset * one.size, now, now, one.body, one.tail)


def messages(body_bytes: int, number: int) -> list[Message]:
    body = os.urandom(body_bytes)
    return [Message("TopicTest", body, tags="TagA", keys=[f"key-{one}"]) for one in range(number)]


def table_of(given: list[Message]) -> pa.Table:
    columns = {"topic": [one.topic for one in given], "body": [one.body for one in given]}
    return pa.table(columns | {"tags": [one.tags for one in given], "keys": [one.keys for one in given]})


def _sqlite(directory: Path, name: str, synchronous: str, stack: ExitStack) -> sqlite3.Connection:
    made = sqlite3.connect(directory / f"{name}.sqlite", isolation_level=None)
    stack.enter_context(closing(made))
    made.execute("pragma journal_mode = wal")
    made.execute(f"pragma synchronous = {synchronous}")
    made.execute("create table messages (id integer primary key, topic text, queue int, record blob)")
    return made


_INSERT = "insert into messages (topic, queue, record) values (?, ?, ?)"


def against_sqlite(directory: Path, body_bytes: int) -> Iterator[Figure]:
    """One by one, a thousand at once, and synced one by one: how many times as many messages a second."""
    directory.mkdir(exist_ok=True)
    given, few, records = messages(body_bytes, MESSAGES), messages(body_bytes, SYNCED), Records()
    tables = [table_of(given[start : start + TOGETHER]) for start in range(0, MESSAGES, TOGETHER)]
    with ExitStack() as stack:
        open_store = _opener(directory, stack)
        store, synced = open_store("async", {}), open_store("sync", {"flushDiskType": "SYNC_FLUSH"})
        normal = _sqlite(directory, "normal", "normal", stack)
        full = _sqlite(directory, "full", "full", stack)

        def insert(one: sqlite3.Connection, some: Iterable[Message]) -> None:
            for message in some:
                one.execute(_INSERT, (message.topic, 0, records.of(message)))

        def insert_many() -> None:
            for start in range(0, MESSAGES, TOGETHER):
                normal.execute("begin")
                rows = [(one.topic, 0, records.of(one)) for one in given[start : start + TOGETHER]]
                normal.executemany(_INSERT, rows)
                normal.execute("commit")

        def put(one: MessageStore, some: Iterable[Message]) -> None:
            assert {one.put(message).status for message in some} == {PutStatus.PUT_OK}

        pairs: list[tuple[str, float, Callable[[], None], Callable[[], None]]] = [
            ("put", 4.0, lambda: put(store, given), lambda: insert(normal, given)),
            ("put of 1,000 as columns", 5.0, lambda: _put_tables(store, tables), insert_many),
            ("put, synced", 1.0, lambda: put(synced, few), lambda: insert(full, few)),
        ]
        for name, target, ours, theirs in pairs:
            taken = in_turn({"ours": ours, "theirs": theirs}, rounds=3)
            ratio = taken["theirs"].best / taken["ours"].best
            number = SYNCED if "synced" in name else MESSAGES
            rates = [number / taken[who].best / 1000 for who in ("ours", "theirs")]
            note = f"{rates[0]:.1f} k/s, {rates[1]:.1f} k/s"
            yield Figure(f"{name}, bodies of {body_bytes} B", "SQLite (WAL)", ratio, target, note=note)


def _put_tables(store: MessageStore, tables: list[pa.Table]) -> None:
    for table in tables:
        assert set(store.put_many(table)["status"].to_pylist()) == {"PUT_OK"}


def _opener(directory: Path, stack: ExitStack) -> Callable[[str, dict[str, Any]], MessageStore]:
    def opened(name: str, more: dict[str, Any]) -> MessageStore:
        made = MessageStore.open(directory / name, create=True, config=SETTINGS | more, release=RELEASE)
        return stack.enter_context(made)

    return opened
