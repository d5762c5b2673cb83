"""What could not be listed or read where the unit and the index items of a record should be."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from rmqtool.query.index_lookup import search_items
from rmqtool.query.units import units_of
from rmqtool.store.coverage import unreadable
from rmqtool.store.kinds import FileKind
from rmqtool.store.names import escape_name

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rmqtool.query.one_record import OneRecord
    from rmqtool.query.units import UnitView
    from rmqtool.store.coverage import Row
    from rmqtool.store.layout import Store


def unread_beside(store: Store, record: OneRecord) -> list[Row]:
    """Rows of `not_covered`: without these places nobody can say that a unit or an item is missing."""
    own, others = units_of(store, record)
    rows = [row for view in (own, *others) for row in _of_unit(store, view)]
    keys = dict.fromkeys(key for _, key in record.indexed_keys)
    if keys:
        rows += _closed(store, "index")
        _, _, errors = search_items(store, record.topic, keys, record.physical_offset)
        rows += [unreadable(path, error) for path, error in errors.items()]
    return list({(row["path"], row["error"]): row for row in rows}.values())


def _of_unit(store: Store, view: UnitView) -> Iterator[Row]:
    if view.error is not None:
        yield unreadable(view.path or f"{view.kind}/{escape_name(view.topic)}/{view.queue_id}", view.error)
    elif view.values is None and view.wanted:
        for kind in (FileKind.BATCHCONSUMEQUEUE, FileKind.CONSUMEQUEUE):
            yield from _closed(store, f"{kind}/{view.topic}/{view.queue_id}")


def _closed(store: Store, place: str) -> Iterator[Row]:
    """Directories on the way to `place` that cannot be listed, and entries there that are never opened."""
    for directory in store.directories:
        if directory.error is not None and f"{place}/".startswith(f"{directory.path}/"):
            yield unreadable(escape_name(directory.path), directory.error)
    for file in store.of_kind(FileKind.UNKNOWN):
        inside = file.path.rpartition("/")[0] == place or f"{place}/".startswith(f"{file.path}/")
        if inside and not file.regular and not os.path.isdir(file.location):
            yield unreadable(file.display_path, file.note or "not a regular file")
