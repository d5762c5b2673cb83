"""From blocks of lines to a tally: which line means what, and what belongs to the line above it."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from rmqtool.explain.columns import block_of
from rmqtool.explain.header import exception_of, level_of, time_of

if TYPE_CHECKING:
    from datetime import tzinfo

    from numpy.typing import NDArray

    from rmqtool.explain.columns import Block
    from rmqtool.explain.match import Match, Table
    from rmqtool.explain.tally import Seen, Tally


class Collector:
    """Feeds blocks of one source to a tally.

    Lines without time and level belong to the entry above them; before the first entry of a source (a pasted
    message, a console) each of them stands for itself. `zone` is that of times without one.
    """

    def __init__(self, tally: Tally, table: Table, source: str, zone: tzinfo | None) -> None:
        self.tally = tally
        self.table = table
        self.source = source
        self.zone = zone
        self._lines = 0
        self._opened = False

    def feed(self, data: bytes) -> None:
        """Takes whole lines."""
        if not data:
            return
        work = _Work(self, block_of(data, self.table.prefilter), self._lines + 1, opened=self._opened)
        work.run()
        self._opened |= bool(work.is_header.any())
        self._lines += len(work.block.codes)
        self.tally.lines += len(work.block.codes)
        self.tally.records += int(work.is_header.sum())
        self.tally.bytes += len(data)


class _Work:
    def __init__(self, collector: Collector, block: Block, first_number: int, *, opened: bool) -> None:
        self._for = collector
        self.block = block
        self._first_number = first_number
        self.is_header = block.opens[block.codes]
        self._order = np.argsort(block.codes, kind="stable")
        self._ends = np.cumsum(np.bincount(block.codes, minlength=len(block.opens)))
        headers = np.flatnonzero(self.is_header)
        self._free_until = 0 if opened else int(headers[0]) if len(headers) else len(block.codes)
        self._seen: dict[int, Seen] = {}
        self._seen_of_line: dict[int, Seen] = {}

    def run(self) -> None:
        for code in range(len(self.block.opens)):
            lines = self._lines_of(code)
            if not self.block.candidates[code]:
                self._unexplained(code, lines)
                continue
            match, depends = self._for.table.look_up(self.block.text(int(lines[0])))
            if depends and len(lines) > 1:
                self._each(code, lines)
            else:
                self._one_kind(code, lines, match)
        self._exceptions()

    def _lines_of(self, code: int) -> NDArray[np.int64]:
        start = self._ends[code - 1] if code else 0
        return self._order[start : self._ends[code]]

    def _one_kind(self, code: int, lines: NDArray[np.int64], match: Match | None) -> None:
        if match is None:
            self._unexplained(code, lines)
        else:
            self._explained(code, lines, match)

    def _each(self, code: int, lines: NDArray[np.int64]) -> None:
        """Lines of the same code can mean different things here."""
        for number in lines.tolist():
            match, _ = self._for.table.look_up(self.block.text(number))
            self._one_kind(code, np.array([number]), match)
            if code in self._seen:
                self._seen_of_line[number] = self._seen[code]

    def _explained(self, code: int, lines: NDArray[np.int64], match: Match) -> None:
        first, last = int(lines[0]), int(lines[-1])
        place = (self.block.text(first), self._for.source, self._first_number + first)
        cause = self._for.tally.cause(match.entry, *place)
        cause.add(len(lines), (self._time(first), self._time(last)))
        cause.sample(match.values)
        if last != first and (other := match.entry.values(self.block.text(last))) is not None:
            cause.sample(other)
        self._seen[code] = cause

    def _unexplained(self, code: int, lines: NDArray[np.int64]) -> None:
        """Alarming lines are counted, and lines that stand for themselves; the rest belongs to others."""
        if not self.block.alarms[code]:
            if self.block.opens[code] or self.block.traces[code]:
                return
            lines = lines[lines < self._free_until]
            if not len(lines) or not self.block.line(int(lines[0])).strip():
                return
        first, last = int(lines[0]), int(lines[-1])
        text = self.block.text(first)
        level = level_of(text) if self.block.opens[code] else None
        group = self._for.tally.alarm(level, text, self._for.source, self._first_number + first)
        if group is None:
            self._for.tally.unlisted += len(lines)
            return
        group.add(len(lines), (self._time(first), self._time(last)))
        self._seen[code] = group

    def _exceptions(self) -> None:
        """Counts the exception that stands directly below a line with it."""
        codes = self.block.codes
        below = np.flatnonzero(self.block.exceptions[codes[1:]] & self.is_header[:-1] & ~self.is_header[1:])
        if not len(below):
            return
        names: dict[int, str | None] = {}
        for line in below.tolist():
            seen = self._seen_of_line.get(line) or self._seen.get(int(codes[line]))
            if seen is None:
                continue
            code = int(codes[line + 1])
            if code not in names:
                names[code] = exception_of(self.block.text(line + 1))
            if name := names[code]:
                seen.with_exception(name, 1)

    def _time(self, line: int) -> int | None:
        """The time of a line, or of the entry that it belongs to."""
        own = time_of(self.block.line(line), self._for.zone)
        if own is not None or self.is_header[line]:
            return own
        above = int(self._above[line])
        return None if above < 0 else time_of(self.block.line(above), self._for.zone)

    @cached_property
    def _above(self) -> NDArray[np.int64]:
        places = np.where(self.is_header, np.arange(len(self.is_header)), -1)
        return np.maximum.accumulate(places)
