"""`verify` of one store, cut by segments: tasks read them, one more checks what they tell.

What has to do with the bytes of records is done by the tasks of the segments. Log, queues and index are held
against each other in the order of the log, by one task that is sent the accounts of all records, sorted.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from rmqtool.check.further import FurtherRules
from rmqtool.check.verify import Verification
from rmqtool.errors import RmqtoolError
from rmqtool.pipeline.accounts import opened, packages
from rmqtool.pipeline.opening import open_any
from rmqtool.pipeline.parts import log_parts
from rmqtool.pipeline.runner import Lost, spark_errors
from rmqtool.pipeline.session import first_line
from rmqtool.pipeline.workers import refuse_workers
from rmqtool.scan.options import ReadOptions, data_bytes
from rmqtool.store.live import is_live
from rmqtool.store.segments import SegmentSet

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pyspark.sql import SparkSession

    from rmqtool.check.levels import Level
    from rmqtool.pipeline.accounts import Package
    from rmqtool.pipeline.options import SourceOptions
    from rmqtool.store.segments import Segment

    Row = dict[str, Any]


_DEFECT = "Traceback (most recent call last)"
_EXPECTED = re.compile(r"^(rmqtool\.errors\.\w+|MemoryError)\b", re.MULTILINE)
"""what a task ends with that is not a defect of the program"""


@dataclass(frozen=True)
class Unsplittable:
    """The store has to be read by one task. reason: why it is read a second time, None for the first time."""

    reason: str | None = None


@dataclass(frozen=True)
class SegmentJob:
    """One Spark job of two stages."""

    session: SparkSession
    path: str
    options: SourceOptions
    level: Level

    def run(self) -> tuple[list[Row], Row] | Unsplittable | Lost:
        """Findings and summary; `Unsplittable` where the store has to be read by one task.

        That is: a log of less than two segments, a broker that is writing, files that change or go meanwhile,
        tasks that die each time. Any other error of a task is a defect, and the store lost.
        """
        try:
            store = open_any(self.path, config=self.options.config)
            parts = log_parts(store, 0)
            if len(parts) < 2 or is_live(store):
                return Unsplittable()
            further, size = FurtherRules.of(store), data_bytes(store.segments)
            read = partial(packages, level=self.level, log_bytes=size, further=further)
            check = Check(self.path, self.options, self.level, tuple(part.segment for part in parts))
            reported = self.session.sparkContext.parallelize(list(enumerate(parts)), len(parts)).flatMap(read)
            in_order = reported.repartitionAndSortWithinPartitions(1)
            (found,) = in_order.mapPartitions(check).collect()
        except RmqtoolError as error:
            return Unsplittable(str(error))
        except spark_errors() as error:
            refuse_workers(error)
            if _DEFECT in str(error) and not _EXPECTED.search(str(error)):
                return Lost(first_line(error))
            return Unsplittable(first_line(error))
        return Unsplittable("a broker has opened it meanwhile") if found is None else found


@dataclass(frozen=True)
class Check:
    """What the last task does. segments: those that the others read."""

    path: str
    options: SourceOptions
    level: Level
    segments: tuple[Segment, ...]

    def __call__(self, found: Iterable[Package]) -> Iterator[tuple[list[Row], Row] | None]:
        """One result: findings and summary; None for a store that a broker has opened by now."""
        store = open_any(self.path, config=self.options.config)
        if is_live(store):
            yield None
            return
        store = store.with_segments(SegmentSet(self.segments))
        run = Verification(
            store, ReadOptions.of(store), self.level, external_reader=partial(opened, found=found)
        )
        rows = [one.row() for one in run.findings()]
        yield rows, run.summary()
