"""Messages by key in the writer's process: along the chains of the index, the newest first.

A chain leads to every record whose key has the same hash; each is read and compared by its topic and keys.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from formats.index import Item, item_position, key_hash, slot_position
from formats.primitives import Flat
from rmqtool.errors import UsageError, VanishedError
from rmqtool.messagestore.held_files import HeldFiles, cut
from rmqtool.messagestore.log_reader import RecordCursor
from rmqtool.messagestore.messages import StoredMessage
from rmqtool.scan.index import ITEM, SLOT

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

    import numpy.typing as npt

    from rmqtool.broker.index_files import IndexFile
    from rmqtool.messagestore.dispatching import Dispatching, Index
    from rmqtool.messagestore.log_reader import LogReader
    from rmqtool.store.bytes import Window
    from rmqtool.store.writing import Folder

    Ints = npt.NDArray[np.int64]

_MAPPED = 16
"""index files that stay mapped, those used last"""
_ITEM = Flat(Item)
_SLOT = SLOT.itemsize


class _Chains(NamedTuple):
    """One index file. slots: how many it has; size: its bytes.

    current: it as it is written, which has the slots. mapped: all of it where nothing is copied.
    """

    held: HeldFiles
    path: str
    slots: int
    size: int
    current: IndexFile | None
    mapped: Window | None

    def read(self, position: int, length: int) -> Window:
        """Bytes of it. Raises `StoreIOError` where another process cut it."""
        mapped = self.mapped
        window = (
            self.held.window(self.path, position, length)
            if mapped is None
            else mapped[position : position + length]
        )
        if len(window) < length:
            raise cut(self.path)
        return window

    def newest(self, slots: Ints) -> Ints:
        """Numbers of the newest items of these slots, 0 for none."""
        if self.current is not None:
            return self.current.newest(slots).astype(np.int64)
        if self.mapped is not None:
            return self.read(slot_position(0), self.slots * _SLOT).view(SLOT)[slots].astype(np.int64)
        raw = [self.read(slot_position(one), _SLOT).view(SLOT) for one in slots.tolist()]
        return np.concatenate(raw).astype(np.int64)

    @property
    def room(self) -> int:
        """Items that the file has room for, the first of which is none."""
        return (self.size - item_position(0, self.slots)) // ITEM.itemsize

    def items(self, numbers: Ints) -> npt.NDArray[Any]:
        """Items by their numbers."""
        if self.mapped is not None:
            return self.read(item_position(0, self.slots), self.room * ITEM.itemsize).view(ITEM)[numbers]
        places = [item_position(one, self.slots) for one in numbers.tolist()]
        return np.concatenate([self.read(one, ITEM.itemsize).view(ITEM) for one in places])

    def offsets(self, number: int, value: int) -> Iterator[int]:
        """Physical offsets of items with this hash on the chain that begins with item `number`.

        Each predecessor is older, so that no cycle can hold the walk.
        """
        behind = self.room
        while 0 < number < behind:
            raw = self.read(item_position(number, self.slots), ITEM.itemsize)
            hashed, offset, _, previous = _ITEM.unpack_from(raw.data)
            if hashed == value:
                yield offset
            behind, number = number, previous


def _message(
    log: LogReader | RecordCursor, offset: int, topic: str, key: str, begin: int, end: int | None
) -> StoredMessage | None:
    """The message whose record begins at an offset, if it has the key and was stored in time."""
    raw = log.record(offset)
    if raw is None:
        return None
    message = StoredMessage(raw)
    if not message.has_key(topic, key):
        return None
    if begin or end is not None:
        at = message.store_timestamp
        if at < begin or (end is not None and at >= end):
            return None
    return message


class KeyReader:
    """Looks keys up in the index of a store that is written. index: None without one."""

    def __init__(self, root: Folder, log: LogReader, dispatching: Dispatching, index: Index | None) -> None:
        self._log, self._dispatching, self._index = log, dispatching, index
        self._held = HeldFiles(root.at, _MAPPED)

    def find(self, topic: str, key: str, limit: int, begin: int, end: int | None) -> list[StoredMessage]:
        """The newest `limit` messages with a key, stored from `begin` to `end` (ms), in the order of the log.

        Raises `UsageError` without an index, `StoreIOError`, `UnreadableError`.
        """
        return self._held.settled(lambda: self._find(topic, key, limit, begin, end))

    def _find(self, topic: str, key: str, limit: int, begin: int, end: int | None) -> list[StoredMessage]:
        found: list[StoredMessage] = []
        before = -1
        for offset in self._offsets(key_hash(topic, key)):
            if offset == before:
                continue
            before = offset
            message = _message(self._log, offset, topic, key, begin, end)
            if message is not None:
                found.append(message)
                if len(found) >= limit:
                    break
        return found[::-1]

    def find_each(
        self, topic: str, keys: Iterable[str], limit: int, begin: int, end: int | None
    ) -> dict[str, list[StoredMessage]]:
        """As `find` for each of many keys, whose chains are followed together."""
        import pyarrow as pa

        from rmqtool.query.key_columns import hash_columns, index_hashes, powers_of

        names = list(dict.fromkeys(keys))
        lengths, sums = hash_columns(pa.array(names, pa.string()))
        hashes = index_hashes(topic, powers_of(lengths), sums).astype(np.int64)
        owners, offsets = self._held.settled(lambda: self._offsets_of(hashes))
        # the newest first of each, and each once
        order = np.lexsort((-offsets, owners))
        owners, offsets = owners[order], offsets[order]
        again = (owners[1:] == owners[:-1]) & (offsets[1:] == offsets[:-1])
        kept = np.concatenate(([True], ~again)) if len(owners) else np.empty(0, np.bool_)
        places = list(zip(owners[kept].tolist(), offsets[kept].tolist(), strict=True))
        return self._log.settled(lambda: self._newest_of(places, names, topic, limit, begin, end))

    def _newest_of(
        self,
        places: list[tuple[int, int]],
        names: list[str],
        topic: str,
        limit: int,
        begin: int,
        end: int | None,
    ) -> dict[str, list[StoredMessage]]:
        found: dict[str, list[StoredMessage]] = {key: [] for key in names}
        cursor = RecordCursor(self._log)
        for owner, offset in places:
            key = names[owner]
            mine = found[key]
            if len(mine) < limit:
                message = _message(cursor, offset, topic, key, begin, end)
                if message is not None:
                    mine.append(message)
        for mine in found.values():
            mine.reverse()
        return found

    def _offsets(self, value: int) -> Iterator[int]:
        """Physical offsets of the records whose keys have this hash, the newest first."""
        for chains in self._files():
            number = self._newest(chains, np.array([value % chains.slots]))[0]
            yield from chains.offsets(int(number), value)

    def _offsets_of(self, hashes: Ints) -> tuple[Ints, Ints]:
        """Which hash, and physical offset, of all records with one of them."""
        owners: list[Ints] = [np.empty(0, np.int64)]
        offsets: list[Ints] = [np.empty(0, np.int64)]
        for chains in self._files():
            mine = np.arange(len(hashes))
            numbers, behind = self._newest(chains, hashes % chains.slots), np.full(len(hashes), chains.room)
            while True:
                there = (numbers > 0) & (numbers < behind)
                mine, numbers = mine[there], numbers[there]
                if not len(mine):
                    break
                some = chains.items(numbers)
                same = some["key_hash"] == hashes[mine]
                owners.append(mine[same])
                offsets.append(some["physical_offset"][same].astype(np.int64))
                behind, numbers = numbers, some["prev"].astype(np.int64)
        return np.concatenate(owners), np.concatenate(offsets)

    def _newest(self, chains: _Chains, slots: Ints) -> Ints:
        if chains.current is None:
            return chains.newest(slots)
        with self._dispatching.lock:
            return chains.newest(slots)

    def _files(self) -> Iterator[_Chains]:
        """The index files, the newest first. Those that have expired meanwhile are passed over."""
        index = self._index
        if index is None:
            raise UsageError("messageIndexEnable=false: rmqtool query-key looks keys up in the log")
        with self._dispatching.lock:
            current, paths = index.last, index.paths
            if current is not None:
                current.flush()  # which makes a new file
        for path in reversed(paths):
            mine = current if current is not None and current.path == path else None
            with suppress(VanishedError):
                mapped = self._held.mapped(path)
                size = self._held.size(path) if mapped is None else len(mapped)
                if size >= item_position(0, index.slots):
                    yield _Chains(self._held, path, index.slots, size, mine, mapped)

    def forget(self, path: str) -> None:
        """An index file is gone."""
        self._held.release(path)

    def close(self) -> None:
        """Lets go of all files."""
        self._held.close()
