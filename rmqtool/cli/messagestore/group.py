"""`rmqtool store group`: the settings of a consumer group, shown, changed or taken away."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from rmqtool.cli.context import Context
from rmqtool.cli.messagestore.engine import DirPositional, EngineOptions, open_engine
from rmqtool.cli.opened import open_store
from rmqtool.cli.options import OutputOptions, StoreOptions
from rmqtool.cli.parse import named, parse_int, parse_text
from rmqtool.cli.verb import verb
from rmqtool.errors import ExitCode, UsageError

if TYPE_CHECKING:
    from rmqtool.query.groups import GroupConfig

SCHEMA = "rmqtool.store-group/1"
_MOST = 1 << 15


@verb(
    examples=[
        "rmqtool store group /data/store billing",
        "rmqtool store group /data/store billing --retry-max 3 --retry-queues 2",
        "rmqtool store group /data/store billing --consume no",
        "rmqtool store group /data/store billing --delete",
    ]
)
def command(
    path: DirPositional,
    name: Annotated[str, typer.Argument(metavar="NAME", help="Exact name of the consumer group.")],
    retry_max: Annotated[
        str | None,
        typer.Option(
            "--retry-max",
            metavar="N",
            help="Retries of a message before it goes to the dead-letter queue.",
            show_default=False,
        ),
    ] = None,
    retry_queues: Annotated[
        str | None,
        typer.Option("--retry-queues", metavar="N", help="Queues of its retry topic.", show_default=False),
    ] = None,
    consume: Annotated[
        Literal["yes", "no"] | None,
        typer.Option("--consume", help="Whether it may consume at all.", show_default=False),
    ] = None,
    delete: Annotated[
        bool, typer.Option("--delete", help="Remove it from the table; its offsets stay.")
    ] = False,
    *,
    engine: EngineOptions,
    output: OutputOptions,
) -> ExitCode:
    """Show, create, change or delete a consumer group.

    Without an option that changes something it is only shown, also beside a running broker. What is not
    given stays; a new group retries messages 16 times and has one retry queue. Exit code 1: there is no
    such group.
    """
    context = Context(output)
    with named("NAME"):
        parse_text(name)
    wanted: dict[str, int] = {}
    for key, text in (("retry_max", retry_max), ("retry_queues", retry_queues)):
        if text is not None:
            with named(f"--{key.replace('_', '-')}"):
                wanted[key] = parse_int(text, minimum=0, maximum=_MOST)
    if delete and (wanted or consume is not None):
        raise UsageError("--delete cannot be combined with settings of the group")
    if not delete and not wanted and consume is None:
        from rmqtool.query.groups import group_configs

        found = group_configs(open_store(context, path, StoreOptions(engine.store_config))).get(name)
        return _answer(context, name, found, "shown")
    with open_engine(context, path, engine) as store:
        before = store.groups.get(name)
        if delete:
            store.groups.delete(name)
            return _answer(context, name, before, "deleted")
        made = store.groups.set(
            name,
            retry_max=wanted.get("retry_max"),
            retry_queues=wanted.get("retry_queues"),
            consume=None if consume is None else consume == "yes",
        )
    return _answer(context, name, made, "made" if before is None else "changed")


def _yes(value: bool) -> str:
    return "yes" if value else "no"


def _answer(context: Context, name: str, group: GroupConfig | None, state: str) -> ExitCode:
    from rmqtool.output.tablerows import Column

    keys = ("group", "retry_max", "retry_queues", "consume", "broadcast", "state")
    columns = [
        Column(
            key,
            shrinks=key == "group",
            right=key.startswith("retry"),
            show=_yes if key in {"consume", "broadcast"} else None,
        )
        for key in keys
    ]
    rows: list[dict[str, Any]] = []
    if group is not None:
        rows.append(
            {
                "type": "group",
                "group": name,
                "retry_max": group.retry_max_times,
                "retry_queues": group.retry_queue_nums,
                "consume": group.consume_enable,
                "broadcast": group.consume_broadcast_enable,
                "state": state,
            }
        )
    with context.rows(SCHEMA, columns, csv_columns=("type", *keys)) as out:
        out.write_rows(rows)
        out.finish({"groups": len(rows), "complete": True})
    if group is None:
        context.console.note(f"there is no consumer group {name}")
    return ExitCode.OK if group is not None else ExitCode.DAMAGE
