"""The map on a terminal: a line a segment, with colours or with other characters in their place."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rmqtool.output.sizes import human_bytes
from rmqtool.output.text_style import fit
from rmqtool.report.cells import DAMAGE, TOPICS_FROM, State

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    from rmqtool.output.page import Page
    from rmqtool.output.text_style import TextStyle
    from rmqtool.report.segment_map import SegmentMap, SegmentRow

_STATES = {
    State.BAD_CRC: ("!", "bold white on red", "record whose body fails its CRC"),
    State.GAP: ("X", "bold red", "unreadable range, no record"),
    State.UNREADABLE: ("?", "bold red", "cannot be read from the disk"),
    State.GARBAGE: ("~", "bold red", "garbage after the last record"),
    State.STALE: ("s", "yellow", "records of an earlier life after the end"),
    State.BLANK: ("_", "dim", "end-of-file blank"),
    State.ZERO: (".", "dim", "allocated, never written"),
    State.UNREAD: (" ", "", "not read"),
}
_TOPIC_CHARACTERS = "abcdefgh"
_TOPIC_STYLES = (
    "blue", "green", "cyan", "magenta", "bright_blue", "bright_green", "bright_cyan", "bright_magenta",
)  # fmt: skip
_OTHERS = ("o", "white")
_WIDEST = 128
_NARROW = 20
MOST_LINES = 200
"""segments that have a line of their own"""


class Drawing:
    """Draws onto a page. width: of the terminal."""

    def __init__(self, page: Page, text_style: TextStyle, found: SegmentMap, width: int) -> None:
        self._page, self._text_style, self._map = page, text_style, found
        colours = found.colours(len(_TOPIC_CHARACTERS))
        self._marks: dict[int, tuple[str, str]] = {
            code: (mark, style) for code, (mark, style, _) in _STATES.items()
        }
        self._marks |= dict(zip(colours, zip(_TOPIC_CHARACTERS, _TOPIC_STYLES, strict=True), strict=False))
        names = [len(str(row.base)) for row in found.rows]
        self._label = max(names, default=0)
        self._wide = max(min(width - self._label - 14, _WIDEST), _NARROW)
        self._named = colours

    def write(self) -> None:
        """The map, then what its characters mean."""
        line = 0
        for row, above in zip(self._map.rows, [None, *self._map.rows], strict=False):
            if above is not None and above.base + above.grid.size < row.base:
                size = human_bytes(row.base - above.base - above.grid.size)
                self._page.line(f"{'':{self._label}}  missing: {size}", "bold red")
            if line < MOST_LINES and row.cells is not None:
                self._segment(row)
                line += 1
        left = len(self._map.rows) - line
        if left:
            self._page.words(
                f"{left:,} more {'segment is' if left == 1 else 'segments are'} not drawn; "
                "--format ndjson has a row for each."
            )
        self._page.heading("Legend")
        for text in self._legend():
            self._page.raw_line(text)

    def _segment(self, row: SegmentRow) -> None:
        painted = "".join(self._paint(code) for code in self._line(row))
        label = self._text_style.paint(fit(str(row.base), self._label, right=True), "cyan")
        size = fit(human_bytes(row.grid.size), 9, right=True)
        self._page.raw_line(f"{label} |{painted}|{size}")

    def _line(self, row: SegmentRow) -> list[int]:
        """For every column of the line the state it shows: damage wherever there is any, else the largest."""
        cells = row.cells or {}
        if not row.grid.count:
            return [State.UNREAD] * self._wide
        codes = list(cells)
        counts = np.array([cells[code] for code in codes])
        # every cell belongs to a column, every column has a cell
        bounds = np.arange(self._wide) * row.grid.count // self._wide
        ends = np.maximum((np.arange(self._wide) + 1) * row.grid.count // self._wide, bounds + 1)
        reached = np.concatenate([np.zeros((len(codes), 1), np.int64), np.cumsum(counts, axis=1)], axis=1)
        sums = reached[:, ends] - reached[:, bounds]
        return _shown(codes, sums)

    def _paint(self, code: int) -> str:
        mark, style = self._marks.get(code, _OTHERS)
        return self._text_style.paint(mark, style)

    def _legend(self) -> Iterator[str]:
        totals = self._map.totals
        for code in self._named:
            yield self._explained(*self._marks[code], self._map.name_of(code), totals[code])
        others = sum(
            count for code, count in totals.items() if code >= TOPICS_FROM and code not in self._named
        )
        if others:
            yield self._explained(*_OTHERS, "all other topics", others)
        for state, (mark, style, text) in _STATES.items():
            if totals[state]:
                yield self._explained(mark, style, text, totals[state])

    def _explained(self, mark: str, style: str, text: str, count: int) -> str:
        from rmqtool.output.text import safe
        from rmqtool.output.text_style import shrink

        room = max((self._text_style.width or 80) - 16, _NARROW)
        shown = fit(shrink(safe(text), room), min(room, 44))
        return f"  {self._text_style.paint(mark, style)} {shown} {human_bytes(count)}"


def _shown(codes: list[int], sums: npt.NDArray[np.int64]) -> list[int]:
    """codes: of the rows of `sums`, which has a column for each column of the line."""
    damage = np.array([code in DAMAGE for code in codes])
    harmed = np.where(damage[:, None], sums, 0)
    largest = np.where(harmed.any(axis=0), harmed.argmax(axis=0), sums.argmax(axis=0))
    return [codes[at] for at in largest.tolist()]
