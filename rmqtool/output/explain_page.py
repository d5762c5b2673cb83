"""What log lines mean, as a page for people: the worst first, what is normal in one line each."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any

from rmqtool.output.text import safe
from rmqtool.output.text_style import fit

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rmqtool.output.page import Page
    from rmqtool.output.text_style import TextStyle
    from rmqtool.output.times import Zone

Row = dict[str, Any]

_STYLES = {"problem": "bold red", "notice": "yellow", "normal": "green"}
_FEW = 5
"""so many causes are shown in full, also normal ones"""
_WIDTH = 100
_LABEL = 10


class ExplainPage:
    """Writes the rows of `rmqtool explain`."""

    def __init__(self, page: Page, text_style: TextStyle, zone: Zone) -> None:
        self._page = page
        self._text_style = text_style
        self._zone = zone
        self._width = min(text_style.width or _WIDTH, _WIDTH)

    def write(self, rows: Sequence[Row]) -> None:
        """Causes in full, then normal ones in short when there are many, then lines without explanation."""
        causes = [row for row in rows if row["type"] == "cause"]
        brief = [row for row in causes if row["severity"] == "normal"] if len(causes) > _FEW else []
        for row in causes:
            if row not in brief:
                self._cause(row)
        if brief:
            self._page.heading("Normal")
            for row in brief:
                self._page.line(f"  {row['count']:>8,} {row['id']}: {row['meaning'].partition('. ')[0]}")
        unknown = [row for row in rows if row["type"] == "unknown"]
        if unknown:
            self._page.heading("Not in the table")
            for row in unknown:
                self._unknown(row)
        if not rows:
            self._page.line("No line of level WARN or above, and none that the table knows.")
        self._page.close()

    def _cause(self, row: Row) -> None:
        self._page.heading(
            f"{row['severity'].upper()}  {row['id']}{self._count(row)}", _STYLES[row["severity"]]
        )
        self._page.line(f"  {row['example']}")
        self._part("meaning", [row["meaning"], *(f"Here: {one}." for one in row["remarks"])])
        if row["exceptions"]:
            named = ", ".join(f"{name} ({count})" for name, count in row["exceptions"].items())
            self._part("exception", [named])
        self._part("look at", [row["look_at"]])
        self._part("in store", row.get("evidence", []))
        self._part("next", row["next"])
        self._part("where", [", ".join([*row["source"], *row["incidents"]])])

    def _unknown(self, row: Row) -> None:
        level = row["level"] or "line"
        self._page.line(f"  {row['count']:>8,} {level}: {row['template']}")
        if row["exceptions"]:
            self._page.line(f"{'':>11}{', '.join(row['exceptions'])}")

    def _count(self, row: Row) -> str:
        first, last = row["first_timestamp"], row["last_timestamp"]
        times = "" if row["count"] == 1 else f"  {row['count']:,} times"
        if first is None:
            return times
        until = "" if first == last else f" to {self._zone.iso(last)}"
        return f"{times}  {self._zone.iso(first)}{until}"

    def _part(self, label: str, texts: Iterable[str]) -> None:
        name = self._text_style.paint(fit(label, _LABEL), "cyan")
        for text in texts:
            if not text:
                continue
            for line in textwrap.wrap(safe(text), self._width - _LABEL - 3, break_long_words=False):
                self._page.raw_line(f"  {name} {line}")
                name = " " * _LABEL
