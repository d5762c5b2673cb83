"""Keys in index files: following a chain, and the items of one record."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from formats.index import Header, Item, key_hash, slot_of
from formats.primitives import sizeof
from rmqtool.errors import RmqtoolError
from rmqtool.store.index_geometry import try_geometry

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from rmqtool.store.bytes import ByteSource
    from rmqtool.store.files import StoreFile
    from rmqtool.store.index_geometry import IndexGeometry
    from rmqtool.store.layout import Store

_LONGEST_CHAIN = 1_000_000
"""items of one slot that are looked at; a chain that long holds one key a million times"""


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
    """One open index file of known geometry."""

    def __init__(self, source: ByteSource, path: str, geometry: IndexGeometry) -> None:
        if geometry.slots is None or geometry.items is None:
            raise ValueError("the geometry of the index file is ambiguous")
        self._source = source
        self._path = path
        self._geometry = geometry
        self._slots = geometry.slots
        self._items = geometry.items
        self.begin_timestamp = int(Header.parse(source.window(0, sizeof(Header)).tobytes()).begin_timestamp)

    def find(self, hash_value: int) -> Iterator[IndexItem]:
        """Items with this key hash, the newest first (`IndexFile#selectPhyOffset`).

        A chain ends at 0, outside of the file, or where a predecessor is not older.
        """
        slot = slot_of(hash_value, self._slots)
        at = self._source.window(self._geometry.slot_position(slot), 4).tobytes()
        number = int.from_bytes(at, "big", signed=True)
        for _ in range(_LONGEST_CHAIN):
            if not 0 < number < self._items:
                return
            raw = self._source.window(self._geometry.item_position(number), sizeof(Item)).tobytes()
            if len(raw) < sizeof(Item):
                return
            item = Item.parse(raw)
            if item.key_hash == hash_value:
                yield IndexItem(
                    self._path,
                    number,
                    slot,
                    item.key_hash,
                    item.physical_offset,
                    item.time_diff,
                    item.prev,
                    self.begin_timestamp,
                )
            if item.prev >= number:
                return
            number = item.prev


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
        yield IndexReader(source, file.shown, geometry)


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
                    skipped.append(file.shown)
                    continue
                for key, value in wanted.items():
                    found[key] += [
                        one for one in reader.find(value) if one.physical_offset == physical_offset
                    ]
        except RmqtoolError as error:
            errors[file.shown] = str(error)
    return found, skipped, errors


def _may_hold(file: StoreFile, physical_offset: int) -> bool:
    """Whether the header's range of offsets lets the record be in the file; a senseless one says nothing."""
    with file.open("pread") as source:
        raw = source.window(0, sizeof(Header)).tobytes()
    if len(raw) < sizeof(Header):
        return False
    header = Header.parse(raw)
    low, high = int(header.begin_physical_offset), int(header.end_physical_offset)
    return low <= physical_offset <= high or not 0 <= low <= high
