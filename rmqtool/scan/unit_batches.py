"""Consume queue files of all three kinds → Arrow record batches.

What follows the last unit of a file is one `Tail` and no list of empty units.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from rmqtool.scan.events import Gap, Tail, TailContent
from rmqtool.scan.fields import Stop
from rmqtool.scan.units import BATCH_UNIT, CHUNK_UNITS, STATES, UNIT, data_end, unit_states
from rmqtool.store.holes import data_windows
from rmqtool.store.names import topic_keys

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    from rmqtool.scan.units import LogRange
    from rmqtool.store.bytes import ByteSource

_i64, _i32, _str = pa.int64(), pa.int32(), pa.string()

UNIT_SCHEMA = pa.schema(
    [
        ("path", _str),
        ("topic", _str),
        ("queue_id", _i32),
        ("position", _i64),
        ("slot", _i64),
        ("physical_offset", _i64),
        ("size", _i32),
        ("tags_code", _i64),
        ("state", _str),
    ]
)
BATCH_UNIT_SCHEMA = pa.schema(
    [
        *UNIT_SCHEMA,
        ("store_timestamp", _i64),
        ("base_offset", _i64),
        ("batch_size", pa.int16()),
        ("compacted_offset", _i32),
    ]
)


@dataclass(frozen=True, slots=True)
class QueueFile:
    """Where a queue file belongs: path for display, offset of its first byte, topic and queue where known."""

    path: str
    base: int = 0
    topic: str | None = None
    queue_id: int | None = None


def read_units(
    source: ByteSource, file: QueueFile, *, batch: bool = False, log: LogRange | None = None
) -> Iterator[pa.RecordBatch | Gap | Tail]:
    """Units of a plain (or, with `batch`, a 46-byte) queue file, then the rest of the file.

    A hole of the file between units, some MiB of it, is one gap.
    Where the topic is not UTF-8 its column is null, and a column `topic_hex` has its bytes.
    """
    dtype = BATCH_UNIT if batch else UNIT
    end, done = data_end(source, dtype.itemsize), 0
    for start, window in data_windows(source, 0, end, CHUNK_UNITS * dtype.itemsize):
        if done < start:
            yield Gap(done, start - done, Stop.ZERO, dtype.itemsize, 0)
        units = window[: len(window) // dtype.itemsize * dtype.itemsize].view(dtype)
        yield _unit_batch(units, start, file, log)
        done = start + len(window)
    whole = source.size // dtype.itemsize * dtype.itemsize
    if end < whole:
        yield Tail(end, whole - end, TailContent.ZERO, 0, Stop.ZERO, dtype.itemsize, 0)
    if whole < source.size:
        yield Gap(whole, source.size - whole, Stop.SHORT, dtype.itemsize, source.size - whole)


def _unit_batch(units: npt.NDArray[Any], start: int, file: QueueFile, log: LogRange | None) -> pa.RecordBatch:
    count = len(units)
    positions = start + np.arange(count, dtype=np.int64) * units.dtype.itemsize
    states = pa.DictionaryArray.from_arrays(pa.array(unit_states(units, log)), pa.array(STATES))
    named = topic_keys(file.topic)
    columns: dict[str, Any] = {
        "path": pa.repeat(pa.scalar(file.path, _str), count),
        "topic": pa.repeat(pa.scalar(named["topic"], _str), count),
        "queue_id": pa.repeat(pa.scalar(file.queue_id, _i32), count),
        "position": pa.array(positions),
        "slot": pa.array((file.base + positions) // units.dtype.itemsize),
        "state": states.dictionary_decode(),
    }
    schema = UNIT_SCHEMA if units.dtype == UNIT else BATCH_UNIT_SCHEMA
    for field in schema:
        if field.name not in columns:
            native = units[field.name].astype(str(field.type))
            columns[field.name] = pa.array(native, field.type)
    made = pa.RecordBatch.from_arrays([columns[name] for name in schema.names], schema=schema)
    if "topic_hex" in named:
        made = made.append_column("topic_hex", pa.repeat(pa.scalar(named["topic_hex"], _str), count))
    return made
