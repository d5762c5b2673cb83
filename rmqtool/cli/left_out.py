"""What of a store cannot be opened: directories that could not be listed, entries that are no plain file."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from rmqtool.query.lost_end import lost_end
from rmqtool.store.config_json import ParseState
from rmqtool.store.consumer_offsets import offsets_file
from rmqtool.store.coverage import Incomplete, unreadable
from rmqtool.store.coverage import unopened as never_opened
from rmqtool.store.layout import FileKind, StoreForm
from rmqtool.store.names import escape_name

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rmqtool.cli.context import Context
    from rmqtool.store.files import StoreFile
    from rmqtool.store.layout import Store

Row = dict[str, Any]


def noted(context: Context, store: Store, path: str) -> bool:
    """Whether the user was told of `path` already, when the store was opened."""
    return not context.talk.quiet and any(note.startswith(f"{path}: ") for note in store.notes)


def unlisted(store: Store, context: Context, *, commitlog: bool = False) -> list[Row]:
    """Directories that could not be listed, as rows of `not_covered`; each was noted, or is warned of.

    commitlog: only those that may hold segments.
    """
    roots = {str(root) for root in store.roots}
    found = []
    for one in store.directories:
        path = escape_name(one.path)
        holds_segments = path.rsplit("/", 1)[-1] == "commitlog" or one.location in roots
        if one.error is not None and (holds_segments or not commitlog):
            if context.talk.quiet:
                context.talk.warn(f"{path}: {one.error}")
            found.append(unreadable(path, one.error))
    return found


def log_gone(store: Store, context: Context) -> list[Row]:
    """A commit log without files though queues or an index were made from one; warned of.

    It may lie elsewhere (`storePathCommitLog`): what is said of messages without it is no answer.
    """
    kinds = (FileKind.CONSUMEQUEUE, FileKind.BATCHCONSUMEQUEUE)
    queues = (file for kind in kinds for queue in store.queues(kind) for file in queue.files)
    if store.segments or not any(file.size for file in (*queues, *store.index_files())):
        return []
    row = unreadable(
        "commitlog", "no segment for the queues or index that are there; --commitlog names other places"
    )
    context.talk.warn(f"{row['path']}: {row['error']}")
    return [row]


def damaged_settings(store: Store, context: Context, *names: str) -> list[Row]:
    """Files of `config/` that are there and give no table; each is warned of.

    What comes from the `.bak` of such a file is what a broker would load, and may be older than what is lost.
    """
    found = []
    for name in names:
        pair = store.config_pair(name)
        for path, parsed in ((f"config/{name}", pair.primary), (f"config/{name}.bak", pair.bak)):
            used = parsed.state is ParseState.MISSING or parsed.state.has_data
            if used or (parsed is pair.bak and pair.chosen == "primary"):
                continue
            reason = Incomplete.UNREADABLE if parsed.state is ParseState.UNREADABLE else Incomplete.DAMAGE
            instead = f"; {name}.bak is used" if pair.chosen == "bak" else ""
            row = {"path": path, "reason": reason.value, "error": f"{parsed.detail or 'is empty'}{instead}"}
            context.talk.warn(f"{path}: {row['error']}")
            found.append(row)
    return found


def tables_left_out(store: Store, context: Context, statement: str) -> list[Row]:
    """What the tables that a statement of SQL names lack before anything is read."""
    named = statement.lower()
    settings = {"topics": "topics.json", "consumer_offsets": offsets_file(store)}
    dledger = store.of_kind(FileKind.DLEDGER_DATA)
    return [
        *unlisted(store, context),
        *undecoded_beside_log(store, context),
        *(log_gone(store, context) if "messages" in named else ()),
        *damaged_settings(store, context, *(name for table, name in settings.items() if table in named)),
        *(unreadable(one.shown, "is not decoded by this release") for one in dledger),
    ]


def end_left_out(store: Store, statement: str) -> list[Row]:
    """What a statement about messages lacks where the end of the log is lost."""
    return lost_end(store) if "messages" in statement.lower() else []


def unopened(files: Iterable[StoreFile], context: Context) -> list[Row]:
    """Entries in the place of a file that are never opened (FIFO, socket, device, dead link); warned of."""
    found = []
    for file in files:
        row = never_opened(file)
        if row is not None:
            context.talk.warn(f"{row['path']}: {row['error']}")
            found.append(row)
    return found


def undecoded_beside_log(store: Store, context: Context) -> list[Row]:
    """What lies where segments should and is none: entries never opened, and files of unknown names."""
    strange = [file for file in store.of_kind(FileKind.UNKNOWN) if _among_segments(store, file)]
    found = unopened(strange, context)
    for file in strange:
        if file.regular:
            row = unreadable(file.shown, f"is no segment: {file.note}", 0, file.size)
            context.talk.warn(f"{row['path']}: {row['error']}")
            found.append(row)
    return found


def _among_segments(store: Store, file: StoreFile) -> bool:
    if store.form not in {StoreForm.STORE, StoreForm.DLEDGER}:
        return True
    further = {str(root) for root in store.roots[1:]}
    return file.path.split("/")[:-1] == ["commitlog"] or os.path.dirname(file.location) in further
