"""Opening the STORE of a command, with everything that is worth a note."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from rmqtool.cli.options import resolve_store
from rmqtool.errors import NewerFormatError

if TYPE_CHECKING:
    from typing import Any

    from rmqtool.cli.context import Context
    from rmqtool.cli.options import StoreOptions
    from rmqtool.store.layout import Store


def open_store(
    context: Context,
    path: str | None,
    options: StoreOptions,
    *,
    as_kind: str | None = None,
    replayable: bool = False,
) -> Store:
    """The store that `path` and the options mean; a running broker and links not followed are noted.

    as_kind: what PATH is taken for, where a command lets that be said. replayable: a replayable file will do,
    which is none of a store. Raises `UsageError` where it will not.
    """
    from rmqtool.errors import UsageError
    from rmqtool.store.config import load_broker_conf
    from rmqtool.store.kinds import FileKind
    from rmqtool.store.layout import Store
    from rmqtool.store.lock import probe

    config = None if options.config_path is None else load_broker_conf(options.config_path)
    opened = Store.open(
        resolve_store(path, options), commitlog_roots=options.commitlog_roots, config=config, as_kind=as_kind
    )
    if opened.of_kind(FileKind.REPLAY) and not replayable:
        raise UsageError(f"{opened.given} is a replayable file of an export, not a store; dump lists it")
    for note in opened.notes:
        context.talk.note(note)
    state = probe(opened.lock_path)
    if state.held and state.pid != os.getpid():
        holder = f"process {state.pid}" if state.pid else "a process"
        context.talk.note(f"the store is live, {holder} holds it: its tail may move while it is read")
    return opened


def open_log(context: Context, path: str | None, options: StoreOptions) -> tuple[Store, list[dict[str, Any]]]:
    """The same for a command that answers from the commit log; and what of that cannot be opened.

    Raises `NewerFormatError` where the log lies in DLedger files.
    """
    from rmqtool.cli.left_out import undecoded_beside_log, unlisted
    from rmqtool.store.layout import FileKind

    opened = open_store(context, path, options)
    if not opened.segments and opened.of_kind(FileKind.DLEDGER_DATA):
        raise NewerFormatError(f"{opened.given}: DLedger data files are not decoded by this release")
    return opened, [*unlisted(opened, context, commitlog=True), *undecoded_beside_log(opened, context)]
