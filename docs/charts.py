"""Draws what `python -m tests.bench.storing FILE` has measured.

    python docs/charts.py FILE        rewrite docs/img/store-*.svg

Plain SVG with a logarithmic scale, so that 300 and 10,000,000 messages a second stand in one picture.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from html import escape
from math import log10
from pathlib import Path
from typing import Any

import orjson

IMAGES = Path(__file__).parent / "img"
COLOURS = {
    "rmqtool": "#d62728", "java": "#1f77b4", "sqlite": "#7f7f7f", "rocksdb": "#2ca02c", "leveldb": "#9467bd",
    "lmdb": "#8c564b", "file": "#c7c7c7",
}  # fmt: skip
CURVES = {"queues": "queues", "segments": "segments of 16 MiB", "readers": "readers beside one writer"}
LEFT, WIDTH, BAR, GAP = 130, 560, 11, 14
LOW, HIGH = 2, 7.5
"""ends of the scale, as powers of ten of messages a second"""


@dataclass(frozen=True)
class Bar:
    """One bar. group: what stands at the left, once for neighbours of the same."""

    group: str
    name: str
    per_second: float
    colour: str


def main(path: str) -> None:
    """Writes a picture for each size of bodies, and one for the curves."""
    rows = [orjson.loads(line) for line in Path(path).read_bytes().splitlines()]
    rates = [row for row in rows if row["type"] == "rate"]
    for size in sorted({row["body_bytes"] for row in rates}):
        bars = [
            Bar(row["work"], row["engine"], row["per_second"], COLOURS[row["engine"]])
            for row in rates
            if row["body_bytes"] == size
        ]
        write(f"store-{size}.svg", f"Messages a second, bodies of {size} bytes", bars)
    points = [row for row in rows if row["type"] == "point"]
    write("store-growth.svg", "Messages a second, bodies of 1,024 bytes", list(map(_curve, points)))


def _curve(row: dict[str, Any]) -> Bar:
    name = f"{row['work']}, {row['of']:,}"
    return Bar(
        CURVES[row["curve"]], name, row["per_second"], COLOURS["rmqtool" if "put" in row["work"] else "java"]
    )


def write(name: str, title: str, bars: list[Bar]) -> None:
    """One picture of horizontal bars."""
    parts, at, group = [], 40, ""
    for bar in bars:
        if bar.group != group:
            at, group = at + GAP, bar.group
            parts.append(f'<text x="4" y="{at + BAR - 2}" font-weight="bold">{escape(group)}</text>')
            if len(group) > len("consume_objects"):
                at += GAP
        length = max(log10(bar.per_second) - LOW, 0.02) / (HIGH - LOW) * WIDTH
        label = f"{escape(bar.name)} {_short(bar.per_second)}"
        parts += [
            f'<rect x="{LEFT}" y="{at}" width="{length:.1f}" height="{BAR - 2}" fill="{bar.colour}"/>',
            f'<text x="{LEFT + length + 4:.1f}" y="{at + BAR - 3}">{label}</text>',
        ]
        at += BAR
    grid = [
        f'<path d="M{x:.0f} 34V{at}" stroke="#ddd"/><text x="{x:.0f}" y="30" fill="#777">{10**power:,}</text>'
        for power in range(LOW, int(HIGH) + 1)
        for x in [LEFT + (power - LOW) / (HIGH - LOW) * WIDTH]
    ]
    head = f'<text x="4" y="14" font-weight="bold">{escape(title)} (logarithmic)</text>'
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {LEFT + WIDTH + 120} {at + 10}">',
        "<style>text { font-family: sans-serif; font-size: 9px }</style>",
        f'<rect width="100%" height="100%" fill="#fff"/>{head}',
        *grid,
        *parts,
        "</svg>\n",
    ]
    (IMAGES / name).write_text("\n".join(lines), encoding="utf-8")


def _short(rate: float) -> str:
    return f"{rate / 1e6:.1f} M" if rate >= 1e6 else f"{rate / 1e3:,.1f} k"


if __name__ == "__main__":
    main(sys.argv[1])
