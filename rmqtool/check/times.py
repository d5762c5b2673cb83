"""Store times that are out of place: not above zero, or days away from those before and behind.

Never compared with the clock. A broker's clock may stand still, jump ahead after an idle week, or be set back
by hours; a few records that lie days outside of what surrounds them are wrong.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from rmqtool.check.findings import about
from rmqtool.scan.fields import Field
from rmqtool.scan.sound import MOST_APART

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    from rmqtool.check.findings import Finding
    from rmqtool.store.segments import Segment

    Rows = npt.NDArray[np.int64]
    Wrong = tuple[Segment, Rows, int | None]
    """the row of a record, and the time of the one before"""

DAY_MS = MOST_APART
"""a record that lies further than this outside of its neighbours' times has a wrong store time"""

_SHORT = 64
"""records in a row that may be wrong together; more are believed"""


@dataclass(frozen=True, slots=True)
class Span:
    """Store times of neighbouring records without a jump. rows: of the records, if they are few."""

    first: int
    last: int
    rows: Rows | None

    @classmethod
    def of(cls, rows: Rows) -> Span:
        """Of rows of the matrix."""
        first, last = rows[[0, -1], Field.STORE_TIMESTAMP].tolist()
        return cls(first, last, rows.copy() if len(rows) <= _SHORT else None)


@dataclass(frozen=True, slots=True)
class Times:
    """Store times of a run. wrong: rows of records whose time is not above zero; spans: all others."""

    wrong: Rows
    spans: list[Span]


def times_of(rows: Rows, *, even: bool) -> Times:
    """even: all times are above zero, and none jumps (`kernels.dispatch.outline` with `DAY_MS`)."""
    if even:
        return Times(rows[:0], [Span.of(rows)] if len(rows) else [])
    sound = rows[:, Field.STORE_TIMESTAMP] > 0
    wrong, rows = rows[~sound], rows[sound]
    jumps = np.flatnonzero(np.abs(np.diff(rows[:, Field.STORE_TIMESTAMP])) > DAY_MS) + 1
    return Times(wrong, [Span.of(part) for part in np.split(rows, jumps)] if len(rows) else [])


class _Piece:
    """Neighbouring records without a jump between them; its rows are kept while it is short."""

    def __init__(self, segment: Segment, span: Span) -> None:
        self.first = span.first
        self.rows: list[tuple[Segment, Rows]] | None = []
        self.extend(segment, span)

    def extend(self, segment: Segment, span: Span) -> None:
        self.last = span.last
        if self.rows is not None:
            short = span.rows is not None and len(self.rows) + len(span.rows) <= _SHORT
            new = span.rows if span.rows is not None and short else ()
            self.rows = [*self.rows, *((segment, row) for row in new)] if short else None


class TimeCheck:
    """Fed with all records in physical order; finds those whose time is wrong, perhaps some runs later."""

    def __init__(self) -> None:
        self._trusted: _Piece | None = None
        self._piece: _Piece | None = None
        """open: what follows decides whether its times are wrong"""
        self._doubted: _Piece | None = None
        """the first records of the log, while those behind them lie days before them"""
        self._at_head = True

    def records(self, times: Times, segment: Segment) -> Iterator[Finding]:
        """A run of records."""
        return _findings(self._records(times, segment))

    def close(self, dispatched_timestamp: int | None) -> Iterator[Finding]:
        """The last records, which have neighbours on one side only.

        `dispatched_timestamp`: what the checkpoint says of the last record that was dispatched (ms).
        """
        return _findings(self._close(dispatched_timestamp))

    def _records(self, times: Times, segment: Segment) -> Iterator[Wrong]:
        for row in times.wrong:
            yield segment, row, None
        for span in times.spans:
            yield from self._take(span, segment)

    def _take(self, part: Span, segment: Segment) -> Iterator[Wrong]:
        start = part.first
        piece, trusted = self._piece, self._trusted
        if piece is None:
            self._piece = _Piece(segment, part)
        elif abs(start - piece.last) <= DAY_MS:
            piece.extend(segment, part)
        elif trusted is None:
            self._trusted, self._piece = piece, _Piece(segment, part)
            self._doubted = piece if self._at_head else None
            self._at_head = False
        elif piece.rows is not None and _outside(piece.first, trusted.last, start):
            self._doubted = None
            yield from _wrong(piece, trusted.last)
            if abs(start - trusted.last) <= DAY_MS:
                trusted.extend(segment, part)
                self._trusted, self._piece = None, trusted
            else:
                self._piece = _Piece(segment, part)
        else:
            yield from self._head(piece)
            self._trusted, self._piece = piece, _Piece(segment, part)

    def _head(self, behind: _Piece) -> Iterator[Wrong]:
        """The first records, if they lie days later than a longer piece behind them."""
        doubted, self._doubted = self._doubted, None
        if doubted is None or doubted.rows is None or doubted.last - behind.first <= DAY_MS:
            return
        if behind.rows is None or len(behind.rows) > len(doubted.rows):
            yield from _wrong(doubted, None)

    def _close(self, dispatched_timestamp: int | None) -> Iterator[Wrong]:
        piece, trusted = self._piece, self._trusted
        if piece is None or trusted is None:
            return
        reference = dispatched_timestamp or piece.last
        if piece.rows is not None and min(abs(one - reference) for one in (piece.first, piece.last)) > DAY_MS:
            yield from _wrong(piece, trusted.last)
        else:
            yield from self._head(piece)


def _outside(time: int, before: int, after: int) -> bool:
    return not min(before, after) - DAY_MS <= time <= max(before, after) + DAY_MS


def _wrong(piece: _Piece, before: int | None) -> Iterator[Wrong]:
    for segment, row in piece.rows or ():
        yield segment, row, before


def _findings(wrong: Iterator[Wrong]) -> Iterator[Finding]:
    for segment, row, before in wrong:
        time = int(row[Field.STORE_TIMESTAMP])
        yield about("CL-TIME", row, segment, part="store_timestamp", expected=before, found=time)
