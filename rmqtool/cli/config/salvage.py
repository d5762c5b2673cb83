"""`rmqtool config salvage`: tables from what can still be read of them."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rmqtool.cli.changing import ChangeOptions, ChangeRequest
from rmqtool.cli.context import Context
from rmqtool.cli.opened import open_store
from rmqtool.cli.options import OutputOptions, ReadOptions, StoreArgument, StoreOptions, VersionOptions
from rmqtool.cli.verb import verb
from rmqtool.errors import ExitCode

if TYPE_CHECKING:
    from rmqtool.repair.plan import Planned
    from rmqtool.store.layout import Store


@verb(
    examples=[
        "rmqtool config salvage /data/store",
        "rmqtool config salvage /data/store --in-place --backup /backup/config --apply",
        "rmqtool config salvage /data/store --table topics.json --output /data/copy --apply",
        "rmqtool config salvage /data/store --topic OrderTopic --in-place --backup /backup/config --apply",
    ]
)
def command(
    path: StoreArgument = None,
    table: Annotated[
        list[str] | None,
        typer.Option(
            "--table",
            metavar="NAME",
            help="Only this file of config/, such as topics.json; repeatable.",
            show_default=False,
        ),
    ] = None,
    topic: Annotated[
        list[str] | None,
        typer.Option(
            "--topic",
            metavar="GLOB",
            help="Also an entry in topics.json for topics that have messages and no entry; repeatable.",
            show_default=False,
        ),
    ] = None,
    *,
    change: ChangeOptions,
    store: StoreOptions,
    read: ReadOptions,
    version: VersionOptions,
    output: OutputOptions,
) -> ExitCode:
    """Write the tables in config/ that a broker would not load, from all that can be read of them.

    The longest intact prefix of a damaged file is merged with its .bak; where both have an entry, the
    file's wins, since it is newer. A topics.json that is lost entirely is derived from consume queues and
    commit log, and its entries are reported as a guess. A file that a broker loads as it is stays
    unchanged. Prints the plan and stops, unless --apply.
    """
    from rmqtool.cli.apply_session import apply_session
    from rmqtool.cli.checking import check_with
    from rmqtool.repair.config_tables import plan_config
    from rmqtool.repair.prove.tables import check_tables

    context = Context(output)

    def plan(opened: Store, parameters: dict[str, Any], work: str) -> Planned:
        del work
        with context.progress("reading", sum(one.size for one in opened.segments)) as progress:
            reading = read.of_log(opened, progress.advance)
            return plan_config(opened, parameters["release"], parameters, reading)

    open_it = partial(open_store, context, path, store, changing=True)
    given = {"release": version.release, "table": table, "topic": topic}
    request = ChangeRequest(
        command="config salvage",
        open=open_it,
        parameters={
            "release": version.release_of(open_it()),
            "table": sorted(one.removeprefix("config/") for one in table or ()),
            "topic": sorted(topic or ()),
        },
        given=[name for name, value in given.items() if value],
        plan=plan,
        check=lambda opened, planned: check_with(check_tables, context, opened, planned, read),
    )
    return apply_session(context, request, change)
