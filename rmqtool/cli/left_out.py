"""What of a store cannot be opened: directories that could not be listed, entries that are not files."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from rmqtool.query.config_lost import config_lost
from rmqtool.store.coverage import unopened as never_opened
from rmqtool.store.coverage import unopened_entries, unreadable
from rmqtool.store.kinds import TOP_DIRECTORIES
from rmqtool.store.layout import FileKind, StoreForm
from rmqtool.store.names import escape_name

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rmqtool.cli.context import Context
    from rmqtool.store.files import StoreFile
    from rmqtool.store.layout import Store

Row = dict[str, Any]


def noted(context: Context, store: Store, path: str) -> bool:
    """Whether the user was reported of `path` already, when the store was opened."""
    return not context.console.quiet and any(note.startswith(f"{path}: ") for note in store.notes)


def unlisted(store: Store, context: Context, *, commitlog: bool = False, config: bool = False) -> list[Row]:
    """Directories that could not be listed, as rows of `not_covered`; each was noted, or is warned of.

    With them what is never opened in the place of a directory or a file, as a link to a disk that is not
    mounted; those among segments are `undecoded_beside_log`. commitlog: only directories that may hold
    segments; config: only that of the tables.
    """
    roots = {str(root) for root in store.roots}
    found = []
    for one in store.directories:
        path = escape_name(one.path)
        holds_segments = path.rsplit("/", 1)[-1] == "commitlog" or one.location in roots
        wanted = (holds_segments or not commitlog) and (path == "config" or not config)
        if one.error is not None and wanted:
            if context.console.quiet:
                context.console.warn(f"{path}: {one.error}")
            found.append(unreadable(path, one.error))
    closed = (one for one in unopened_entries(store) if _holds_data(store, one) and not commitlog)
    return found + unopened((one for one in closed if one.path == "config" or not config), context)


def unseen(store: Store, context: Context) -> list[Row]:
    """All that could not be listed and is never opened, where files of a store lie."""
    others = (one for one in unopened_entries(store) if not _holds_data(store, one))
    return [*unlisted(store, context), *unopened(others, context)]


def _holds_data(store: Store, file: StoreFile) -> bool:
    """Whether rows of tables could lie there, but no segments."""
    return file.path.partition("/")[0] in TOP_DIRECTORIES and not _among_segments(store, file)


def warned(rows: list[Row], context: Context) -> list[Row]:
    """The same rows of `not_covered`, with a warning for each."""
    for row in rows:
        context.console.warn(f"{row['path']}: {row['error']}")
    return rows


def damaged_settings(store: Store, context: Context, *names: str) -> list[Row]:
    """Files of `config/` that give no table, each warned of; and `config/` itself where it is not listed."""
    return [*unlisted(store, context, config=True), *warned(config_lost(store, *names), context)]


def beside_tables(store: Store, context: Context) -> list[Row]:
    """What no table of SQL has: directories that could not be listed, files that are never opened."""
    dledger = store.of_kind(FileKind.DLEDGER_DATA)
    return [
        *unlisted(store, context),
        *undecoded_beside_log(store, context),
        *(unreadable(one.display_path, "is not decoded by this release") for one in dledger),
    ]


def unopened(files: Iterable[StoreFile], context: Context) -> list[Row]:
    """Entries in the place of a file that are never opened (FIFO, socket, device, dead link); warned of."""
    found = []
    for file in files:
        row = never_opened(file)
        if row is not None:
            context.console.warn(f"{row['path']}: {row['error']}")
            found.append(row)
    return found


def undecoded_beside_log(store: Store, context: Context) -> list[Row]:
    """What lies where segments should and is none: entries never opened, and files of unknown names."""
    strange = [file for file in store.of_kind(FileKind.UNKNOWN) if _among_segments(store, file)]
    found = unopened(strange, context)
    for file in strange:
        if file.regular:
            row = unreadable(file.display_path, f"is not a segment: {file.note}", 0, file.size)
            context.console.warn(f"{row['path']}: {row['error']}")
            found.append(row)
    return found


def _among_segments(store: Store, file: StoreFile) -> bool:
    if store.form not in {StoreForm.STORE, StoreForm.DLEDGER}:
        return True
    further = {str(root) for root in store.roots[1:]}
    return file.path.split("/")[:-1] == ["commitlog"] or os.path.dirname(file.location) in further
