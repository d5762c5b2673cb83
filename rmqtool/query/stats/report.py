"""The whole answer of `stats`: one pass over the log for the sums, further ones for what is there twice."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from rmqtool.query.displaced import lost_by_units
from rmqtool.query.duplicates.batches import BatchWalk
from rmqtool.query.duplicates.copies import is_internal
from rmqtool.query.duplicates.passes import judged
from rmqtool.query.duplicates.suspects import COLUMNS
from rmqtool.query.duplicates.verdict import Duplicates
from rmqtool.query.not_read import not_read
from rmqtool.query.scope import Scope
from rmqtool.query.select import Selector
from rmqtool.query.stats.groups import Groups
from rmqtool.scan.engine import choose_kernels
from rmqtool.scan.fields import Check
from rmqtool.scan.log import LogScan, scan_log
from rmqtool.scan.options import data_bytes
from rmqtool.store.coverage import Incomplete, coverage, holes_in, rest_of_log

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rmqtool.query.duplicates.hashes import Repeated
    from rmqtool.query.duplicates.suspects import Suspects
    from rmqtool.query.message_filter import MessageFilter
    from rmqtool.query.stats.retention import Needs
    from rmqtool.scan.options import ReadOptions
    from rmqtool.store.layout import Store

Row = dict[str, Any]

_NOT_LOOKED_AT = ("bodies",)
"""sums need no body, so their CRCs are not checked"""
_FACTS = ("physical_offset", "store_size", "topic")


@dataclass
class LogStatistics:
    """What the messages of a log that pass `wanted` add up to.

    by: names of `groups.DIMENSIONS`. plain: decompress bodies to tell what compression gains. needs: what
    consumer groups wait for is added up, too. repeated: look for keys that come again on the way.
    """

    store: Store
    wanted: MessageFilter
    by: Sequence[str]
    reading: ReadOptions
    plain: bool = False
    needs: Needs | None = None
    repeated: Repeated | None = None
    largest: Row | None = None
    not_covered: list[Row] = field(default_factory=list)
    _reached: int = 0
    _left: int | None = None
    reported: Duplicates | None = None
    """sums of the duplicates, once they are known"""

    def __post_init__(self) -> None:
        self.groups = Groups(self.by, plain=self.plain)
        self._topics = Groups(("topic",), plain=self.plain)
        self._left = self.wanted.limit
        self.scope = Scope(self.store.segments, self.wanted)

    def read(self) -> None:
        """Reads the log; an interrupt ends it early, and is in `not_covered` then."""
        columns = (*_FACTS, *self.groups.columns, *self._topics.columns)
        if self.needs is not None:
            columns = (*columns, *self.needs.columns)
        if self.repeated is not None:
            columns = (*columns, "keys" if self.repeated.by_key else "uniq_key")
        try:
            for batch in self._batches(columns, self.reading):
                self._add(batch)
            self.not_covered += lost_by_units(self.store, self.wanted)
        except KeyboardInterrupt:
            self._stop(Incomplete.INTERRUPTED)

    def duplicates(self) -> Iterator[Row]:
        """Keys with more than one message of their own; only behind a `read` that was not interrupted."""
        repeated = self.repeated
        if repeated is None or any(row["reason"] == Incomplete.INTERRUPTED for row in self.not_covered):
            return
        self.reported = Duplicates(BatchWalk(self.store.segments))
        try:
            yield from judged(repeated, self._again, self.reported)
        except KeyboardInterrupt:
            self._stop(Incomplete.INTERRUPTED)

    def summary(self) -> Row:
        """The closing summary."""
        topics = self._topics.rows()
        total = {
            name: sum(row[name] for row in topics)
            for name in ("messages", "bytes", "body_bytes", "compressed")
        }
        internal = [row for row in topics if is_internal(row["topic"])]
        segments = list(self.store.segments)
        reported: Row = {
            **total,
            "topics": len(topics),
            "internal_messages": sum(row["messages"] for row in internal),
            "internal_bytes": sum(row["bytes"] for row in internal),
            "first_timestamp": min((row["first_timestamp"] for row in topics), default=None),
            "last_timestamp": max((row["last_timestamp"] for row in topics), default=None),
            "largest": self.largest,
            "log_bytes": sum(one.size for one in segments),
            "disk_bytes": sum(one.file.disk_bytes for one in segments),
        }
        if self.reported is not None:
            reported |= self.reported.summary()
        if self.scope.skipped:
            reported["segments_skipped"] = self.scope.skipped
        if self.plain:
            reported["plain_bytes"] = sum(row["plain_bytes"] or 0 for row in topics)
        return reported | {"not_looked_at": list(_NOT_LOOKED_AT)} | coverage(self.not_covered)

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """The messages that count, by themselves."""
        needed = dict.fromkeys((*columns, "physical_offset", "store_size"))
        return self._batches(tuple(needed), replace(self.reading, advance=None))

    def _again(self, taker: Repeated | Suspects) -> None:
        """The same messages once more; what is damaged has been reported."""
        known, self.not_covered = self.not_covered, []
        self._left = self.wanted.limit
        try:
            for batch in self.batches(COLUMNS):
                taker.add(batch)
        finally:
            self.not_covered = known

    def _batches(self, columns: Sequence[str], reading: ReadOptions) -> Iterator[pa.RecordBatch]:
        segments = self.store.segments
        selector = Selector(self.wanted, choose_kernels(data_bytes(segments)))
        how = LogScan(
            columns=tuple(dict.fromkeys(columns)),
            choose=None if self.wanted.selects_all else selector.choose,
            wanted=self.scope.may_hold,
            checks=Check.TEXT,
            options=reading,
        )
        self.not_covered += holes_in(segments, [segments.span])
        for piece in scan_log(segments, how):
            if not isinstance(piece.content, pa.RecordBatch):
                self.not_covered += not_read(piece.segment, piece.content)
                continue
            batch = piece.content
            if self._left is not None:
                full = batch.num_rows > self._left
                batch = batch.slice(0, self._left)
                self._left -= batch.num_rows
                if full:
                    yield batch
                    self._reach(batch)
                    self._stop(Incomplete.LIMIT)
                    return
            yield batch
            self._reach(batch)

    def _reach(self, batch: pa.RecordBatch) -> None:
        if batch.num_rows:
            self._reached = batch["physical_offset"][-1].as_py() + batch["store_size"][-1].as_py()

    def _stop(self, reason: Incomplete) -> None:
        self.not_covered += rest_of_log(list(self.store.segments), self._reached, reason)

    def _add(self, batch: pa.RecordBatch) -> None:
        if not batch.num_rows:
            return
        self.groups.add(batch)
        self._topics.add(batch)
        if self.needs is not None:
            self.needs.add(batch)
        if self.repeated is not None:
            self.repeated.add(batch)
        most = pc.max(batch["store_size"]).as_py()
        if self.largest is None or most > self.largest["store_size"]:
            at = pc.index(batch["store_size"], most).as_py()
            self.largest = {name: batch[name][at].as_py() for name in _FACTS}

    def sums(self) -> tuple[pa.Table | None, pa.Table | None]:
        """What `read` added up, by the groups and by topic: of a part of a log, for `add_sums`."""
        return self.groups.partial(), self._topics.partial()

    def add_sums(self, groups: pa.Table | None, topics: pa.Table | None, largest: Row | None) -> None:
        """Adds what was read elsewhere of the next part of this log."""
        if groups is not None:
            self.groups.add_partial(groups)
        if topics is not None:
            self._topics.add_partial(topics)
        if largest is not None and (
            self.largest is None or largest["store_size"] > self.largest["store_size"]
        ):
            self.largest = largest
