"""Index files → header, used slots and items as Arrow record batches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from formats.index import FIRST_ITEM, Header, Item, Slot, item_position, slot_position
from formats.primitives import dtype_of, sizeof
from rmqtool.scan.events import Gap
from rmqtool.scan.fields import Stop
from rmqtool.store.holes import data_windows

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    from rmqtool.store.bytes import ByteSource

ITEM = dtype_of(Item)
SLOT = dtype_of(Slot)

_CHUNK = 1 << 16
_BACKWARDS = 1 << 20
_CLOCK_STEP = 86_400_000
"""milliseconds that a clock may have been set back while a file was filled"""

_i32, _i64, _str = pa.int32(), pa.int64(), pa.string()

SLOT_SCHEMA = pa.schema([("path", _str), ("slot", _i32), ("number", _i32)])
ITEM_SCHEMA = pa.schema(
    [
        ("path", _str),
        ("number", _i32),
        ("slot", _i32),
        ("key_hash", _i32),
        ("physical_offset", _i64),
        ("time_diff", _i32),
        ("prev", _i32),
    ]
)


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
        used = np.flatnonzero(source.window(low, end - low if data is not None and data < end else 0))
        if used.size:
            return (low + int(used[-1]) - item_position(0, slots)) // ITEM.itemsize + 1
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


def read_slots(source: ByteSource, path: str, slots: int) -> Iterator[pa.RecordBatch]:
    """Slots that hold something, in file order."""
    width = SLOT.itemsize
    for start, raw in data_windows(source, slot_position(0), slot_position(slots), _CHUNK * width):
        first = (start - slot_position(0)) // width
        values = raw[: len(raw) // width * width].view(SLOT).astype(np.int32)
        used = np.flatnonzero(values)
        if used.size:
            yield pa.RecordBatch.from_arrays(
                [
                    pa.repeat(pa.scalar(path, _str), used.size),
                    pa.array((first + used).astype(np.int32)),
                    pa.array(values[used]),
                ],
                schema=SLOT_SCHEMA,
            )


def read_items(source: ByteSource, path: str, slots: int, end: int) -> Iterator[pa.RecordBatch | Gap]:
    """Items FIRST_ITEM … end - 1, as far as the file reaches; a hole of the file, a MiB of it, is one gap."""
    width = ITEM.itemsize
    done = item_position(FIRST_ITEM, slots)
    stop = done + (min(item_position(end, slots), source.size) - done) // width * width
    for start, raw in data_windows(source, done, stop, _CHUNK * width):
        if done < start:
            yield Gap(done, start - done, Stop.ZERO, width, 0)
        first = (start - item_position(0, slots)) // width
        items = raw[: len(raw) // width * width].view(ITEM)
        if len(items):
            yield _item_batch(items, first, path, slots)
        done = start + len(raw)
    if done < stop:
        yield Gap(done, stop - done, Stop.ZERO, width, 0)


def _item_batch(items: npt.NDArray[Any], first: int, path: str, slots: int) -> pa.RecordBatch:
    count = len(items)
    hashes = items["key_hash"].astype(np.int32)
    columns = [
        pa.repeat(pa.scalar(path, _str), count),
        pa.array(np.arange(first, first + count, dtype=np.int32)),
        pa.array(np.where(hashes >= 0, hashes % max(slots, 1), -1).astype(np.int32)),
        pa.array(hashes),
        pa.array(items["physical_offset"].astype(np.int64)),
        pa.array(items["time_diff"].astype(np.int32)),
        pa.array(items["prev"].astype(np.int32)),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=ITEM_SCHEMA)
