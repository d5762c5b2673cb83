"""Tables: aligned columns, streamed, so that a listing of any length takes the same memory."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rmqtool.output.look import cells, crop, fit
from rmqtool.output.rows import Rows
from rmqtool.output.text import safe

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    from rmqtool.output.look import Look
    from rmqtool.output.rows import Row, Summary
    from rmqtool.output.stream import ByteOut

SAMPLE = 128
"""rows that settle the widths of the columns"""
PATIENCE = 0.3
"""seconds that the first rows may wait for more of the sample"""
NARROWEST = 8
_GUTTER = "  "
ABSENT = "-"


@dataclass(frozen=True)
class Column:
    """One column of a table: the row's key, and how its values look."""

    key: str
    title: str | None = None
    """default: the key"""
    right: bool = False
    show: Callable[[Any], str] | None = None
    """text of a value that is not None; default `str`. It need not be safe yet."""
    style: str = ""
    shrinks: bool = False
    """may be cut where a terminal is too narrow"""
    width: int = 0
    """at least this wide: for rows that come after the sample"""

    @property
    def heading(self) -> str:
        """What stands above the column."""
        return self.key if self.title is None else self.title

    def text(self, value: Any) -> str:
        """A value as safe text; None is a dash, lists are joined with blanks, objects are NAME=VALUE."""
        if value is None:
            return ABSENT
        if self.show is not None:
            return safe(self.show(value))
        if isinstance(value, dict):
            value = [f"{name}={item}" for name, item in value.items()]
        return safe(" ".join(map(str, value)) if isinstance(value, list) else str(value))


class Grid:
    """Columns with settled widths."""

    def __init__(self, columns: Sequence[Column], sample: Iterable[Sequence[str]], look: Look) -> None:
        self._columns = columns
        self._look = look
        self._widths = [max(cells(column.heading), column.width) for column in columns]
        for row in sample:
            self._widths = [max(width, cells(text)) for width, text in zip(self._widths, row, strict=True)]
        self._bounded = [False] * len(columns)
        if look.width is not None:
            self._shrink(look.width)

    def _shrink(self, room: int) -> None:
        """Takes from the widest column that may shrink until the line fits, or no column can give more."""
        while self._total() > room:
            able = [i for i, c in enumerate(self._columns) if c.shrinks and self._widths[i] > NARROWEST]
            if not able:
                break
            self._widths[max(able, key=lambda i: self._widths[i])] -= 1
        self._bounded = [column.shrinks for column in self._columns]

    def _total(self) -> int:
        return sum(self._widths) + len(_GUTTER) * (len(self._widths) - 1)

    def header(self) -> str:
        """The line of headings."""
        return self._join([column.heading for column in self._columns], lambda _: "bold")

    def line(self, texts: Sequence[str]) -> str:
        """One row."""
        return self._join(texts, lambda column: column.style)

    def _join(self, texts: Sequence[str], style: Callable[[Column], str]) -> str:
        parts = []
        last = len(texts) - 1
        for place, (column, text) in enumerate(zip(self._columns, texts, strict=True)):
            width = self._widths[place]
            shown = crop(text, width) if self._bounded[place] else text
            if place < last or column.right:
                shown = fit(shown, width, right=column.right)
            parts.append(self._look.paint(shown, style(column)))
        return _GUTTER.join(parts)


class TableRows(Rows):
    """A table. Rows for which `banner` gives a text are shown as one line across it (a gap between records).

    The summary goes to `closing`, because standard output holds data only.
    """

    def __init__(
        self,
        out: ByteOut,
        schema: str,
        columns: Sequence[Column],
        look: Look,
        closing: Callable[[Mapping[str, Any]], None],
        banner: Callable[[Row], str | None] | None = None,
    ) -> None:
        super().__init__(out, schema)
        self._columns = columns
        self._look = look
        self._closing = closing
        self._banner = banner
        self._grid: Grid | None = None
        self._waiting: list[str | list[str]] = []
        self._since = 0.0

    def write_columns(
        self,
        names: Sequence[str],
        columns: Sequence[Iterable[Any]],
        *,
        omit_null: Collection[str] = (),  # noqa: ARG002 - absent or None, both are a dash here
    ) -> None:
        """Takes many rows as columns; those that are not shown cost nothing."""
        keys = {column.key for column in self._columns} | {"type"}  # a banner tells rows apart by type
        shown = [(name, column) for name, column in zip(names, columns, strict=True) if name in keys]
        super().write_columns([name for name, _ in shown], [column for _, column in shown])

    def flush(self) -> None:
        """Everything taken so far becomes visible; it settles the widths of the columns."""
        if self._waiting:
            self._settle()
        super().flush()

    def _emit(self, rows: Iterable[Row]) -> None:
        for row in rows:
            text = self._banner(row) if self._banner else None
            item = safe(text) if text is not None else [c.text(row.get(c.key)) for c in self._columns]
            if self._grid is None:
                self._wait(item)
            else:
                self._write(self._grid, item)

    def _wait(self, item: str | list[str]) -> None:
        if not self._waiting:
            self._since = time.monotonic()
        self._waiting.append(item)
        if len(self._waiting) >= SAMPLE or time.monotonic() - self._since > PATIENCE:
            self._settle()

    def _settle(self) -> None:
        if self._grid is None:
            sample = [item for item in self._waiting if isinstance(item, list)]
            self._grid = Grid(self._columns, sample, self._look)
            if sample:
                self._line(self._grid.header())
            for item in self._waiting:
                self._write(self._grid, item)
            self._waiting.clear()

    def _write(self, grid: Grid, item: str | list[str]) -> None:
        self._line(self._look.paint(item, "yellow") if isinstance(item, str) else grid.line(item))

    def _line(self, text: str) -> None:
        self.out.write(self._look.encode(text + "\n"))

    def _close(self, summary: Summary) -> None:
        self._settle()
        self.out.flush()
        self._closing(summary)
