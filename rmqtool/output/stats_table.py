"""Sums as a table: which columns there are depends on what was asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rmqtool.output.grid import Column

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rmqtool.output.times import Zone

_LEFT = frozenset({"topic", "tags", "host", "kind", "path", "group", "topics", "key", "needed_by", "copies"})
_HIDDEN = frozenset({"type", "body_bytes", "compressed", "segment"})

_GIVES = {
    "bytes_per_second": 9,
    "messages_per_second": 8,
    "largest": 7,
    "disk_bytes": 6,
    "modified_timestamp": 5,
    "share": 4,
    "needs_physical_offset": 5,
    "waiting_bytes": 3,
    "first_timestamp": 3,
    "last_timestamp": 2,
}
"""what a narrow table leaves out, the highest first"""


def columns(rows: Sequence[Mapping[str, Any]], zone: Zone) -> list[Column]:
    """One column for each key of the rows, in their order."""
    keys = dict.fromkeys(key for row in rows for key in row if key not in _HIDDEN)
    return [_column(key, zone) for key in keys] or [Column("messages")]


def _column(key: str, zone: Zone) -> Column:
    title = key.removesuffix("_timestamp").replace("_", " ")
    gives = _GIVES.get(key, 0)
    if key.endswith("_timestamp"):
        return Column(key, title, zone=zone, gives=gives)
    if key == "share":
        return Column(key, title, right=True, show=lambda value: f"{value:.1%}", gives=gives)
    if key in _LEFT:
        return Column(key, title, shrinks=True, style="cyan" if key in {"topic", "group"} else "")
    if key.endswith("per_second"):
        short = title.replace(" per second", "/s")
        return Column(key, short, right=True, show=lambda value: f"{value:,.1f}", gives=gives)
    if key == "physical_offsets":
        return Column(key, "offsets", shrinks=True, gives=1)
    return Column(key, title, right=True, show=_number, gives=gives)


def _number(value: Any) -> str:
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value).lower()
