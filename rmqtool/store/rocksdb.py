"""What of a store lies in RocksDB, which is not decoded: queues and tables, and when a broker reads them.

Consume queues since 5.2 (`RocksDBMessageStore`), tables of `config/` since 5.1.4
(`RocksDBConfigManager`), all of them in one database since 5.3.2 (`ConfigManagerV2`). Since then also
what was popped (`PopConsumerRocksdbStore`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rmqtool.store.kinds import QUEUE_KINDS, ROCKSDB_STORE_TYPE, FileKind

if TYPE_CHECKING:
    from rmqtool.store.config import StoreConfig
    from rmqtool.store.files import StoreFile
    from rmqtool.store.layout import Store

DIRECTORY = "consumequeue/"
DATABASE = "consumequeue/CURRENT"
"""without it RocksDB makes a new database"""
IDENTITY = "consumequeue/IDENTITY"
"""the name of a database; stays where `recover` moved one out"""
POP_DATABASE = "kvStore"
_TABLES = {
    "topics.json": "topics",
    "subscriptionGroup.json": "subscriptionGroups",
    "consumerOffset.json": "consumerOffsets",
}
_ALL_TABLES = "rdb"
OF_DATABASE = (*_TABLES, "lmqConsumerOffset.json")
"""tables for which `ConfigManagerV2` reads that one alone: nothing takes over what lies in files"""


def rocksdb_queue_files(store: Store) -> list[StoreFile]:
    """The files of a database below `consumequeue/`, read by a broker or not."""
    return [file for file in store.of_kind(FileKind.ROCKSDB) if file.path.startswith(DIRECTORY)]


def queues_only_in_rocksdb(store: Store) -> bool:
    """Whether there is a database of queues, and no file with a unit."""
    return bool(rocksdb_queue_files(store)) and not any(file.size for file in store.of_kind(*QUEUE_KINDS))


def databases_of_tables(store: Store) -> list[str]:
    """Directories of `config/` with a database, in order."""
    found = {"/".join(file.path.split("/")[:2]) for file in store.of_kind(FileKind.ROCKSDB)}
    return sorted(one for one in found if one.startswith("config/"))


def all_tables_in_database(config: StoreConfig) -> bool:
    """Whether topics, groups and offsets are read from one database (`configManagerVersion`)."""
    return (config.model_extra or {}).get("configManagerVersion") == "v2"


def has_pop_database(store: Store) -> bool:
    """Whether a broker has kept there what was popped, and not in a topic."""
    return any(file.path.startswith(f"{POP_DATABASE}/") for file in store.of_kind(FileKind.ROCKSDB))


def database_of_table(store: Store, name: str) -> str | None:
    """The database in which a broker keeps what without one is this file in `config/`.

    A file that lies there, too, was exported or is from before (`rocksDBConfigToJson`).
    """
    own = {f"config/{one}" for one in (_TABLES.get(name), _ALL_TABLES) if name in _TABLES}
    return next((one for one in databases_of_tables(store) if one in own), None)


def reads_rocksdb_queues(store: Store, config: StoreConfig | None = None) -> bool:
    """Whether a broker serves this store's queues from RocksDB; `config` overrides the store's own.

    Without `storeType`, a database is taken for one that is read, unless it is written beside queue files
    (`rocksdbCQDoubleWriteEnable`).
    """
    known = config or store.config
    if known is not None and known.is_set("store_type"):
        return known.store_type == ROCKSDB_STORE_TYPE
    return store.file(DATABASE) is not None and not (known is not None and known.doubles_queues)
