"""A map of the commit log: every segment in cells, every byte of it in exactly one state.

Memory is bounded whatever the log holds: cells of all segments together, topics that are told apart, segments
that are kept cell by cell.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from rmqtool.check.log_reading import Filler
from rmqtool.report.cells import DAMAGE, TOPICS_FROM, Grid, State, cells_for, pieces
from rmqtool.report.shape import RunShape
from rmqtool.scan.events import Blank, Gap, Tail, TailContent, Unreadable
from rmqtool.scan.fields import TopicSum
from rmqtool.scan.reader import Expired
from rmqtool.store.coverage import Incomplete, coverage, holes_in
from rmqtool.store.coverage import unreadable as unreadable_row
from rmqtool.store.kinds import FileKind

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    from rmqtool.store.layout import Store
    from rmqtool.store.segments import Segment

    Ints = npt.NDArray[np.int64]
    Row = dict[str, Any]

MOST_TOPICS = 64
"""topics that are told apart while the log is read; the last number is for all others"""
_SEEDED = 48
"""of them, those with the largest consume queues are known before"""
MOST_SEGMENTS = 2048
"""segments that are kept cell by cell"""
EDGE_SEGMENTS = 64
"""of a longer log, those at either end are kept even if nothing is damaged in them"""
OTHERS = TOPICS_FROM + MOST_TOPICS - 1
_WIDTH = TOPICS_FROM + MOST_TOPICS

_TAILS = {
    TailContent.ZERO: State.ZERO,
    TailContent.STALE: State.STALE,
    TailContent.GARBAGE: State.GARBAGE,
}


@dataclass(slots=True)
class SegmentRow:
    """A segment as it is drawn.

    totals: bytes by number of their state; cells: the same for each cell, by number, None where only the
    totals are kept. Times are store times, epoch ms.
    """

    path: str
    base: int
    grid: Grid
    totals: Counter[int]
    records: int = 0
    first_timestamp: int | None = None
    last_timestamp: int | None = None
    cells: dict[int, Ints] | None = None

    @property
    def damaged(self) -> int:
        """Bytes that are damaged in some way."""
        return sum(self.totals[one] for one in DAMAGE)


@dataclass
class _Open:
    """A segment that is being read."""

    segment: Segment
    grid: Grid
    sums: Ints
    reached: int = 0
    records: int = 0
    times: list[int] = field(default_factory=list)


class SegmentMap:
    """Takes what a reader yields of a log, in physical order; `close` it, then ask.

    topics: names by number, the first behind `TOPICS_FROM`. rows: the segments in order.
    """

    def __init__(self, store: Store, count: int) -> None:
        self._store = store
        self.count = count
        """segments of the log"""
        self.cells = cells_for(min(count, MOST_SEGMENTS))
        self.topics: list[str] = _largest(store)[:_SEEDED]
        self._numbers = {name: TOPICS_FROM + at for at, name in enumerate(self.topics)}
        self.rows: list[SegmentRow] = []
        self.collapsed = 0
        """segments of which only totals are kept"""
        self.not_covered: list[Row] = []
        self._kept = 0
        self._open: _Open | None = None

    def take(self, segment: Segment, event: Any) -> None:
        """One event of the reader, runs of records as `RunShape`."""
        if self._open is None or self._open.segment is not segment:
            self._finish()
            grid = Grid.of(segment.size, self.cells)
            self._open = _Open(segment, grid, np.zeros((grid.count, _WIDTH), np.int64))
        if isinstance(event, RunShape):
            self._records(self._open, event)
        elif isinstance(event, Expired):
            self._open = None
        elif isinstance(event, Filler):
            self._other(self._open, event.blank)
        else:
            self._other(self._open, event)

    def close(self) -> None:
        """The log was read to its end."""
        self._finish()
        self.not_covered += holes_in(self._store.segments, [self._store.segments.span])

    def _records(self, now: _Open, run: RunShape) -> None:
        if run.start < now.reached:
            return
        own = np.array([*range(TOPICS_FROM), *(self._number(name) for name in run.topics)], np.int64)
        np.add.at(now.sums, (run.drawn.cells, own[run.drawn.codes]), run.drawn.sums)
        now.reached = run.end
        now.records += run.records
        times = run.sums[:, (TopicSum.FIRST_TIMESTAMP, TopicSum.LAST_TIMESTAMP)]
        now.times = [*now.times, int(times.min()), int(times.max())]
        now.times = [min(now.times), max(now.times)]

    def _number(self, name: str | None) -> int:
        if name is None:
            return OTHERS
        found = self._numbers.get(name)
        if found is None:
            if len(self.topics) == MOST_TOPICS - 1:
                return OTHERS
            found = self._numbers[name] = TOPICS_FROM + len(self.topics)
            self.topics.append(name)
        return found

    def _other(self, now: _Open, event: object) -> None:
        if isinstance(event, Blank):
            state = State.BLANK
        elif isinstance(event, Gap):
            state = State.GAP
        elif isinstance(event, Tail):
            state = _TAILS[event.content]
        elif isinstance(event, Unreadable):
            state = State.UNREADABLE
            path = now.segment.file.display_path
            self.not_covered.append(unreadable_row(path, event.reason, event.position, event.length))
        else:
            return
        start, end = max(event.position, now.reached), event.position + event.length
        found = pieces(np.array([start]), np.array([end]), np.array([int(state)]), now.grid)
        np.add.at(now.sums, (found.cells, found.codes), found.sums)
        now.reached = max(now.reached, end)

    def _finish(self) -> None:
        now, self._open = self._open, None
        if now is None:
            return
        now.sums[:, State.UNREAD] = now.grid.sizes() - now.sums.sum(axis=1)
        sums = now.sums.sum(axis=0)
        used = np.flatnonzero(sums).tolist()
        row = SegmentRow(
            now.segment.file.display_path,
            now.segment.base,
            now.grid,
            Counter({code: int(sums[code]) for code in used}),
            now.records,
            *(now.times or (None, None)),
        )
        if self._keeps(row):
            self._kept += 1
            row.cells = {code: now.sums[:, code].copy() for code in used}
        else:
            self.collapsed += 1
        self.rows.append(row)

    def _keeps(self, row: SegmentRow) -> bool:
        if self.count <= MOST_SEGMENTS:
            return True
        at_an_edge = len(self.rows) < EDGE_SEGMENTS or len(self.rows) >= self.count - EDGE_SEGMENTS
        return at_an_edge or (bool(row.damaged) and self._kept < MOST_SEGMENTS - 2 * EDGE_SEGMENTS)

    @property
    def reached(self) -> int:
        """Physical offset up to which the log was read."""
        if self._open is not None:
            return self._open.segment.base + self._open.reached
        return self.rows[-1].base + self.rows[-1].grid.size if self.rows else 0

    @property
    def harmed(self) -> bool:
        """Whether anything is damaged or missing."""
        return any(row.damaged for row in self.rows) or any(
            row["reason"] == Incomplete.DAMAGE for row in self.not_covered
        )

    @property
    def totals(self) -> Counter[int]:
        """Bytes of all segments by number of their state."""
        return sum((row.totals for row in self.rows), Counter())

    def colours(self, most: int) -> list[int]:
        """The numbers of the topics with the most bytes, at most so many: they have a colour of their own."""
        found = [(-count, code) for code, count in self.totals.items() if TOPICS_FROM <= code < OTHERS]
        return [code for _, code in sorted(found)[:most]]

    def name_of(self, code: int) -> str:
        """What bytes of this number are, as JSON names it."""
        return State(code).name.lower() if code < TOPICS_FROM else self.topics[code - TOPICS_FROM]

    def document_rows(self) -> Iterator[Row]:
        """A row a segment, and one for each missing part of the log, in physical order."""
        missing = [row for row in self.not_covered if row["path"] == "commitlog"]
        holes = sorted(missing, key=lambda row: int(row["physical_offset"]))
        for row in self.rows:
            while holes and holes[0]["physical_offset"] < row.base:
                yield _hole(holes.pop(0))
            yield self._segment(row)
        yield from map(_hole, holes)

    def _segment(self, row: SegmentRow) -> Row:
        found: Row = {
            "type": "segment",
            "path": row.path,
            "segment": row.base,
            "size": row.grid.size,
            "records": row.records,
            "first_timestamp": row.first_timestamp,
            "last_timestamp": row.last_timestamp,
            "damaged_bytes": row.damaged,
            **self._split(row.totals),
            "cell_bytes": row.grid.cell_bytes,
            "cells": None,
        }
        if row.cells is not None:
            found["cells"] = self._split({code: counts.tolist() for code, counts in row.cells.items()})
        return found

    def _split(self, by_code: Any) -> Row:
        """What is kept by number: states by name, topics by name, what is of all other topics."""
        states = {self.name_of(code): one for code, one in sorted(by_code.items()) if code < TOPICS_FROM}
        topics = {
            self.name_of(code): one for code, one in sorted(by_code.items()) if TOPICS_FROM <= code < OTHERS
        }
        return {"states": states, "topics": topics, "other_topics": by_code.get(OTHERS)}

    def summary(self) -> Row:
        """The closing summary."""
        totals = self.totals
        return {
            "segments": len(self.rows),
            "records": sum(row.records for row in self.rows),
            "bytes": sum(row.grid.size for row in self.rows),
            "damaged_bytes": sum(row.damaged for row in self.rows),
            **self._split(totals),
            "collapsed_segments": self.collapsed,
            **coverage(self.not_covered),
        }


def _hole(row: Row) -> Row:
    return {"type": "missing", "physical_offset": row["physical_offset"], "length": row["length"]}


def _largest(store: Store) -> list[str]:
    """Topics by the size of their consume queues, the largest first."""
    sizes: Counter[str] = Counter()
    for queue in store.queues(FileKind.CONSUMEQUEUE):
        if queue.topic is not None:
            sizes[queue.topic] += sum(min(file.size, file.disk_bytes) for file in queue.files)
    return [name for name, _ in sorted(sizes.items(), key=lambda one: (-one[1], one[0]))]
