"""`rmqtool stats`: what the messages of a store add up to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from rmqtool.cli.arguments import DRAWN
from rmqtool.cli.context import Context
from rmqtool.cli.filters import ListingFilters, SubscriptionOptions, say_ignored
from rmqtool.cli.near import say_unknown_topics
from rmqtool.cli.opened import open_log
from rmqtool.cli.options import OutputOptions, ReadOptions, StoreArgument, StoreOptions
from rmqtool.cli.parse import named, parse_names
from rmqtool.cli.verb import verb
from rmqtool.errors import ExitCode, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rmqtool.query.stats.report import LogStatistics
    from rmqtool.store.layout import Store

SCHEMA = "rmqtool.stats/1"
BY = ("topic", "queue", "tag", "hour", "day", "host", "kind", "segment", "group")


@verb(
    examples=[
        "rmqtool stats /data/store",
        "rmqtool stats /data/store --by topic,hour --from -1d --plot",
        "rmqtool stats /data/store --by group",
        "rmqtool stats /data/store --retention --store-config broker.conf",
        "rmqtool stats /data/store --topic 'Order*' --duplicates --by-key",
    ]
)
def command(
    path: StoreArgument = None,
    by: Annotated[
        str,
        typer.Option(
            "--by",
            metavar="NAMES",
            help=f"One or more of {', '.join(BY[:-1])}, or group for what waits for consumer groups.",
        ),
    ] = "topic",
    duplicates: Annotated[
        bool,
        typer.Option(
            "--duplicates", help="List UNIQ_KEYs that more than one message of a topic has, batches apart."
        ),
    ] = False,
    by_key: Annotated[
        bool, typer.Option("--by-key", help="With --duplicates: by the elements of KEYS.")
    ] = False,
    retention: Annotated[
        bool, typer.Option("--retention", help="List segments: when they are free to go, who needs them.")
    ] = False,
    plain: Annotated[
        bool, typer.Option("--inflate", help="Decompress bodies, to tell what compression gains.")
    ] = False,
    plot: Annotated[
        str | None,
        typer.Option(
            "--plot",
            metavar="[FILE]",
            help="Draw the groups as bars, hours and days over time; into FILE.svg, or FILE.png with the "
            "extra 'plot'.",
            show_default=False,
        ),
    ] = None,
    *,
    store: StoreOptions,
    read: ReadOptions,
    filters: ListingFilters,
    subscription: SubscriptionOptions,
    output: OutputOptions,
) -> ExitCode:
    """Message counts, sizes and rates of a store.

    Messages, bytes, rates and the largest message, by topic unless --by says otherwise; in the summary the
    share of internal topics, compression, and what the segments take on the disk. Duplicate messages
    are distinguished from the copies that brokers make (delayed, half, retried, dead, timed) and from
    batches.
    """
    from rmqtool.cli.left_out import damaged_settings
    from rmqtool.cli.records import listing_code
    from rmqtool.query.duplicates.hashes import Repeated
    from rmqtool.query.stats.report import LogStatistics
    from rmqtool.query.stats.retention import Needs
    from rmqtool.store.consumer_offsets import offsets_file

    context = Context(output)
    names = group_names(by)
    if by_key and not duplicates:
        raise UsageError("--by-key goes with --duplicates")
    if plot is not None:
        _check_plot(context, plot)
    opened, unread = open_log(context, path, store)
    if plot not in {None, DRAWN}:
        _refuse_inside(str(plot), opened)
    wanted = filters.build(
        context.zone, resolve=opened.segments.physical_offset, subscription=subscription.build()
    )
    say_ignored(context, wanted.subscription)
    say_unknown_topics(context, opened, wanted.topics)
    with context.progress("reading", sum(one.size for one in opened.segments)) as progress:
        needs = Needs(opened) if retention or names == ["group"] else None
        grouped = ["topic"] if names == ["group"] else names
        repeated = Repeated(by_key) if duplicates else None
        reading = read.of_log(opened, progress.advance)
        found = LogStatistics(opened, wanted, grouped, reading, plain, needs, repeated)
        found.not_covered += unread
        if needs is not None:
            found.not_covered += damaged_settings(opened, context, offsets_file(opened))
        found.read()
    listed = listed_rows(opened, found, names, retention=retention)
    twice = ({"type": "duplicate", **row} for row in found.duplicates())
    write_rows(context, SCHEMA, listed, twice, found.summary)
    if plot is not None:
        _plot(context, opened, names, listed, plot)
    return listing_code(found.not_covered)


def group_names(text: str) -> list[str]:
    """What `--by` names, each once."""
    with named("--by"):
        given = [one.strip() for one in text.split(",")]
        parse_names(text, BY)
        if "group" in given and len(given) > 1:
            raise UsageError("group cannot be combined with other values")
        return list(dict.fromkeys(given))


def listed_rows(
    store: Store, found: LogStatistics, names: list[str], *, retention: bool
) -> list[dict[str, Any]]:
    """The rows of the answer: groups, consumer groups, or segments."""
    import time

    from rmqtool.query.stats.retention import forecast

    needs = found.needs.rows() if found.needs is not None else []
    if names == ["group"]:
        rows = [{"type": "consumer_group", **row} for row in needs]
    else:
        rows = [{"type": "group", **row} for row in found.groups.rows()]
    if retention:
        now = time.time_ns() // 1_000_000
        rows = [{"type": "segment", **row} for row in forecast(store, needs, now)]
    return rows


def write_rows(
    context: Context,
    schema: str,
    listed: list[dict[str, Any]],
    duplicates: Iterator[dict[str, Any]],
    summary: Callable[[], dict[str, Any]],
) -> None:
    """Writes the groups and, as they are found, the duplicates; a table shows one or the other."""
    from itertools import chain, islice

    from rmqtool.output.stats_table import columns

    first = list(islice(duplicates, 1))
    rows = [*listed, *first]
    if context.format == "table" and first:
        rows = first
    keys = list(dict.fromkeys(key for row in rows for key in row))
    with context.rows(schema, columns(rows, context.zone), csv_columns=keys or ["type"]) as out:
        out.write_rows(chain(rows, duplicates))
        out.finish(summary())


def _check_plot(context: Context, plot: str) -> None:
    if plot != DRAWN:
        from rmqtool.output.bars_file import check_picture

        check_picture(plot)
    elif context.format != "table":
        raise UsageError(f"--plot and --format {context.format} cannot be combined; --plot FILE.svg does not")


def _refuse_inside(path: str, store: Store) -> None:
    from rmqtool.repair.places import lies_in

    if lies_in(path, store):
        raise UsageError(f"--plot {path}: lies inside the store")


def _plot(context: Context, store: Store, names: list[str], rows: list[dict[str, Any]], plot: str) -> None:
    """The bars, on standard output below the table or in a file."""
    from rmqtool.output.bars import bars_of, drawn, most_columns

    value = "waiting_messages" if names == ["group"] else "messages"
    shown = [row for row in rows if value in row]
    if not shown:
        return
    look = context.text_style
    if plot != DRAWN:
        from rmqtool.output.bars_file import MOST, write_picture
        from rmqtool.store.modes import only_for, readers_of

        only_for(readers_of(store))

        write_picture(bars_of(shown, value, context.zone, MOST), plot)
        context.console.note(f"drawn in {plot}")
        return
    for line in ("", *drawn(bars_of(shown, value, context.zone, most_columns(look)), look)):
        context.out.write(look.encode(f"{line}\n"))
    context.out.flush()
