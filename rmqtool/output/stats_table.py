"""Sums as a table: which columns there are depends on what was asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rmqtool.output.tablerows import Column

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rmqtool.output.times import Zone

_LEFT = frozenset({"topic", "tags", "host", "kind", "path", "group", "topics", "key", "needed_by", "copies"})
_HIDDEN = frozenset({"type", "body_bytes", "compressed", "segment"})


def columns(rows: Sequence[Mapping[str, Any]], zone: Zone) -> list[Column]:
    """One column for each key of the rows, in their order."""
    keys = dict.fromkeys(key for row in rows for key in row if key not in _HIDDEN)
    return [_column(key, zone) for key in keys] or [Column("messages")]


def _column(key: str, zone: Zone) -> Column:
    title = key.removesuffix("_timestamp").replace("_", " ")
    if key.endswith("_timestamp"):
        return Column(key, title, show=zone.iso)
    if key == "share":
        return Column(key, title, right=True, show=lambda value: f"{value:.1%}")
    if key in _LEFT:
        return Column(key, title, shrinks=True, style="cyan" if key in {"topic", "group"} else "")
    if key.endswith("per_second"):
        return Column(key, title.replace(" per second", "/s"), right=True, show=lambda value: f"{value:,.1f}")
    if key == "physical_offsets":
        return Column(key, "offsets", shrinks=True)
    return Column(key, title, right=True, show=_number)


def _number(value: Any) -> str:
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value).lower()
