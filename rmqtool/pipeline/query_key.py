"""`query-key` over many stores: any number of keys, sent to all tasks, in two steps.

First each store's index is asked, one task a store; what no sound index file covers is then read, cut by
parts of the log. Both answer with the records themselves, which stay with the executors until they are
written or listed; what comes back to the driver is what tasks say of their work.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from rmqtool.pipeline.key_tasks import Asked, KeyTask, Unit, answer_schema, lost_unit
from rmqtool.pipeline.parts import log_parts
from rmqtool.pipeline.runner import Lost, spark_errors
from rmqtool.pipeline.session import first_line
from rmqtool.pipeline.types import struct_of
from rmqtool.pipeline.workers import refuse_workers
from rmqtool.query.by_key import KeySource
from rmqtool.store.coverage import Incomplete, coverage, rest_of_log

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from rmqtool.pipeline.options import SourceOptions
    from rmqtool.store.layout import Store
    from rmqtool.store.segments import Segment

    Row = dict[str, Any]
    Ranges = list[tuple[int, int]]

_NAMED = 1000
"""keys without a message that the summary names; the rest is counted"""
_EVERYTHING = [(0, 1 << 62)]


@dataclass
class KeysFound:
    """records: a table with `store`, the columns asked for and `matched_keys`. stores: summaries."""

    records: DataFrame
    stores: dict[str, Row] = field(default_factory=dict)

    def missing(self, keys: Sequence[str]) -> Row:
        """How many keys have no record in any store, and the names of the first."""
        found = self.records.selectExpr("explode(matched_keys) as key").distinct()
        known = {row[0] for row in found.toLocalIterator()}
        lacking = [key for key in keys if key not in known]
        return {"keys": len(keys), "keys_not_found": len(lacking), "not_found": lacking[:_NAMED]}


def query_keys(
    session: SparkSession, options: SourceOptions, stores: Mapping[str, Store], asked: Asked
) -> KeysFound:
    """Looks up the keys in all stores. What cannot be read is in the summaries of `stores`."""
    job = _KeyJob(session, options, asked)
    rest: dict[str, Ranges] = dict.fromkeys(stores, _EVERYTHING)
    if asked.source is not KeySource.SCAN:
        for path, store in stores.items():
            if asked.source is KeySource.INDEX or asked.topic is not None or store.queues() or store.topics:
                rest[path] = []
        notes = job.run([Unit(path) for path, ranges in rest.items() if not ranges])
        for note in notes:
            rest[note["store"]] = [(low, high) for low, high in note["rest"]]
    if asked.source is not KeySource.INDEX:
        units = [unit for path, store in stores.items() for unit in _units(path, store, options, rest[path])]
        job.run(units)
    found = KeysFound(job.records())
    for path, store in stores.items():
        left = rest[path] if asked.source is KeySource.INDEX else []
        found.stores[path] = _summary(store, job.notes.get(path, []), left)
    return found


def _units(path: str, store: Store, options: SourceOptions, ranges: Ranges) -> Iterator[Unit]:
    def wanted(segment: Segment) -> bool:
        return any(low < segment.end and high > segment.base for low, high in ranges)

    for part in log_parts(store, options.part_bytes, wanted):
        yield Unit(path, part, tuple(ranges))


class _KeyJob:
    """Runs units, keeps their records on the executors' disks, and sorts what they say by store."""

    def __init__(self, session: SparkSession, options: SourceOptions, asked: Asked) -> None:
        self._session = session
        self._task = KeyTask(session.sparkContext.broadcast(asked), options)
        self._schema = struct_of(answer_schema(asked))
        self._columns = list(dict.fromkeys(("store", *asked.columns, "matched_keys")))
        self._frames: list[DataFrame] = []
        self.notes: dict[str, list[Row]] = {}

    def run(self, units: Sequence[Unit]) -> list[Row]:
        """The notes of all units."""
        if not units:
            return []
        told = self._told(units)
        for note in told:
            self.notes.setdefault(note["store"], []).append(note)
        return told

    def _told(self, units: Sequence[Unit]) -> list[Row]:
        """The notes of one Spark job; one that fails is halved until the unit that fails is alone."""
        from pyspark import StorageLevel

        rows = self._session.sparkContext.parallelize(units, len(units)).flatMap(self._task)
        frame = self._session.createDataFrame(rows, self._schema, verifySchema=False)
        frame = frame.persist(StorageLevel.DISK_ONLY)
        try:
            notes = frame.where("note is not null").select("note").collect()
        except spark_errors() as error:
            refuse_workers(error)
            frame.unpersist()
            if len(units) == 1:
                return [lost_unit(units[0], Lost(first_line(error)))]
            half = len(units) // 2
            return self._told(units[:half]) + self._told(units[half:])
        self._frames.append(frame)
        return [json.loads(row[0]) for row in notes]

    def records(self) -> DataFrame:
        """All records that were found, each once, by store and physical offset."""
        frames = self._frames or [self._session.createDataFrame([], self._schema)]
        whole = frames[0]
        for frame in frames[1:]:
            whole = whole.unionByName(frame)
        once = whole.where("note is null").dropDuplicates(["store", "physical_offset"])
        return once.orderBy("store", "physical_offset").select(self._columns)


def _summary(store: Store, notes: Sequence[Row], left: Ranges) -> Row:
    """The sums of what the tasks of a store said. left: ranges that nobody was to read."""
    told: Row = {"messages": sum(note.get("messages", 0) for note in notes)}
    files = [name for note in notes for name in note.get("index_files", ())]
    first, end = max(store.segments.first_offset, 0), store.segments.end_offset
    ranges = {(max(low, first), min(high, end)) for note in notes for low, high in note.get("scanned", ())}
    scanned = [list(one) for one in sorted(ranges)]
    told["source"] = "+".join(["index"] * bool(files) + ["scan"] * bool(scanned)) or "index"
    for name in ("candidates", "rejected_collisions", "index_items_without_record"):
        told[name] = sum(note.get(name, 0) for note in notes)
    told["index_files"] = files
    told["index_files_not_used"] = {
        key: why for note in notes for key, why in note.get("not_used", {}).items()
    }
    told["scanned"] = scanned
    rows = [row for note in notes for row in note.get("not_covered", ())]
    for low, high in left:
        rows += rest_of_log(list(store.segments), low, Incomplete.LIMIT, end=high)
    return told | coverage(rows)
