"""Files that were listed and that a query, which lists its stores itself, did not find any more."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rmqtool.errors import RmqtoolError
from rmqtool.pipeline.opening import open_any
from rmqtool.store.coverage import unreadable
from rmqtool.store.kinds import FileKind

if TYPE_CHECKING:
    from collections.abc import Collection

    from rmqtool.store.layout import Store

Row = dict[str, Any]

_KINDS = {
    "messages": (FileKind.COMMITLOG,),
    "consumequeue": (FileKind.CONSUMEQUEUE, FileKind.BATCHCONSUMEQUEUE),
    "index_items": (FileKind.INDEX,),
}


def gone_since(before: Store, place: str, tables: Collection[str]) -> list[Row]:
    """Rows of `not_covered` for files of these tables that are in `before` and at `place` no more.

    Not for those that expired: a later one of the same directory is there. A store that cannot be listed is
    reported by the query.
    """
    files = [file for table, kinds in _KINDS.items() if table in tables for file in before.of_kind(*kinds)]
    if not files:
        return []
    try:
        now = open_any(place, before.config)
    except RmqtoolError:
        return []
    there = {file.path for file in now.files}
    latest: dict[str, str] = {}
    for path in there:
        directory, _, name = path.rpartition("/")
        latest[directory] = max(latest.get(directory, ""), name)
    return [
        unreadable(file.display_path, "is gone since it was listed")
        for file in files
        if file.path not in there and latest.get(file.path.rpartition("/")[0], "") < file.name
    ]
