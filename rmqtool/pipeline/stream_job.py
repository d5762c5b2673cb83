"""`stream`: messages of live stores into files, each exactly once.

Spark writes down in the checkpoint what a batch is before it reads it, and in the directory which files
belong to batches that are finished: who reads it with Spark sees every message once, whatever was killed.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from rmqtool.errors import StoreIOError, UsageError
from rmqtool.output.export.partitions import LONGEST
from rmqtool.pipeline.notes import Listener
from rmqtool.pipeline.runner import spark_errors
from rmqtool.pipeline.session import first_line, gone_errors
from rmqtool.pipeline.shared import look_for, refuse_unseen
from rmqtool.pipeline.source import FORMAT, RocketMQSource
from rmqtool.pipeline.stopping import stop_asked
from rmqtool.pipeline.workers import refuse_workers
from rmqtool.store.coverage import Incomplete, coverage
from rmqtool.store.modes import mask

if TYPE_CHECKING:
    import threading
    from collections.abc import Iterator, Sequence

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    Row = dict[str, Any]

CHECKPOINT = "_checkpoint"
"""where the state of a stream lies below its directory by default"""

_POLL_SECONDS = 1
_KEPT = 40
"""characters of a topic that is cut: a name has room for them whatever they are, and for a digest"""
_MASK = "fs.permissions.umask-mode"
_OWN = "fs.file.impl.disable.cache"
"""Hadoop asks a file system that is there already for its own mask"""


@dataclass(frozen=True)
class StreamForm:
    """Where a stream goes.

    keys: of partition directories, some of `topic`, `day`. every: seconds between batches, None for all that
    is there now and no more. checkpoint: directory of the state, None for `CHECKPOINT` below `to`.
    """

    to: str
    format: Literal["parquet", "ndjson"] = "parquet"
    keys: tuple[str, ...] = ()
    every: float | None = None
    checkpoint: str | None = None

    @property
    def state(self) -> str:
        """Directory of the checkpoint."""
        return self.checkpoint or os.path.join(self.to, CHECKPOINT)

    def refuse_mixture(self) -> None:
        """Raises `UsageError` where the directory has data files of another form."""
        for place, directories, names in os.walk(self.to):
            directories[:] = [one for one in directories if not one.startswith(("_", "."))]
            for name in names:
                suffix = os.path.splitext(name)[1]
                if name.startswith(("_", ".")) or suffix not in {".parquet", ".json"}:
                    continue
                within = os.path.relpath(place, self.to).split(os.sep)
                keys = tuple(one.partition("=")[0] for one in within if "=" in one)
                if (suffix == ".parquet", keys) != (self.format == "parquet", self.keys):
                    by = f" by {','.join(keys)}" if keys else ""
                    raise UsageError(f"--to {self.to} holds {suffix[1:]} files{by}: continue in that format")
                return


@dataclass
class StreamRun:
    """A stream that runs. options: of the source, see docs/pipeline.md.

    missing: rows of `not_covered` that are known beforehand. batches, messages: finished so far by this run.
    ends: store → physical offset behind what was written.
    """

    session: SparkSession
    stores: Sequence[str]
    options: dict[str, str]
    form: StreamForm
    missing: Sequence[Row] = ()
    batches: int = 0
    messages: int = 0
    ends: dict[str, int] = field(default_factory=dict)
    interrupted: bool = False
    _lost: list[Row] = field(default_factory=list)
    _seen: int = -1

    def run(self) -> Iterator[int]:
        """Messages of each batch that is finished, until all is read or somebody interrupts.

        Raises `StoreIOError` with what Spark says when the stream fails.
        """
        self.session.dataSource.register(RocketMQSource)
        host = str(self.session.conf.get("spark.driver.host", "127.0.0.1"))
        with Listener(host) as listener, stop_asked() as asked:
            try:
                yield from self._batches(listener.address, asked)
            except KeyboardInterrupt:
                self.interrupted = True
            except spark_errors() as error:
                if not asked.is_set():
                    refuse_workers(error)
                    raise StoreIOError(first_line(error)) from error
            except gone_errors():  # a signal to the whole group ends Java as well
                if not asked.is_set():
                    raise
            finally:
                self.interrupted |= asked.is_set()
                self._lost = listener.rows

    def _batches(self, address: str, asked: threading.Event) -> Iterator[int]:
        # Java sets permissions itself, whatever the mask of its process or of an executor's
        settings = {_MASK: f"{mask():03o}", _OWN: "true"}
        for name, value in settings.items():
            self.session.conf.set(name, value)
        try:
            query = self._start(address)
        finally:
            for name in settings:
                self.session.conf.unset(name)
        try:
            ended = False
            while not (ended or asked.is_set()):
                ended = bool(query.awaitTermination(_POLL_SECONDS))
                yield from self._finished(query)
        finally:
            query.stop()
        yield from self._finished(query)

    @property
    def not_covered(self) -> list[Row]:
        """What is lacking between the messages, and that more may come."""
        rows = [*self.missing, *self._lost]
        if self.interrupted:
            rows += [
                {
                    "path": "commitlog",
                    "physical_offset": end,
                    "reason": Incomplete.INTERRUPTED.value,
                    "store": path,
                }
                for path, end in self.ends.items()
            ] or [{"path": "commitlog", "reason": Incomplete.INTERRUPTED.value}]
        return rows

    def summary(self) -> Row:
        """The closing summary."""
        ends = [{"store": path, "end_offset": end} for path, end in self.ends.items()]
        reported: Row = {"messages": self.messages, "batches": self.batches, "stores": ends}
        return reported | coverage(self.not_covered)

    def _start(self, address: str) -> StreamingQuery:
        look_for(self.session, self.form.to)
        paths = json.dumps(list(self.stores))
        reader = self.session.readStream.format(FORMAT).options(**self.options)
        frame = reader.option("paths", paths).option("report", address).load()
        if "day" in self.form.keys:
            frame = _with_day(frame)
        if "topic" in self.form.keys:
            frame = _with_names(frame)
        writer = frame.writeStream.format("json" if self.form.format == "ndjson" else "parquet")
        writer = writer.option("path", self.form.to).option("checkpointLocation", self.form.state)
        if self.form.keys:
            writer = writer.partitionBy(*self.form.keys)
        if self.form.every is None:
            return writer.trigger(availableNow=True).start()
        return writer.trigger(processingTime=f"{round(self.form.every * 1000)} milliseconds").start()

    def _finished(self, query: StreamingQuery) -> Iterator[int]:
        for progress in query.recentProgress:
            number = progress["batchId"]
            if number <= self._seen:
                continue
            reported = progress["sources"][0]["endOffset"]
            ends = json.loads(reported) if isinstance(reported, str) else reported
            if ends:
                self.ends = dict(ends)
            if "addBatch" not in progress["durationMs"]:
                continue
            self._seen = number
            refuse_unseen(self.form.to, number)
            rows = int(progress["numInputRows"])
            self.batches += 1
            self.messages += rows
            yield rows


def _with_day(frame: DataFrame) -> DataFrame:
    """With a column `day` of the store time, UTC."""
    from pyspark.sql import functions

    return frame.withColumn("day", functions.to_date("store_time"))


def _with_names(frame: DataFrame) -> DataFrame:
    """Topics that a directory can be named after, and a column `whole_topic` of those that had to be cut.

    Spark keeps what it partitions by in the names of directories alone.
    """
    from pyspark.sql import functions as f

    topic = f.col("topic")
    longer = f.octet_length(f.url_encode(topic)) > LONGEST
    cut = f.concat(f.substring(topic, 1, _KEPT), f.lit("~"), f.substring(f.sha2(topic, 256), 1, 32))
    return frame.withColumns(
        {"whole_topic": f.when(longer, topic), "topic": f.when(longer, cut).otherwise(topic)}
    )
