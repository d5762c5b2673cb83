"""What the tables of a store lack before a row of them is read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rmqtool.query.config_lost import config_lost
from rmqtool.query.lost_end import log_gone, lost_end
from rmqtool.store.consumer_offsets import offsets_file

if TYPE_CHECKING:
    from collections.abc import Collection

    from rmqtool.store.layout import Store

Row = dict[str, Any]


def left_out(store: Store, tables: Collection[str]) -> list[Row]:
    """Rows of `not_covered`: a log that is gone or lost its end, files of settings without a table."""
    files = {"topics": "topics.json", "consumer_offsets": offsets_file(store)}
    of_log = [*log_gone(store), *lost_end(store)] if "messages" in tables else []
    return [*of_log, *config_lost(store, *(name for table, name in files.items() if table in tables))]
