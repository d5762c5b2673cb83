"""`rmqtool pipeline export`: messages of many stores into one directory."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from rmqtool.cli.context import Context
from rmqtool.cli.filters import BodyOptions, ExportChoosingOptions, SubscriptionOptions
from rmqtool.cli.options import OutputOptions
from rmqtool.cli.pipeline.spark import CutOptions, SparkOptions, StoresArgument
from rmqtool.cli.verb import verb
from rmqtool.errors import ExitCode, UsageError

if TYPE_CHECKING:
    from rmqtool.pipeline.export import ExportForm, StoreExported
    from rmqtool.query.message_filter import MessageFilter
    from rmqtool.store.layout import Store


@verb(
    examples=[
        "rmqtool pipeline export '/backup/*/store' --to lake/messages --partition topic,day",
        "rmqtool pipeline export /data/store --to out --format ndjson --topic 'Order*' --from -2h",
    ],
    formats=("parquet", "ndjson"),
)
def command(
    stores: StoresArgument = None,
    to: Annotated[
        str | None,
        typer.Option(
            "--to",
            metavar="DIR",
            help="Directory to create; it must not exist, and all workers must see it.",
            show_default=False,
        ),
    ] = None,
    partition: Annotated[
        str | None,
        typer.Option(
            "--partition",
            metavar="KEYS",
            help="Parquet: directories by topic, day or topic,day (of the store time, UTC).",
            show_default=False,
        ),
    ] = None,
    compression: Annotated[
        Literal["zstd", "snappy", "none"] | None,
        typer.Option(
            "--compression", help="Parquet: how pages are compressed; default zstd.", show_default=False
        ),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace what an earlier export made.")] = False,
    *,
    spark: SparkOptions,
    cut: CutOptions,
    filters: ExportChoosingOptions,
    subscription: SubscriptionOptions,
    bodies: BodyOptions,
    output: OutputOptions,
) -> ExitCode:
    """Export messages of many stores to one directory, on Spark.

    Rows are those of export, in one file or more for each part of a log; files of NDJSON, concatenated in the
    order of their names, are the lines of export. With several stores each has a directory
    store=…. The directory gets its name when all of it is written, with the summary beside the files; what a
    killed run left is written again. Exit code 3 says that bytes in the range asked for were damaged or could
    not be read.
    """
    from rmqtool.cli.pipeline.spark import (
        check_installed,
        code_with_left_out,
        opened,
        source_options,
        with_left_out,
    )
    from rmqtool.pipeline.export import ExportJob, refuse_inside
    from rmqtool.store.modes import readers_of

    check_installed()
    form = _form(output, partition, compression, bodies)
    context = Context(output if output.json else _table(output))
    if not to:
        raise UsageError("--to is missing: name a directory")
    wanted = filters.build(context.zone, subscription=subscription.build())
    options = source_options(stores, spark, wanted, cut)
    options, every = opened(context, options)
    refuse_inside(every, Path(to))
    with spark.session(context, light=True, readers=readers_of(*every.values())) as session:
        job = ExportJob(session, options, form, Path(to), force=force)
        job.begin()
        try:
            for one in job.run(every, _missing(context, every, options.wanted)):
                _say(context, one)
            summary = job.publish()
        except BaseException:
            job.discard()
            raise
    reported: dict[str, Any] = {"path": str(Path(to)), "format": form.format} | with_left_out(
        summary, options
    )
    if context.format == "json":
        from rmqtool.output.export.run import SCHEMA

        context.document(SCHEMA, reported)
    else:
        context.console.closing(reported)
    return code_with_left_out(job.exit_code(), options)


def _table(output: OutputOptions) -> OutputOptions:
    from dataclasses import replace

    return replace(output, format=None)


def _form(
    output: OutputOptions, partition: str | None, compression: str | None, bodies: BodyOptions
) -> ExportForm:
    from rmqtool.cli.export import partition_keys
    from rmqtool.output.messages import MessageShape
    from rmqtool.pipeline.export import ExportForm

    name: Literal["ndjson", "parquet"] = "ndjson" if output.format == "ndjson" else "parquet"
    if name == "ndjson" and (partition or compression):
        raise UsageError("--partition and --compression are for Parquet, not for ndjson")
    shape = MessageShape(bodies.body or "auto", bodies.body_sha256, bodies.redacted)
    return ExportForm(name, shape, partition_keys(partition), compression or "zstd")


def _missing(
    context: Context, stores: dict[str, Store], wanted: MessageFilter
) -> dict[str, list[dict[str, Any]]]:
    """What could not even be listed, and ends of logs that are lost."""
    from rmqtool.cli.left_out import undecoded_beside_log, unlisted
    from rmqtool.query.displaced import lost_by_units
    from rmqtool.query.lost_end import log_gone

    return {
        path: [
            *unlisted(store, context, commitlog=True),
            *undecoded_beside_log(store, context),
            *log_gone(store),
            *lost_by_units(store, wanted),
        ]
        for path, store in stores.items()
    }


def _say(context: Context, one: StoreExported) -> None:
    state = "" if one.summary["complete"] else f", incomplete ({one.summary['incomplete_reason']})"
    context.console.note(f"{one.store}: {one.summary['messages']:,} messages{state}")
