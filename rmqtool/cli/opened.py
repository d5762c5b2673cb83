"""Opening the STORE of a command, with everything that is worth a note."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from rmqtool.cli.near import say_unknown_settings
from rmqtool.cli.options import resolve_store
from rmqtool.errors import PlanRefusedError, StoreIOError, UsageError

if TYPE_CHECKING:
    from typing import Any

    from rmqtool.cli.context import Context
    from rmqtool.cli.options import StoreOptions
    from rmqtool.recovery.advice import Invocation
    from rmqtool.store.layout import Store

_MARKER = "rmqtool-apply-in-progress"


def open_store(
    context: Context,
    path: str | None,
    options: StoreOptions,
    *,
    as_kind: str | None = None,
    replayable: bool = False,
    changing: bool = False,
) -> Store:
    """The store that `path` and the options mean; a running broker and links not followed are noted.

    as_kind: what PATH is taken for, where a command lets that be said. replayable: a replayable file will do,
    which is none of a store. changing: the command itself looks for an apply that was stopped. Raises
    `UsageError` where it will not.
    """
    from rmqtool.store.kinds import FileKind
    from rmqtool.store.layout import Store
    from rmqtool.store.lock import probe
    from rmqtool.store.partial import refuse_partial

    config = None
    if options.config_path is not None:
        from rmqtool.store.config import load_broker_conf

        config = load_broker_conf(options.config_path)
        say_unknown_settings(context, config)
    place = resolve_store(path, options)
    with context.progress("listing") as progress:
        opened = Store.open(
            place,
            commitlog_roots=options.commitlog_roots,
            config=config,
            as_kind=as_kind,
            on_listed=progress.reach,
        )
    if opened.of_kind(FileKind.REPLAY) and not replayable:
        raise UsageError(f"{opened.given} is a replayable file of an export, not a store; dump lists it")
    for note in opened.notes:
        context.console.note(note)
    if changing:
        refuse_partial(opened)
    if not changing and _has_marker(opened):
        _warn_of_marker(context, opened)
    state = probe(opened.lock_path)
    if state.held and state.pid != os.getpid():
        holder = f"process {state.pid}" if state.pid else "a process"
        context.console.note(f"the store is live, {holder} holds it: its end may change while it is read")
    return opened


def invocation_of(named: str, options: tuple[str, ...], release: str | None, opened: Store) -> Invocation:
    """How doctor was asked about a store, for what it advises."""
    from rmqtool.recovery.advice import Invocation
    from rmqtool.store.coverage import dead_links

    def unrecoverable() -> str | None:
        from rmqtool.repair.keep.unfit import no_log_to_recover

        return no_log_to_recover(opened)

    links = {file.display_path: (file.location, target) for file, target in dead_links(opened)}
    return Invocation(named, options, release, stopped_journal(opened), links, unrecoverable)


def stopped_journal(opened: Store) -> str | None:
    """The journal of an apply that left this store between two states."""
    from rmqtool.repair.marker import find_marker

    if not _has_marker(opened):
        return None
    try:
        marker = find_marker(opened.root)
    except (StoreIOError, PlanRefusedError):  # said when the store was opened
        return None
    return marker.journal if marker is not None else None


def _has_marker(opened: Store) -> bool:
    return any(_MARKER in one.path for one in opened.files)


def _warn_of_marker(context: Context, opened: Store) -> None:
    from rmqtool.repair.interrupted import in_the_middle
    from rmqtool.repair.marker import find_marker
    from rmqtool.store.lock import probe

    try:
        marker = find_marker(opened.root)
    except (StoreIOError, PlanRefusedError) as error:
        context.console.warn(str(error))
        return
    if marker is None:
        return
    if probe(opened.lock_path).held:
        context.console.warn(
            "rmqtool is changing this store now: what is read is neither the old nor the new one"
        )
    else:
        context.console.warn(in_the_middle(opened.root, marker))


def open_log(context: Context, path: str | None, options: StoreOptions) -> tuple[Store, list[dict[str, Any]]]:
    """The same for a command that answers from the commit log; and what of that cannot be opened.

    Raises `NewerFormatError` where the log lies in DLedger files, `UsageError` where PATH is a part of a
    store without it: that holds no messages, but nobody asked this of the part alone.
    """
    opened = open_store(context, path, options)
    return opened, log_left_out(context, opened)


def open_log_and_offsets(
    context: Context, path: str | None, options: StoreOptions, table: str | None = None
) -> tuple[Store, list[dict[str, Any]]]:
    """The same for a command that also needs a table of offsets; and whether that is damaged.

    table: its name in `config/`, that of consumers when None.
    """
    from rmqtool.cli.left_out import damaged_settings
    from rmqtool.store.consumer_offsets import offsets_file

    opened, left = open_log(context, path, options)
    return opened, [*left, *damaged_settings(opened, context, table or offsets_file(opened))]


def log_left_out(context: Context, opened: Store) -> list[dict[str, Any]]:
    """What of a store's log cannot be opened, as rows of `not_covered`. Raises as `open_log` does."""
    from rmqtool.cli.left_out import undecoded_beside_log, unlisted, warned
    from rmqtool.query.lost_end import log_gone
    from rmqtool.store.required import refuse_dledger, require_log

    require_log(opened)
    refuse_dledger(opened)
    return [
        *unlisted(opened, context, commitlog=True),
        *undecoded_beside_log(opened, context),
        *warned(log_gone(opened), context),
    ]
