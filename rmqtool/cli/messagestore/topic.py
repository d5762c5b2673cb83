"""`rmqtool store topic`: the settings of a topic, shown, changed or taken away."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from rmqtool.cli.context import Context
from rmqtool.cli.messagestore.engine import DirPositional, EngineOptions, open_engine
from rmqtool.cli.opened import open_store
from rmqtool.cli.options import OutputOptions, StoreOptions
from rmqtool.cli.parse import named, parse_int, parse_text
from rmqtool.cli.verb import verb
from rmqtool.errors import ExitCode, UsageError

if TYPE_CHECKING:
    from rmqtool.store.config_json import TopicConfig

SCHEMA = "rmqtool.store-topic/1"
_MOST_QUEUES = 1 << 15
"""what no cluster has, and what keeps a typing error from making a directory for each number"""


@verb(
    examples=[
        "rmqtool store topic /data/store OrderTopic",
        "rmqtool store topic /data/store OrderTopic --read-queues 8 --write-queues 8",
        "rmqtool store topic /data/store OrderTopic --perm 4",
        "rmqtool store topic /data/store PriceTopic --memory",
        "rmqtool store topic /data/store OrderTopic --delete",
    ]
)
def command(
    path: DirPositional,
    name: Annotated[str, typer.Argument(metavar="NAME", help="Exact name of the topic.")],
    read_queues: Annotated[
        str | None,
        typer.Option("--read-queues", metavar="N", help="Queues that consumers read.", show_default=False),
    ] = None,
    write_queues: Annotated[
        str | None,
        typer.Option("--write-queues", metavar="N", help="Queues that messages go to.", show_default=False),
    ] = None,
    perm: Annotated[
        str | None,
        typer.Option(
            "--perm", metavar="2|4|6", help="2 write only, 4 read only, 6 both.", show_default=False
        ),
    ] = None,
    memory: Annotated[
        bool, typer.Option("--memory", help="Keep its messages in memory only; for a new topic.")
    ] = False,
    delete: Annotated[
        bool, typer.Option("--delete", help="Remove it from the table; its messages stay.")
    ] = False,
    force: Annotated[
        bool,
        typer.Option("--force", help="Even if the read queues that go have messages that were not consumed."),
    ] = False,
    *,
    engine: EngineOptions,
    output: OutputOptions,
) -> ExitCode:
    """Show, create, change or delete a topic.

    Without an option that changes something it is only shown, also beside a running broker. What is not
    given stays; a new topic has four queues and perm 6. Fewer read queues are refused while queues that
    would go have messages that a consumer group has not consumed, or nobody has: consumers would never get
    them. Messages of a topic made with --memory go when the process that has the store open ends; brokers
    take it for any other topic. Exit code 1: there is no such topic.
    """
    context = Context(output)
    with named("NAME"):
        parse_text(name)
    wanted: dict[str, int] = {}
    given = {"read_queues": read_queues, "write_queues": write_queues, "perm": perm}
    for key, text in given.items():
        if text is not None:
            with named(f"--{key.replace('_', '-')}"):
                wanted[key] = parse_int(text, minimum=0, maximum=_MOST_QUEUES)
    if delete and (wanted or memory):
        raise UsageError("--delete cannot be combined with settings of the topic")
    if force and read_queues is None:
        raise UsageError("--force goes with --read-queues")
    if not delete and not wanted and not memory:
        found = open_store(context, path, StoreOptions(engine.store_config)).topics.get(name)
        return _answer(context, name, found, "shown")
    with open_engine(context, path, engine) as store:
        before = store.topics.get(name)
        if delete:
            store.topics.delete(name)
            return _answer(context, name, before, "deleted")
        made = store.topics.set(
            name,
            read_queues=wanted.get("read_queues"),
            write_queues=wanted.get("write_queues"),
            perm=wanted.get("perm"),
            memory=memory or None,
            force=force,
        )
    return _answer(context, name, made, "made" if before is None else "changed")


def _yes(value: bool) -> str:
    return "yes" if value else "no"


def _answer(context: Context, name: str, topic: TopicConfig | None, state: str) -> ExitCode:
    from rmqtool.output.tablerows import Column

    keys = ("topic", "read_queues", "write_queues", "perm", "memory", "state")
    columns = [
        Column(
            key,
            shrinks=key == "topic",
            right=key not in {"topic", "memory", "state"},
            show=_yes if key == "memory" else None,
        )
        for key in keys
    ]
    rows: list[dict[str, Any]] = []
    if topic is not None:
        rows.append(
            {
                "type": "topic",
                "topic": name,
                "read_queues": topic.read_queue_nums,
                "write_queues": topic.write_queue_nums,
                "perm": topic.perm,
                "memory": topic.memory,
                "attributes": dict(topic.attributes),
                "state": state,
            }
        )
    with context.rows(SCHEMA, columns, csv_columns=("type", *keys[:5], "attributes", "state")) as out:
        out.write_rows(rows)
        out.finish({"topics": len(rows), "complete": True})
    if topic is None:
        context.console.note(f"there is no topic {name}")
    return ExitCode.OK if topic is not None else ExitCode.DAMAGE
