"""What `rmqtool retry` and `rmqtool dlq` have in common."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated

import typer

from rmqtool.cli.context import Context
from rmqtool.cli.opened import open_log_and_offsets
from rmqtool.errors import ExitCode, UsageError

if TYPE_CHECKING:
    from rmqtool.cli.options import OutputOptions, ReadOptions, StoreOptions

KEYS = (
    "group",
    "origin_topic",
    "origin_msg_id",
    "reconsume_times",
    "store_timestamp",
    "physical_offset",
    "keys",
    "consumed",
)


@dataclass(frozen=True)
class ReturnedOptions:
    """Whose messages, and where they are written."""

    group: Annotated[
        list[str] | None,
        typer.Option(
            "--group", metavar="GLOB", help="Of these consumer groups; repeatable.", show_default=False
        ),
    ] = None
    to: Annotated[
        str | None,
        typer.Option(
            "--to",
            metavar="FILE",
            help="Write the messages to a new replayable file, from which store load sends them again.",
            show_default=False,
        ),
    ] = None
    to_origin: Annotated[
        bool,
        typer.Option(
            "--to-origin",
            help="With --to: for the topics that they came from, in the queues of these in turn and as if "
            "never tried; default: as stored, for the group's own topic.",
        ),
    ] = False
    force: Annotated[bool, typer.Option("--force", help="Replace the file of --to if it exists.")] = False


def list_returned(
    kind: str,
    path: str | None,
    options: ReturnedOptions,
    store: StoreOptions,
    read: ReadOptions,
    output: OutputOptions,
) -> ExitCode:
    """Lists them. kind: `retry` or `dlq`."""
    from rmqtool.cli.file_beside import file_beside
    from rmqtool.cli.replay_target import write_replay
    from rmqtool.output.incident_table import columns
    from rmqtool.query.message_filter import MessageFilter
    from rmqtool.query.views.resent import Resent
    from rmqtool.query.views.returned import Returned, returned_topics
    from rmqtool.store.coverage import coverage

    context = Context(output)
    if options.to_origin and options.to is None:
        raise UsageError("--to-origin says what is written with --to FILE")
    opened, left = open_log_and_offsets(context, path, store)
    target = None if options.to is None else file_beside(options.to, [opened], "--to", force=options.force)
    groups = tuple(options.group or ())
    with context.progress("reading", sum(one.size for one in opened.segments)) as progress:
        reading = read.of_log(opened, progress.advance)
        found = Returned(opened, reading, kind, groups)
        csv_columns = ("type", *KEYS, "queue_id", "queue_offset", "born_timestamp", "uniq_key")
        with context.rows(f"rmqtool.{kind}/1", columns(KEYS, context.zone), csv_columns=csv_columns) as rows:
            rows.write_rows(found.rows())
            exported = {}
            if target is not None:
                chosen = MessageFilter(topics=returned_topics(kind, groups))
                again = (found.places(), Resent(opened, kind)) if options.to_origin else ()
                exported = {"exported": write_replay(opened, target, replace(reading), chosen, *again)}
            rows.finish(found.summary() | exported | coverage([*left, *found.left]))
    if options.to_origin and found.without_origin:
        context.console.warn(f"left out, as they do not say where they came from: {found.without_origin}")
        return ExitCode.INCOMPLETE
    if groups and not found.by_group:
        context.console.note("no message of a group that matches --group")
    return ExitCode.INCOMPLETE if left or found.left else ExitCode.OK
