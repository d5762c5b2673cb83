"""What a read is made of: partitions, each for one task."""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from pyspark.sql.datasource import InputPartition

from rmqtool.errors import NewerFormatError, UnreadableError
from rmqtool.pipeline.opening import open_any
from rmqtool.pipeline.parts import log_parts
from rmqtool.query.scope import Scope
from rmqtool.store.kinds import FileKind
from rmqtool.store.required import refuse_dledger
from rmqtool.store.rocksdb import queues_only_in_rocksdb

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rmqtool.pipeline.options import SourceOptions
    from rmqtool.pipeline.parts import LogPart
    from rmqtool.query.message_filter import MessageFilter
    from rmqtool.store.files import StoreFile
    from rmqtool.store.layout import Store

_HINT = "(option unreadable=skip reads the rest)"
FILES_BYTES = 64 << 20
"""bytes of queue or index files that one task reads, at least one file"""

KINDS = {
    "consumequeue": (FileKind.CONSUMEQUEUE, FileKind.BATCHCONSUMEQUEUE),
    "index_items": (FileKind.INDEX,),
}


@dataclass(frozen=True)
class LogPartition(InputPartition):
    """A part of the log of a store."""

    store: str
    part: LogPart


@dataclass(frozen=True)
class FilesPartition(InputPartition):
    """Some files of a store, by path in it."""

    store: str
    files: tuple[str, ...]


@dataclass(frozen=True)
class StorePartition(InputPartition):
    """A whole store."""

    store: str


class NoPartition(InputPartition):
    """Nothing to read: Spark wants one partition at least."""

    def __init__(self) -> None:
        super().__init__(None)


def partitions(options: SourceOptions, wanted: MessageFilter) -> list[InputPartition]:
    """All partitions of a read. Opens the stores to list them; of segments it reads but the ends."""
    found: list[InputPartition] = []
    for path in options.paths:
        if options.table == "findings":
            found.append(StorePartition(path))
            continue
        store = open_any(path, config=options.config)
        if options.table == "consumequeue" and options.unreadable == "fail" and queues_only_in_rocksdb(store):
            raise NewerFormatError(f"{store.given}: the queues are in RocksDB, which is not decoded")
        if options.table in ("messages", "segments") and options.unreadable == "fail":
            _refuse_unopened(store)
        if options.table == "messages":
            parts = log_parts(store, options.part_bytes, Scope(store.segments, wanted).may_hold)
            found += [LogPartition(path, part) for part in parts if _in_offsets(part, wanted)]
        elif options.table == "segments":
            found += [LogPartition(path, part) for part in log_parts(store, 0)]
        else:
            found += [FilesPartition(path, some) for some in file_groups(store, options.table, wanted)]
    return found or [NoPartition()]


def _refuse_unopened(store: Store) -> None:
    """Raises where a log lies in files that no task could read.

    `NewerFormatError` for DLedger's files, `UnreadableError` for an entry among the segments that is neither
    file nor directory.
    """
    refuse_dledger(store)
    for file in store.of_kind(FileKind.UNKNOWN):
        if not file.regular and file.path.split("/")[:-1] == ["commitlog"]:
            raise UnreadableError(file.display_path, 0, file.size, f"{file.note} {_HINT}")


def _in_offsets(part: LogPart, wanted: MessageFilter) -> bool:
    """False where every record of the part begins outside of the physical offsets that are wanted."""
    start, end = (part.segment.base + place for place in part.share)
    low, high = wanted.offset_from, wanted.offset_to
    return (low is None or end > low) and (high is None or start < high)


def file_groups(store: Store, table: str, wanted: MessageFilter) -> Iterator[tuple[str, ...]]:
    """Paths of the files of a table, in groups for one task each."""
    group: list[str] = []
    size = 0
    for kind in KINDS[table]:
        for file in store.of_kind(kind):
            if not file.regular or not _of_topic(file, wanted):
                continue
            if group and size + file.size > FILES_BYTES:
                yield tuple(group)
                group, size = [], 0
            group.append(file.path)
            size += file.size
    if group:
        yield tuple(group)


def _of_topic(file: StoreFile, wanted: MessageFilter) -> bool:
    if not wanted.topics or file.topic is None:
        return True
    return any(fnmatchcase(file.topic, one) for one in wanted.topics)
