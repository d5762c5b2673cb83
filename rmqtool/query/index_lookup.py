"""Keys in index files: following a chain, and the items of one record."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from formats.index import FIRST_ITEM, Header, Item, key_hash, slot_of
from formats.primitives import Flat, dtype_of, sizeof
from rmqtool.errors import RmqtoolError
from rmqtool.store.index_geometry import try_geometry

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import numpy.typing as npt

    from rmqtool.store.bytes import ByteSource
    from rmqtool.store.files import StoreFile
    from rmqtool.store.index_geometry import IndexGeometry
    from rmqtool.store.layout import Store

_ITEM_DTYPE = dtype_of(Item)
_ITEM = Flat(Item)
_RUN = 1 << 20
"""items that are compared at once"""
ALL_COMPARED = 1 << 20
"""items up to which a file is read whole, to prove that its chains lead to all of them"""
_HEADER_SIZE, _ITEM_SIZE = sizeof(Header), sizeof(Item)


@dataclass(frozen=True, slots=True)
class IndexItem:
    """One item with the place where it was found. time_diff is in seconds from `begin_timestamp` (ms)."""

    path: str
    number: int
    slot: int
    key_hash: int
    physical_offset: int
    time_diff: int
    prev: int
    begin_timestamp: int


class IndexReader:
    """One open index file of known geometry.

    `broken` names what was met on chains that no broker writes, None as long as there was nothing.
    """

    def __init__(self, source: ByteSource, path: str, geometry: IndexGeometry) -> None:
        if geometry.slots is None or geometry.items is None:
            raise ValueError("the geometry of the index file is ambiguous")
        self._source = source
        self._path = path
        self._geometry = geometry
        self._slots = geometry.slots
        self.items = geometry.items
        self.header = Header.parse(source.window(0, _HEADER_SIZE).tobytes())
        self.begin_timestamp = int(self.header.begin_timestamp)
        self.broken: str | None = None

    def item(self, number: int) -> IndexItem | None:
        """An item by its number; None behind the end of the file."""
        raw = self._source.window(self._geometry.item_position(number), _ITEM_SIZE).tobytes()
        if len(raw) < _ITEM_SIZE:
            return None
        hash_value, offset, seconds, prev = _ITEM.unpack_from(raw)
        slot = slot_of(max(hash_value, 0), self._slots)
        return IndexItem(self._path, number, slot, hash_value, offset, seconds, prev, self.begin_timestamp)

    def find(self, hash_value: int) -> Iterator[IndexItem]:
        """Items with this key hash, the newest first (`IndexFile#selectPhyOffset`)."""
        return (item for item in self.chain(hash_value) if item.key_hash == hash_value)

    def chain(self, hash_value: int) -> Iterator[IndexItem]:
        """All items of the slot of a key hash, the newest first.

        A chain ends at 0. Each predecessor is older, so that no cycle can hold the walk; where one is not, or
        lies outside of the file or in another slot, the chain ends too and `broken` says so.
        """
        slot = slot_of(hash_value, self._slots)
        at = self._source.window(self._geometry.slot_position(slot), 4).tobytes()
        number, before = int.from_bytes(at, "big", signed=True), self.items
        while number != 0:
            if not 0 < number < before:
                self.broken = f"slot {slot}: entry {number} cannot be in it"
                return
            item = self.item(number)
            if item is None or item.slot != slot or item.key_hash < 0:
                self.broken = f"slot {slot}: entry {number} does not belong to it"
                return
            yield item
            number, before = item.prev, number

    def offsets_of(self, hashes: npt.NDArray[np.int32]) -> npt.NDArray[np.int64]:
        """Physical offsets of all items with one of the hashes, by comparing the whole column in runs."""
        found = [offsets[np.isin(values, hashes)] for values, offsets in self.runs()]
        return np.concatenate([np.empty(0, np.int64), *found])

    @property
    def count(self) -> int:
        """Number behind the last item, by the header."""
        return min(max(int(self.header.index_count), 0), self.items)

    def runs(
        self, first: int = FIRST_ITEM, end: int | None = None
    ) -> Iterator[tuple[npt.NDArray[np.int32], npt.NDArray[np.int64]]]:
        """Key hashes and physical offsets of the items [first, end), in the order of their numbers.

        Of a file that was cut those that are whole; `broken` says so.
        """
        stop = self.count if end is None else min(end, self.count)
        for start in range(first, stop, _RUN):
            length = (min(start + _RUN, stop) - start) * _ITEM_SIZE
            raw = self._source.window(self._geometry.item_position(start), length)
            if len(raw) < length:
                self.broken = "it ends before its last entry"
            items = raw[: len(raw) // _ITEM_SIZE * _ITEM_SIZE].view(_ITEM_DTYPE)
            yield items["key_hash"].astype(np.int32), items["physical_offset"].astype(np.int64)

    def prove(self, hashes: npt.NDArray[np.int32], found: set[int]) -> None:
        """Sets `broken` where chains did not lead to all items with these hashes, but to records at `found`.

        A lost slot or a chain that ends early looks like a key that is not there. In a file of few items all
        of them are compared. In a larger one, slots in use are counted against the header; up to 4.7.0 that
        counts every put instead (`IndexFile#putKey`), which tells nothing.
        """
        puts = int(self.header.index_count) - FIRST_ITEM
        if self.broken is not None:
            return
        if puts <= ALL_COMPARED:
            left_out = len(set(self.offsets_of(hashes).tolist()) - found)
            if left_out:
                self.broken = (
                    f"chains miss {left_out} {'entry' if left_out == 1 else 'entries'} with the hash"
                )
            return
        counted = int(self.header.hash_slot_count)
        table = self._source.window(self._geometry.slot_position(0), 4 * self._slots)
        in_use = int(np.count_nonzero(table[: len(table) // 4 * 4].view(np.int32)))
        if in_use < counted != puts:
            self.broken = f"{in_use} slots are in use, by the header {counted}"


@contextmanager
def open_index(
    store: Store, file: StoreFile, known: dict[int, IndexGeometry] | None = None
) -> Iterator[IndexReader | None]:
    """A reader, None for a file that cannot be read or whose geometry nobody can tell.

    known: geometry by file length, filled as files are solved; files of one length have one geometry, except
    perhaps after the settings were changed to others of the same sum.
    """
    geometry = known.get(file.size) if known else None
    if geometry is None:
        geometry = try_geometry(file, store.config)
    if known is not None and geometry.slots is not None:
        known[file.size] = geometry
    if geometry.slots is None or geometry.items is None:
        yield None
        return
    with file.open("pread") as source:
        yield IndexReader(source, file.display_path, geometry)


def items_of_record(
    store: Store, topic: str, keys: Iterable[str], physical_offset: int
) -> tuple[dict[str, list[IndexItem]], list[str]]:
    """For each key the index items that point to the record, and the files that could not be searched."""
    found, skipped, errors = search_items(store, topic, keys, physical_offset)
    return found, [*skipped, *errors]


def search_items(
    store: Store, topic: str, keys: Iterable[str], physical_offset: int
) -> tuple[dict[str, list[IndexItem]], list[str], dict[str, str]]:
    """As `items_of_record`; files that could not be read stand apart: path → error."""
    wanted = {key: key_hash(topic, key) for key in keys}
    found: dict[str, list[IndexItem]] = {key: [] for key in wanted}
    skipped: list[str] = []
    errors: dict[str, str] = {}
    for file in store.index_files() if wanted else ():
        try:
            if not _may_hold(file, physical_offset):
                continue
            with open_index(store, file) as reader:
                if reader is None:
                    skipped.append(file.display_path)
                    continue
                for key, value in wanted.items():
                    found[key] += [
                        one for one in reader.find(value) if one.physical_offset == physical_offset
                    ]
        except RmqtoolError as error:
            errors[file.display_path] = str(error)
    return found, skipped, errors


def _may_hold(file: StoreFile, physical_offset: int) -> bool:
    """Whether the header's range of offsets lets the record be in the file; a senseless one says nothing."""
    with file.open("pread") as source:
        raw = source.window(0, _HEADER_SIZE).tobytes()
    if len(raw) < _HEADER_SIZE:
        return False
    header = Header.parse(raw)
    low, high = int(header.begin_physical_offset), int(header.end_physical_offset)
    return low <= physical_offset <= high or not 0 <= low <= high
