"""Used slots and items of index files → Arrow record batches."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from formats.index import FIRST_ITEM, item_position, slot_position
from rmqtool.scan.events import Gap
from rmqtool.scan.fields import Stop
from rmqtool.scan.index import ITEM, SLOT
from rmqtool.store.holes import data_windows

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    from rmqtool.store.bytes import ByteSource

_CHUNK = 1 << 16
"""slots or items that are looked at together"""

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
