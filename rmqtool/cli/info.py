"""`rmqtool info`: what lies in a store."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rmqtool.cli.context import Context
from rmqtool.cli.opened import open_store
from rmqtool.cli.options import OutputOptions, StoreArgument, StoreOptions
from rmqtool.cli.verb import verb
from rmqtool.cli.what_to_copy import CopyOptions, show_what_to_copy
from rmqtool.errors import ExitCode, UsageError

if TYPE_CHECKING:
    from rmqtool.query.inventory import Inventory
    from rmqtool.store.layout import Store

SCHEMA = "rmqtool.info/1"

CSV_COLUMNS = (
    "path",
    "kind",
    "size",
    "disk_bytes",
    "modified_timestamp",
    "root",
    "topic",
    "queue_id",
    "min_offset",
    "max_offset",
    "first_physical_offset",
    "last_physical_offset",
    "first_store_timestamp",
    "last_store_timestamp",
    "note",
    "error",
    "topic_hex",
)


@verb(
    examples=[
        "rmqtool info /data/store",
        "rmqtool info /data/store --json",
        "rmqtool info /data/store --commitlog /data2/commitlog --store-config broker.conf",
        "rmqtool info /data/store --what-to-copy",
    ]
)
def command(
    path: StoreArgument = None, *, copying: CopyOptions, store: StoreOptions, output: OutputOptions
) -> ExitCode:
    """What a store contains: files, topics, queues, release, state.

    Every file is listed with its kind, size and real disk blocks, also the unknown ones; segments with
    the range of their offsets and times, queues with min and max offset as their files hold them. Release
    and sizes are inferred and say from what. Nothing is read that would take long: what was not examined
    is named at the end. Formats that this release does not decode are listed by name and size. Damage is
    not looked for.

    --what-to-copy lists instead the files that doctor needs on another machine, and the commands that copy
    them: all but the log before the place where a start begins to read. The list that --manifest writes goes
    with them; a copy that has it is never called safe while files in it are missing.
    """
    from rmqtool.cli.left_out import noted
    from rmqtool.query.inventory import take_inventory

    context = Context(output)
    if not copying.what_to_copy and (copying.print0 or copying.manifest is not None):
        raise UsageError("--print0 and --manifest go with --what-to-copy")
    opened = open_store(context, path, store, replayable=not copying.what_to_copy)
    if copying.what_to_copy:
        return show_what_to_copy(context, opened, copying)
    try:
        with context.progress("looking") as progress:
            found = take_inventory(opened, progress.reach)
    except KeyboardInterrupt:
        _show_interrupted(context, opened)
        raise
    if found.unknown:
        count = len(found.unknown)
        context.console.note(
            f"{count} unknown {'file or directory' if count == 1 else 'files or directories'}"
        )
    for one in found.unreadable:
        if not noted(context, opened, one["path"]):
            context.console.warn(
                one["error"] if one["path"] in one["error"] else f"{one['path']}: {one['error']}"
            )
    _show(context, found)
    return ExitCode.INCOMPLETE if found.unreadable else ExitCode.OK


def _show(context: Context, found: Inventory) -> None:
    if context.format == "json":
        context.document(SCHEMA, found.document())
    elif context.format == "table":
        from rmqtool.output.info_page import InfoPage

        InfoPage(context.page(), context.zone).write(found.document())
    else:
        files_only = context.format == "csv"
        with context.rows(SCHEMA, (), csv_columns=CSV_COLUMNS) as rows:
            rows.write_rows(found.files if files_only else found.rows())
            rows.finish(found.summary())


def _show_interrupted(context: Context, opened: Store) -> None:
    """The closing summary alone: nothing was reported yet."""
    from rmqtool.output.rows import cut_short
    from rmqtool.store.coverage import Incomplete, rest_of_files

    reason = Incomplete.INTERRUPTED
    reported = cut_short({}, reason, rest_of_files(opened.files, 0, reason))
    if context.format == "json":
        context.document(SCHEMA, reported)
    else:
        with context.rows(SCHEMA, (), csv_columns=CSV_COLUMNS) as rows:
            rows.finish(reported)
