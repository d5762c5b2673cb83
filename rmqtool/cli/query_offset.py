"""`rmqtool query-offset`: messages of a queue by queue offset, with the broker's own answer."""

from __future__ import annotations

from typing import Annotated

import typer

from rmqtool.cli.completing import complete_groups
from rmqtool.cli.context import Context
from rmqtool.cli.filters import BodyOptions, SubscriptionOptions, say_ignored
from rmqtool.cli.near import say_unknown_group
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
from rmqtool.cli.parse import named, parse_text
from rmqtool.cli.query_filters import QueueQueryFilters
from rmqtool.cli.verb import verb
from rmqtool.errors import ExitCode, UsageError

SCHEMA = "rmqtool.query-offset/1"


@verb(
    examples=[
        "rmqtool query-offset /data/store TopicTest 0 min",
        "rmqtool query-offset /data/store TopicTest 3 1284 -n 10 --body",
        "rmqtool query-offset /data/store TopicTest 3 --group my-consumers",
        "rmqtool query-offset /data/store TopicTest 3 1284 -n 50 --filter 'TagA || TagB' --filter-report",
        "rmqtool query-offset /data/store TopicTest 3 min -n 5 --key order-4711",
    ],
    formats=QUERY_FORMATS,
)
def command(
    path: StorePositional,
    topic: TopicArgument,
    queue: QueueArgument,
    offset: Annotated[
        str | None,
        typer.Argument(
            metavar="OFFSET",
            help="Queue offset, min or max (the last message); if omitted, what --group committed.",
            show_default=False,
        ),
    ] = None,
    count: Annotated[
        str, typer.Option("--number", "-n", metavar="N", help="Messages to list, from OFFSET on.")
    ] = "1",
    group: Annotated[
        str | None,
        typer.Option(
            "--group",
            metavar="GROUP",
            help="Consumer group: its settings, and without OFFSET its committed offset.",
            show_default=False,
            autocompletion=complete_groups,
        ),
    ] = None,
    report: Annotated[
        bool,
        typer.Option(
            "--filter-report",
            help="List also what --filter keeps back, and say of each message where it passes.",
        ),
    ] = False,
    *,
    store: StoreOptions,
    read: ReadOptions,
    version: VersionOptions,
    filters: QueueQueryFilters,
    subscription: SubscriptionOptions,
    bodies: BodyOptions,
    output: OutputOptions,
) -> ExitCode:
    """Messages of a queue by offset, as the broker answers.

    The summary has the broker's status, the queue's range and the offset that it would name next; further
    messages follow up to N, past the broker's limits for one pull. Its verdicts say why a consumer gets the
    message or does not: below the minimum, above the maximum, not dispatched yet, kept back by the filter,
    not readable by permission or queue number. --filter is that of a consumer, as the broker and the client
    apply it; the other filters choose among the messages that are listed, N of those that pass.
    """
    from rmqtool.cli.left_out import damaged_settings
    from rmqtool.cli.queue_arguments import (
        parse_count,
        parse_queue,
        parse_queue_offset,
        say_queues,
        unlisted_queue,
    )
    from rmqtool.cli.records import RecordOut, answer_code
    from rmqtool.output.tablerows import Column
    from rmqtool.query.groups import stored_filter
    from rmqtool.query.offset_query import OffsetQuery
    from rmqtool.query.served_queue import read_rules, served_queue
    from rmqtool.query.verdict import Question
    from rmqtool.store.consumer_offsets import offsets_file

    context = Context(output)
    with named("TOPIC"):
        parse_text(topic)
    if group is not None:
        with named("--group"):
            parse_text(group)
    number, messages = parse_queue(queue), parse_count(count)
    wanted = subscription.build()
    if report and wanted is None:
        raise UsageError("--filter-report goes with --filter")
    opened, unread = open_log(context, path, store)
    unread += unlisted_queue(context, opened, topic, number)
    if group is not None:
        if offset is not None:
            say_unknown_group(context, opened, group)
        committed = () if offset is not None else (offsets_file(opened),)
        unread += damaged_settings(
            opened, context, *committed, "subscriptionGroup.json", "consumerFilter.json"
        )
        wanted = wanted or stored_filter(opened, group, topic)
    say_ignored(context, wanted)
    chosen = filters.build(context.zone, resolve=opened.segments.physical_offset)
    names = ("slot", "passes_broker", "passes_consumer") if report else ("slot",)
    with (
        context.progress("reading", 0) as progress,
        RecordOut(context, SCHEMA, bodies, {name: Column(name) for name in names}) as out,
        served_queue(opened, topic, number, rules := read_rules(opened, version.release)) as view,
    ):
        asked = Question(topic, number, parse_queue_offset(opened, view, topic, number, offset, group), group)
        reading = read.of_log(opened, progress.advance, expect=progress.expect_more)
        query = OffsetQuery(opened, view, rules, asked, wanted, report, chosen, unread, reading)
        for batch, more in query.batches(messages, out.columns):
            out.write(batch, more)
        out.finish(summary := query.summary())
    say_queues(context, opened, topic, view)
    for one in summary["verdicts"]:
        context.console.note(one["message"])
    return answer_code(query.listed, query.not_covered())
