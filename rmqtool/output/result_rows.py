"""Results of queries of any shape as rows: every type of Arrow has its form in JSON."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from datetime import time as clock
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from rmqtool.output.columns import values

if TYPE_CHECKING:
    from collections.abc import Sequence

RESERVED = "type"


def row_names(schema: pa.Schema) -> list[str]:
    """Names of the columns as keys of a row: bytes end in `_hex`, and no two are equal."""
    found: list[str] = []
    for field in schema:
        name = f"{field.name}_hex" if is_bytes(field.type) else field.name
        taken = {RESERVED, *found}
        number = 1
        while name in taken:
            name = f"{field.name}_{number}"
            number += 1
        found.append(name)
    return found


def is_bytes(kind: pa.DataType) -> bool:
    """Is a column of this type shown as hex?"""
    return bool(
        pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind)
    )


def is_number(kind: pa.DataType) -> bool:
    """Is a column of this type set to the right?"""
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))


def row_columns(batch: pa.RecordBatch) -> Sequence[list[Any]]:
    """Columns of plain values."""
    return [_plain_column(column) for column in batch.columns]


def _plain_column(column: pa.Array) -> list[Any]:
    kind = column.type
    if pa.types.is_integer(kind) or pa.types.is_string(kind) or pa.types.is_boolean(kind):
        return values(column)
    try:
        items = column.to_pylist()
    except (ValueError, OverflowError):  # a moment that Python has no name for
        return [_named(scalar) for scalar in column]
    return [plain(item, kind) for item in items]


def _named(scalar: pa.Scalar) -> Any:
    """One value as `plain` has it; moments without a name in Python, also inside of it, as Arrow's text."""
    kind = scalar.type
    try:
        return plain(scalar.as_py(), kind)
    except (ValueError, OverflowError):
        if pa.types.is_map(kind):
            names, items = (scalar.values.field(place) for place in (0, 1))
            return {str(_named(name)): _named(item) for name, item in zip(names, items, strict=True)}
        if pa.types.is_struct(kind):
            return {name: _named(item) for name, item in scalar.items()}
        if pa.types.is_nested(kind):
            return [_named(item) for item in scalar.values]
        return scalar.cast(pa.string()).as_py()


def plain(value: Any, kind: pa.DataType) -> Any:
    """One value of an Arrow type as JSON has it."""
    if value is None or isinstance(value, (str, bool, int, float)):
        return value
    if pa.types.is_map(kind):
        return {str(plain(name, kind.key_type)): plain(item, kind.item_type) for name, item in value}
    if pa.types.is_struct(kind):
        return {field.name: plain(value[field.name], field.type) for field in kind}
    if isinstance(value, list):
        return [plain(item, kind.value_type) for item in value]
    return _scalar(value)


def _scalar(value: Any) -> Any:
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, (datetime, date, clock)):
        return value.isoformat()
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    return value.total_seconds() if isinstance(value, timedelta) else str(value)
