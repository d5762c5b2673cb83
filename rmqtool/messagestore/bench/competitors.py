"""Other embedded stores, given the records that the message store would keep, by number and by key.

Bindings are imported when they are asked for; one that is not installed raises `ModuleNotFoundError`.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path

    Item = tuple[bytes, bytes]
    """key and record"""

_NUMBER = 8


class Competitor(Protocol):
    """One store. Records are numbered from 0 in the order in which they are put."""

    def put(self, items: Sequence[Item]) -> None:
        """Stores records with one transaction; on the medium when it returns, if it was opened so."""
        ...

    def scan(self) -> Iterator[bytes]:
        """All records in their order."""
        ...

    def get(self, number: int) -> bytes:
        """One record."""
        ...

    def close(self) -> None:
        """Lets go of it."""
        ...


@runtime_checkable
class Keyed(Competitor, Protocol):
    """One that has a second index."""

    def find(self, key: bytes) -> bytes:
        """The record with a key."""
        ...


class Sqlite:
    """A table with an index over the keys, in WAL mode."""

    def __init__(self, root: Path, *, sync: bool) -> None:
        import sqlite3

        made = self._db = sqlite3.connect(root / "db", isolation_level=None, check_same_thread=False)
        made.execute("pragma journal_mode = wal")
        made.execute(f"pragma synchronous = {'full' if sync else 'normal'}")
        made.execute("create table messages (id integer primary key, key blob, record blob)")
        made.execute("create index keys on messages (key)")

    def put(self, items: Sequence[Item]) -> None:
        """See `Competitor.put`."""
        if len(items) == 1:
            self._db.execute("insert into messages (key, record) values (?, ?)", items[0])
            return
        self._db.execute("begin")
        self._db.executemany("insert into messages (key, record) values (?, ?)", items)
        self._db.execute("commit")

    def scan(self) -> Iterator[bytes]:
        """See `Competitor.scan`."""
        return (record for (record,) in self._db.execute("select record from messages order by id"))

    def get(self, number: int) -> bytes:
        """See `Competitor.get`."""
        return self._one("select record from messages where id = ?", number + 1)

    def find(self, key: bytes) -> bytes:
        """See `Keyed.find`."""
        return self._one("select record from messages where key = ?", key)

    def _one(self, statement: str, value: Any) -> bytes:
        found: bytes = self._db.execute(statement, (value,)).fetchone()[0]
        return found

    def close(self) -> None:
        """See `Competitor.close`."""
        self._db.close()


class _KeyValue:
    """Records under their numbers, numbers under `k` and the key."""

    def __init__(self) -> None:
        self._count = 0

    def _pairs(self, items: Iterable[Item]) -> Iterator[tuple[bytes, bytes]]:
        for key, record in items:
            number = self._count.to_bytes(_NUMBER, "big")
            self._count += 1
            yield number, record
            yield b"k" + key, number


class Leveldb(_KeyValue):
    """Through plyvel."""

    def __init__(self, root: Path, *, sync: bool) -> None:
        import plyvel  # type: ignore[import-not-found,import-untyped,unused-ignore]

        super().__init__()
        self._db: Any = plyvel.DB(os.fspath(root / "db"), create_if_missing=True)
        self._sync = sync

    def put(self, items: Sequence[Item]) -> None:
        """See `Competitor.put`."""
        with self._db.write_batch(sync=self._sync) as batch:
            for key, value in self._pairs(items):
                batch.put(key, value)

    def scan(self) -> Iterator[bytes]:
        """See `Competitor.scan`."""
        end = self._count.to_bytes(_NUMBER, "big")
        found: Iterator[bytes] = self._db.iterator(stop=end, include_key=False)
        return found

    def get(self, number: int) -> bytes:
        """See `Competitor.get`."""
        found: bytes = self._db.get(number.to_bytes(_NUMBER, "big"))
        return found

    def find(self, key: bytes) -> bytes:
        """See `Keyed.find`."""
        found: bytes = self._db.get(self._db.get(b"k" + key))
        return found

    def close(self) -> None:
        """See `Competitor.close`."""
        self._db.close()


class Rocksdb(_KeyValue):
    """Through rocksdict."""

    def __init__(self, root: Path, *, sync: bool) -> None:
        import rocksdict  # type: ignore[import-not-found,import-untyped,unused-ignore]

        super().__init__()
        self._module: Any = rocksdict
        self._db: Any = rocksdict.Rdict(os.fspath(root / "db"), options=rocksdict.Options(raw_mode=True))
        options = rocksdict.WriteOptions()
        options.sync = sync
        self._db.set_write_options(options)

    def put(self, items: Sequence[Item]) -> None:
        """See `Competitor.put`."""
        batch = self._module.WriteBatch(raw_mode=True)
        for key, value in self._pairs(items):
            batch.put(key, value)
        self._db.write(batch)

    def scan(self) -> Iterator[bytes]:
        """See `Competitor.scan`."""
        for number, (_, record) in enumerate(self._db.items()):
            if number == self._count:
                return
            yield record

    def get(self, number: int) -> bytes:
        """See `Competitor.get`."""
        found: bytes = self._db[number.to_bytes(_NUMBER, "big")]
        return found

    def find(self, key: bytes) -> bytes:
        """See `Keyed.find`."""
        found: bytes = self._db[self._db[b"k" + key]]
        return found

    def close(self) -> None:
        """See `Competitor.close`."""
        self._db.close()


class Lmdb(_KeyValue):
    """Through lmdb."""

    def __init__(self, root: Path, *, sync: bool) -> None:
        import lmdb  # type: ignore[import-not-found,import-untyped,unused-ignore]

        super().__init__()
        os.mkdir(root / "db")
        path = os.fspath(root / "db")
        self._db: Any = lmdb.open(path, map_size=1 << 36, sync=sync, metasync=sync, max_dbs=2)
        self._records, self._keys = self._db.open_db(b"records"), self._db.open_db(b"keys")

    def put(self, items: Sequence[Item]) -> None:
        """See `Competitor.put`."""
        pairs = list(self._pairs(items))
        with self._db.begin(write=True) as change:
            for number, record in pairs[::2]:
                change.put(number, record, append=True, db=self._records)
            for key, number in pairs[1::2]:
                change.put(key, number, db=self._keys)

    def scan(self) -> Iterator[bytes]:
        """See `Competitor.scan`."""
        with self._db.begin() as view:
            for _, record in view.cursor(db=self._records):
                yield record

    def get(self, number: int) -> bytes:
        """See `Competitor.get`."""
        with self._db.begin() as view:
            found: bytes = view.get(number.to_bytes(_NUMBER, "big"), db=self._records)
            return found

    def find(self, key: bytes) -> bytes:
        """See `Keyed.find`."""
        with self._db.begin() as view:
            found: bytes = view.get(view.get(b"k" + key, db=self._keys), db=self._records)
            return found

    def close(self) -> None:
        """See `Competitor.close`."""
        self._db.close()


class PlainFile:
    """Records behind each other in one file, their places in memory; no lookup by key."""

    def __init__(self, root: Path, *, sync: bool) -> None:
        self._file = os.open(root / "db", os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        self._sync, self._places = sync, [0]

    def put(self, items: Sequence[Item]) -> None:
        """See `Competitor.put`."""
        records = [record for _, record in items]
        os.write(self._file, records[0] if len(records) == 1 else b"".join(records))
        for record in records:
            self._places.append(self._places[-1] + len(record))
        if self._sync:
            os.fdatasync(self._file)

    def scan(self) -> Iterator[bytes]:
        """See `Competitor.scan`."""
        return map(self.get, range(len(self._places) - 1))

    def get(self, number: int) -> bytes:
        """See `Competitor.get`."""
        begin, end = self._places[number : number + 2]
        return os.pread(self._file, end - begin, begin)

    def close(self) -> None:
        """See `Competitor.close`."""
        os.close(self._file)


COMPETITORS: dict[str, Callable[..., Competitor]] = {
    "sqlite": Sqlite,
    "rocksdb": Rocksdb,
    "leveldb": Leveldb,
    "lmdb": Lmdb,
    "file": PlainFile,
}
