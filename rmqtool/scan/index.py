"""Index files as NumPy sees them: layout, header, and how far they are used."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from formats.index import FIRST_ITEM, Header, Item, Slot, item_position
from formats.primitives import dtype_of, sizeof
from rmqtool.store.holes import last_in

if TYPE_CHECKING:
    from rmqtool.store.bytes import ByteSource

ITEM = dtype_of(Item)
SLOT = dtype_of(Slot)

_BACKWARDS = 1 << 20
_CLOCK_STEP = 86_400_000
"""milliseconds that a clock may have been set back while a file was filled"""


@dataclass(frozen=True, slots=True)
class IndexHeader:
    """The header as it lies there. Times in ms, offsets in bytes of the commit log."""

    begin_timestamp: int
    end_timestamp: int
    begin_physical_offset: int
    end_physical_offset: int
    hash_slot_count: int
    index_count: int


def read_header(source: ByteSource) -> IndexHeader | None:
    """The header of an index file; None when the file is too short for one."""
    return header_of(source) if source.size >= sizeof(Header) else None


def header_of(source: ByteSource) -> IndexHeader:
    """The header that a broker reads, which maps a file at its full length: zeros behind the bytes."""
    header = Header.parse(source.window(0, sizeof(Header)).tobytes().ljust(sizeof(Header), b"\0"))
    return IndexHeader(**{name: int(header[name]) for name in IndexHeader.__slots__})


def next_item(source: ByteSource, said: int, slots: int, items: int) -> int:
    """Number behind the last used item: `said` where the bytes agree, else by the last used byte."""
    start = item_position(FIRST_ITEM, slots)
    room = min(items, (source.size - item_position(0, slots)) // ITEM.itemsize)
    if FIRST_ITEM < said <= room:
        around = source.window(item_position(said - 1, slots), 2 * ITEM.itemsize)
        if around[: ITEM.itemsize].any() and (said == room or not around[ITEM.itemsize :].any()):
            return said
    end = item_position(room, slots)
    while end > start:
        low = max(end - _BACKWARDS, start)
        data = source.next_data(low)
        last = last_in(source.window(low, end - low if data is not None and data < end else 0))
        if last >= 0:
            return (low + last - item_position(0, slots)) // ITEM.itemsize + 1
        end = low
    return FIRST_ITEM


def header_problems(source: ByteSource, header: IndexHeader, slots: int, items: int, used: int) -> list[str]:
    """What no broker writes into the header of a file whose items end before number `used`.

    A count behind the items is none of it: the header of a running broker, or after a crash, may be older.
    """
    found = []
    if not 0 <= header.index_count <= items:
        found.append(f"index_count is {header.index_count}, the file has room for {items}")
    if header.hash_slot_count < 0:
        found.append(f"hash_slot_count is {header.hash_slot_count}")
    if max(used, header.index_count) <= FIRST_ITEM:
        return found
    if not 0 <= header.begin_physical_offset <= header.end_physical_offset:
        ends = header.begin_physical_offset, header.end_physical_offset
        found.append("physical offsets begin at {} and end at {}".format(*ends))
    # a clock that was set back leaves a time_diff of 0 (`IndexFile#putKey`)
    last = source.window(item_position(used - 1, slots), ITEM.itemsize)
    later = len(last) == ITEM.itemsize and int(last.view(ITEM)["time_diff"][0]) > 0
    backwards = header.begin_timestamp - header.end_timestamp
    if header.begin_timestamp <= 0 or backwards > (0 if later else _CLOCK_STEP):
        times = header.begin_timestamp, header.end_timestamp
        found.append("timestamps begin at {} and end at {}".format(*times))
    return found
