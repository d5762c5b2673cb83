"""Bars as a picture: SVG without any library, PNG with the extra 'plot'."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING
from xml.sax.saxutils import escape

from rmqtool.errors import MissingExtraError, StoreIOError, UsageError

if TYPE_CHECKING:
    from rmqtool.output.bars import Bars

MOST = 400
"""bars of a plot over time in a picture"""
_TALLEST = 1500
_LINE = 20
_BAR = 480
_LETTER = 7.2
_HEIGHT = 240


def check_picture(path: str) -> None:
    """Refuses, before anything is read, a name that cannot be made."""
    if path.lower().endswith(".png"):
        from importlib.util import find_spec

        if find_spec("matplotlib") is None:
            raise MissingExtraError("--plot FILE.png", "plot")
    if os.path.lexists(path):
        raise UsageError(f"--plot {path}: exists")
    if not os.path.isdir(os.path.dirname(os.path.abspath(path))):
        raise UsageError(f"--plot {path}: there is no such directory")


def write_picture(bars: Bars, path: str) -> None:
    """Writes a new file. Raises `StoreIOError`."""
    data = _png(bars) if path.lower().endswith(".png") else svg(bars).encode()
    try:
        with open(path, "xb") as file:
            file.write(data)
    except OSError as error:
        raise StoreIOError(f"{path}: {error.strerror}") from error


def svg(bars: Bars) -> str:
    """The picture: one bar a name with its value, over time a column each."""
    shapes = _columns(bars) if bars.times is not None else _lines(bars)
    width, height, parts = shapes
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" font-family="monospace" font-size="12">'
    )
    title = f'<text x="10" y="20" font-weight="bold">{escape(bars.title)}</text>'
    paper = f'<rect width="{width}" height="{height}" fill="white"/>'
    return "\n".join([head, paper, title, *parts, "</svg>", ""])


def _lines(bars: Bars) -> tuple[int, int, list[str]]:
    left = 20 + int(_LETTER * max(map(len, bars.names), default=0))
    largest = max(1, *bars.values)
    parts = []
    for place, (name, value) in enumerate(zip(bars.names, bars.values, strict=True)):
        y = 34 + place * _LINE
        long = round(_BAR * value / largest, 1)
        parts.append(f'<text x="10" y="{y + 13}">{escape(name)}</text>')
        parts.append(f'<rect x="{left}" y="{y + 2}" width="{long}" height="{_LINE - 6}" fill="#3a78b5"/>')
        parts.append(f'<text x="{left + long + 6}" y="{y + 13}">{value:,}</text>')
    return left + _BAR + 140, 44 + _LINE * len(bars.names), parts


def _columns(bars: Bars) -> tuple[int, int, list[str]]:
    largest, each = max(1, *bars.values), max(2, min(24, 800 // max(len(bars.values), 1)))
    left, base = 20 + int(_LETTER * len(f"{largest:,}")), 40 + _HEIGHT
    parts = [f'<text x="10" y="50">{largest:,}</text>', f'<text x="10" y="{base}">0</text>']
    for place, (name, value) in enumerate(zip(bars.names, bars.values, strict=True)):
        tall = round(_HEIGHT * value / largest, 1)
        parts.append(
            f'<rect x="{left + place * each}" y="{round(base - tall, 1)}" width="{each - 1}" height="{tall}" '
            f'fill="#3a78b5"><title>{escape(name)}: {value:,}</title></rect>'
        )
    wide = max(left + each * len(bars.values) + 20, 420)
    parts.append(f'<text x="{left}" y="{base + 18}">{escape(bars.names[0])}</text>')
    last = escape(bars.names[-1])
    parts.append(f'<text x="{wide - 20}" y="{base + 18}" text-anchor="end">{last}</text>')
    return wide, base + 30, parts


def _png(bars: Bars) -> bytes:
    import io

    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib.figure import Figure

    count = len(bars.names)
    if count > _TALLEST:
        raise UsageError(f"{count:,} bars are too many for a PNG, which has {_TALLEST:,}: give FILE.svg")
    figure = Figure(figsize=(10, 4 if bars.times else 1 + 0.28 * count), layout="constrained")
    axes = figure.subplots()
    axes.set_title(bars.title)
    if bars.times is not None:
        axes.bar(range(count), bars.values, width=0.9)
        axes.set_xticks([0, count - 1] if count > 1 else [0], [bars.names[0], *bars.names[1:][-1:]])
    else:
        drawn = axes.barh(range(count), bars.values)
        axes.set_yticks(range(count), [name.replace("$", r"\$") for name in bars.names])
        axes.bar_label(drawn, [f"{value:,}" for value in bars.values], padding=3)
        axes.invert_yaxis()
    out = io.BytesIO()
    figure.savefig(out, format="png", dpi=120)
    return out.getvalue()
