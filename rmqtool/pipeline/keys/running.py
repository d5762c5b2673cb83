"""Spark jobs of a join: tasks that yield Arrow batches, and what fails is known by name.

Rows stay on the executors' disks; notes, which tasks write among their rows, come back to the driver. A job
that fails is halved until what fails each time is alone.
"""

from __future__ import annotations

import json
import pickle
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from rmqtool.pipeline.arrow_map import map_in_arrow
from rmqtool.pipeline.runner import Lost, spark_errors
from rmqtool.pipeline.session import first_line
from rmqtool.pipeline.types import arrow_of, struct_of, to_spark
from rmqtool.pipeline.workers import refuse_workers

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    Row = dict[str, Any]


class Item(Protocol):
    """What a task works on, small enough to be sent."""

    def lost(self, lost: Lost) -> dict[str, Any]:
        """The note of one that has no result."""


@dataclass
class Made:
    """What jobs of one kind made: tables of one schema with a column `note`, and the notes in them."""

    session: SparkSession
    schema: pa.Schema
    frames: list[DataFrame] = field(default_factory=list)
    notes: list[Row] = field(default_factory=list)

    @property
    def rows(self) -> DataFrame:
        """All rows that are not notes."""
        frames = self.frames or [self.session.createDataFrame([], struct_of(self.schema))]
        whole = frames[0]
        for frame in frames[1:]:
            whole = whole.unionByName(frame)
        return whole.where("note is null").drop("note")

    def by_item(self, items: Sequence[Item], task: Callable[[Any], Iterator[pa.RecordBatch]]) -> list[Row]:
        """One task an item; its notes."""

        def make(some: Sequence[Item]) -> DataFrame:
            sent = self.session.sparkContext.broadcast([pickle.dumps(one) for one in some])
            numbers = self.session.range(0, len(some), 1, len(some))
            return map_in_arrow(numbers, _OfItems(sent, task, self._arrow), self._struct)

        return self._tried(items, make) if items else []

    def by_bucket(
        self,
        frame: DataFrame,
        buckets: Callable[[], Sequence[Item]],
        of: Callable[[DataFrame, Sequence[Any]], DataFrame],
        task: Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]],
    ) -> list[Row]:
        """Tasks over the partitions of a table. buckets: what it consists of. of: rows of some, or all."""

        def make(some: Sequence[Item]) -> DataFrame:
            rows = of(frame, some)
            return map_in_arrow(rows, _OfRows(task, self._arrow), self._struct)

        try:
            return self._kept(make(()))
        except spark_errors() as error:
            refuse_workers(error)
            return self._tried(buckets(), make)

    @property
    def _struct(self) -> Any:
        return struct_of(self.schema)

    @property
    def _arrow(self) -> pa.Schema:
        return arrow_of(self._struct)

    def _tried(self, items: Sequence[Item], make: Callable[[Sequence[Item]], DataFrame]) -> list[Row]:
        try:
            return self._kept(make(items))
        except spark_errors() as error:
            refuse_workers(error)
            if len(items) == 1:
                note = items[0].lost(Lost(first_line(error)))
                self.notes.append(note)
                return [note]
        half = len(items) // 2
        return [*self._tried(items[:half], make), *self._tried(items[half:], make)]

    def _kept(self, made: DataFrame) -> list[Row]:
        from pyspark import StorageLevel

        frame = made.persist(StorageLevel.DISK_ONLY)
        try:
            rows = frame.where("note is not null").select("note").collect()
        except spark_errors():
            frame.unpersist()
            raise
        self.frames.append(frame)
        notes = [json.loads(row[0]) for row in rows]
        self.notes += notes
        return notes


@dataclass(frozen=True)
class _OfItems:
    """items: pickled, broadcast; the batches have their numbers."""

    items: Any
    task: Callable[[Any], Iterator[pa.RecordBatch]]
    schema: pa.Schema

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                item = pickle.loads(self.items.value[number])  # noqa: S301 - made by the driver
                for made in self.task(item):
                    yield to_spark(made, self.schema)


@dataclass(frozen=True)
class _OfRows:
    task: Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]
    schema: pa.Schema

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for made in self.task(batches):
            yield to_spark(made, self.schema)
