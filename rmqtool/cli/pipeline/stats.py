"""`rmqtool pipeline stats`: what the messages of many stores add up to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from rmqtool.cli.context import Context
from rmqtool.cli.filters import ChoosingOptions, SubscriptionOptions, say_ignored
from rmqtool.cli.options import OutputOptions
from rmqtool.cli.pipeline.spark import CutOptions, SparkOptions, StoresArgument
from rmqtool.cli.stats import BY, group_names, listed_rows
from rmqtool.cli.verb import verb
from rmqtool.errors import ExitCode

if TYPE_CHECKING:
    from rmqtool.query.stats.report import LogStatistics

SCHEMA = "rmqtool.stats/1"


@verb(
    examples=[
        "rmqtool pipeline stats '/backup/*/store' --by topic,day",
        "rmqtool pipeline stats /data/a /data/b --master spark://host:7077 --from -1d --json",
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
    """What the messages of many stores add up to, on Spark.

    Rows and sums are those of stats, store by store. Parts of logs are added up where they are read; only
    sums come back.
    """
    from rmqtool.cli.pipeline.spark import check_installed, opened_logs, source_options
    from rmqtool.cli.records import listing_code
    from rmqtool.output.stats_table import columns
    from rmqtool.store.coverage import coverage

    check_installed()
    context = Context(output)
    names = group_names(by)
    grouped = ["topic"] if names == ["group"] else names
    needs = retention or names == ["group"]
    wanted = filters.build(context.zone, subscription=subscription.build())
    say_ignored(context, wanted.subscription)
    options = source_options(stores, spark, wanted, cut)
    several = len(options.paths) > 1
    listed: list[dict[str, Any]] = []
    done: list[tuple[str, LogStatistics]] = []
    every, lacking_logs = opened_logs(context, options)
    with spark.session(context) as session:
        from rmqtool.pipeline.stats import stats

        for path, found in stats(session, options, every, grouped, plain=plain, needs=needs):
            found.not_covered[:0] = lacking_logs[path]
            done.append((path, found))
            of_store = {"store": path} if several else {}
            listed += [row | of_store for row in listed_rows(every[path], found, names, retention=retention)]
            context.talk.note(f"{path}: {found.summary()['messages']:,} messages")
    lacking = [row | {"store": path} for path, found in done for row in found.not_covered]
    keys = list(dict.fromkeys(key for row in listed for key in row))
    with context.rows(SCHEMA, columns(listed, context.zone), csv_columns=keys or ["type"]) as out:
        out.write_rows(listed)
        if several:
            parts = [found.summary() | {"store": path} for path, found in done]
            out.finish({"stores": parts} | coverage(lacking))
        else:
            out.finish(done[0][1].summary())
    return listing_code(lacking)
