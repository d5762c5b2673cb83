"""`stats` over many stores, cut by parts of their logs: sums are made where the data is, and added up.

Keys that come again are looked for in a second job of each store (`pipeline.duplicates`), in the parts that
the first could read.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from rmqtool.pipeline.duplicates import find_twice
from rmqtool.pipeline.parts import log_parts
from rmqtool.pipeline.runner import Lost, lost_part, lost_store, over_log, side_by_side, spark_errors
from rmqtool.pipeline.session import first_line
from rmqtool.query.stats.report import LogStatistics
from rmqtool.query.stats.retention import Needs
from rmqtool.scan.options import ReadOptions
from rmqtool.store.coverage import Incomplete

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import pyarrow as pa
    from pyspark.sql import SparkSession

    from rmqtool.pipeline.duplicates import FoundTwice
    from rmqtool.pipeline.options import SourceOptions
    from rmqtool.pipeline.parts import LogPart
    from rmqtool.query.message_filter import MessageFilter
    from rmqtool.store.layout import Store

    Row = dict[str, Any]


_LOG = "commitlog"
"""path of what is not a segment's: the bytes that are missing between two"""


@dataclass(frozen=True)
class _Sums:
    """What one part adds up to."""

    groups: pa.Table | None
    topics: pa.Table | None
    largest: Row | None
    needs: Needs | None
    not_covered: list[Row]


@dataclass
class StoreStatistics(LogStatistics):
    """`LogStatistics` of a store that was read elsewhere. parts: those that were read."""

    parts: list[LogPart] = field(default_factory=list)
    twice: FoundTwice | None = None

    def duplicates(self) -> Iterator[Row]:
        """See `LogStatistics.duplicates`; to be asked once."""
        if self.twice is not None:
            yield from self.twice.rows()

    def find_twice(self, session: SparkSession, *, by_key: bool) -> None:
        """The second job. One that fails each time is named in `not_covered`."""
        messages = sum(row["messages"] for row in self.groups.rows())
        try:
            found = find_twice(session, self.parts, self.store.segments, self.wanted, messages, by_key=by_key)
        except spark_errors() as error:
            self.not_covered.append(lost_store(Lost(f"duplicates are not listed: {first_line(error)}")))
        else:
            self.twice, self.reported = found, found.sums


def stats(
    session: SparkSession,
    options: SourceOptions,
    stores: Mapping[str, Store],
    by: Sequence[str] = ("topic",),
    *,
    plain: bool = False,
    needs: bool = False,
    twice: str | None = None,
) -> Iterator[tuple[str, StoreStatistics]]:
    """The statistics of each store, as `LogStatistics.read` leaves them.

    plain: decompress bodies. needs: what consumer groups wait for, too. twice: what is there more than once
    by `uniq_key` or by `keys`, too.
    """
    every = {
        path: StoreStatistics(
            store, options.wanted, by, ReadOptions(), plain, Needs(store) if needs else None
        )
        for path, store in stores.items()
    }
    summed = _summed(session, options, every)
    if twice is None:
        yield from summed
        return
    jobs = {path: partial(one.find_twice, session, by_key=twice == "keys") for path, one in summed}
    for path, _ in side_by_side(session, jobs):
        yield path, every[path]


def _summed(
    session: SparkSession, options: SourceOptions, every: Mapping[str, StoreStatistics]
) -> Iterator[tuple[str, StoreStatistics]]:
    """Each of `every` with what its parts add up to."""
    parts = {
        path: log_parts(one.store, options.part_bytes, one.scope.may_hold) for path, one in every.items()
    }
    work = {
        path: partial(_sum_up, wanted=one.wanted, by=tuple(one.by), plain=one.plain, needs=one.needs)
        for path, one in every.items()
    }
    for path, results in over_log(session, parts, work):
        found = every[path]
        # all holes between segments, also those in front of segments that no task reads
        lacking = list(_holes(found.store))
        for part, one in results:
            if isinstance(one, Lost):
                lacking.append(lost_part(part, one))
            elif one is not None:
                found.parts.append(part)
                found.add_sums(one.groups, one.topics, one.largest)
                if found.needs is not None and one.needs is not None:
                    found.needs.add_sums(one.needs)
                lacking += [row for row in one.not_covered if row["path"] != _LOG]
        found.not_covered = lacking
        yield path, found


def _holes(store: Store) -> Iterator[Row]:
    for hole in store.segments.holes():
        place = {"path": _LOG, "physical_offset": hole.start, "length": hole.end - hole.start}
        yield place | {"reason": Incomplete.DAMAGE}


def _sum_up(
    part: LogPart, wanted: MessageFilter, by: tuple[str, ...], plain: bool, needs: Needs | None
) -> _Sums | None:
    store = part.resolved()
    if store is None:
        return None
    needs = copy.deepcopy(needs)  # a worker that is used again may have the one of the task before
    found = LogStatistics(store, wanted, by, ReadOptions.of(store), plain, needs)
    found.read()
    groups, topics = found.sums()
    return _Sums(groups, topics, found.largest, found.needs, found.not_covered)
