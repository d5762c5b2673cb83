"""`rmqtool dump`: every byte of a store, a folder in it or a single file, decoded."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from rmqtool.cli.context import Context
from rmqtool.cli.filters import BodyOptions, FilterOptions, SubscriptionOptions, say_ignored
from rmqtool.cli.near import say_unknown_topics
from rmqtool.cli.opened import open_store
from rmqtool.cli.options import (
    FORMATS,
    KindOptions,
    OutputOptions,
    PathArgument,
    ReadOptions,
    StoreOptions,
)
from rmqtool.cli.verb import verb
from rmqtool.errors import ExitCode

if TYPE_CHECKING:
    from rmqtool.store.layout import Store


@verb(
    examples=[
        "rmqtool dump /data/store --limit 20",
        "rmqtool dump /data/store --topic 'Order*' --from -2h --body",
        "rmqtool dump /data/store --format ndjson --body none --body-sha256",
        "rmqtool dump /data/store/consumequeue/TopicTest/0",
        "rmqtool dump /tmp/copied/20261121093752154 --as index",
        "rmqtool dump lost.replay --topic 'Order*' --format ndjson",
    ],
    formats=(*FORMATS, "raw", "hex"),
)
def command(
    path: PathArgument = None,
    unwrap: Annotated[
        bool, typer.Option("--unwrap", help="Also list the messages inside batch records.")
    ] = False,
    *,
    store: StoreOptions,
    read: ReadOptions,
    kind: KindOptions,
    filters: FilterOptions,
    subscription: SubscriptionOptions,
    bodies: BodyOptions,
    output: OutputOptions,
) -> ExitCode:
    """Decode every byte of a store, a folder in it or a single file.

    A store or commitlog directory gives its records in physical order, with the fillers, gaps and the tail
    between them. Queue, index, checkpoint, epoch and config files give what they hold, replayable files of
    export their records. Bytes that are not a record are reported, and reading continues after them; exit
    code 1 says that there are some.
    """
    from rmqtool.cli.dump_files import dump_files
    from rmqtool.cli.dump_log import dump_log
    from rmqtool.cli.dump_replay import dump_replay
    from rmqtool.store.layout import FileKind, StoreForm
    from rmqtool.store.required import refuse_dledger

    context = Context(output)
    opened = open_store(context, path, store, as_kind=kind.as_kind, replayable=True)
    _warn_of_dledger(context, opened)
    wanted = filters.build(
        context.zone, resolve=opened.segments.physical_offset, subscription=subscription.build()
    )
    say_ignored(context, wanted.subscription)
    say_unknown_topics(context, opened, wanted.topics)
    whole = opened.form in (StoreForm.STORE, StoreForm.COMMITLOG, StoreForm.DLEDGER)
    if whole:
        refuse_dledger(opened)
    if whole or (opened.segments and len(opened.segments) == len(opened.files)):
        return dump_log(context, opened, wanted, bodies, read, unwrap=unwrap)
    if [file.kind for file in opened.files] == [FileKind.REPLAY]:
        return dump_replay(context, opened, wanted, bodies, read, unwrap=unwrap)
    return dump_files(context, opened, wanted, bodies, read, unwrap=unwrap)


def _warn_of_dledger(context: Context, opened: Store) -> None:
    """Records beside those of the commit log, which are not listed."""
    from rmqtool.store.layout import FileKind, StoreForm

    if opened.form is not StoreForm.STORE or not opened.segments:
        return
    for file in opened.of_kind(FileKind.DLEDGER_DATA)[:1]:
        context.console.warn(f"{file.display_path}: DLedger data files are not decoded by this release")
