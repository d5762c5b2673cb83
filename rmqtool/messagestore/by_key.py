"""Messages by key in the writer's process: along the chains of the index, the newest first.

A chain leads to every record whose key has the same hash; each is read and compared by its topic and keys.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from formats.index import Item, item_position, key_hash, slot_position
from formats.primitives import Flat
from rmqtool.errors import UsageError, VanishedError
from rmqtool.messagestore.held_files import HeldFiles, cut
from rmqtool.messagestore.mapped_keys import MOST, MappedKeys
from rmqtool.messagestore.messages import StoredMessage
from rmqtool.scan.index import ITEM, SLOT

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from rmqtool.broker.index_files import IndexFile
    from rmqtool.broker.mapped_files import MappedFiles
    from rmqtool.messagestore.dispatching import Dispatching, Index
    from rmqtool.messagestore.log_reader import LogReader
    from rmqtool.messagestore.mapped_pulls import MappedPulls
    from rmqtool.scan.kernel_types import Kernels
    from rmqtool.store.bytes import Window
    from rmqtool.store.writing import Folder

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

    def newest(self, slot: int) -> int:
        """Number of the newest item of a slot, 0 for none."""
        if self.current is not None:
            return self.current.newest(slot)
        return int(self.read(slot_position(slot), _SLOT).view(SLOT)[0])

    @property
    def room(self) -> int:
        """Items that the file has room for, the first of which is none."""
        return (self.size - item_position(0, self.slots)) // ITEM.itemsize

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
    log: LogReader, offset: int, topic: str, key: str, begin: int, end: int | None
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

    def __init__(
        self,
        root: Folder,
        log: LogReader,
        of_log: MappedFiles,
        mapped_pulls: MappedPulls,
        dispatching: Dispatching,
        index: Index | None,
        kernels: Kernels,
    ) -> None:
        self._log, self._dispatching, self._index = log, dispatching, index
        self._held = HeldFiles(root.at, MOST)
        self._mapped_keys = MappedKeys(self._held, log, of_log, mapped_pulls, dispatching, index, kernels)
        self.find_mapped = self._mapped_keys.find
        """as `find`, None where that takes more than a look"""

    def find(self, topic: str, key: str, limit: int, begin: int, end: int | None) -> list[StoredMessage]:
        """The newest `limit` messages with a key, stored from `begin` to `end` (ms), in the order of the log.

        Raises `UsageError` without an index, `StoreIOError`, `UnreadableError`.
        """
        found = self._mapped_keys.find(topic, key, limit, begin, end)
        return self._followed(topic, key, limit, begin, end) if found is None else found

    def _followed(self, topic: str, key: str, limit: int, begin: int, end: int | None) -> list[StoredMessage]:
        """As `find`, one record after the other."""
        return self._held.retried(lambda: self._find(topic, key, limit, begin, end))

    def _find(self, topic: str, key: str, limit: int, begin: int, end: int | None) -> list[StoredMessage]:
        found: list[StoredMessage] = []
        before = -1
        for offset in self._offsets(key_hash(topic, key)):
            if len(found) >= limit:
                break
            if offset == before:
                continue
            before = offset
            message = _message(self._log, offset, topic, key, begin, end)
            if message is not None:
                found.append(message)
        return found[::-1]

    def find_each(
        self, topic: str, keys: Iterable[str], limit: int, begin: int, end: int | None
    ) -> dict[str, list[StoredMessage]]:
        """As `find` for each of many keys, together as far as they are at hand."""
        names = list(dict.fromkeys(keys))
        mapped = self._mapped_keys.find_each(topic, names, limit, begin, end)
        return {
            key: self._followed(topic, key, limit, begin, end) if mine is None else mine
            for key, mine in zip(names, mapped, strict=True)
        }

    def _offsets(self, value: int) -> Iterator[int]:
        """Physical offsets of the records whose keys have this hash, the newest first."""
        for chains in self._files():
            yield from chains.offsets(self._newest(chains, value % chains.slots), value)

    def _newest(self, chains: _Chains, slot: int) -> int:
        if chains.current is None:
            return chains.newest(slot)
        with self._dispatching.lock:
            return chains.newest(slot)

    def _files(self) -> Iterator[_Chains]:
        """The index files, the newest first. Those that have expired meanwhile are passed over."""
        index = self._index
        if index is None:
            raise UsageError("messageIndexEnable=false: rmqtool query-key looks keys up in the log")
        with self._dispatching.lock:
            current, paths = index.files.last, index.paths
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
        """An index file or a segment is gone."""
        self._mapped_keys.forget()
        self._held.release(path)

    def close(self) -> None:
        """Lets go of all files."""
        self._mapped_keys.forget()
        self._held.close()
