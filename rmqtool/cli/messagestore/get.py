"""`rmqtool store get`: messages of a queue, and those that follow."""

from __future__ import annotations

from typing import Annotated

import typer

from rmqtool.cli.context import Context
from rmqtool.cli.filters import BodyOptions, SubscriptionOptions, say_ignored
from rmqtool.cli.messagestore.engine import DirPositional
from rmqtool.cli.opened import open_log
from rmqtool.cli.options import (
    QUERY_FORMATS,
    OutputOptions,
    QueueArgument,
    StoreOptions,
    TopicArgument,
    VersionOptions,
)
from rmqtool.cli.parse import named, parse_text
from rmqtool.cli.verb import verb
from rmqtool.errors import ExitCode, UsageError

SCHEMA = "rmqtool.store-get/1"
_MESSAGES = 32
"""of one pull (`maxTransferCountOnMessageInMemory`)"""


@verb(
    examples=[
        "rmqtool store get /data/store OrderTopic 0",
        "rmqtool store get /data/store OrderTopic 0 1284 -n 100 --filter 'TagA || TagB' --body",
        "rmqtool store get /data/store OrderTopic 0 max -f --format ndjson",
    ],
    formats=QUERY_FORMATS,
)
def command(
    path: DirPositional,
    topic: TopicArgument,
    queue: QueueArgument,
    offset: Annotated[
        str, typer.Argument(metavar="OFFSET", help="Queue offset, min or max (the last message).")
    ] = "min",
    count: Annotated[
        str | None,
        typer.Option(
            "--number",
            "-n",
            metavar="N",
            help="Messages to list; default 32, with -f all.",
            show_default=False,
        ),
    ] = None,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Go on with what is put, until Ctrl-C.")
    ] = False,
    *,
    store: StoreOptions,
    version: VersionOptions,
    subscription: SubscriptionOptions,
    bodies: BodyOptions,
    output: OutputOptions,
) -> ExitCode:
    """Get messages of a queue, and with -f those that follow.

    Reads beside whoever writes the store, and takes no lock. With -f new messages appear within 50 ms;
    an OFFSET in front of the first message that is there begins with that one. Exit code 1: there was no
    message.
    """
    from rmqtool.cli.queue_arguments import parse_count, parse_queue, parse_queue_offset, unlisted_queue
    from rmqtool.cli.records import RecordOut, answer_code, listing_code
    from rmqtool.output.tablerows import Column
    from rmqtool.query.offset_query import OffsetQuery
    from rmqtool.query.queue_follow import QueueFollow
    from rmqtool.query.served_queue import read_rules, served_queue
    from rmqtool.query.verdict import Question

    context = Context(output)
    with named("TOPIC"):
        parse_text(topic)
        if "/" in topic or topic in {".", ".."}:
            raise UsageError(f"'{topic}' is not a valid topic")
    number = parse_queue(queue)
    most = None if count is None else parse_count(count)
    wanted = subscription.build()
    opened, unread = open_log(context, path, store)
    unread += unlisted_queue(context, opened, topic, number)
    say_ignored(context, wanted)
    rules = read_rules(opened, version.release)
    with RecordOut(context, SCHEMA, bodies, {"slot": Column("slot")}) as out:
        with served_queue(opened, topic, number, rules) as view:
            begin = parse_queue_offset(opened, view, topic, number, offset, None)
            if not follow:
                begin = max(begin, view.min_offset)
                query = OffsetQuery(
                    opened, view, rules, Question(topic, number, begin), wanted, unread=unread
                )
                for batch, more in query.batches(most or _MESSAGES, out.columns):
                    out.write(batch, more)
                out.finish(query.summary())
                return answer_code(query.listed, query.not_covered())
        following = QueueFollow(opened, topic, number, begin, rules.traits, most, wanted, unread)
        try:
            for found in following.batches(out.columns):
                if found is None:
                    out.flush()
                elif found[0].num_rows:
                    out.write(found[0], {"slot": found[1]})
        except KeyboardInterrupt:
            following.interrupted = True
        out.finish(following.summary())
    return listing_code(following.not_covered())
