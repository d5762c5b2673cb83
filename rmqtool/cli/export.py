"""`rmqtool export`: messages into a file or a directory."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from rmqtool.cli.context import Context
from rmqtool.cli.file_beside import refuse_inside
from rmqtool.cli.filters import BodyOptions, ExportFilterOptions, SubscriptionOptions
from rmqtool.cli.opened import open_log
from rmqtool.cli.options import OutputOptions, ReadOptions, StoreArgument, StoreOptions
from rmqtool.cli.verb import verb
from rmqtool.errors import ExitCode, UsageError

if TYPE_CHECKING:
    from rmqtool.output.export.run import Destination, ExportRun
    from rmqtool.output.export.target import Target

SUFFIXES = {
    ".ndjson": "ndjson",
    ".jsonl": "ndjson",
    ".csv": "csv",
    ".parquet": "parquet",
    ".raw": "raw",
    ".bin": "raw",
    ".replay": "replay",
}
FORMATS = ("ndjson", "csv", "parquet", "raw", "replay")
_PARTITIONS = ("topic", "day")


@verb(
    examples=[
        "rmqtool export /data/store --to orders.parquet --topic 'Order*' --from -2h",
        "rmqtool export /data/store --to messages.ndjson --from 2026-11-21 --until 2026-11-22 --redact body",
        "rmqtool export /data/store --to lake/messages --format parquet --partition topic,day",
        "rmqtool export /data/store --to lost.replay --offset-range 1073741824: --resume",
    ],
    formats=FORMATS,
)
def command(
    path: StoreArgument = None,
    to: Annotated[
        list[str] | None,
        typer.Option(
            "--to",
            metavar="FILE|DIR",
            help="Output file; it must not exist yet. (The end of a time span is --until.)",
            show_default=False,
        ),
    ] = None,
    partition: Annotated[
        str | None,
        typer.Option(
            "--partition",
            metavar="KEYS",
            help="Parquet: a directory by topic, day or topic,day (of the store time, UTC).",
            show_default=False,
        ),
    ] = None,
    compression: Annotated[
        Literal["zstd", "snappy", "none"] | None,
        typer.Option(
            "--compression", help="Parquet: how pages are compressed; default zstd.", show_default=False
        ),
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Replace what an earlier export made, whole or interrupted.")
    ] = False,
    resume: Annotated[
        bool, typer.Option("--resume", help="Continue an interrupted export, if there is one.")
    ] = False,
    *,
    store: StoreOptions,
    read: ReadOptions,
    filters: ExportFilterOptions,
    subscription: SubscriptionOptions,
    bodies: BodyOptions,
    output: OutputOptions,
) -> ExitCode:
    """Export messages to a file: NDJSON, CSV, Parquet, raw records, or a file to send them again from.

    The form follows from the name (.ndjson, .csv, .parquet, .raw, .replay) or from --format. The output is
    NAME.part until it is complete; an interrupted export continues with --resume. The summary goes to
    standard error, with --json as one document to standard output.
    Exit code 3 says that bytes in the range asked for were damaged or could not be read.
    """
    from rmqtool.output.export.run import ExportRun
    from rmqtool.store.modes import only_for, readers_of

    form, target = _target(to, output, partition)

    context = Context(replace(output, format=None, spreadsheet=False))
    destination = _destination(form, target, bodies, output, partition, compression)
    opened, missing = open_log(context, path, store)
    refuse_inside(target.path, [opened], "--to")
    only_for(readers_of(opened))
    wanted = filters.build(
        context.zone, resolve=opened.segments.physical_offset, subscription=subscription.build()
    )
    given = asdict(filters) | asdict(subscription) | asdict(bodies)
    reported = {"format": form, "partition": partition, "compression": compression}
    options = given | reported | {"int64_as_string": output.int64_as_string, "tz": output.tz}
    if output.spreadsheet:
        options["spreadsheet"] = True
    state = target.begin(force=force, resume=resume, options=options)
    with context.progress("exporting", sum(one.size for one in opened.segments)) as progress:
        run = ExportRun(opened, wanted, read.of_log(opened, progress.advance), destination, target)
        try:
            run.run(options, state, missing)
        except KeyboardInterrupt:
            from rmqtool.store.coverage import Incomplete

            left = None if run.published else Incomplete.INTERRUPTED
            _tell(context, run, target, form, bodies, left)
            raise
    _tell(context, run, target, form, bodies)
    return run.exit_code()


def _tell(
    context: Context, run: ExportRun, target: Target, form: str, bodies: BodyOptions, left: Any = None
) -> None:
    from rmqtool.output.export.run import SCHEMA

    reported: dict[str, Any] = {"path": str(target.path), "format": form}
    if run.resumed_from is not None:
        reported["resumed_from_offset"] = run.resumed_from
    if bodies.redacted:
        reported["redaction"] = sorted(bodies.redacted)
    summary = reported | run.summary(left)
    if context.format == "json":
        context.document(SCHEMA, summary)
    else:
        context.console.closing(summary)
    if left is not None:
        context.console.note(f"what was written is {target.part}; the same command with --resume continues")


def _target(given: list[str] | None, output: OutputOptions, partition: str | None) -> tuple[str, Target]:
    """What is written and where."""
    from rmqtool.output.export.target import Target

    if given and len(given) > 1:
        raise UsageError("--to names the file here and is given once; the end of a time span is --until")
    to = given[0] if given else ""
    if to in {"", "-"}:
        raise UsageError(
            "--to is missing: it names the file, or a directory with --partition; dump writes to a pipe"
        )
    _refuse_time(to, output)
    path = Path(to)
    if not path.name or path.name in {".", ".."}:
        raise UsageError(f"--to: {to} is not a valid file name")
    form = output.format or SUFFIXES.get(path.suffix.lower()) or ("parquet" if partition else None)
    if form is None:
        raise UsageError(
            f"--format is missing: the name {path.name} does not imply one ({', '.join(SUFFIXES)})"
        )
    return form, Target(path, directory=partition is not None)


def _refuse_time(to: str, output: OutputOptions) -> None:
    """A time where a file is to be named: elsewhere `--to` is the end of a time span."""
    from rmqtool.cli.parse import parse_time
    from rmqtool.output.times import zone_of

    try:
        parse_time(to, zone_of(output.tz))
    except UsageError:
        return
    raise UsageError(
        f"--to names the file here, and {to} is a time: the end of a time span is --until "
        f"(a file of that name is ./{to})"
    )


def _destination(
    form: str,
    target: Target,
    bodies: BodyOptions,
    output: OutputOptions,
    partition: str | None,
    compression: str | None,
) -> Destination:
    """What takes the records. Options that mean nothing for the form are refused."""
    if form != "parquet" and (partition or compression):
        raise UsageError(f"--partition and --compression are for Parquet, not for {form}")
    if output.int64_as_string and form != "ndjson" and not output.json:
        raise UsageError(f"--int64-as-string is for NDJSON, not for {form}")
    if output.spreadsheet and form != "csv":
        raise UsageError(f"--spreadsheet is for CSV, not for {form}")
    if form in {"raw", "replay"}:
        from rmqtool.output.export.streams import RawForm, ReplayForm, StreamExport

        _refuse_shaping(form, bodies)
        return StreamExport(target, RawForm()) if form == "raw" else StreamExport(target, ReplayForm())
    from rmqtool.output.messages import MessageShape

    body = bodies.body or ("none" if form == "csv" else "auto")
    shape = MessageShape(body, bodies.body_sha256, bodies.redacted)
    if form == "parquet":
        return _parquet(target, shape, partition, compression)
    from rmqtool.output.export.run import SCHEMA
    from rmqtool.output.export.streams import RowForm, StreamExport

    rows = RowForm(
        shape,
        SCHEMA,
        csv=form == "csv",
        spreadsheet=output.spreadsheet,
        int64_as_string=output.int64_as_string,
    )
    return StreamExport(target, rows)


def _parquet(target: Target, shape: Any, partition: str | None, compression: str | None) -> Destination:
    from rmqtool.output.export.parquet import ParquetExport
    from rmqtool.output.export.record_table import RecordTable

    table, packed = RecordTable(shape), compression or "zstd"
    return ParquetExport(target, table, packed, partition_keys(partition))


def partition_keys(text: str | None) -> tuple[str, ...]:
    """What `--partition` names, none without it."""
    keys = tuple(part.strip() for part in text.split(",")) if text is not None else ()
    if not set(keys) <= set(_PARTITIONS) or len(set(keys)) != len(keys):
        raise UsageError(f"--partition: '{text}' must be one of: topic; day; topic,day")
    return keys


def _refuse_shaping(form: str, bodies: BodyOptions) -> None:
    if bodies.redacted:
        raise UsageError(f"--redact cannot be combined with --format {form}, which has whole records")
    if bodies.body or bodies.body_sha256:
        raise UsageError(
            f"--body and --body-sha256 cannot be combined with --format {form}, which has records"
        )
