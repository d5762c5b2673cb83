"""Opening the STORE of a command, with everything that is worth a note."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from rmqtool.cli.options import resolve_store

if TYPE_CHECKING:
    from rmqtool.cli.context import Context
    from rmqtool.cli.options import StoreOptions
    from rmqtool.store.layout import Store


def open_store(
    context: Context, path: str | None, options: StoreOptions, *, as_kind: str | None = None
) -> Store:
    """The store that `path` and the options mean; a running broker and links not followed are noted.

    as_kind: what PATH is taken for, where a command lets that be said.
    """
    from rmqtool.store.config import load_broker_conf
    from rmqtool.store.layout import Store
    from rmqtool.store.lock import probe

    config = None if options.config_path is None else load_broker_conf(options.config_path)
    opened = Store.open(
        resolve_store(path, options), commitlog_roots=options.commitlog_roots, config=config, as_kind=as_kind
    )
    for note in opened.notes:
        context.talk.note(note)
    state = probe(opened.lock_path)
    if state.held and state.pid != os.getpid():
        holder = f"process {state.pid}" if state.pid else "a process"
        context.talk.note(f"the store is live, {holder} holds it: its tail may move while it is read")
    return opened
