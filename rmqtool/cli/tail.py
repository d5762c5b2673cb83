"""`rmqtool tail`: the last messages, and those that follow."""

from __future__ import annotations

from typing import Annotated

import typer

from rmqtool.cli.context import Context
from rmqtool.cli.filters import BodyOptions, ListingFilters, SubscriptionOptions, say_ignored
from rmqtool.cli.near import say_unknown_topics
from rmqtool.cli.opened import open_log
from rmqtool.cli.options import QUERY_FORMATS, GentleOptions, OutputOptions, StoreArgument, StoreOptions
from rmqtool.cli.parse import named, parse_int
from rmqtool.cli.verb import verb
from rmqtool.errors import ExitCode

SCHEMA = "rmqtool.tail/1"


@verb(
    examples=[
        "rmqtool tail /data/store",
        "rmqtool tail /data/store -f --topic 'Order*' --body",
        "rmqtool tail /data/store -f -n 0 --format ndjson --limit 100",
    ],
    formats=QUERY_FORMATS,
)
def command(
    path: StoreArgument = None,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Keep listing new messages until Ctrl-C.")
    ] = False,
    number: Annotated[
        str, typer.Option("--number", "-n", metavar="N", help="How many of the last messages to list first.")
    ] = "10",
    *,
    store: StoreOptions,
    read: GentleOptions,
    filters: ListingFilters,
    subscription: SubscriptionOptions,
    bodies: BodyOptions,
    output: OutputOptions,
) -> ExitCode:
    """The last messages, and with -f those that follow.

    Read from the end of the log, so that a large store takes no longer than a small one; filters choose among
    all messages, and the log is searched as far back as it takes. With -f new messages appear as the broker
    writes them, across segment files, each batch at once. --limit N ends after N messages in all.
    """
    from rmqtool.cli.records import RecordOut, listing_code
    from rmqtool.query.tail import LogTail
    from rmqtool.store.access import Access

    context = Context(output)
    with named("--number"):
        count = parse_int(number, minimum=0)
    opened, unread = open_log(context, path, store)
    wanted = filters.build(
        context.zone, resolve=opened.segments.physical_offset, subscription=subscription.build()
    )
    say_ignored(context, wanted.subscription)
    say_unknown_topics(context, opened, wanted.topics)
    access = Access.of(read.bytes_per_second, careful=True, live=False)
    tail = LogTail(opened, wanted, count, follow, unread, access=access)
    with RecordOut(context, SCHEMA, bodies) as out:
        columns = out.columns
        try:
            for batch in tail.batches(columns):
                if batch is None:
                    out.flush()
                elif batch.num_rows:
                    out.write(batch.select(list(columns)))
        except KeyboardInterrupt:
            tail.interrupted = True
        out.finish(tail.summary())
    return listing_code(tail.not_covered())
