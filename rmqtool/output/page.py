"""A page for people: headings, facts and small tables, one after the other."""

from __future__ import annotations

from itertools import chain, islice
from typing import TYPE_CHECKING, Any

from rmqtool.output.grid import Column, Grid
from rmqtool.output.text import safe
from rmqtool.output.text_style import cells, fit, wrap

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from rmqtool.output.stream import ByteOut
    from rmqtool.output.text_style import TextStyle


_PROSE = 80
_HELD = 4096
"""rows of a table that are held"""


class Page:
    """Written top down; sections are set apart by an empty line."""

    def __init__(self, out: ByteOut, text_style: TextStyle) -> None:
        self._out = out
        self._text_style = text_style
        self._lines = 0

    def heading(self, text: str, style: str = "bold") -> None:
        """Opens a section."""
        if self._lines:
            self.raw_line("")
        self.line(text, style)

    @property
    def scrolled(self) -> bool:
        """Whether what was written first is no longer on the screen."""
        return self._text_style.height is not None and self._lines >= self._text_style.height

    @property
    def width(self) -> int | None:
        """Where lines must end; None in pipes."""
        return self._text_style.width

    def facts(self, pairs: Iterable[tuple[str, Any]]) -> None:
        """Names and values, one a line; a pair whose value is None is left out."""
        rows = [(name, Column(name).text(value)) for name, value in pairs if value is not None]
        width = max((cells(name) for name, _ in rows), default=0)
        for name, value in rows:
            first, *more = wrap(value, self._text_style.width, " " * (width + 4))
            self.raw_line(f"  {self._text_style.paint(fit(safe(name), width), 'cyan')}{first[width + 2 :]}")
            for line in more:
                self.raw_line(line)

    def table(self, columns: Sequence[Column], rows: Iterable[Mapping[str, Any]]) -> None:
        """A table; its first rows settle the widths of its columns."""
        texts = ([self._text(column, row.get(column.key)) for column in columns] for row in rows)
        first = list(islice(texts, _HELD))
        grid = Grid(columns, first, self._text_style)
        for line in grid.said():
            self.raw_line(self._text_style.paint(line, "dim"))
        self.raw_line(grid.header())
        for row in chain(first, texts):
            self.raw_line(grid.line(row))

    def _text(self, column: Column, value: Any) -> str:
        if value is None or column.zone is None or self._text_style.width is None:
            return column.text(value)
        return column.zone.moment(value)

    def line(self, text: str, style: str = "") -> None:
        """One line of any text; on a terminal as many as it takes, each further one set in."""
        lead = " " * (len(text) - len(text.lstrip(" ")))
        for line in wrap(safe(text[len(lead) :]), self._text_style.width, lead, f"{lead}  "):
            self.raw_line(self._text_style.paint(line, style))

    def command(self, text: str, lead: str = "  ") -> None:
        """A command to copy: one line, however long."""
        self.raw_line(f"{lead}{self._text_style.paint(safe(text), 'bold')}")

    def words(self, text: str, lead: str = "", style: str = "", rest: str | None = None) -> None:
        """Prose, broken between words where the terminal ends, in pipes at 80 columns.

        lead, rest: as `wrap` takes them.
        """
        for line in wrap(safe(text), self._text_style.width or _PROSE, lead, rest):
            self.raw_line(self._text_style.paint(line, style))

    def raw_line(self, text: str) -> None:
        """One line that was drawn already: safe, perhaps with colours."""
        self._lines += 1
        self._out.write(self._text_style.encode(text + "\n"))

    def close(self) -> None:
        """Writes what is held back."""
        self._out.flush()
