"""The broadcast join: all tasks are sent all keys, and answer with records."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rmqtool.pipeline.keys.key_request import PROBES, KeyRequest, Unit, hits_schema
from rmqtool.pipeline.keys.running import Made
from rmqtool.pipeline.keys.sums import StoreSums, scan, take
from rmqtool.pipeline.keys.tasks import KeyTask, PlanTask
from rmqtool.query.by_key import KeySource, asks_index

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pyspark.sql import SparkSession

    from rmqtool.pipeline.options import SourceOptions
    from rmqtool.store.layout import Store


def broadcast_join(
    session: SparkSession,
    options: SourceOptions,
    stores: Mapping[str, Store],
    asked: KeyRequest,
    sums: Mapping[str, StoreSums],
) -> list[Made]:
    """Tables of `hits_schema`: by the indexes, and from the logs. sums: added to."""
    sent = session.sparkContext.broadcast(asked)
    task = KeyTask(sent, options)
    by_index, by_scan = (Made(session, hits_schema(asked)) for _ in range(2))
    indexed = [path for path, store in stores.items() if asks_index(store, asked.topic, asked.source)]
    by_index.by_item([Unit(path) for path in indexed], task)
    take(sums, by_index.notes)
    plan_scan(session, options, stores.keys() - indexed, asked, sums)
    if asked.source is not KeySource.INDEX:
        scan(by_scan, task, stores, options, sums)
    return [by_index, by_scan]


def plan_scan(
    session: SparkSession,
    options: SourceOptions,
    stores: Iterable[str],
    asked: KeyRequest,
    sums: Mapping[str, StoreSums],
) -> None:
    """Finds what is to be read of stores whose index is not asked."""
    sent = session.sparkContext.broadcast(asked)
    ends = Made(session, PROBES)
    ends.by_item([Unit(path) for path in sorted(stores)], PlanTask(sent, options, index=False))
    take(sums, ends.notes)
