"""`rmqtool query-time`: the queue offset that belongs to a point in time."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from rmqtool.cli.context import Context
from rmqtool.cli.filters import BodyOptions, SubscriptionOptions, say_ignored
from rmqtool.cli.opened import open_log
from rmqtool.cli.options import (
    QUERY_FORMATS,
    OutputOptions,
    QueueArgument,
    ReadOptions,
    StoreOptions,
    StorePositional,
    TopicArgument,
    VersionOptions,
)
from rmqtool.cli.query_filters import TimeQueryFilters
from rmqtool.cli.verb import verb
from rmqtool.errors import ExitCode

SCHEMA = "rmqtool.query-time/1"


@verb(
    examples=[
        "rmqtool query-time /data/store TopicTest 0 -2h",
        "rmqtool query-time /data/store TopicTest 3 2026-11-21T03:00:00 --boundary upper --body",
        "rmqtool query-time /data/store TopicTest 3 1795253875259 --as-version 4.9.8 --json",
        "rmqtool query-time /data/store TopicTest 0 -1h --filter 'a BETWEEN 3 AND 5' --filter-type SQL92",
    ],
    formats=QUERY_FORMATS,
)
def command(
    path: StorePositional,
    topic: TopicArgument,
    queue: QueueArgument,
    time: Annotated[
        str,
        typer.Argument(
            metavar="TIME", help="Store time: epoch ms or s, ISO 8601, -2h, 12:00, yesterday, now."
        ),
    ],
    boundary: Annotated[
        Literal["lower", "upper"],
        typer.Option(
            "--boundary", help="lower: the first at or after TIME; upper: the last at or before it."
        ),
    ] = "lower",
    *,
    store: StoreOptions,
    read: ReadOptions,
    version: VersionOptions,
    filters: TimeQueryFilters,
    subscription: SubscriptionOptions,
    bodies: BodyOptions,
    output: OutputOptions,
) -> ExitCode:
    """The queue offset that belongs to a point in time.

    The first message stored at or after it, exactly, and what the broker would answer. `queue_offset`
    follows the store times of the records themselves, also where the clock of the broker went back.
    `broker_queue_offset` is what the release would return: 4.x chooses the queue file by its modification
    time, which copying changes, and takes the nearest message. With filters the message listed is the first
    one from there on that passes, with --boundary upper the last one before.
    """
    from rmqtool.broker.offset_by_time import Boundary
    from rmqtool.cli.parse import named, parse_text, parse_time
    from rmqtool.cli.queue_arguments import parse_queue, say_queues, unlisted_queue
    from rmqtool.cli.records import RecordOut, answer_code
    from rmqtool.output.tablerows import Column
    from rmqtool.query.served_queue import read_rules, served_queue
    from rmqtool.query.time_query import TimeQuery

    context = Context(output)
    with named("TOPIC"):
        parse_text(topic)
    number = parse_queue(queue)
    chosen = filters.build(context.zone, subscription=subscription.build())
    say_ignored(context, chosen.subscription)
    with named("TIME"):
        moment = parse_time(time, context.zone)
    opened, unread = open_log(context, path, store)
    unread += unlisted_queue(context, opened, topic, number)
    with (
        context.progress("reading", 0) as progress,
        RecordOut(context, SCHEMA, bodies, {"slot": Column("slot")}) as out,
        served_queue(opened, topic, number, rules := read_rules(opened, version.release)) as view,
    ):
        reading = read.of_log(opened, progress.advance, expect=progress.expect_more)
        query = TimeQuery(opened, view, rules, moment, Boundary(boundary), chosen, unread, reading)
        for batch, more in query.batches(out.columns):
            out.write(batch, more)
        out.finish({"topic": topic, "queue_id": number, **query.summary()})
        notes = list(query.notes())
    say_queues(context, opened, topic, view)
    for note in notes:
        context.console.note(note)
    return answer_code(out.messages, query.not_covered())
