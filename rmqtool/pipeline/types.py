"""The tables as Spark has them: its types, and batches cast to them."""

from __future__ import annotations

from inspect import signature
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from rmqtool.errors import UsageError
from rmqtool.query.sql.derived import CONSUMEQUEUE
from rmqtool.query.sql.messages import SCHEMA as MESSAGES
from rmqtool.scan.index_batches import ITEM_SCHEMA
from rmqtool.scan.table import COLUMNS, DEFAULT_COLUMNS
from rmqtool.scan.times import TIME, TIMES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql.types import StructType

_i32, _i64, _str = pa.int32(), pa.int64(), pa.string()
_STORE = pa.field("store", _str)

FINDINGS = pa.schema(
    [
        _STORE,
        ("code", _str),
        ("severity", _str),
        ("path", _str),
        ("position", _i64),
        ("physical_offset", _i64),
        ("length", _i64),
        ("field", _str),
        ("expected", _str),
        ("found", _str),
        ("message", _str),
        ("hint", _str),
        ("topic", _str),
        ("topic_hex", _str),
        ("queue_id", _i32),
        ("queue_offset", _i64),
        ("caused_by", _str),
        ("first_timestamp", _i64),
        ("last_timestamp", _i64),
    ]
)
"""findings; `expected` and `found`, which may be of any type, as JSON"""

SEGMENTS = pa.schema(
    [
        _STORE,
        ("path", _str),
        ("segment", _i64),
        ("size", _i64),
        ("disk_bytes", _i64),
        ("active", pa.bool_()),
        ("messages", _i64),
        ("bytes", _i64),
        ("first_timestamp", _i64),
        ("last_timestamp", _i64),
        ("end_offset", _i64),
        ("stop_reason", _str),
        ("gaps", _i64),
        ("gap_bytes", _i64),
        ("bad_crc", _i64),
        ("unreadable_bytes", _i64),
        ("error", _str),
    ]
)
"""a row a segment: what a scan met in it, and where and why it ended"""


def _messages() -> pa.Schema:
    """Every column of the record table, and the columns of time."""
    known = {field.name: field for field in MESSAGES}
    fields: list[pa.Field] = []
    for name, column in COLUMNS.items():
        fields.append(known.get(name, pa.field(name, column.type)))
        fields += [pa.field(time, TIME) for time, millis in TIMES.items() if millis == name]
    return pa.schema(fields)


TABLES: dict[str, pa.Schema] = {
    "messages": _messages(),
    "consumequeue": pa.schema([_STORE, *CONSUMEQUEUE, ("topic_hex", _str)]),
    "index_items": pa.schema([_STORE, *ITEM_SCHEMA]),
    "findings": FINDINGS,
    "segments": SEGMENTS,
}
"""every column that a table has"""


def default_columns(table: str) -> tuple[str, ...]:
    """Those that a table has when none are named."""
    names = TABLES[table].names
    if table != "messages":
        return tuple(names)
    wanted = {"store", *DEFAULT_COLUMNS, *TIMES}
    return tuple(name for name in names if name in wanted)


def chosen_schema(table: str, columns: Sequence[str] | None) -> pa.Schema:
    """The named columns of a table, in the order given; None for the default ones."""
    whole = TABLES[table]
    names = default_columns(table) if columns is None else tuple(columns)
    unknown = [name for name in names if name not in whole.names]
    if unknown:
        raise UsageError(f"columns: {table} has no column {unknown[0]}: it has {', '.join(whole.names)}")
    if len(set(names)) < len(names) or not names:
        raise UsageError("columns: name one at least, and each once")
    return pa.schema([whole.field(name) for name in names])


def struct_of(schema: pa.Schema) -> StructType:
    """The Spark schema of a table."""
    from pyspark.sql.pandas.types import from_arrow_schema

    return from_arrow_schema(schema)


def arrow_of(struct: StructType) -> pa.Schema:
    """The Arrow schema that Spark wants of batches of this schema, to the letter."""
    from pyspark.sql.pandas.types import to_arrow_schema

    # Spark 4.1 has UTC by default, and no such argument
    zoned = "timezone" in signature(to_arrow_schema).parameters
    named: dict[str, Any] = {"timezone": "UTC"} if zoned else {}
    return to_arrow_schema(struct, **named)


def checked_schema(table: str, struct: StructType) -> pa.Schema:
    """`arrow_of` a schema that a session asks a table for; raises `UsageError` where it is another's."""
    wanted = arrow_of(struct)
    for field, own in zip(wanted, chosen_schema(table, wanted.names), strict=True):
        if field.type != own.type:
            raise UsageError(f"schema: the column {own.name} is {own.type}, not {field.type}")
    return wanted


def to_spark(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """The batch with the columns and types of `schema`, which comes from `arrow_of`.

    Spark refuses batches that are not of exactly its types: dictionaries, large strings, string views,
    unsigned numbers and milliseconds are cast, a column that is not there is null. Equal keys of a map, of
    which Spark would keep one or the other, are not in the record table.
    """
    known = set(batch.schema.names)
    columns = [
        _cast(batch[field.name], field.type) if field.name in known else pa.nulls(batch.num_rows, field.type)
        for field in schema
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _cast(column: pa.Array, wanted: pa.DataType) -> pa.Array:
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    return column if column.type == wanted else column.cast(wanted)
