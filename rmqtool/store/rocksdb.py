"""Consume queues in RocksDB (`RocksDBMessageStore`, since 5.2): their files, and when a broker reads them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rmqtool.store.kinds import ROCKSDB_STORE_TYPE, FileKind

if TYPE_CHECKING:
    from rmqtool.store.config import StoreConfig
    from rmqtool.store.files import StoreFile
    from rmqtool.store.layout import Store

DIRECTORY = "consumequeue/"
DATABASE = "consumequeue/CURRENT"
"""without it RocksDB makes a new database"""
IDENTITY = "consumequeue/IDENTITY"
"""the name of a database; stays where `recover` moved one out"""


def rocksdb_queue_files(store: Store) -> list[StoreFile]:
    """The files of a database below `consumequeue/`, read by a broker or not."""
    return [file for file in store.of_kind(FileKind.ROCKSDB) if file.path.startswith(DIRECTORY)]


def reads_rocksdb_queues(store: Store, config: StoreConfig | None = None) -> bool:
    """Whether a broker serves this store's queues from RocksDB; `config` overrides the store's own.

    Without `storeType`, a database is taken for one that is read, unless it is written beside queue files
    (`rocksdbCQDoubleWriteEnable`).
    """
    known = config or store.config
    if known is not None and known.is_set("store_type"):
        return known.store_type == ROCKSDB_STORE_TYPE
    return store.file(DATABASE) is not None and not (known is not None and known.doubles_queues)
