"""`--int64-as-string`: which keys hold 64-bit integers, for readers whose numbers end at 2^53."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rmqtool.output.rows import Row

INT64_NAMES = frozenset(
    {
        "segment", "position", "physical_offset", "stored_physical_offset", "queue_offset",
        "prepared_transaction_offset", "born_timestamp", "store_timestamp", "tags_code", "ext_tags_code",
        "base_offset", "slot", "length", "size", "bytes", "msg_store_time", "window",
        "matches", "nearest_before", "nearest_after", "stored_length",
    }
)  # fmt: skip
"""the contract's int64 columns; names that end with `_offset`, `_timestamp` or `_bytes` count too"""


LARGEST_EXACT = 1 << 53
"""where JavaScript's whole numbers end; beyond it every integer becomes a string"""


def is_int64(name: str) -> bool:
    """Whether the key `name` is a 64-bit integer wherever it stands, also while its value is small."""
    return name in INT64_NAMES or name.endswith(("_offset", "_timestamp", "_bytes"))


def as_strings(row: Row) -> Row:
    """The row with its 64-bit integers as decimal strings, in nested objects too."""
    return {name: _convert(name, value) for name, value in row.items()}


def column_as_strings(name: str, values: Iterable[Any]) -> Iterable[Any]:
    """A whole column, converted when its name says so."""
    return (_convert(name, value) for value in values)


def _convert(name: str, value: Any) -> Any:
    if isinstance(value, dict):
        return as_strings(value)
    if isinstance(value, list):
        return [_convert(name, item) for item in value]
    if type(value) is int and (is_int64(name) or abs(value) > LARGEST_EXACT):
        return str(value)
    return value
