"""Items of an index file by number, less those that cannot be read, or not yet."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from formats.index import FIRST_ITEM, Item, item_position, slot_position
from formats.primitives import dtype_of
from rmqtool.check.findings import Finding, finding
from rmqtool.scan.index import IndexHeader, next_item
from rmqtool.store.patched import ZeroFilledSource

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    from rmqtool.store.access import OpenMode
    from rmqtool.store.files import StoreFile
    from rmqtool.store.patched import BadRange

ITEM = dtype_of(Item)
CHUNK = 1 << 16
"""items that are read at once"""

_SLOT_BYTES = 4


@dataclass
class IndexFile:
    """An index file of known geometry. count: number of the next item, by content (1: there is none)."""

    file: StoreFile
    slots: int
    items: int
    expected_length: int
    header: IndexHeader | None = None
    count: int = FIRST_ITEM
    damaged_items: dict[int, Finding] = field(default_factory=dict)
    facts: dict[str, Any] = field(default_factory=dict)
    lost_header: bool = False
    moving: bool = False
    """a broker may be adding items: header and slots speak of more than `count`"""
    lost: list[BadRange] = field(default_factory=list)
    """what cannot be read, as far as the file was looked at"""

    @property
    def cut(self) -> bool:
        """Part of the file is gone, so slots and header speak of items that are not there."""
        return self.file.size < self.expected_length

    @property
    def path(self) -> str:
        """What findings call it."""
        return self.file.display_path

    def position(self, number: int) -> int:
        """Byte of an item."""
        return item_position(number, self.slots)

    def item(self, code: str, number: int, *, count: int = 1, **facts: Any) -> Finding:
        """A finding about `count` items from `number` on."""
        return finding(
            code, path=self.path, position=self.position(number), length=count * ITEM.itemsize, **facts
        )

    def head(self, code: str, part: str | None, **facts: Any) -> Finding:
        """A finding about the header, or about one field of it."""
        schema = IndexHeader.__slots__
        if part not in schema:
            return finding(code, path=self.path, position=0, length=40, part=part, **facts)
        widths = [8, 8, 8, 8, 4, 4]
        at = schema.index(part)
        return finding(code, path=self.path, position=sum(widths[:at]), length=widths[at], part=part, **facts)


def open_patched(index: IndexFile, mode: OpenMode) -> ZeroFilledSource:
    """The bytes of an index file, zeros where they cannot be read."""
    return ZeroFilledSource(index.file.open(mode), index.file.size)


def lost_item(index: IndexFile, number: int) -> bool:
    """Whether a byte of an item cannot be read."""
    return _touches(index, index.position(number), ITEM.itemsize)


def lost_slot(index: IndexFile, slot: int, newest: int) -> bool:
    """Whether a slot, or the item that it holds, cannot be read."""
    return _touches(index, slot_position(slot), _SLOT_BYTES) or (newest > 0 and lost_item(index, newest))


def _touches(index: IndexFile, start: int, length: int) -> bool:
    return any(bad.start < start + length and start < bad.end for bad in index.lost)


def count_before(source: ZeroFilledSource, index: IndexFile, until: int) -> int:
    """`count` without the items at its end that point to `until` or behind: a broker adds in that order."""
    end = index.count
    while end > FIRST_ITEM:
        start = max(end - CHUNK, FIRST_ITEM)
        offsets = items_from(source, index, start, end - start)["physical_offset"]
        before = np.flatnonzero(offsets < until)
        if len(before):
            return start + int(before[-1]) + 1
        end = start
    return FIRST_ITEM


def chunks(source: ZeroFilledSource, index: IndexFile) -> Iterator[tuple[int, npt.NDArray[Any]]]:
    """All used items that can be read, as (number of the first, items)."""
    for first in range(FIRST_ITEM, index.count, CHUNK):
        items = items_from(source, index, first, min(CHUNK, index.count - first))
        if not len(items):
            return
        if not index.lost:
            yield first, items
            continue
        there = np.array([not lost_item(index, first + k) for k in range(len(items))])
        for span in np.split(np.arange(len(items)), np.flatnonzero(np.diff(there)) + 1):
            if there[span[0]]:
                yield first + int(span[0]), items[span[0] : span[-1] + 1]


def items_from(source: ZeroFilledSource, index: IndexFile, first: int, count: int) -> npt.NDArray[Any]:
    """Items from number `first` on, as far as the file goes."""
    raw = source.window(min(index.position(first), source.size), count * ITEM.itemsize)
    index.lost = source.unreadable or index.lost
    return raw[: len(raw) // ITEM.itemsize * ITEM.itemsize].view(ITEM)


def used(source: ZeroFilledSource, index: IndexFile) -> int:
    """Number of the next item: see `next_item`."""
    said = index.header.index_count if index.header is not None else 0
    number = next_item(source, said, index.slots, index.items)
    index.lost = source.unreadable or index.lost
    return number
