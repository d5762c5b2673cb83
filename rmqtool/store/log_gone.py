"""A store whose commit log has no byte, though something else in it shows that there were messages."""

from __future__ import annotations

from typing import TYPE_CHECKING

from formats.checkpoint import TIMES, parse_checkpoint
from formats.errors import FormatError
from formats.index import FIRST_ITEM
from rmqtool.errors import RmqtoolError
from rmqtool.store.consumer_offsets import offsets_file, stored_delay_offsets, stored_offsets
from rmqtool.store.index_header import index_header
from rmqtool.store.kinds import QUEUE_KINDS, FileKind
from rmqtool.store.resolve import StoreForm
from rmqtool.store.rocksdb import DATABASE, rocksdb_queue_files
from rmqtool.store.whole import read_whole

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rmqtool.store.files import StoreFile
    from rmqtool.store.layout import Store


def witnesses_of_lost_log(store: Store) -> list[str]:
    """What only a store with messages has, where its log has no byte; empty where nothing shows a loss.

    The log may also lie elsewhere (`storePathCommitLog`, a disk that is not mounted). Nothing is known of one
    that cannot be listed.
    """
    unknown = any(one.error for one in store.directories if one.path.rpartition("/")[2] in ("", "commitlog"))
    here = unknown or any(one.size for one in store.segments) or len(store.dledger_segments)
    return [] if here or store.form is not StoreForm.STORE else list(_witnesses(store))


def _witnesses(store: Store) -> Iterator[str]:
    queues = [file.display_path for file in store.of_kind(*QUEUE_KINDS) if file.size]
    yield from queues[:1]
    yield from (file.display_path for file in store.of_kind(FileKind.CHECKPOINT) if _has_times(file))
    yield from [file.display_path for file in store.index_files() if _has_items(file)][:1]
    if any(file.size and _holds_units(file) for file in rocksdb_queue_files(store)):
        yield DATABASE
    if any(one.offset > 0 for one in stored_offsets(store)):
        yield f"config/{offsets_file(store)}"
    if any(offset > 0 for _, offset, _ in stored_delay_offsets(store)):
        yield "config/delayOffset.json"


def _has_times(file: StoreFile) -> bool:
    try:
        checkpoint = parse_checkpoint(read_whole(file))
    except (RmqtoolError, FormatError):
        return False
    return any(int(checkpoint[name]) > 0 for name in TIMES)


def _has_items(file: StoreFile) -> bool:
    header = index_header(file)
    return header is not None and int(header.index_count) > FIRST_ITEM


def _holds_units(file: StoreFile) -> bool:
    """Tables and logs of RocksDB: a broker makes the other files before there is a message."""
    return file.name.endswith((".sst", ".log"))
