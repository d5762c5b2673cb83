"""`rmqtool assign`: which member of a group gets which queues."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from rmqtool.cli.context import Context
from rmqtool.cli.opened import open_store
from rmqtool.cli.options import OutputOptions, StoreOptions, StorePositional, TopicArgument
from rmqtool.cli.verb import verb
from rmqtool.errors import ExitCode, UsageError

SCHEMA = "rmqtool.assign/1"
KEYS = ("type", "client", "queue_ids", "queue_id", "from", "to")


@verb(
    examples=[
        "rmqtool assign /data/store OrderTopic --clients a,b,c",
        "rmqtool assign /data/store OrderTopic --clients a,b,c --strategy CONSISTENT_HASH --join d",
        "rmqtool assign /data/store OrderTopic --clients a,b,c --leave b --json",
    ]
)
def command(
    path: StorePositional,
    topic: TopicArgument,
    clients: Annotated[
        list[str],
        typer.Option("--clients", metavar="IDS", help="Client ids, separated by commas; repeatable."),
    ],
    strategy: Annotated[
        Literal["AVG", "AVG_BY_CIRCLE", "CONSISTENT_HASH", "MACHINE_ROOM", "MACHINE_ROOM_NEARBY"],
        typer.Option(
            "--strategy",
            help="By RocketMQ's names. MACHINE_ROOM_NEARBY: AVG inside rooms, which are named before an @ "
            "in the names of brokers and clients.",
        ),
    ] = "AVG",
    join: Annotated[
        list[str] | None,
        typer.Option(
            "--join", metavar="ID", help="And then with this client too; repeatable.", show_default=False
        ),
    ] = None,
    leave: Annotated[
        list[str] | None,
        typer.Option(
            "--leave", metavar="ID", help="And then without this client; repeatable.", show_default=False
        ),
    ] = None,
    broker: Annotated[
        list[str] | None,
        typer.Option(
            "--broker",
            metavar="NAME",
            help="brokerName, on which order and hashes depend; repeatable for a topic on several brokers, "
            "which have as many queues each. Default: brokerName of --store-config, else broker-a.",
            show_default=False,
        ),
    ] = None,
    room: Annotated[
        list[str] | None,
        typer.Option("--room", metavar="ROOM", help="Rooms of MACHINE_ROOM; repeatable.", show_default=False),
    ] = None,
    *,
    store: StoreOptions,
    output: OutputOptions,
) -> ExitCode:
    """Which client of a consumer group gets which queues of a topic, and what moves.

    Equal to what RocketMQ's clients decide among themselves. Queues are the read queues of topics.json, or,
    for a topic without an entry, those in the store. With --join or --leave the rows are those of the
    group afterwards, and a move for each queue that changes hands.
    """
    from rmqtool.cli.left_out import damaged_settings, unlisted
    from rmqtool.output.incident_table import columns
    from rmqtool.query.assignment.plan import moves, queues_of, strategy_of
    from rmqtool.query.assignment.strategies import assign
    from rmqtool.store.coverage import coverage, each_once
    from rmqtool.store.required import require_root

    context = Context(output)
    members = list(dict.fromkeys(one for text in clients for one in text.split(",") if one))
    if not members:
        raise UsageError("--clients names no client")
    after = [one for one in [*members, *(join or ())] if one not in (leave or ())]
    for one in leave or ():
        if one not in members:
            raise UsageError(f"--leave: '{one}' is not in --clients")
    if room and strategy != "MACHINE_ROOM":
        raise UsageError("--room is for --strategy MACHINE_ROOM")
    opened = open_store(context, path, store)
    require_root(opened)
    further = (opened.config.model_extra if opened.config is not None else None) or {}
    brokers = tuple(broker or ()) or (str(further.get("brokerName", "broker-a")),)
    queues = queues_of(opened, topic, brokers)
    left = damaged_settings(opened, context, "topics.json")
    if topic not in opened.topics:
        left = each_once([*left, *unlisted(opened, context)])
    if not queues and not left:
        raise UsageError(f"topic '{topic}' has no queue that may be read in this store")
    rule = strategy_of(strategy, room or ())
    before, then = assign(rule, queues, members), assign(rule, queues, dict.fromkeys(after))
    several = len(brokers) > 1
    with context.rows(SCHEMA, columns(KEYS, context.zone), csv_columns=(*KEYS, "broker")) as rows:
        for client, own in then.items():
            row: dict[str, object] = {
                "type": "assignment",
                "client": client,
                "queue_ids": [one.queue_id for one in own],
            }
            brokers_of = {"brokers": [one.broker_name for one in own]} if several else {}
            rows.write_rows([row | brokers_of])
        moved = moves(before, then) if join or leave else []
        for queue, old, new in moved:
            row = {"type": "move", "queue_id": queue.queue_id, "from": old, "to": new}
            rows.write_rows([row | ({"broker": queue.broker_name} if several else {})])
        owned = {queue for own in then.values() for queue in own}
        counts = {"queues": len(queues), "clients": len(then), "moves": len(moved)}
        nobody = sorted(queue.queue_id for queue in set(queues) - owned)
        rows.finish(counts | {"strategy": strategy, "unassigned_queue_ids": nobody} | coverage(left))
    return ExitCode.INCOMPLETE if left else ExitCode.OK
