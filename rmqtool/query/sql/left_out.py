"""What the tables of a store lack before a row of them is read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rmqtool.query.behind_units import behind_units
from rmqtool.query.config_lost import config_lost
from rmqtool.query.displaced import lost_by_units
from rmqtool.query.lost_end import log_gone
from rmqtool.query.queue_damage import missing_files
from rmqtool.store.consumer_offsets import offsets_file
from rmqtool.store.coverage import unreadable
from rmqtool.store.kinds import FileKind
from rmqtool.store.rocksdb import queues_only_in_rocksdb

if TYPE_CHECKING:
    from collections.abc import Collection

    from rmqtool.scan.options import ReadOptions
    from rmqtool.store.layout import Store

Row = dict[str, Any]


def left_out(store: Store, tables: Collection[str], reading: ReadOptions) -> list[Row]:
    """Rows of `not_covered`: log, queues and files without what they had, queues in RocksDB."""
    files = {"topics": "topics.json", "consumer_offsets": offsets_file(store)}
    of_log = [*log_gone(store), *lost_by_units(store)] if "messages" in tables else []
    of_settings = config_lost(store, *(name for table, name in files.items() if table in tables))
    of_queues = []
    if {"consumequeue", "topics"} & {*tables} and queues_only_in_rocksdb(store):
        of_queues.append(unreadable("consumequeue", "the queues are in RocksDB, which is not decoded"))
    if "consumequeue" in tables:
        kinds = (FileKind.CONSUMEQUEUE, FileKind.BATCHCONSUMEQUEUE)
        queues = [one for kind in kinds for one in store.queues(kind)]
        of_queues += (row for one in queues for row in missing_files(one, store))
        of_queues += behind_units(store, reading, queues, last_segments=0)[1]
    return [*of_log, *of_queues, *of_settings]
