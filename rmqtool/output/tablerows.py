"""Tables: aligned columns, streamed, so that a listing of any length takes the same memory."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, NamedTuple

from rmqtool.output.grid import Column, Grid
from rmqtool.output.rows import Rows
from rmqtool.output.text import safe
from rmqtool.output.text_style import wrap

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    from rmqtool.output.rows import Row, Summary
    from rmqtool.output.stream import ByteOut
    from rmqtool.output.text_style import TextStyle

__all__ = ["Column", "TableRows"]

SAMPLE = 128
"""rows that settle the widths of the columns"""
PATIENCE = 0.3
"""seconds that the first rows may wait for more of the sample"""
_ASIDE = "dim"


class _Row(NamedTuple):
    """A row as text: the day of its time, its columns, and what stands below it."""

    day: str | None
    texts: list[str]
    below: list[tuple[str, str]]


class TableRows(Rows):
    """A table. Rows for which `banner` gives a text are shown as one line across it (a gap between records).

    The summary goes to `closing`, because standard output holds data only.
    """

    def __init__(
        self,
        out: ByteOut,
        schema: str,
        columns: Sequence[Column],
        text_style: TextStyle,
        closing: Callable[[Mapping[str, Any]], None],
        banner: Callable[[Row], str | None] | None = None,
    ) -> None:
        super().__init__(out, schema)
        narrow = text_style.width is not None
        self._columns = columns
        self._in_line = [column for column in columns if not (narrow and column.below)]
        self._below = [column for column in columns if narrow and column.below]
        times = [column for column in columns if column.zone is not None] if narrow else []
        self._clock = times[0] if len(times) == 1 else None
        self._moments = times if len(times) > 1 else []
        self._text_style = text_style
        self._closing = closing
        self._banner = banner
        self._grid: Grid | None = None
        self._heading: str | None = None
        self._waiting: list[str | _Row] = []
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
            item = safe(text) if text is not None else self._texts(row)
            if self._grid is None:
                self._wait(item)
            else:
                self._write(self._grid, item)

    def _texts(self, row: Row) -> _Row:
        """On a terminal times are short: what they leave out is said above."""
        day, texts = None, []
        for column in self._in_line:
            value = row.get(column.key)
            if value is None or column.zone is None or not (self._clock or self._moments):
                texts.append(column.text(value))
            elif column is self._clock:
                day, clock = column.zone.day_and_clock(value)
                texts.append(clock)
            else:
                texts.append(column.zone.moment(value))
        below = [(one.heading, one.text(row[one.key])) for one in self._below if row.get(one.key) is not None]
        return _Row(day, texts, below)

    def _wait(self, item: str | _Row) -> None:
        if not self._waiting:
            self._since = time.monotonic()
        self._waiting.append(item)
        if len(self._waiting) >= SAMPLE or time.monotonic() - self._since > PATIENCE:
            self._settle()

    def _settle(self) -> None:
        if self._grid is None:
            sample = [item.texts for item in self._waiting if isinstance(item, _Row)]
            self._grid = Grid(self._in_line, sample, self._text_style)
            if sample:
                self._say_zone()
                self._say_day(self._grid, next(item.day for item in self._waiting if isinstance(item, _Row)))
                self._head(self._grid)
            for item in self._waiting:
                self._write(self._grid, item)
            self._waiting.clear()

    def _say_zone(self) -> None:
        """The zone of times that have their date with them; a single time has it with its day."""
        for column in self._moments[:1]:
            if column.zone is not None:
                self._line(self._text_style.paint(f"times in {column.zone.name}", _ASIDE))

    def _say_day(self, grid: Grid, day: str | None) -> None:
        """The date that a time is short of, where the time is shown."""
        if day is None or day == self._heading:
            return
        if self._clock is None or self._clock.heading not in grid.left_out:
            self._heading = day
            self._line(self._text_style.paint(day, _ASIDE))

    def _head(self, grid: Grid) -> None:
        """What is not shown, and the headings."""
        for line in grid.said():
            self._line(self._text_style.paint(line, _ASIDE))
        self._line(grid.header())

    def _write(self, grid: Grid, item: str | _Row) -> None:
        if isinstance(item, str):
            for line in wrap(item, self._text_style.width, "", "   "):
                self._line(self._text_style.paint(line, "yellow"))
            return
        shown = grid.left_out
        if not grid.takes(item.texts) and grid.left_out != shown:
            self._head(grid)
        self._say_day(grid, item.day)
        self._line(grid.line(item.texts))
        for name, text in item.below:
            for line in wrap(text, self._text_style.width, f"    {name}  "):
                self._line(line)

    def _line(self, text: str) -> None:
        self.out.write(self._text_style.encode(text + "\n"))

    def _close(self, summary: Summary) -> None:
        self._settle()
        self.out.flush()
        self._closing(summary)
