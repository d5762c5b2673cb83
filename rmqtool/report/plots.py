"""Drawings as SVG: the map's strips, bars over time, shares. Colours are classes of the style sheet."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rmqtool.report.cells import DAMAGE
from rmqtool.report.html import Markup, tag

if TYPE_CHECKING:
    from collections.abc import Sequence

    Row = dict[str, Any]

COLOURS = 8
"""topics with a colour of their own"""
STATE_TEXTS = {
    "bad_crc": "record whose body fails its CRC",
    "gap": "unreadable range, no record",
    "unreadable": "cannot be read from the disk",
    "garbage": "garbage after the last record",
    "stale": "records of an earlier life after the end",
    "blank": "end-of-file blank",
    "zero": "allocated, never written",
    "unread": "not read",
}
_DAMAGE = frozenset(state.name.lower() for state in DAMAGE)
_HEIGHT = 10
_PLOT = (720, 150)


def classes(topics: Sequence[str]) -> dict[str, str]:
    """The class of each topic that has a colour. topics: the largest first."""
    return {name: f"t{at}" for at, name in enumerate(topics[:COLOURS])}


def strip(row: Row, coloured: dict[str, str]) -> Markup:
    """A segment: of each cell damage if there is any, else what takes most of it; neighbours joined."""
    cells = row["cells"]
    width = -(-row["size"] // row["cell_bytes"])
    columns = [(f"s-{name}", name in _DAMAGE, counts) for name, counts in cells["states"].items()]
    columns += [(coloured.get(name, "other"), False, counts) for name, counts in cells["topics"].items()]
    if cells["other_topics"]:
        columns.append(("other", False, cells["other_topics"]))
    drawn: list[Markup] = []
    start, current = 0, ""
    for cell in range(width + 1):
        best = "" if cell == width else _dominant(columns, cell)
        if best != current:
            if current:
                drawn.append(_rect(current, start, 0, cell - start, _HEIGHT))
            start, current = cell, best
    box = f"0 0 {max(width, 1)} {_HEIGHT}"
    return tag("svg", *drawn, class_="strip", viewBox=box, preserveAspectRatio="none", aria_hidden="true")


def _dominant(columns: Sequence[tuple[str, bool, Sequence[int]]], cell: int) -> str:
    def weight(column: tuple[str, bool, Sequence[int]]) -> tuple[bool, int]:
        _, damage, counts = column
        return damage and counts[cell] > 0, counts[cell]

    return max(columns, key=weight)[0]


def _rect(class_: str, x: float, y: float, width: float, height: float, title: str | None = None) -> Markup:
    place = {"x": _short(x), "y": _short(y), "width": _short(width), "height": _short(height)}
    if title is None:
        return tag("rect", class_=class_, **place)
    attributes = Markup("".join(f' {name}="{value}"' for name, value in place.items()))
    return Markup(f'<rect class="{class_}"{attributes}>{tag("title", title)}</rect>')


def _short(value: float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".")


def bars(values: Sequence[int], titles: Sequence[str], label: str) -> Markup:
    """Bars side by side, the highest as high as the drawing."""
    width, height = _PLOT
    most = max(values, default=0) or 1
    step = width / max(len(values), 1)
    drawn = [
        _rect(
            "bar", at * step, height - value * height / most, max(step - 1, 0.5), value * height / most, title
        )
        for at, (value, title) in enumerate(zip(values, titles, strict=True))
        if value
    ]
    base = tag("line", class_="axis", x1=0, y1=height, x2=width, y2=height)
    return tag(
        "svg",
        tag("title", label),
        *drawn,
        base,
        class_="plot",
        viewBox=f"0 0 {width} {height}",
        preserveAspectRatio="none",
        role="img",
    )


def share(part: float) -> Markup:
    """A bar of a part of 1."""
    return tag(
        "svg",
        _rect("track", 0, 0, 100, 6),
        _rect("bar", 0, 0, max(min(part, 1), 0) * 100, 6),
        class_="share",
        viewBox="0 0 100 6",
        preserveAspectRatio="none",
        aria_hidden="true",
    )


def swatch(class_: str) -> Markup:
    """What a colour looks like, for a legend."""
    return tag("svg", _rect(class_, 0, 0, 12, 12), class_="swatch", viewBox="0 0 12 12", aria_hidden="true")
