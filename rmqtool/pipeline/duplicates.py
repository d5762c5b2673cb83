"""What is there twice, found side by side: keys are dealt out by their hash, each to one task.

Parts of a log are read into rows, one for every key of every record, with what the verdict asks for. Spark
carries them to the tasks that judge their keys, which keep them in a file of their own and make the same
passes over it that the local command makes over the log. Only sums come back to the driver; what was found
stays on the executors' disks until it is listed.
"""

from __future__ import annotations

import json
import os
import tempfile
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from rmqtool.pipeline.session import parallelism
from rmqtool.query.duplicates.batches import BatchWalk
from rmqtool.query.duplicates.hashes import Repeated, Room, text_hashes
from rmqtool.query.duplicates.passes import judged
from rmqtool.query.duplicates.suspects import COLUMNS, keyed
from rmqtool.query.duplicates.verdict import Duplicates
from rmqtool.query.stats.report import LogStatistics
from rmqtool.scan.options import ReadOptions

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from rmqtool.pipeline.parts import LogPart
    from rmqtool.query.duplicates.suspects import Suspects
    from rmqtool.query.message_filter import MessageFilter
    from rmqtool.store.segments import SegmentSet

    Row = dict[str, Any]
    Dealt = tuple[int, bytes]

ROOM = Room(hashes=2_000_000, bytes=32_000_000)
"""what the pass of a task holds"""
MESSAGES_A_TASK = 500_000
MOST_TASKS = 64
"""tasks that judge; a task that reads holds a MB or two for each of them"""
_DEALT_BYTES = 4 << 20
"""bytes of rows that are dealt out at once"""
_SCHEMA = (
    "key string, topic string, messages long, physical_offsets array<long>, copies map<string, long>, "
    "note string"
)


@dataclass
class FoundTwice:
    """Rows of `Duplicates.rows` on the executors' disks. sums: what the summary says of them."""

    frame: DataFrame
    sums: Duplicates

    def rows(self) -> Iterator[Row]:
        """In order of keys and topics; the driver holds one partition of them at a time."""
        ordered = self.frame.where("note is null").drop("note").orderBy("key", "topic")
        for row in ordered.toLocalIterator():
            yield row.asDict()
        self.frame.unpersist()


def find_twice(
    session: SparkSession,
    parts: Sequence[LogPart],
    segments: SegmentSet,
    wanted: MessageFilter,
    messages: int,
    *,
    by_key: bool,
) -> FoundTwice:
    """Looks for keys that come again in the parts of one log. messages: how many there are."""
    from pyspark import StorageLevel

    context = session.sparkContext
    tasks = min(
        max(-(-messages // MESSAGES_A_TASK), parallelism(session) if messages > 10_000 else 1), MOST_TASKS
    )
    dealing = partial(deal_out, wanted=wanted, by_key=by_key, tasks=tasks)
    judging = partial(judge_keys, segments=context.broadcast(segments))
    found = (
        context.parallelize(parts, max(len(parts), 1))
        .flatMap(dealing)
        .partitionBy(tasks, int)
        .mapPartitions(judging)
    )
    frame = session.createDataFrame(found, _SCHEMA, verifySchema=False).persist(StorageLevel.DISK_ONLY)
    reported = Duplicates(BatchWalk(segments))
    for (note,) in frame.where("note is not null").select("note").collect():
        one = json.loads(note)
        reported.keys += one["keys"]
        reported.messages += one["messages"]
        reported.explained.update(one["explained"])
    return FoundTwice(frame, reported)


def deal_out(part: LogPart, wanted: MessageFilter, by_key: bool, tasks: int) -> Iterator[Dealt]:
    """Number of a task → rows of `suspects.keyed` for it, as an Arrow stream."""
    store = part.resolved()
    if store is None:
        return
    reading = LogStatistics(store, wanted, (), ReadOptions.of(store))
    waiting: list[pa.Table] = []
    for batch in reading.batches(COLUMNS):
        waiting.append(keyed(batch, by_key=by_key))
        if sum(one.nbytes for one in waiting) >= _DEALT_BYTES:
            yield from _parted(pa.concat_tables(waiting), tasks)
            waiting = []
    if waiting:
        yield from _parted(pa.concat_tables(waiting), tasks)


def _parted(table: pa.Table, tasks: int) -> Iterator[Dealt]:
    keys = table["key"].combine_chunks()
    if not len(keys):
        return
    # the low bits of a hash part the keys of a task once more, see `Share`
    owners = ((text_hashes(keys) >> np.uint64(32)) % np.uint64(tasks)).astype(np.int64)
    order = np.argsort(owners, kind="stable")
    table = table.take(pa.array(order))
    bounds = np.searchsorted(owners[order], np.arange(tasks + 1))
    for number in np.flatnonzero(np.diff(bounds)).tolist():
        some = table.slice(bounds[number], bounds[number + 1] - bounds[number])
        yield number, _as_records(some)


def _as_records(table: pa.Table) -> bytes:
    """Rows with one key each, as records whose only element of KEYS is that key."""
    keys = table["key"].combine_chunks()
    lists = pa.ListArray.from_arrays(pa.array(np.arange(len(keys) + 1, dtype=np.int32)), keys)
    records = table.drop_columns("key").append_column("keys", lists)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, records.schema) as out:
        out.write_table(records)
    taken: bytes = sink.getvalue().to_pybytes()
    return taken


def judge_keys(dealt: Iterable[Dealt], segments: Any) -> Iterator[tuple[Any, ...]]:
    """All rows of some keys → rows of `_SCHEMA`, the last one a note with sums."""
    with tempfile.TemporaryFile(dir=_local_directory()) as file:
        repeated = Repeated(by_key=True, room=ROOM)
        lengths: list[int] = []
        for _, block in dealt:
            file.write(block)
            lengths.append(len(block))
            _give(block, repeated)

        def again(taker: Repeated | Suspects) -> None:
            file.seek(0)
            for length in lengths:
                _give(file.read(length), taker)

        reported = Duplicates(BatchWalk(segments.value))
        for row in judged(repeated, again, reported):
            yield (*row.values(), None)
        sums = {"keys": reported.keys, "messages": reported.messages, "explained": reported.explained}
    yield None, None, None, None, None, json.dumps(sums)


def _give(block: bytes, taker: Repeated | Suspects) -> None:
    with pa.ipc.open_stream(block) as stream:
        for batch in stream:
            taker.add(batch)


def _local_directory() -> str | None:
    """Where Spark has its tasks keep what does not fit into memory; None for the system's directory."""
    return next(
        (one for one in os.environ.get("SPARK_LOCAL_DIRS", "").split(",") if os.path.isdir(one)), None
    )
