"""Sums as bars in the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rmqtool.output.text import safe

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rmqtool.output.look import Look
    from rmqtool.output.times import Zone

_MOST = 40
"""bars that are drawn; the rest is in the table"""
_NAMES = ("topic", "queue_id", "tags", "hour_timestamp", "day_timestamp", "host", "kind", "path", "group")
_WIDTH = 100


def bars(rows: Sequence[Mapping[str, Any]], value: str, zone: Zone, look: Look) -> str:
    """Horizontal bars of `value`, drawn by plotext."""
    import plotext

    shown = rows[:_MOST]
    names = [_name(row, zone) for row in shown]
    figure = plotext.figure
    figure.clear()
    figure.plot_size(look.width or _WIDTH, len(shown) * 2 + 4)
    figure.title(value.replace("_", " "))
    values = [row[value] for row in shown]
    # the first bar is drawn lowest, and by itself the axis of 6.1 ends before the longest one
    figure.draw(figure.bar(names[::-1], values[::-1], orientation="horizontal"))
    figure.ruler("x").lim(0, max(1, *values))
    drawn = str(figure.build())
    return drawn if look.color else str(plotext.uncolorize(drawn))


def _name(row: Mapping[str, Any], zone: Zone) -> str:
    parts = []
    for key in _NAMES:
        if key in row:
            given = row[key]
            parts.append(zone.iso(given) if key.endswith("_timestamp") else safe(str(given)))
    return " ".join(parts)
