"""The record table as it stands in Parquet files: one schema for all of them, see docs/table.md."""

from __future__ import annotations

import base64
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from rmqtool.output.messages import body_keys
from rmqtool.scan.table import COLUMNS
from rmqtool.scan.times import TIME, TIMES, as_time

if TYPE_CHECKING:
    from rmqtool.output.messages import MessageShape

DICTIONARY = (
    "path", "magic", "crc", "topic", "topic_hex", "compression", "transaction", "born_host", "store_host",
    "tags", "segment", "queue_id", "flag", "sys_flag", "reconsume_times", "prepared_transaction_offset",
)  # fmt: skip
"""columns with few values, stored as dictionaries"""

DELTAS = (
    "position", "physical_offset", "stored_physical_offset", "queue_offset", "born_timestamp", "born_time",
    "store_timestamp", "store_time",
)  # fmt: skip
"""columns that grow in small steps, stored as differences"""

STATISTICS = (
    "segment", "physical_offset", "topic", "queue_id", "queue_offset", "store_timestamp", "store_time",
    "born_timestamp", "born_time",
)  # fmt: skip
"""columns whose least and greatest value each row group tells, so that readers skip it"""

_BINARY_BODIES = ("plain_body", "body")


class RecordTable:
    """Makes batches of a scan into batches of one schema, with what is redacted taken out.

    shape: says which columns there are. With the body form `auto` bodies are bytes, in `plain_body`, and as
    stored in `body` where they cannot be decompressed; with others text, as in JSON.
    """

    def __init__(self, shape: MessageShape) -> None:
        self._shape = shape
        self._binary = shape.body == "auto"
        # only this form keeps every body whole: it is what bytes are made of where some are hidden
        self._rows = replace(shape, body="base64") if self._binary and shape.redacted else shape
        wanted = [*self._rows.columns, *(_BINARY_BODIES if self._binary and shape.shows_body else ())]
        self.columns = tuple(dict.fromkeys(wanted))
        self.schema = self._schema()

    def _schema(self) -> pa.Schema:
        shape = self._shape
        fields: list[pa.Field] = []
        for name in shape.keys:
            if name in {*body_keys(shape.body), "redacted", "properties_raw_hex"}:
                continue
            fields.append(pa.field(name, COLUMNS[name].type))
            fields += [pa.field(time, TIME) for time, millis in TIMES.items() if millis == name]
        if not shape.redacted:
            fields.append(pa.field("properties_raw", pa.binary()))
        if self._binary:
            fields += [pa.field(name, pa.binary()) for name in _BINARY_BODIES]
        elif shape.body != "none":
            fields += [pa.field(name, pa.string()) for name in body_keys(shape.body)]
        if shape.redacted:
            fields.append(pa.field("redacted", pa.list_(pa.string())))
        return pa.schema(fields)

    def arrange(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The batch with the columns of `schema`."""
        made = {name: batch[millis] for name, millis in TIMES.items()}
        columns: dict[str, Any] = {name: as_time(column) for name, column in made.items()}
        columns |= dict(zip(batch.schema.names, batch.columns, strict=True))
        if self._shape.redacted or (self._shape.body not in {"auto", "none"}):
            columns |= self._from_rows(batch)
        elif self._binary:
            columns["body"] = _only_where(batch["body"], batch["plain_body"].is_null())
        if "properties_raw" in self.schema.names:
            columns["properties_raw"] = batch["lost_properties"]
        columns["stored_physical_offset"] = batch["stored_physical_offset"]
        return pa.RecordBatch.from_arrays([columns[name] for name in self.schema.names], schema=self.schema)

    def _from_rows(self, batch: pa.RecordBatch) -> dict[str, pa.Array]:
        """The columns that rows as in JSON have otherwise."""
        names, lists = self._rows.rows(batch)
        rows = dict(zip(names, map(list, lists), strict=True))
        if self._binary:
            rows |= _decoded(rows, batch.num_rows)
        found: dict[str, pa.Array] = {}
        for field in self.schema:
            if field.name not in rows and field.name in batch.schema.names:
                continue
            values = rows.get(field.name, [None] * batch.num_rows)
            if pa.types.is_map(field.type):
                values = [None if one is None else list(one.items()) for one in values]
            if field.name not in TIMES:
                found[field.name] = pa.array(values, field.type)
        return found


def _decoded(rows: dict[str, list[Any]], count: int) -> dict[str, list[Any]]:
    """Bodies as bytes again: plain ones, and those that could not be decompressed."""
    nothing: list[Any] = [None] * count
    raw = [None if one is None else base64.b64decode(one) for one in rows.get("body_base64", nothing)]
    failed = [error is not None for error in rows.get("body_error", nothing)]
    return {
        "plain_body": [None if bad else one for one, bad in zip(raw, failed, strict=True)],
        "body": [one if bad else None for one, bad in zip(raw, failed, strict=True)],
    }


def _only_where(column: pa.Array, mask: pa.Array) -> pa.Array:
    """The column, null where the mask is not set."""
    if not pc.any(mask).as_py():
        return pa.nulls(len(column), column.type)
    return pc.if_else(mask, column, pa.scalar(None, column.type))
