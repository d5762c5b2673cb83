"""Consume-queue files of all three kinds → Arrow record batches.

A queue file is as long as it will ever be from the moment it is made, so what follows the last unit is zero;
that rest is one `Tail` and no list of empty units.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from formats.consumequeue import PRE_BLANK_SIZE, BatchUnit, Unit
from formats.primitives import dtype_of
from rmqtool.scan.events import Gap, Tail, TailContent
from rmqtool.scan.fields import Stop
from rmqtool.store.holes import data_windows, last_hole
from rmqtool.store.names import topic_keys

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    from rmqtool.store.bytes import ByteSource

UNIT = dtype_of(Unit)
BATCH_UNIT = dtype_of(BatchUnit)

_CHUNK_UNITS = 1 << 16
_END_UNITS = 1 << 10
"""units that are looked at together when the end of the data is searched"""

OK, PRE_BLANK, ZERO, INVALID, DANGLING, EXPIRED = range(6)
STATES = ["ok", "pre_blank", "zero", "invalid", "dangling", "expired"]
"""`invalid`: a negative offset or no size, where `ConsumeQueue#recover` stops. `dangling`: points behind the
end of the log or between its files. `expired`: points below its first file."""


@dataclass(frozen=True, slots=True)
class LogRange:
    """Physical offsets [low, high) that commit log files cover.

    holes: those inside of it that none covers, in order: int64, (number, 2), start and end.
    """

    low: int
    high: int
    holes: npt.NDArray[np.int64]


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


def valid_units(units: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    """Which units `ConsumeQueue#recover` and `BatchConsumeQueue#recover` accept."""
    good = (units["physical_offset"] >= 0) & (units["size"] > 0)
    if units.dtype == BATCH_UNIT:
        good &= (units["base_offset"] >= 0) & (units["batch_size"] > 0)
    return np.asarray(good, np.bool_)


def unit_states(units: npt.NDArray[Any], log: LogRange | None) -> npt.NDArray[np.int8]:
    """State of each unit, as an index into `STATES`; without `log` nothing is dangling or expired."""
    offset, size = units["physical_offset"], units["size"]
    end = offset + size
    states = np.zeros(len(units), np.int8)
    if log is not None:
        states[(end > log.high) | (end < offset)] = DANGLING
        if len(log.holes):
            lows, highs = log.holes.T
            first = np.minimum(np.searchsorted(highs, offset, side="right"), len(highs) - 1)
            states[(offset < highs[first]) & (end > lows[first])] = DANGLING
        states[offset < log.low] = EXPIRED
    states[~valid_units(units)] = INVALID
    states[(offset == 0) & (size == PRE_BLANK_SIZE) & (units["tags_code"] == 0)] = PRE_BLANK
    states[np.logical_and.reduce([units[name] == 0 for name in units.dtype.names or ()])] = ZERO
    return states


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
    Where the topic is no UTF-8 its column is null, and a column `topic_hex` has its bytes.
    """
    dtype = BATCH_UNIT if batch else UNIT
    end, done = data_end(source, dtype.itemsize), 0
    for start, window in data_windows(source, 0, end, _CHUNK_UNITS * dtype.itemsize):
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


def data_end(source: ByteSource, unit: int) -> int:
    """End of the last unit that is not all zero, searched from the end of the file; holes are not read."""
    step = _END_UNITS * unit
    at = min(last_hole(source) + unit, source.size) // unit * unit
    while at > 0:
        start = max(at - step, 0)
        data = source.next_data(start)
        window = source.window(start, at - start if data is not None and data < at else 0)
        if window.any():
            return start + (int(np.flatnonzero(window)[-1]) // unit + 1) * unit
        at, step = start, min(2 * step, _CHUNK_UNITS * unit)
    return 0


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
            native = units[field.name].astype(field.type.to_pandas_dtype())
            columns[field.name] = pa.array(native, field.type)
    made = pa.RecordBatch.from_arrays([columns[name] for name in schema.names], schema=schema)
    if "topic_hex" in named:
        made = made.append_column("topic_hex", pa.repeat(pa.scalar(named["topic_hex"], _str), count))
    return made
