"""A message store of some hundred lines on `rmqtool.broker` alone: the proof that its seams are right.

It opens files (recovery, abnormal or not, carried out on them), appends, dispatches, serves and closes.
"""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from formats.checkpoint import CHECKPOINT_SIZE, Checkpoint
from formats.commitlog import SysFlag, magic_of
from formats.crc_trailer import reserve
from rmqtool.broker.encoder import MessageColumns, blank
from rmqtool.broker.file_rules import rules_of
from rmqtool.broker.files import StoreFiles
from rmqtool.broker.get_message import Pull, pull
from rmqtool.broker.index_files import IndexFile, IndexFiles, IndexNames
from rmqtool.broker.log_view import LogView
from rmqtool.broker.queue_view import QueueView
from rmqtool.broker.settings import settings_of
from rmqtool.broker.start import Start
from rmqtool.broker.traits import traits_of
from rmqtool.scan.engine import choose_kernels
from rmqtool.scan.events import Records
from rmqtool.scan.fields import ROW_WIDTH, STATUS_WIDTH, Check, Field
from rmqtool.scan.keys import key_hashes
from rmqtool.scan.options import ReadOptions
from rmqtool.store.access import Access
from rmqtool.store.config import config_of
from rmqtool.store.kinds import FileKind
from rmqtool.store.layout import Queue, Store

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

Message = dict[str, Any]
HOST = (bytes([127, 0, 0, 1]), 10911)
DEFAULTS: Message = {
    "body": b"",
    "properties": b"",
    "queue_id": 0,
    "flag": 0,
    "sys_flag": 0,
    "born_timestamp": 1_700_000_000_000,
    "reconsume_times": 0,
    "prepared_transaction_offset": 0,
    "born_host": HOST,
    "store_host": HOST,
}


def message(topic: str, **fields: Any) -> Message:
    """Values of `formats.commitlog.encode_message` that an application chooses."""
    return {"topic": topic, **DEFAULTS, **fields}


class Engine:
    """A context manager; leaving it is a stop in order, unless it crashed."""

    def __init__(self, root: Path, release: str, **settings: Any) -> None:
        self.root, self._config = root, config_of({name: str(value) for name, value in settings.items()})
        self.traits = traits_of(release)
        (root / "commitlog").mkdir(parents=True, exist_ok=True)
        self.kernels = choose_kernels(0)
        self.files = StoreFiles(str(root))
        store = self._store()
        self._rules = rules_of(store, release)
        reading = ReadOptions(Access("pread"), given=self.kernels)
        self.start = Start(store, self.traits, settings_of(store), reading, files=self.files)
        self.start.load()
        self._open_index(store)
        self.start.dispatcher.watch = self._index
        self.start.recover()
        self.start.catch_up()
        self.clock, self._crashed = 0, False
        self.files.write("abort", 0, 0, b"")
        self.files.sync()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        with ExitStack() as stack:
            stack.callback(self.files.close)
            if not self._crashed:
                self.close()

    def crash(self) -> None:
        """It is not stopped in order: `abort` stays, and what is in memory only is lost."""
        self._crashed = True

    def close(self) -> None:
        """A stop in order (`DefaultMessageStore#shutdown`)."""
        self.index.close()
        times = dict.fromkeys(("physic_msg_timestamp", "logics_msg_timestamp"), self.clock)
        values = {**times, "index_msg_timestamp": self.clock, "master_flushed_offset": 0}
        checkpoint = Checkpoint.build(values | {"confirm_physical_offset": 0})
        self.files.write("checkpoint", CHECKPOINT_SIZE, 0, checkpoint)
        self.files.sync()
        self.files.remove("abort")
        self.files.sync()

    def put(self, messages: Sequence[Message], stored: int = 1_700_000_001_000) -> list[int]:
        """Appends and dispatches them; their queue offsets."""
        offsets: list[int] = []
        following: dict[tuple[str, int], int] = {}
        whole = columns(
            [one | {"store_timestamp": stored, "physical_offset": 0, "queue_offset": 0} for one in messages]
        )
        for row, one in zip(whole.rows, messages, strict=True):
            key = one["topic"], one["queue_id"]
            queue = self.start.queues.get(key)
            slot = following.get(key, 0 if queue is None else queue.max_offset)
            offsets.append(slot)
            row[Field.QUEUE_OFFSET], following[key] = slot, slot + 1
        done, log = 0, self.start.log
        whole.sizes()
        while done < len(messages):
            file = log.last_for(log.max_offset)
            places = np.empty(len(messages) - done, np.int64)
            count, length = self.kernels.encoding.place_rows(
                whole.rows[done:], file.base + file.wrote, log.size - file.wrote, 1 << 62, places
            )
            if not count:
                self.files.write(file.path, log.size, file.wrote, blank(log.size - file.wrote))
                file.wrote = log.size
                continue
            part = slice(done, done + count)
            data = np.zeros(length, np.uint8)
            some = MessageColumns(
                whole.rows[part],
                whole.hosts[part],
                whole.bodies,
                whole.topics,
                whole.properties,
                whole.addresses,
            )
            some.write(places[:count], data, self.kernels)
            self.files.write(file.path, log.size, file.wrote, data)
            self._dispatch(data, file.base, file.wrote, count)
            file.wrote += len(data)
            done += count
        self.clock = max(self.clock, stored)
        return offsets

    def get(self, topic: str, queue_id: int, offset: int, count: int = 32) -> tuple[Pull, list[bytes]]:
        """One pull, and the records of its answer."""
        store = self._store()
        kinds = FileKind.BATCHCONSUMEQUEUE, FileKind.CONSUMEQUEUE
        queues = [one for kind in kinds for one in store.queues(kind)]
        empty = Queue(FileKind.CONSUMEQUEUE, topic, queue_id, ())
        queue = next((one for one in queues if (one.topic, one.queue_id) == (topic, queue_id)), empty)
        with LogView(store.segments) as log, QueueView(queue, log, self.traits) as view:
            answer = pull(view, offset, count)
            return answer, [log.read(one.physical_offset, one.size) for one in answer.delivered]

    def _store(self) -> Store:
        return Store.open(self.root, config=self._config)

    def _open_index(self, store: Store) -> None:
        kept = [one for one in map(store.file, self.start.index.kept) if one is not None]
        given = self._rules, self.files, self.kernels
        last = IndexFile(kept[-1].path, *given, kept=kept[-1]) if kept else None
        names = IndexNames(behind=kept[-1].name if kept else "")
        self.index = IndexFiles(*given, names.next_name, last)

    def _dispatch(self, data: np.ndarray, base: int, position: int, count: int) -> None:
        rows, status = np.zeros((count, ROW_WIDTH), np.int64), np.zeros(STATUS_WIDTH, np.int64)
        size = self.start.log.size
        self.kernels.walk(data, 0, position, size, base, int(Check.ALL), rows, status)
        assert status[0] == count
        self.start.dispatcher.take(Records(rows, data, position), base)
        self.start.dispatcher.flush()

    def _index(self, run: Records, base: int) -> None:
        hashes, owners = key_hashes(self.kernels.hashes, run)
        offsets = run.rows[:, Field.POSITION] + base
        self.index.put(hashes, owners, offsets, run.rows[:, Field.STORE_TIMESTAMP].copy())


def columns(messages: list[dict[str, Any]], *, trailer: bool = False) -> MessageColumns:
    """One buffer for all sources, in which everything lies once."""
    rows, hosts = np.zeros((len(messages), ROW_WIDTH), np.int64), np.zeros((len(messages), 2), np.int64)
    data = bytearray()

    def put(raw: bytes) -> tuple[int, int]:
        data.extend(raw)
        return len(data) - len(raw), len(raw)

    for row, place, one in zip(rows, hosts, messages, strict=True):
        raw = reserve(one["properties"]) if trailer else one["properties"]
        row[[Field.BODY_POSITION, Field.BODY_LENGTH]] = put(one["body"])
        row[[Field.TOPIC_POSITION, Field.TOPIC_LENGTH]] = put(one["topic"].encode())
        row[[Field.PROPERTIES_POSITION, Field.PROPERTIES_LENGTH]] = put(raw)
        for name in (
            "queue_id",
            "flag",
            "queue_offset",
            "born_timestamp",
            "store_timestamp",
            "reconsume_times",
        ):
            row[Field[name.upper()]] = one[name]
        row[Field.STORED_PHYSICAL_OFFSET] = one["physical_offset"]
        row[Field.PREPARED_TRANSACTION_OFFSET] = one["prepared_transaction_offset"]
        row[Field.MAGIC] = magic_of(one["topic"])
        flags = one["sys_flag"] & ~int(SysFlag.BORNHOST_V6 | SysFlag.STOREHOST_V6)
        for number, (name, flag) in enumerate(
            (("born_host", SysFlag.BORNHOST_V6), ("store_host", SysFlag.STOREHOST_V6))
        ):
            ip, port = one[name]
            flags |= int(flag) if len(ip) > 4 else 0
            place[number] = put(ip + port.to_bytes(4, "big", signed=True))[0]
        row[Field.SYS_FLAG] = flags
    whole = np.frombuffer(bytes(data), np.uint8)
    return MessageColumns(rows, hosts, whole, whole, whole, whole)
