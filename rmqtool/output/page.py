"""A page for people: headings, facts and small tables, one after the other."""

from __future__ import annotations

from itertools import chain, islice
from typing import TYPE_CHECKING, Any

from rmqtool.output.look import cells, fit
from rmqtool.output.tablerows import Column, Grid
from rmqtool.output.text import safe

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from rmqtool.output.look import Look
    from rmqtool.output.stream import ByteOut


_HELD = 4096
"""rows of a table that are held"""


class Page:
    """Written top down; sections are set apart by an empty line."""

    def __init__(self, out: ByteOut, look: Look) -> None:
        self._out = out
        self._look = look
        self._begun = False

    def heading(self, text: str, style: str = "bold") -> None:
        """Opens a section."""
        if self._begun:
            self.raw_line("")
        self.line(text, style)

    def facts(self, pairs: Iterable[tuple[str, Any]]) -> None:
        """Names and values, one a line; a pair whose value is None is left out."""
        rows = [(name, Column(name).text(value)) for name, value in pairs if value is not None]
        width = max((cells(name) for name, _ in rows), default=0)
        for name, value in rows:
            self.raw_line(f"  {self._look.paint(fit(safe(name), width), 'cyan')}  {value}")

    def table(self, columns: Sequence[Column], rows: Iterable[Mapping[str, Any]]) -> None:
        """A table; its first rows settle the widths of its columns."""
        texts = ([column.text(row.get(column.key)) for column in columns] for row in rows)
        first = list(islice(texts, _HELD))
        grid = Grid(columns, first, self._look)
        self.raw_line(grid.header())
        for row in chain(first, texts):
            self.raw_line(grid.line(row))

    def line(self, text: str, style: str = "") -> None:
        """One line of any text."""
        self.raw_line(self._look.paint(safe(text), style))

    def raw_line(self, text: str) -> None:
        """One line that was drawn already: safe, perhaps with colours."""
        self._begun = True
        self._out.write(self._look.encode(text + "\n"))

    def close(self) -> None:
        """Writes what is held back."""
        self._out.flush()
