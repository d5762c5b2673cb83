"""A listing of records for people: its columns, and a line for everything that is not a record."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rmqtool.output.redaction import REDACTED
from rmqtool.output.tablerows import Column

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rmqtool.output.messages import MessageShape
    from rmqtool.output.times import Zone

EVENT_KEYS = ("length", "content", "reason", "expected", "found")
"""what rows that are not records have besides their place"""


def columns(shape: MessageShape, zone: Zone) -> list[Column]:
    """The columns of a table for these rows; where it is narrow, size goes first, then tags, then keys."""
    shown = [
        Column("physical_offset", "offset", right=True, width=8),
        Column("store_timestamp", "stored", zone=zone),
        Column("topic", shrinks=True, style="cyan"),
        Column("queue_id", "q", right=True),
        Column("queue_offset", "q.offset", right=True),
        Column("crc"),
        Column("store_size", "size", right=True, gives=3),
        Column("tags", shrinks=True, gives=2),
        Column("keys", shrinks=True, gives=1),
    ]
    if shape.body_sha256:
        shown.append(Column("body_sha256", below=True))
    if shape.body != "none":
        shown.append(Column("body", below=True))
    return shown


def banner(row: Mapping[str, Any]) -> str | None:
    """Everything that is not a record, as one line across the table."""
    kind = row.get("type", "message")
    if kind in {"message", "inner_message"}:
        return None
    if kind == "inner_error":
        return f"-- batch at {row['physical_offset']}: {row['reason']}"
    at = f"byte {row['position']}" if row["physical_offset"] is None else row["physical_offset"]
    place = f"-- {kind} at {at}, {row['length']} bytes"
    if kind == "blank":
        return f"{place} to the end of {row['path']}"
    reported = row.get("reason", "")
    if kind == "tail":
        records = f", {row['records']} records in it" if row.get("records") else ""
        return f"{place} of {row['content']} content{records}"
    if reported == "unreadable":
        return f"{place}: unreadable, {row['error']}"
    values = [REDACTED if row[name] is None else row[name] for name in ("expected", "found")]
    return f"{place}: {reported}, expected {values[0]}, found {values[1]}"
