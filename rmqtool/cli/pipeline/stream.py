"""`rmqtool pipeline stream`: messages of live stores into files, as they come."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from rmqtool.cli.context import Context
from rmqtool.cli.options import OutputOptions
from rmqtool.cli.parse import named, parse_size
from rmqtool.cli.pipeline.spark import CutOptions, SparkOptions, StoresArgument
from rmqtool.cli.verb import verb
from rmqtool.errors import ExitCode, UsageError

if TYPE_CHECKING:
    from rmqtool.pipeline.stream_job import StreamForm

SCHEMA = "rmqtool.stream/1"


@dataclass(frozen=True)
class FollowOptions:
    """When a stream reads, where it begins, and what it passes over."""

    once: Annotated[
        bool, typer.Option("--once", help="What is there now and was not written yet, and no more.")
    ] = False
    every: Annotated[
        float, typer.Option("--every", metavar="SECONDS", min=0, help="Time between batches.")
    ] = 10.0
    start: Annotated[
        str,
        typer.Option(
            "--start",
            metavar="WHERE",
            help="earliest, latest, a physical offset or an ISO 8601 time; of a new stream only.",
        ),
    ] = "earliest"
    expired: Annotated[
        Literal["fail", "skip"],
        typer.Option("--expired", help="What becomes of segments that are gone before they were read."),
    ] = "fail"
    max_bytes: Annotated[
        str | None,
        typer.Option(
            "--max-bytes", metavar="SIZE", help="Bytes of logs for each batch, about.", show_default=False
        ),
    ] = None


@verb(
    examples=[
        "rmqtool pipeline stream /data/store --to lake/live --partition topic,day --every 30",
        "rmqtool pipeline stream '/brokers/*/store' --to lake/live --once",
    ],
    formats=("parquet", "ndjson"),
)
def command(
    stores: StoresArgument = None,
    to: Annotated[
        str | None,
        typer.Option("--to", metavar="DIR", help="Directory that files are added to.", show_default=False),
    ] = None,
    checkpoint: Annotated[
        str | None,
        typer.Option(
            "--checkpoint",
            metavar="DIR",
            help="Where the state of the stream is kept; default _checkpoint in the directory.",
            show_default=False,
        ),
    ] = None,
    topic: Annotated[
        list[str] | None,
        typer.Option(
            "--topic", metavar="GLOB", help="Topic, also as a glob; repeatable.", show_default=False
        ),
    ] = None,
    columns: Annotated[
        str | None,
        typer.Option(
            "--columns",
            metavar="NAMES",
            help="Columns of messages; default those of dump.",
            show_default=False,
        ),
    ] = None,
    partition: Annotated[
        str | None,
        typer.Option(
            "--partition",
            metavar="KEYS",
            help="Directories by topic, day or topic,day (of the store time, UTC).",
            show_default=False,
        ),
    ] = None,
    *,
    follow: FollowOptions,
    spark: SparkOptions,
    cut: CutOptions,
    output: OutputOptions,
) -> ExitCode:
    """Export messages of live stores to files as they arrive, on Spark.

    Follows the logs across segments and adds files to a directory, each message exactly once for who reads
    the directory with Spark; a restarted stream continues from its checkpoint. Runs until
    Ctrl-C, with --once until all is written that is there. Stores are only read.
    """
    from rmqtool.cli.pipeline.spark import check_installed, opened_logs, refuse_no_utf8, source_options
    from rmqtool.cli.records import listing_code
    from rmqtool.pipeline.export import refuse_inside
    from rmqtool.pipeline.follow import refuse_unfollowed
    from rmqtool.pipeline.opening import refuse_remote
    from rmqtool.pipeline.shared import refuse_led
    from rmqtool.pipeline.stream_job import StreamRun
    from rmqtool.query.message_filter import MessageFilter
    from rmqtool.store.modes import only_for, readers_of

    check_installed()
    if not to:
        raise UsageError("--to is missing: name a directory")
    context = Context(output if output.json else replace(output, format=None))
    form = _form(output, to, checkpoint, partition, None if follow.once else follow.every)
    asked = {"start": follow.start, "expired": follow.expired}
    if cut.part_bytes is not None:
        asked["part_bytes"] = str(cut.part_bytes)
    if follow.max_bytes is not None:
        with named("--max-bytes"):
            most = parse_size(follow.max_bytes)
        if not most:
            raise UsageError("--max-bytes: a batch takes something")
        asked["max_bytes_per_trigger"] = str(most)
    given = {"topic": ",".join(topic or ()), "columns": columns, "store_config": spark.store_config}
    asked |= {name: value for name, value in given.items() if value}
    refuse_no_utf8(**asked, to=to, checkpoint=checkpoint)
    _check(asked, partition)
    form.refuse_mixture()
    sources = source_options(stores, spark, MessageFilter(), cut)
    for path in sources.paths:
        refuse_remote(path, "a stream")
    sources, every_store, left_out = opened_logs(context, sources)
    for store in every_store.values():
        refuse_unfollowed(store)
    missing = [row | {"store": path} for path, rows in left_out.items() for row in rows]
    missing += sources.left_out
    for place in (form.to, form.state):
        refuse_inside(every_store, Path(place))
    readers = readers_of(*every_store.values())
    only_for(readers)
    refuse_led(form.to, "--to")
    refuse_led(form.state, "--checkpoint")
    with spark.session(context, readers=readers) as session:
        run = StreamRun(session, sources.paths, asked, form, missing)
        for messages in run.run():
            context.console.note(f"batch {run.batches}: {messages:,} messages, {run.messages:,} in all")
    reported = {"path": to, "format": form.format} | run.summary()
    if context.format == "json":
        context.document(SCHEMA, reported)
    else:
        context.console.closing(reported)
    return listing_code(run.not_covered)


def _form(
    output: OutputOptions, to: str, checkpoint: str | None, partition: str | None, every: float | None
) -> StreamForm:
    from rmqtool.cli.export import partition_keys
    from rmqtool.pipeline.stream_job import StreamForm

    name: Literal["ndjson", "parquet"] = "ndjson" if output.format == "ndjson" else "parquet"
    return StreamForm(to, name, partition_keys(partition), every, checkpoint)


def _check(asked: dict[str, str], partition: str | None) -> None:
    """What the source would refuse is refused before Spark starts."""
    from rmqtool.cli.export import partition_keys
    from rmqtool.pipeline.stream_options import parse_start
    from rmqtool.pipeline.types import chosen_schema

    parse_start(asked["start"])
    if "columns" not in asked:
        return
    names = [one.strip() for one in asked["columns"].split(",") if one.strip()]
    chosen_schema("messages", names)
    for key in partition_keys(partition):
        needed = {"day": "store_time"}.get(key, key)
        if needed not in names:
            raise UsageError(f"--partition {key} needs the column {needed} in --columns")
