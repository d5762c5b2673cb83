"""`rmqtool pipeline stats`: what the messages of many stores add up to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from rmqtool.cli.context import Context
from rmqtool.cli.filters import ChoosingOptions, SubscriptionOptions, say_ignored
from rmqtool.cli.options import OutputOptions
from rmqtool.cli.pipeline.spark import CutOptions, SparkOptions, StoresArgument
from rmqtool.cli.stats import BY, group_names, listed_rows, write_rows
from rmqtool.cli.verb import verb
from rmqtool.errors import ExitCode, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rmqtool.pipeline.stats import StoreStatistics

SCHEMA = "rmqtool.stats/1"


@verb(
    examples=[
        "rmqtool pipeline stats '/backup/*/store' --by topic,day",
        "rmqtool pipeline stats /data/a /data/b --master spark://host:7077 --from -1d --json",
        "rmqtool pipeline stats '/backup/*/store' --duplicates --format ndjson",
    ]
)
def command(
    stores: StoresArgument = None,
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
            "--duplicates",
            help="List UNIQ_KEYs that more than one message of a topic in a store has, batches apart.",
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
    *,
    spark: SparkOptions,
    cut: CutOptions,
    filters: ChoosingOptions,
    subscription: SubscriptionOptions,
    output: OutputOptions,
) -> ExitCode:
    """Message counts, sizes and rates of many stores, on Spark.

    Rows and sums are those of stats, store by store: a message that two stores have is there once in each.
    Parts of logs are added up where they are read; only sums come back, and the duplicates that are listed.
    """
    from rmqtool.cli.pipeline.spark import check_installed, opened_logs, source_options, with_left_out
    from rmqtool.cli.records import listing_code

    check_installed()
    context = Context(output)
    names = group_names(by)
    if by_key and not duplicates:
        raise UsageError("--by-key goes with --duplicates")
    twice = ("keys" if by_key else "uniq_key") if duplicates else None
    grouped = ["topic"] if names == ["group"] else names
    needs = retention or names == ["group"]
    wanted = filters.build(context.zone, subscription=subscription.build())
    say_ignored(context, wanted.subscription)
    options = source_options(stores, spark, wanted, cut)
    listed: list[dict[str, Any]] = []
    done: list[tuple[str, StoreStatistics]] = []
    options, every, lacking_logs = opened_logs(context, options)
    several = len(options.paths) > 1
    with spark.session(context, light=not duplicates) as session:
        from rmqtool.cli.left_out import damaged_settings
        from rmqtool.pipeline.stats import stats
        from rmqtool.query.displaced import lost_by_units
        from rmqtool.store.consumer_offsets import offsets_file

        for path, found in stats(session, options, every, grouped, plain=plain, needs=needs, twice=twice):
            store = every[path]
            found.not_covered[:0] = [*lacking_logs[path], *lost_by_units(store, wanted)]
            if needs:
                found.not_covered += damaged_settings(store, context, offsets_file(store))
            done.append((path, found))
            of_store = {"store": path} if several else {}
            listed += [row | of_store for row in listed_rows(every[path], found, names, retention=retention)]
            context.console.note(f"{path}: {found.summary()['messages']:,} messages")
        write_rows(context, SCHEMA, listed, _duplicates(done), lambda: with_left_out(_summary(done), options))
    lacking = [row for _, found in done for row in found.not_covered]
    return listing_code([*lacking, *options.left_out])


def _duplicates(done: list[tuple[str, StoreStatistics]]) -> Iterator[dict[str, Any]]:
    for path, found in done:
        of_store = {"store": path} if len(done) > 1 else {}
        for row in found.duplicates():
            yield {"type": "duplicate", **row, **of_store}


def _summary(done: list[tuple[str, StoreStatistics]]) -> dict[str, Any]:
    """Of one store its own, of several all of them."""
    from rmqtool.store.coverage import coverage

    if len(done) == 1:
        return done[0][1].summary()
    lacking = [row | {"store": path} for path, found in done for row in found.not_covered]
    return {"stores": [found.summary() | {"store": path} for path, found in done]} | coverage(lacking)
