"""Arrow record batches as lists of Python values, ready for `Rows.write_columns`.

A listing spends most of its time here, so values are made a column at a time, never a scalar at a time.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rmqtool.collection import paused_collection

if TYPE_CHECKING:
    from collections.abc import Collection

    import numpy.typing as npt


def batch_columns(
    batch: pa.RecordBatch, *, leave_out: Collection[str] = ()
) -> tuple[list[str], list[list[Any]]]:
    """Names and columns of a batch: maps become dicts, binary columns `NAME_hex` in lower case.

    `leave_out` names columns that are not wanted; they are not converted either.
    """
    with paused_collection():
        return _convert(batch, leave_out)


def _convert(batch: pa.RecordBatch, leave_out: Collection[str]) -> tuple[list[str], list[list[Any]]]:
    names: list[str] = []
    columns: list[list[Any]] = []
    for field, column in zip(batch.schema, batch.columns, strict=True):
        if field.name in leave_out:
            continue
        binary = pa.types.is_binary(field.type) or pa.types.is_large_binary(field.type)
        names.append(f"{field.name}_hex" if binary else field.name)
        columns.append(_hex(column) if binary else values(column))
    return names, columns


def values(column: pa.Array) -> list[Any]:
    """A column as a list; maps become dicts. What a column repeats throughout is one object."""
    count = len(column)
    if column.null_count == count:
        return [None] * count
    if column.null_count == 0 and pa.types.is_integer(column.type):
        numbers = column.to_numpy()
        same = numbers[0] == numbers[-1] and bool((numbers == numbers[0]).all())
        return [numbers[0].item()] * count if same else numbers.tolist()
    if pa.types.is_string(column.type):
        return _texts(column)
    if pa.types.is_map(column.type):
        return _dicts(column)
    if pa.types.is_list(column.type):
        return _lists(column)
    everything: list[Any] = column.to_pylist()
    return everything


def _hex(column: pa.Array) -> list[str | None]:
    return [None if value is None else value.hex() for value in column.to_pylist()]


def _texts(column: pa.Array) -> list[str | None]:
    first = column[0]
    if column.null_count == 0 and first == column[-1] and pc.all(pc.equal(column, first)).as_py():
        return [first.as_py()] * len(column)
    texts: list[str | None] = column.to_numpy(zero_copy_only=False).tolist()
    return texts


def _bounds(column: pa.Array) -> npt.NDArray[np.int64]:
    """Where in the children the elements of each row begin, and the end of the last."""
    bounds: npt.NDArray[np.int64] = column.offsets.to_numpy().astype(np.int64)
    return bounds


def _lists(column: pa.Array) -> list[list[Any] | None]:
    bounds = _bounds(column)
    start = int(bounds[0])
    flat = values(column.values[start : int(bounds[-1])])
    places = (bounds - start).tolist()
    if column.null_count == 0 and len(flat) == len(column) and places == list(range(len(places))):
        return [[value] for value in flat]
    lists = [flat[low:high] for low, high in pairwise(places)]
    return _with_nulls(column, lists)


def _dicts(column: pa.Array) -> list[dict[str, Any] | None]:
    bounds = _bounds(column)
    start, end = int(bounds[0]), int(bounds[-1])
    if start == end:
        return _with_nulls(column, [{} for _ in range(len(column))])
    encoded = column.keys[start:end].dictionary_encode()
    names, codes = encoded.dictionary.to_pylist(), encoded.indices.to_numpy()
    items = values(column.items[start:end])
    width = (end - start) // len(column)
    if (np.diff(bounds) == width).all():
        rows = codes.reshape(-1, width)
        if (rows == rows[0]).all():
            # producers of one topic set the same properties in the same order
            keys = [names[code] for code in rows[0].tolist()]
            return [dict(zip(keys, row)) for row in zip(*[iter(items)] * width)]  # noqa: B905 - hot
    keys = np.array(names, object)[codes].tolist()
    places = (bounds - start).tolist()
    dicts = [dict(zip(keys[low:high], items[low:high], strict=True)) for low, high in pairwise(places)]
    return _with_nulls(column, dicts)


def _with_nulls(column: pa.Array, rows: list[Any]) -> list[Any]:
    if column.null_count:
        for index in np.flatnonzero(column.is_null().to_numpy(zero_copy_only=False)).tolist():
            rows[index] = None
    return rows
