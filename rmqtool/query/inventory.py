"""What lies in a store: every file, and what can be known about it with a few small reads.

Rows are plain dicts in the vocabulary of the command line contract (`*_timestamp` in ms since the epoch,
`*_offset`, paths relative to the store root).
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from rmqtool.errors import RmqtoolError
from rmqtool.query.inventory_files import index_rows, look_at_log, queue_file_facts, segment_facts
from rmqtool.query.inventory_state import config_rows, small_content, state_of
from rmqtool.store.coverage import coverage, unreadable
from rmqtool.store.files import StoreDirectory, StoreFile
from rmqtool.store.kinds import QUEUE_KINDS, TOP_DIRECTORIES, FileKind
from rmqtool.store.names import escape_name, topic_keys
from rmqtool.store.resolve import StoreForm

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from rmqtool.store.layout import Queue, Store

Row = dict[str, Any]

NOT_DECODED = (
    FileKind.ROCKSDB,
    FileKind.DLEDGER_DATA,
    FileKind.DLEDGER_INDEX,
    FileKind.DLEDGER_TEXT,
    FileKind.TIMERLOG,
    FileKind.TIMERWHEEL,
    FileKind.TIMERCHECK,
    FileKind.COMPACTION_LOG,
    FileKind.COMPACTION_CQ,
    FileKind.TRANSACTION_STATE,
)
"""kinds that are listed with name and size only"""


@dataclass(frozen=True)
class RowsOf:
    """Rows that are made each time they are gone through: a store may have a million files."""

    items: Sequence[Any]
    make: Callable[[Any], Row]

    def __len__(self) -> int:
        return len(self.items)

    def __iter__(self) -> Iterator[Row]:
        return map(self.make, self.items)


AnyRows = list[Row] | RowsOf


@dataclass
class Inventory:
    """One store. Every list holds rows with their `type`; `head` holds the facts there is one of.

    unreadable: what could not be read, with the reason. not_looked_at: what was left out to be fast.
    """

    head: Row
    files: AnyRows = field(default_factory=list)
    segments: AnyRows = field(default_factory=list)
    topics: list[Row] = field(default_factory=list)
    queues: list[Row] = field(default_factory=list)
    index: list[Row] = field(default_factory=list)
    config: list[Row] = field(default_factory=list)
    unknown: AnyRows = field(default_factory=list)
    totals: list[Row] = field(default_factory=list)
    unreadable: list[Row] = field(default_factory=list)
    not_looked_at: list[str] = field(default_factory=list)

    def rows(self) -> Iterator[Row]:
        """All rows, the files first."""
        for name in _LISTS:
            yield from getattr(self, name)

    def coverage(self) -> Row:
        """`complete`, and what was not covered."""
        return {**coverage(self.unreadable), "not_looked_at": self.not_looked_at}

    def document(self) -> Row:
        """Everything as one object; its lists are `RowsOf`."""
        lists = {name: RowsOf(getattr(self, name), _untyped) for name in _LISTS}
        return {**self.head, **lists, **self.coverage()}

    def summary(self) -> Row:
        """The closing summary of a listing."""
        total = self.totals[-1]
        counts = {name: len(getattr(self, name)) for name in ("segments", "topics", "queues")}
        sizes = {name: total[name] for name in ("files", "bytes", "disk_bytes")}
        return {**sizes, **counts, "unknown": len(self.unknown), **self.head, **self.coverage()}


_LISTS = ("files", "segments", "topics", "queues", "index", "config", "unknown", "totals")


def _untyped(row: Row) -> Row:
    return {name: value for name, value in row.items() if name != "type"}


def take_inventory(store: Store, on_looked: Callable[[int], object] = int) -> Inventory:
    """The inventory of a store. What cannot be read is noted and passed over, never raised.

    on_looked: called now and then with how many files were looked into.
    """
    found = Inventory(state_of(store))
    facts: dict[str, Row] = {}
    """by where the file lies"""
    log = look_at_log(store, found.unreadable, on_looked)
    found.segments = RowsOf(log.seen, log.row)
    found.head["commitlog"] = log.head()
    for segment, ends in log.seen:
        facts[segment.file.location] = segment_facts(segment, ends)
    for file in store.of_kind(FileKind.CONSUMEQUEUE, FileKind.BATCHCONSUMEQUEUE):
        on_looked(len(facts))
        facts[file.location] = _guarded(queue_file_facts, file, found.unreadable)
    found.index = index_rows(store, found.unreadable)
    for file, row in zip(store.index_files(), found.index, strict=True):
        facts[file.location] = {name: row.get(f"begin_{end}") for name, end in _INDEX_FACTS}
        facts[file.location] |= {f"last_{name[6:]}": row.get(f"end_{end}") for name, end in _INDEX_FACTS}
    found.files = RowsOf(store.files, lambda file: _file_row(file, facts.get(file.location)))
    queues = [queue for kind in QUEUE_KINDS for queue in store.queues(kind)]
    found.queues = [_queue_row(queue, facts) for queue in queues]
    for row in found.queues:
        _mark_expired(row, store.segments.first_offset)
    found.topics = list(_topic_rows(store, zip(queues, found.queues, strict=True)))
    found.config = config_rows(store)
    found.unreadable += _unreadable_places(store, found.config)
    found.unknown = RowsOf(_unknown(store), _unknown_row)
    found.totals = list(_totals(store.files))
    found.not_looked_at = _not_looked_at(store, found, log.skipped())
    return found


_INDEX_FACTS = (("first_physical_offset", "physical_offset"), ("first_store_timestamp", "timestamp"))


def _guarded(look: Any, file: StoreFile, lost: list[Row]) -> Row:
    try:
        facts: Row = look(file)
    except RmqtoolError as error:
        lost.append(unreadable(file.display_path, str(error)))
        return {"error": str(error)}
    return facts


def _file_row(file: StoreFile, facts: Row | None) -> Row:
    row: Row = {
        "type": "file",
        "path": file.display_path,
        "kind": file.kind.value,
        "size": file.size,
        "disk_bytes": file.disk_bytes,
        "modified_timestamp": file.mtime_ns // 1_000_000,
        "root": file.root,
        **topic_keys(file.topic),
        "queue_id": file.queue_id,
    }
    if file.note is not None:
        row["note"] = file.note
    return row | (facts or {})


def _queue_row(queue: Queue, facts: Mapping[str, Row]) -> Row:
    held = [facts.get(file.location, {}) for file in queue.files]
    filled = [one for one in held if one.get("first_unit")]
    row: Row = {
        "type": "queue",
        "kind": queue.kind.value,
        **topic_keys(queue.topic),
        "queue_id": queue.queue_id,
        "files": len(queue.files),
        "bytes": sum(file.size for file in queue.files),
        "disk_bytes": sum(file.disk_bytes for file in queue.files),
    }
    if queue.kind is FileKind.CONSUMEQUEUE_EXT:
        return row
    row |= dict.fromkeys(("min_offset", "max_offset", "first_physical_offset", "last_physical_offset"))
    if filled:
        row |= {name: filled[0][name] for name in ("min_offset", "first_physical_offset", "first_unit")}
        row |= {name: filled[-1][name] for name in ("max_offset", "last_physical_offset", "last_unit")}
    else:
        # A queue whose files hold no message yet goes on where its first file begins.
        start = next((one["max_offset"] for one in reversed(held) if one.get("max_offset") is not None), 0)
        row |= {"min_offset": start, "max_offset": start}
    row["pre_blank"] = sum(one.get("pre_blank", 0) for one in held)
    if any("error" in one for one in held):
        row |= {"min_offset": None, "max_offset": None, "error": "a file of the queue cannot be read"}
    return row


def _mark_expired(row: Row, log_begins: int) -> None:
    """Whether the queue begins with units whose records left with old segments; a broker hides those."""
    first = row.get("first_physical_offset")
    row["expired_head"] = first is not None and first < log_begins


def _topic_rows(store: Store, queues: Iterable[tuple[Queue, Row]]) -> Iterator[Row]:
    queue_rows: dict[str, list[Row]] = {name: [] for name in store.topics}
    for queue, row in queues:
        if queue.topic is not None and queue.kind is not FileKind.CONSUMEQUEUE_EXT:
            queue_rows.setdefault(queue.topic, []).append(row)
    for name, rows in sorted(queue_rows.items()):
        config = store.topics.get(name)
        spans = [one["max_offset"] - one["min_offset"] for one in rows if one["max_offset"] is not None]
        yield {
            "type": "topic",
            **topic_keys(name),
            "queues": len(rows),
            "messages": sum(spans) if rows else None,
            "configured": config is not None,
            "perm": None if config is None else config.perm,
            "read_queue_nums": None if config is None else config.read_queue_nums,
            "write_queue_nums": None if config is None else config.write_queue_nums,
            "queue_type": None if config is None else config.queue_type,
            "cleanup_policy": None if config is None else config.cleanup_policy,
        }


_STATE = (FileKind.CHECKPOINT, FileKind.ABORT, FileKind.EPOCH, FileKind.BROKER_IDENTITY)


def _unreadable_places(store: Store, config: Iterable[Row]) -> Iterator[Row]:
    for directory in store.directories:
        if directory.error is not None:
            yield unreadable(escape_name(directory.path), directory.error)
    for file in store.of_kind(*_STATE):
        content = small_content(file)
        if isinstance(content, str):
            yield unreadable(file.display_path, content)
    for row in config:
        if row["state"] == "unreadable":
            yield unreadable(row["path"], row["detail"])


def _unknown(store: Store) -> list[StoreFile | StoreDirectory]:
    files = list(store.of_kind(FileKind.UNKNOWN))
    if store.form is not StoreForm.STORE:
        return [*files]
    used = {file.path.partition("/")[0] for file in store.files if file.kind is not FileKind.UNKNOWN}
    known = TOP_DIRECTORIES | used
    top = (one for one in store.directories if one.path and "/" not in one.path)
    return [*files, *(one for one in top if one.path not in known and not one.path.startswith("dledger-"))]


def _unknown_row(one: StoreFile | StoreDirectory) -> Row:
    if isinstance(one, StoreDirectory):
        note = f"directory with {one.entries} entries"
        if one.foreign:
            note = "directory out of the store, not listed"
        return {"type": "unknown", "path": f"{escape_name(one.path)}/", "size": None, "note": note}
    return {"type": "unknown", "path": one.display_path, "size": one.size, "note": one.note}


def _totals(files: Iterable[StoreFile]) -> Iterator[Row]:
    count: Counter[str] = Counter()
    size: Counter[str] = Counter()
    disk: Counter[str] = Counter()
    for file in files:
        for kind in (file.kind.value, "total"):
            count[kind] += 1
            size[kind] += file.size
            disk[kind] += file.disk_bytes
    order = [kind.value for kind in FileKind if count[kind.value]]
    for kind in (*order, "total"):
        yield {
            "type": "total",
            "kind": kind,
            "files": count[kind],
            "bytes": size[kind],
            "disk_bytes": disk[kind],
        }


def _not_looked_at(store: Store, found: Inventory, skipped: int) -> list[str]:
    reported = []
    if skipped:
        reported.append(f"records between the first and the last of {skipped} segments")
        reported.append("whether records at the end of these segments are left from an earlier life")
    if found.segments:
        reported.append("contents of records (bodies, properties, CRCs)")
    if found.queues:
        reported.append("consume queue entries between the first and the last of a file")
        reported.append("whether the log has messages behind the last entry of a queue")
    if store.of_kind(FileKind.CONSUMEQUEUE_EXT):
        reported.append("extension units")
    if found.index:
        reported.append("index slots and entries")
    listed = [(kind, len(store.of_kind(kind))) for kind in NOT_DECODED]
    reported += [f"content of {count} {kind} file{'s' * (count > 1)}" for kind, count in listed if count]
    return reported
