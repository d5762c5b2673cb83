"""The table `messages`: the commit log, segment by segment."""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import pyarrow as pa

from rmqtool.query.not_read import not_read
from rmqtool.query.segment_times import SegmentTimes
from rmqtool.query.sql.dataset import Part, StoreDataset, of_batches, within
from rmqtool.scan.engine import choose_kernels
from rmqtool.scan.events import Records
from rmqtool.scan.log import LogScan, scan_log
from rmqtool.scan.options import data_bytes
from rmqtool.scan.table import COLUMNS, DEFAULT_COLUMNS, table_schema, to_batch
from rmqtool.scan.times import LARGEST_MILLIS, TIME, TIMES, as_time
from rmqtool.store.coverage import Incomplete

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import pyarrow.dataset as ds

    from rmqtool.query.sql.dataset import Ask, Lacking
    from rmqtool.scan.options import ReadOptions
    from rmqtool.store.segments import Hole, Segment, SegmentSet

_HOLE = {"path": "commitlog", "reason": Incomplete.DAMAGE.value}
_BODIES = ("plain_body", "body_sha256", "plain_body_sha256")


def _schema() -> pa.Schema:
    fields: list[pa.Field] = []
    for known in table_schema((*DEFAULT_COLUMNS, *_BODIES)):
        fields.append(known)
        fields += [pa.field(name, TIME) for name, millis in TIMES.items() if millis == known.name]
    return pa.schema(fields)


SCHEMA = _schema()
"""docs/table.md; the columns of time stand behind the milliseconds that they are made of"""


def _within_hole(hole: Hole) -> Callable[[frozenset[str]], ds.Expression]:
    """What rows that are not there would fulfil; those of a file cut short have its name."""
    whole = hole.before.size and (hole.end - hole.start) % hole.before.size == 0
    first = hole.start if whole else hole.before.base
    bounds = {"physical_offset": (hole.start, hole.end - 1), "segment": (first, hole.end - 1)}
    return lambda _names: within(bounds)


class Hiding(Protocol):
    """What must not be seen is taken out before a query sees it. field: a column more, which says what."""

    field: pa.Field

    def needed(self, wanted: Sequence[str]) -> tuple[str, ...]:
        """Columns of the record table by which these are judged and made."""

    def hide(self, batch: pa.RecordBatch, wanted: Sequence[str]) -> pa.RecordBatch:
        """The wanted columns of a batch that has those needed."""


class MessagesTable:
    """opened: bases of the segments that scans have read, one entry a scan."""

    def __init__(
        self, segments: SegmentSet, reading: ReadOptions, lacking: Lacking, hiding: Hiding | None = None
    ) -> None:
        self._hiding = hiding
        self._schema = SCHEMA if hiding is None else SCHEMA.append(hiding.field)
        self._segments = segments
        self._reading = reading
        self._lacking = lacking
        self._holes = list(segments.holes())
        self._times = SegmentTimes(segments)
        self._kernels = choose_kernels(data_bytes(segments))
        self.opened: list[int] = []

    def dataset(self) -> StoreDataset:
        """The table for a database."""
        parts = [Part(one.file.display_path, self._guarantee_of(one)) for one in self._segments]
        parts += [Part(_HOLE["path"], _within_hole(one)) for one in self._holes]
        return StoreDataset("messages", self._schema, parts, self._read, self._lacking)

    def _guarantee_of(self, segment: Segment) -> Any:
        def guarantee(names: frozenset[str]) -> ds.Expression:
            bounds: dict[str, tuple[Any, Any]] = {
                "path": (segment.file.display_path, segment.file.display_path),
                "segment": (segment.base, segment.base),
                "physical_offset": (segment.base, max(segment.end - 1, segment.base)),
            }
            timed = names & {"store_timestamp", "store_time"} and not self._segments.is_active(segment)
            times = self._times.of(segment) if timed else None
            if times is not None and max(map(abs, times)) < LARGEST_MILLIS:
                bounds["store_timestamp"] = times
                low, high = (pa.scalar(one * 1000, pa.int64()).cast(TIME) for one in times)
                bounds["store_time"] = (low, high)
            return within(bounds)

        return guarantee

    def _read(self, chosen: list[int], ask: Ask) -> Iterator[pa.RecordBatch]:
        present = len(self._segments)
        wanted = {self._segments[number] for number in chosen if number < present}
        for number in chosen[bisect_left(chosen, present) :]:
            hole = self._holes[number - present]
            self._lacking.add(_HOLE | {"physical_offset": hole.start, "length": hole.end - hole.start})
        everything = (*ask.columns, *ask.names)
        hiding = self._hiding
        how = LogScan(
            columns=_made_of(ask.columns) if hiding is None else _needed(hiding, everything),
            choose=self._chooser(ask) if hiding is None and ask.condition is not None else None,
            wanted=lambda segment: self._open(segment, segment in wanted),
            options=self._reading,
        )
        for piece in scan_log(self._segments, how):
            if isinstance(piece.content, pa.RecordBatch):
                if piece.content.num_rows:
                    yield from self._shown(piece.content, ask)
            else:
                for row in not_read(piece.segment, piece.content):
                    self._lacking.add(row)

    def _shown(self, batch: pa.RecordBatch, ask: Ask) -> Iterator[pa.RecordBatch]:
        """What a scan wants of a batch; a condition sees no more than the query does."""
        if self._hiding is None:
            yield _with_times(batch, ask.columns, self._schema)
            return
        names = tuple(dict.fromkeys((*ask.columns, *ask.names)))
        made = tuple(dict.fromkeys(TIMES.get(name, name) for name in names))
        if made:
            batch = self._hiding.hide(batch, made)
        seen = _with_times(batch, names, self._schema) if names else batch
        yield from of_batches(iter([seen]), ask)

    def _open(self, segment: Segment, wanted: bool) -> bool:
        if wanted:
            self.opened.append(segment.base)
        return wanted

    def _chooser(self, ask: Ask) -> Any:
        """Judges records by the columns of the condition alone, before the others are made."""

        def choose(records: Records, base: int, path: str) -> Records:
            batch = to_batch(
                records, base=base, path=path, kernels=self._kernels, columns=_made_of(ask.names)
            )
            kept = ask.passing(_with_times(batch, ask.names, SCHEMA)).to_numpy()
            return Records(records.rows[np.asarray(kept, np.int64)], records.window, records.origin)

        return choose


def _made_of(names: Sequence[str]) -> tuple[str, ...]:
    """Columns of the record table that these are made of; one at least, which counts the rows."""
    return tuple(dict.fromkeys(TIMES.get(name, name) for name in names)) or (next(iter(COLUMNS)),)


def _needed(hiding: Hiding, names: Sequence[str]) -> tuple[str, ...]:
    return hiding.needed(_made_of([name for name in names if name != hiding.field.name]))


def _with_times(batch: pa.RecordBatch, names: Sequence[str], schema: pa.Schema) -> pa.RecordBatch:
    columns = [as_time(batch[TIMES[name]]) if name in TIMES else batch[name] for name in names]
    return pa.RecordBatch.from_arrays(columns, schema=pa.schema([schema.field(name) for name in names]))
