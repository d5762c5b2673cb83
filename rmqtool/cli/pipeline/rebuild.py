"""`rmqtool pipeline rebuild`: derived files of many stores again."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rmqtool.cli.context import Context
from rmqtool.cli.options import OutputOptions, VersionOptions
from rmqtool.cli.pipeline.spark import CutOptions, SparkOptions, StoresArgument
from rmqtool.cli.rebuild_select import SelectOptions
from rmqtool.cli.verb import verb
from rmqtool.errors import ExitCode, UsageError

if TYPE_CHECKING:
    from rmqtool.pipeline.rebuild import StoreRebuilt

SCHEMA = "rmqtool.pipeline-rebuild/1"


@verb(
    examples=[
        "rmqtool pipeline rebuild /data/store --output /data/derived",
        "rmqtool pipeline rebuild '/backup/*/store' --output derived --what index --master spark://host:7077",
    ],
    formats=("table", "json"),
)
def command(
    stores: StoresArgument = None,
    to: Annotated[
        str | None,
        typer.Option(
            "--output",
            metavar="DIR",
            help="Output directory, new or empty; all workers must see it.",
            show_default=False,
        ),
    ] = None,
    *,
    select: SelectOptions,
    version: VersionOptions,
    spark: SparkOptions,
    cut: CutOptions,
    output: OutputOptions,
) -> ExitCode:
    """Rebuild consume queues and index of many stores, on Spark.

    The files are those that rebuild --output writes, byte for byte, also where rebuild finds problems in
    its result and needs --apply-unproven: pipeline verify finds these. With several stores each has a
    directory store=…. The directory gets its name when all of it is written; what a killed run left is
    rebuilt. A store whose tasks die each time that they are tried is named in the summary and not built.
    Exit code 1 says that a log is damaged, 3 that bytes could not be read or a store was not built.
    """
    from rmqtool.cli.pipeline.spark import (
        check_installed,
        code_with_left_out,
        opened,
        source_options,
        with_left_out,
    )
    from rmqtool.pipeline.opening import refuse_remote
    from rmqtool.query.message_filter import MessageFilter
    from rmqtool.store.modes import readers_of

    check_installed()
    if not to:
        raise UsageError("--output is missing: name a directory")
    context = Context(output)
    source = source_options(stores, spark, MessageFilter(), cut)
    for path in source.paths:
        refuse_remote(path, "rebuild")
    source, every = opened(context, source)
    options = {
        path: select.build(version.release_of(store), complete=True, tz=output.tz)
        for path, store in every.items()
    }
    with spark.session(context, light=True, readers=readers_of(*every.values())) as session:
        from rmqtool.pipeline.rebuild import RebuildJob

        job = RebuildJob(session, source, options, Path(to), context.zone.info)
        job.begin(every)
        try:
            for one in job.run(every):
                _say(context, one)
            summary: dict[str, Any] = {"output": str(Path(to))} | with_left_out(job.publish(), source)
        except BaseException:
            job.discard()
            raise
    if context.format == "json":
        context.document(SCHEMA, summary)
    else:
        context.console.closing(summary)
    return code_with_left_out(job.exit_code(), source)


def _say(context: Context, one: StoreRebuilt) -> None:
    from rmqtool.repair.rebuild_report import warnings_of

    if one.rebuilt is None:
        context.console.warn(f"{one.store}: not built, {one.lost[0]['error']}")
        return
    reported = one.summary()
    context.console.note(
        f"{one.store}: {reported['queues']:,} queues, {reported['index_items']:,} index entries"
    )
    for line in warnings_of(one.rebuilt):
        context.console.warn(f"{one.store}: {line}")
