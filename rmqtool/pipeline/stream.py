"""The stream `rocketmq`: logs that brokers are writing, followed batch by batch.

The state of a stream is one physical offset a store, which Spark writes down before a batch is read. What
lies between two of them never changes any more, so that a batch that is read again has the same rows.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition

from rmqtool.errors import StoreIOError, UsageError, VanishedError
from rmqtool.output.text import safe
from rmqtool.pipeline.follow import parts_between, refuse_unfollowed, starting_offset
from rmqtool.pipeline.notes import send
from rmqtool.pipeline.opening import open_any, refuse_remote
from rmqtool.pipeline.reading import messages, refuse_unreadable
from rmqtool.pipeline.types import checked_schema, to_spark
from rmqtool.scan.follower import LogFollower
from rmqtool.secrets import hide
from rmqtool.store.coverage import Incomplete

try:
    from pyspark.sql.streaming.datasource import SupportsTriggerAvailableNow
except ImportError:  # Spark 4.1 has no limits and reads all there is at once

    class SupportsTriggerAvailableNow:  # type: ignore[no-redef]
        """Stands in for the class of Spark 4.2."""


if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa
    from pyspark.sql.types import StructType

    from rmqtool.pipeline.parts import LogPart
    from rmqtool.pipeline.stream_options import StreamOptions

    Row = dict[str, Any]
    Offsets = dict[str, int]


@dataclass(frozen=True)
class StreamPartition(InputPartition):
    """A part of a log; `within` are the physical offsets that it is read between."""

    store: str
    part: LogPart
    within: tuple[int, int]


class LogStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Messages as they are appended to the logs of some stores."""

    def __init__(self, options: StreamOptions, schema: StructType) -> None:
        if options.source.table != "messages":
            raise UsageError(f"table {options.source.table}: only messages can be streamed")
        if options.most is not None and not hasattr(SupportsTriggerAvailableNow, TRIGGER):
            raise UsageError("option max_bytes_per_trigger: needs Spark 4.2 or later")
        self._options = options
        self._schema = checked_schema("messages", schema)
        self._logs: dict[str, LogFollower] = {}
        self._last: Offsets = {}
        self._frozen: Offsets | None = None

    def initialOffset(self) -> Offsets:  # noqa: N802 - Spark's name
        """Where a new query begins in every store."""
        wanted, time = self._options.start, self._options.start_is_time
        return {
            path: starting_offset(self._log(path), wanted, time=time) for path in self._options.source.paths
        }

    def latestOffset(self, start: Offsets | None = None, limit: Any = None) -> Offsets:  # noqa: N802
        """Up to where the logs are whole.

        A store that is new to a running query begins with what is there, in the next batch; one that is no
        longer asked for stays where it was. Spark 4.1 tells neither start nor limit.
        """
        known = self._last if start is None else start
        ends = self._ends(known) if self._frozen is None else self._frozen
        most = getattr(limit, "max_bytes", None)
        found = dict(known)
        behind = [path for path in ends if path in known and ends[path] > known[path]]
        for path, end in ends.items():
            if path not in known:
                found[path] = end if start is None else self._log(path).first_offset
            elif end < known[path]:
                raise StoreIOError(f"{path}: the log ends at {end}, although it was read up to {known[path]}")
            elif most is None:
                found[path] = end
            elif path in behind:
                share = max(most // len(behind), 1)
                found[path] = self._log(path).end_within(known[path], end, share)
        self._last = found
        return found

    def getDefaultReadLimit(self) -> Any:  # noqa: N802 - Spark's name
        """What option `max_bytes_per_trigger` says."""
        from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxBytes

        most = self._options.most
        return ReadAllAvailable() if most is None else ReadMaxBytes(most)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 - Spark's name
        """What is there now is all that will be read, in as many batches as the limit makes."""
        self._frozen = self._ends({})

    def partitions(self, start: Offsets, end: Offsets) -> list[InputPartition]:
        """What lies between two states, in parts; says what of it is gone."""
        found: list[InputPartition] = []
        for path, stop in end.items():
            log = self._log(path) if path in self._options.source.paths else None
            begin = start.get(path)
            if begin == stop or log is None:
                continue
            if begin is None:
                begin = log.first_offset
            for low, high in log.missing(begin, stop):
                self._lost(path, low, high)
            parts = parts_between(log, begin, stop, self._options.source.part_bytes)
            found += [StreamPartition(path, part, within) for part, within in parts]
        return found

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The batches of one part."""
        if not isinstance(partition, StreamPartition):
            raise TypeError(f"{partition!r} is not a partition of this stream")
        low, high = partition.within
        lacking: list[Row] = []

        def lack(row: Row) -> None:
            if row.get("physical_offset", low) < high:  # behind it the log may be half written
                if self._options.source.unreadable == "fail":
                    refuse_unreadable(row)
                lacking.append(row | {"store": partition.store})

        try:
            partition.part.segment.open("pread").close()
        except VanishedError:
            self._lost(partition.store, low, high)
            return
        store = partition.part.resolved((low, high))
        if store is None:
            return
        source = self._options.source
        for batch in messages(store, partition.store, source.wanted, self._schema.names, lack, live=False):
            yield to_spark(batch, self._schema)
        self._tell(lacking)

    def _ends(self, known: Offsets) -> Offsets:
        found: Offsets = {}
        for path in self._options.source.paths:
            at = max(known.get(path, 0), self._last.get(path, 0))
            try:
                found[path] = self._log(path).whole_end(at, unreadable=self._options.source.unreadable)
            except StoreIOError as error:
                raise StoreIOError(f"{path}: {error}") from error
        return found

    def _log(self, path: str) -> LogFollower:
        """The log of a store as it lies there now."""
        refuse_remote(path, "a stream")
        if path not in self._logs:
            opened = open_any(path, config=self._options.source.config)
            refuse_unfollowed(opened)
            self._logs[path] = LogFollower(opened)
        self._logs[path].look()
        return self._logs[path]

    def _lost(self, path: str, low: int, high: int) -> None:
        """A range expired before it was read."""
        error = f"physical offsets {low} to {high} are gone before they were read"
        if self._options.expired == "fail":
            raise StoreIOError(
                f"{path}: {error} (--expired skip, in Spark option expired=skip, continues after them)"
            )
        row: Row = {"path": "commitlog", "physical_offset": low, "length": high - low}
        self._tell([row | {"reason": Incomplete.UNREADABLE.value, "error": error, "store": path}])

    def _tell(self, rows: list[Row]) -> None:
        """Who has no listener finds what is lacking in the log of the process."""
        if self._options.source.report is not None:
            send(self._options.source.report, rows)
            return
        for row in rows:
            place = f"{row['store']}: {row['path']}, physical offset {row.get('physical_offset')}"
            sys.stderr.write(safe(hide(f"rmqtool: {place}: {row.get('error', row['reason'])}")) + "\n")


TRIGGER = "prepareForTriggerAvailableNow"
