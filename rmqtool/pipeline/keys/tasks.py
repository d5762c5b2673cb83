"""What the tasks of a broadcast join do: one store by its index, or a part of a log from end to end."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from rmqtool.errors import RmqtoolError
from rmqtool.pipeline.keys.fetching import hits
from rmqtool.pipeline.keys.key_request import noted
from rmqtool.pipeline.opening import open_any
from rmqtool.pipeline.runner import Lost
from rmqtool.query.by_key import KeySource, find_keys, index_topics, matching
from rmqtool.query.index_coverage import coverage
from rmqtool.query.key_scan import COMPARED, KeyScan
from rmqtool.query.lost_place import LOOKED_AT
from rmqtool.scan.log_end import log_span
from rmqtool.scan.options import ReadOptions

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rmqtool.pipeline.keys.key_request import KeyRequest, Unit
    from rmqtool.pipeline.options import SourceOptions
    from rmqtool.query.key_scan import Hashed
    from rmqtool.store.layout import Store

    Row = dict[str, Any]


@dataclass(frozen=True)
class KeyTask:
    """asked: broadcast, with the keys."""

    asked: Any
    options: SourceOptions

    def __call__(self, unit: Unit) -> Iterator[pa.RecordBatch]:
        """A unit → rows of `hits_schema`: its records and its notes."""
        yield from answered(unit, self._by_index(unit) if unit.part is None else self._by_scan(unit))

    def _by_index(self, unit: Unit) -> Iterator[pa.RecordBatch]:
        asked: KeyRequest = self.asked.value
        store = open_any(unit.store, config=self.options.config)
        reading = ReadOptions.of(store)
        answer = find_keys(store, asked.wanted, window=asked.window, source=KeySource.INDEX, reading=reading)
        matches = answer.matches if asked.source is KeySource.INDEX else answer.outside_rest()
        yield from _hits(store, unit, matches, asked)
        places = sorted({one.physical_offset for one in answer.missing})
        inside = [one for one in places if one >= store.segments.first_offset]
        reported: Row = {
            "candidates": answer.candidates,
            "collisions": answer.collisions,
            "missing": len(answer.missing),
            "without_record": places[:LOOKED_AT],
            "inside": inside[: LOOKED_AT + 1],
            "missing_inside": len(inside),
            "index_files": answer.files,
            "not_used": answer.setbacks,
            "topics": answer.topics,
            "rest": answer.rest,
            "not_covered": answer.stray_rows() if asked.source is KeySource.INDEX else [],
        }
        yield noted(unit.about(reported))

    def _by_scan(self, unit: Unit) -> Iterator[pa.RecordBatch]:
        asked: KeyRequest = self.asked.value
        reported: Row = {"candidates": 0, "collisions": 0, "not_covered": []}
        for store, batch in candidates(unit, asked.wanted, asked.window, COMPARED, reported["not_covered"]):
            found = dict(matching(batch, asked.wanted, asked.window))
            reported["candidates"] += batch.num_rows
            reported["collisions"] += batch.num_rows - len(found)
            yield from _hits(store, unit, found, asked)
        yield noted(unit.about(reported))


@dataclass(frozen=True)
class PlanTask:
    """asked: broadcast. Looks where the records of a store end and, with `index`, what its index covers."""

    asked: Any
    options: SourceOptions
    index: bool

    def __call__(self, unit: Unit) -> Iterator[pa.RecordBatch]:
        """A store → a note."""
        yield from answered(unit, self._of(unit))

    def _of(self, unit: Unit) -> Iterator[pa.RecordBatch]:
        store = open_any(unit.store, config=self.options.config)
        low, high = log_span(store)
        reported: Row = {"low": low, "high": high, "rest": [[low, high]] if low < high else []}
        if self.index:
            covered = coverage(store, high, {})
            reported["topics"] = len(index_topics(store, self.asked.value.topic))
            reported["not_used"] = covered.setbacks
            reported["files"] = [[one.file.path, *one.range] for one in covered.files]
        yield noted(unit.about(reported))


def answered(unit: Unit, made: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The batches of a unit; what ends them is a note."""
    try:
        yield from made
    except RmqtoolError as error:
        yield noted(unit.lost(Lost(str(error))))


def candidates(
    unit: Unit,
    wanted: Hashed,
    window: tuple[int | None, int | None],
    columns: tuple[str, ...],
    not_covered: list[Row],
) -> Iterator[tuple[Store, pa.RecordBatch]]:
    """What of a part of a log may have a wanted key, with the store that the part is the log of."""
    if unit.part is None:
        return
    for low, high in unit.ranges:
        store = unit.part.resolved((low, high))
        if store is None:
            continue
        scan = KeyScan(wanted, window, ReadOptions.of(store), columns)
        for batch in scan.read(store.segments, low, high):
            if batch.num_rows:
                yield store, batch
        not_covered += scan.not_covered


def _hits(
    store: Store, unit: Unit, matches: dict[int, frozenset[str]], asked: KeyRequest
) -> Iterator[pa.RecordBatch]:
    offsets = sorted(matches)
    keys = pa.array([sorted(matches[one]) for one in offsets], pa.list_(pa.string()))
    yield from hits(store, unit.store, np.array(offsets, np.int64), keys, asked)
