"""Queues in RocksDB (`RocksDBMessageStore`, 5.2 to 5.3.3): the broker makes them, from the log.

Their units are not read here. After a change to the log some of them may point at what is not a record any
more, and a start does not look at those that it has. So the database is moved out, and `abort` says that the
last stop was none: such a start fills an empty database from the first record on. A normal one leaves out the
record at physical offset 0, which it takes for one that is there. Unless settings say that the broker has
its queues in RocksDB, the queue files are built, too: without `storeType` it reads these.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import NAMESPACE_OID, uuid5

from rmqtool.repair.content import Inline
from rmqtool.repair.plan import Action, Change, Edit
from rmqtool.store.kinds import QUEUE_KINDS
from rmqtool.store.rocksdb import DATABASE, IDENTITY, reads_rocksdb_queues

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rmqtool.store.layout import Store

_DATABASE = ("CURRENT", "MANIFEST-")
_DATA = (".sst", ".log", ".blob")


def has_rocksdb_queues(store: Store) -> bool:
    """Whether the queues are in RocksDB, also where the database was moved out and only its name is left."""
    known = store.config
    decided = known is not None and (known.is_set("store_type") or known.doubles_queues)
    return reads_rocksdb_queues(store) or (not decided and store.file(IDENTITY) is not None)


def wants_files(store: Store, *, moved: bool) -> bool:
    """Whether queue files are to be in step with the log. moved: the database is moved out."""
    if not has_rocksdb_queues(store):
        return True
    if store.config is not None and store.config.is_set("store_type"):
        return False
    beside = any(file.size for file in store.of_kind(*QUEUE_KINDS))
    return moved or beside or store.file(DATABASE) is None


def rocksdb_edits(store: Store) -> Iterator[Edit]:
    """The database goes, the file with its name stays, and the next start fills a new one."""
    for file in store.files:
        directory, _, name = file.path.rpartition("/")
        if directory == "consumequeue" and file.regular and _is_data(name):
            message = f"{file.display_path}: the broker fills a new database from the log"
            yield Edit(Change(action=Action.REMOVE, path=file.display_path, why="rocksdb", message=message))
    if store.file(IDENTITY) is None:  # what tells from now on that there was one
        data = str(uuid5(NAMESPACE_OID, IDENTITY)).encode()
        message = "the name of the database is missing"
        change = Change(
            action=Action.PUT, path=IDENTITY, length=len(data), size=len(data), why="rocksdb", message=message
        )
        yield Edit(change, Inline(data))
    if store.file("abort") is None:
        change = Change(
            action=Action.PUT,
            path="abort",
            length=0,
            size=0,
            why="abort",
            message="the next start has to fill the queues from the log",
        )
        yield Edit(change, Inline(b""))


def _is_data(name: str) -> bool:
    return name.startswith(_DATABASE) or name.endswith(_DATA)
