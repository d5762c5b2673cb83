"""`rmqtool query-id`: messages by offset message id or unique client id."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from rmqtool.cli.context import Context
from rmqtool.cli.filters import BodyOptions, SubscriptionOptions, say_ignored
from rmqtool.cli.opened import open_log
from rmqtool.cli.options import QUERY_FORMATS, OutputOptions, ReadOptions, StoreOptions, StorePositional
from rmqtool.cli.parse import named, parse_text
from rmqtool.cli.query_filters import IdQueryFilters
from rmqtool.cli.verb import verb
from rmqtool.errors import ExitCode

SCHEMA = "rmqtool.query-id/1"


@verb(
    examples=[
        "rmqtool query-id /data/store 7F00000100002A9F0000000140000833",
        "rmqtool query-id /data/store AC1400031234567890AB0F2C3D4E0001 --body",
        "rmqtool query-id /data/store AC1400031234567890AB0F2C3D4E0001 --format raw > record.bin",
    ],
    formats=QUERY_FORMATS,
)
def command(
    path: StorePositional,
    given: Annotated[
        str, typer.Argument(metavar="ID", help="Offset message id or unique client id, IPv4 or IPv6.")
    ],
    *,
    store: StoreOptions,
    read: ReadOptions,
    filters: IdQueryFilters,
    subscription: SubscriptionOptions,
    bodies: BodyOptions,
    output: OutputOptions,
) -> ExitCode:
    """Messages by offset message id or unique client id.

    No flag says which kind of id it is. An offset message id names a host and a physical offset: the host
    is reported, not compared. A unique client id names the producer's address, process and time, and is
    found through the index, or by reading the log where no index answers. All records with the id are
    listed, such as those of a whole batch, or the half message and the committed one; filters choose among
    them. Where an id can be read both ways and each finds another message, both are listed.
    """
    from rmqtool.cli.records import RecordOut, answer_code
    from rmqtool.output.tablerows import Column
    from rmqtool.query.id_query import IdQuery
    from rmqtool.query.target import is_id

    context = Context(output)
    with named("ID"):
        parse_text(given)
    chosen = filters.build(context.zone, subscription=subscription.build())
    say_ignored(context, chosen.subscription)
    opened, unread = open_log(context, path, store)
    with context.progress("reading", 0) as progress:
        reading = read.of_log(opened, progress.advance, expect=progress.expect_more)
        query = IdQuery(opened, given, reading, chosen, unread)
        with RecordOut(context, SCHEMA, bodies, {"found_by": Column("found_by", "found by")}) as out:
            for batch, found_by in query.batches(out.columns):
                out.write(batch, {"found_by": found_by})
            out.finish(query.summary(out.messages, hide=bodies.redacted))
    if not bodies.redacted & {"hosts", "keys", "properties"}:
        for answer in query.answers:
            for note in (*answer.notes, *_maker(answer.id_parts)):
                context.console.note(note)
    if not out.messages and not is_id(given):
        context.console.note(
            "an id has 32 or 56 hexadecimal digits; this was looked for as it is, in UNIQ_KEY"
        )
    return answer_code(out.messages, query.not_covered())


def _maker(parts: dict[str, Any] | None) -> list[str]:
    """What a unique client id tells of its producer; the month is not in it, nor the time zone."""
    if parts is None or "pid" not in parts:
        return []
    return [
        f"the id was made by process {parts['pid']} on {parts['host']}, {parts['time_of_month']} of a month"
    ]
