"""`stats` over many stores, cut by parts of their logs: sums are made where the data is, and added up."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from rmqtool.pipeline.parts import log_parts
from rmqtool.pipeline.runner import Lost, lost_part, over_log
from rmqtool.query.reading import Reading
from rmqtool.query.stats.report import LogStatistics
from rmqtool.query.stats.retention import Needs
from rmqtool.store.coverage import Incomplete
from rmqtool.store.live import is_live

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import pyarrow as pa
    from pyspark.sql import SparkSession

    from rmqtool.pipeline.options import SourceOptions
    from rmqtool.pipeline.parts import LogPart
    from rmqtool.query.message_filter import MessageFilter
    from rmqtool.store.layout import Store

    Row = dict[str, Any]


_LOG = "commitlog"
"""path of what is no segment's: the bytes that are missing between two"""


@dataclass(frozen=True)
class _Sums:
    """What one part adds up to."""

    groups: pa.Table | None
    topics: pa.Table | None
    largest: Row | None
    needs: Needs | None
    not_covered: list[Row]


def stats(
    session: SparkSession,
    options: SourceOptions,
    stores: Mapping[str, Store],
    by: Sequence[str] = ("topic",),
    *,
    plain: bool = False,
    needs: bool = False,
) -> Iterator[tuple[str, LogStatistics]]:
    """The statistics of each store, as `LogStatistics.read` leaves them.

    plain: decompress bodies. needs: what consumer groups wait for, too.
    """
    every = {
        path: LogStatistics(store, options.wanted, by, Reading(), plain, Needs(store) if needs else None)
        for path, store in stores.items()
    }
    parts = {
        path: log_parts(one.store, options.part_bytes, one.scope.may_hold) for path, one in every.items()
    }
    work = {
        path: partial(_sum_up, wanted=options.wanted, by=tuple(by), plain=plain, needs=one.needs)
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
    found = LogStatistics(store, wanted, by, Reading(live=is_live(store)), plain, needs)
    found.read()
    groups, topics = found.sums()
    return _Sums(groups, topics, found.largest, found.needs, found.not_covered)
