"""Messages by key in the writer's process: along the chains of the index, the newest first.

A chain leads to every record whose key has the same hash; each is read and compared by its topic and keys.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from formats.index import Item, item_position, key_hash, slot_position
from formats.java import java_utf8_encode
from formats.primitives import Flat
from rmqtool.errors import UsageError, VanishedError
from rmqtool.messagestore.held_files import HeldFiles, cut
from rmqtool.messagestore.log_reader import RecordCursor
from rmqtool.messagestore.messages import StoredMessage
from rmqtool.scan.fields import ROW_WIDTH, Check, Field
from rmqtool.scan.index import ITEM, SLOT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import Any, Self

    import numpy.typing as npt

    from rmqtool.broker.index_files import IndexFile
    from rmqtool.messagestore.dispatching import Dispatching, Index
    from rmqtool.messagestore.log_reader import LogReader
    from rmqtool.scan.kernel_types import Kernels
    from rmqtool.store.bytes import Window
    from rmqtool.store.writing import Folder

    Ints = npt.NDArray[np.int64]

_MAPPED = 16
"""index files that stay mapped, those used last"""
_FEW = 8
"""keys that are followed one by one, as together they would take no less time"""
_LEAST = 4096
"""bytes to have of a segment that is not mapped"""
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


def _newest_of(
    offsets: Iterator[int], looked: Callable[[int], StoredMessage | None], limit: int, before: int
) -> tuple[list[StoredMessage], int]:
    """Up to `limit` messages of places, where neighbours may be the same, and the place looked at last."""
    found: list[StoredMessage] = []
    while len(found) < limit:
        offset = next(offsets, None)
        if offset is None:
            break
        if offset != before:
            before = offset
            message = looked(offset)
            if message is not None:
                found.append(message)
    return found, before


@dataclass(frozen=True)
class _Wanted:
    """Keys to look up, see `KeyReader.find`: names, index hashes, and bytes `data[ends[k] : ends[k + 1]]`."""

    topic: str
    names: list[str]
    limit: int
    begin: int
    end: int | None
    hashes: Ints
    ends: Ints
    data: Window
    topic_bytes: Window

    @classmethod
    def of(cls, topic: str, names: list[str], limit: int, begin: int, end: int | None) -> Self:
        import pyarrow as pa

        from rmqtool.query.key_columns import hash_columns, index_hashes, powers_of

        column = pa.array(names, pa.string())
        lengths, sums = hash_columns(column)
        hashes = index_hashes(topic, powers_of(lengths), sums).astype(np.int64)
        _, ends, data = column.buffers()
        return cls(
            topic,
            names,
            limit,
            begin,
            end,
            hashes,
            np.frombuffer(ends, np.int32).astype(np.int64),
            np.frombuffer(data or b"", np.uint8),
            np.frombuffer(java_utf8_encode(topic), np.uint8),
        )

    def looked(self, log: LogReader | RecordCursor, number: int) -> Callable[[int], StoredMessage | None]:
        """Gives the message whose record begins at an offset where it has a key, by the number of that."""
        key = self.names[number]
        return partial(_message, log, topic=self.topic, key=key, begin=self.begin, end=self.end)


class KeyReader:
    """Looks keys up in the index of a store that is written. index: None without one."""

    def __init__(
        self,
        root: Folder,
        log: LogReader,
        dispatching: Dispatching,
        index: Index | None,
        kernels: Kernels,
    ) -> None:
        self._log, self._dispatching, self._index, self._kernels = log, dispatching, index, kernels
        self._held = HeldFiles(root.at, _MAPPED)

    def find(self, topic: str, key: str, limit: int, begin: int, end: int | None) -> list[StoredMessage]:
        """The newest `limit` messages with a key, stored from `begin` to `end` (ms), in the order of the log.

        Raises `UsageError` without an index, `StoreIOError`, `UnreadableError`.
        """
        return self._held.settled(lambda: self._find(topic, key, limit, begin, end))

    def _find(self, topic: str, key: str, limit: int, begin: int, end: int | None) -> list[StoredMessage]:
        looked = partial(_message, self._log, topic=topic, key=key, begin=begin, end=end)
        return _newest_of(self._offsets(key_hash(topic, key)), looked, limit, -1)[0][::-1]

    def find_each(
        self, topic: str, keys: Iterable[str], limit: int, begin: int, end: int | None
    ) -> dict[str, list[StoredMessage]]:
        """As `find` for each of many keys, whose chains are followed together."""
        wanted = _Wanted.of(topic, list(dict.fromkeys(keys)), limit, begin, end)
        # the index first, as what it shows spoiled is asked for again with the log
        found = self._held.settled(lambda: self._log.settled(lambda: self._find_each(wanted)))
        for mine in found:
            if len(mine) > 1:
                mine.reverse()
        return dict(zip(wanted.names, found, strict=True))

    def _find_each(self, wanted: _Wanted) -> list[list[StoredMessage]]:
        """The messages of each key, the newest first."""
        found: list[list[StoredMessage]] = [[] for _ in wanted.names]
        room = np.full(len(found), max(wanted.limit, 0))
        before = np.full(len(found), -1)
        """place of the record that was looked at last, which the index may know twice"""
        for chains in self._files():
            mine = np.flatnonzero(room > 0)
            if not len(mine):
                break
            numbers = self._newest(chains, wanted.hashes[mine] % chains.slots)
            behind = np.full(len(mine), chains.room)
            while True:
                there = (numbers > 0) & (numbers < behind) & (room[mine] > 0)
                mine, numbers = mine[there], numbers[there]
                if len(mine) <= _FEW:
                    break
                items = chains.items(numbers)
                offsets = items["physical_offset"].astype(np.int64)
                asked = np.flatnonzero((items["key_hash"] == wanted.hashes[mine]) & (offsets != before[mine]))
                owners = mine[asked]
                before[owners] = offsets[asked]
                for mine_too, messages in self._messages(wanted, owners, offsets[asked]):
                    for owner, message in zip(mine_too, messages, strict=True):
                        found[owner].append(message)
                    room[mine_too] -= 1  # each key was asked for once
                behind, numbers = numbers, items["prev"].astype(np.int64)
            for owner, number in zip(mine.tolist(), numbers.tolist(), strict=True):
                offsets_of = chains.offsets(number, int(wanted.hashes[owner]))
                some, last = _newest_of(
                    offsets_of, wanted.looked(self._log, owner), room[owner], before[owner]
                )
                found[owner] += some
                before[owner] = last
                room[owner] -= len(some)
        return found

    def _messages(
        self, wanted: _Wanted, owners: Ints, offsets: Ints
    ) -> Iterator[tuple[list[int], list[StoredMessage]]]:
        """Of keys and places in the log, those where a message with the key begins, and the messages."""
        order = np.argsort(offsets, kind="stable")
        segments = offsets[order] // self._log.segment_size
        borders = np.flatnonzero(segments[1:] != segments[:-1]) + 1
        for some in np.split(order, borders) if len(order) else ():
            yield self._in_segment(wanted, owners[some], offsets[some])

    def _in_segment(
        self, wanted: _Wanted, owners: Ints, offsets: Ints
    ) -> tuple[list[int], list[StoredMessage]]:
        """As `_messages`, of ascending places in one segment."""
        base, data = self._log.data_around(int(offsets[0]), _LEAST)
        places, which = np.unique(offsets - base, return_inverse=True)
        rows = np.zeros((len(places), ROW_WIDTH), np.int64)
        window, size = np.frombuffer(data, np.uint8), self._log.segment_size
        count = self._kernels.records_at(window, places, 0, size, base, int(Check.TEXT), rows)
        rows = rows[:count]
        row_of = np.full(len(places), -1)
        row_of[np.searchsorted(places, rows[:, Field.POSITION])] = np.arange(count)
        which = row_of[which.reshape(-1)]
        sure = np.zeros(len(which), np.bool_)
        self._kernels.hashes.have_keys(
            window, 0, rows, which, wanted.topic_bytes, owners, wanted.ends, wanted.data, sure
        )
        times = rows[which[sure], Field.STORE_TIMESTAMP]
        late = times < wanted.begin
        if wanted.end is not None:
            late |= times >= wanted.end
        kept = np.flatnonzero(sure)[~late]
        starts = rows[which[kept], Field.POSITION]
        ends = (starts + rows[which[kept], Field.STORE_SIZE]).tolist()
        found = owners[kept].tolist()
        messages = [
            StoredMessage(bytes(data[one:end])) for one, end in zip(starts.tolist(), ends, strict=True)
        ]
        cursor = RecordCursor(self._log)
        for number in np.flatnonzero(~sure).tolist():  # texts that are the same in other bytes, and no record
            owner = int(owners[number])
            message = wanted.looked(cursor, owner)(int(offsets[number]))
            if message is not None:
                found.append(owner)
                messages.append(message)
        return found, messages

    def _offsets(self, value: int) -> Iterator[int]:
        """Physical offsets of the records whose keys have this hash, the newest first."""
        for chains in self._files():
            number = self._newest(chains, np.array([value % chains.slots]))[0]
            yield from chains.offsets(int(number), value)

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
