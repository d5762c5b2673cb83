"""The columns of a table, and what becomes of them where a terminal is too narrow for all."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rmqtool.output.text import safe
from rmqtool.output.text_style import cells, fit, shrink, wrap

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from rmqtool.output.text_style import TextStyle
    from rmqtool.output.times import Zone

READABLE = 16
NARROWEST = 8
"""what is left of a column that shrinks where there is no other way"""
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
    """loses its middle where a terminal is too narrow"""
    least: int = READABLE
    """of one that shrinks: columns that it keeps as long as another can be left out"""
    width: int = 0
    """at least this wide: for rows that come after the sample"""
    gives: int = 0
    """left out where a terminal is too narrow, the highest number first; 0: never"""
    zone: Zone | None = None
    """values are epoch ms: ISO 8601 in pipes, on a terminal shorter, with date and zone above the table"""
    below: bool = False
    """on a terminal in lines of its own below the row, as long as it may be"""

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
        if self.zone is not None:
            return self.zone.iso(value)
        if isinstance(value, dict):
            value = [f"{name}={item}" for name, item in value.items()]
        return safe(" ".join(map(str, value)) if isinstance(value, list) else str(value))


class Grid:
    """Columns with settled widths; those that find no room are left out, which the caller says."""

    def __init__(
        self, columns: Sequence[Column], sample: Iterable[Sequence[str]], text_style: TextStyle
    ) -> None:
        self._columns = columns
        self._text_style = text_style
        self._natural = [max(cells(column.heading), column.width) for column in columns]
        for row in sample:
            self._natural = [max(width, cells(text)) for width, text in zip(self._natural, row, strict=True)]
        self._settle()

    @property
    def left_out(self) -> list[str]:
        """Headings of the columns that find no room, in their order."""
        return [column.heading for place, column in enumerate(self._columns) if place not in self._shown]

    def said(self) -> list[str]:
        """What a reader must know of `left_out`, in lines that fit."""
        text = f"left out at {self._text_style.width} columns: {', '.join(self.left_out)}"
        return wrap(text, self._text_style.width) if self.left_out else []

    def takes(self, texts: Sequence[str]) -> bool:
        """Whether a row fits; else the widths are settled again, and `left_out` may have changed."""
        if self._text_style.width is None:
            return True
        wide = [
            place
            for place in self._shown
            if not self._columns[place].shrinks and cells(texts[place]) > self._widths[place]
        ]
        for place in wide:
            self._natural[place] = cells(texts[place])
        if wide:
            self._settle()
        return not wide

    def _settle(self) -> None:
        self._widths = list(self._natural)
        self._shown = list(range(len(self._columns)))
        room = self._text_style.width
        if room is None:
            return
        while self._total() > room and self._needed() > room:
            able = [place for place in self._shown if self._gives(place)]
            if not able:
                break
            self._shown.remove(max(able, key=self._gives))
        for place in sorted(set(range(len(self._columns))) - set(self._shown), key=self._gives):
            self._shown = sorted([*self._shown, place])  # what went first may fit into what went later
            if self._needed() > room:
                self._shown.remove(place)
        self._shrink(room, lambda column: column.least)
        self._shrink(room, lambda _: NARROWEST)

    def _gives(self, place: int) -> int:
        return self._columns[place].gives

    def _total(self) -> int:
        """Columns of a line."""
        return self._line_of(self._widths[place] for place in self._shown)

    def _needed(self) -> int:
        """Columns of a line in which all that may shrink have no more than they keep."""
        pairs = [(self._columns[place], self._natural[place]) for place in self._shown]
        return self._line_of(min(width, one.least) if one.shrinks else width for one, width in pairs)

    @staticmethod
    def _line_of(widths: Iterable[int]) -> int:
        listed = list(widths)
        return sum(listed) + len(_GUTTER) * (len(listed) - 1)

    def _shrink(self, room: int, least: Callable[[Column], int]) -> None:
        """Takes from the widest column that may shrink until the line fits, or no column can give more."""
        while self._total() > room:
            able = [
                place
                for place in self._shown
                if self._columns[place].shrinks and self._widths[place] > least(self._columns[place])
            ]
            if not able:
                break
            self._widths[max(able, key=lambda place: self._widths[place])] -= 1

    def header(self) -> str:
        """The line of headings."""
        return self._join([column.heading for column in self._columns], lambda _: "bold")

    def line(self, texts: Sequence[str]) -> str:
        """One row."""
        return self._join(texts, lambda column: column.style)

    def _join(self, texts: Sequence[str], style: Callable[[Column], str]) -> str:
        parts = []
        for place in self._shown:
            column, width = self._columns[place], self._widths[place]
            bounded = column.shrinks and self._text_style.width is not None
            shown = shrink(texts[place], width) if bounded else texts[place]
            if place != self._shown[-1] or column.right:
                shown = fit(shown, width, right=column.right)
            parts.append(self._text_style.paint(shown, style(column)))
        return _GUTTER.join(parts)
