"""`rmqtool explain`: what log lines mean."""

from __future__ import annotations

import sys
from typing import IO, TYPE_CHECKING, Annotated, Any, cast

import typer

from rmqtool.cli.context import Context
from rmqtool.cli.options import OutputOptions, StoreOptions
from rmqtool.cli.verb import verb
from rmqtool.errors import ExitCode, UsageError, worst

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import tzinfo

    from rmqtool.explain.reading import Source
    from rmqtool.explain.tally import Cause, Tally

Row = dict[str, Any]

_CSV_COLUMNS = (
    "type", "severity", "id", "level", "template", "count", "first_timestamp", "last_timestamp",
    "meaning", "look_at", "next", "evidence", "example", "place",
)  # fmt: skip


@verb(
    examples=[
        "rmqtool explain 'found a half message at 405488, it will be truncated.'",
        "rmqtool explain ~/logs/rocketmqlogs/store.log --store /data/store",
        "rmqtool explain ~/logs/rocketmqlogs --format ndjson",
        "rmqtool explain - < store.log",
    ]
)
def command(
    lines: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="LINE…",
            help="Log lines; an existing file, FIFO or directory is read (also .gz), - is the pipe.",
            show_default=False,
        ),
    ] = None,
    store_path: Annotated[
        str | None,
        typer.Option(
            "--store", metavar="STORE", help="Look up what the lines name in this store.", show_default=False
        ),
    ] = None,
    log_tz: Annotated[
        str,
        typer.Option(
            "--log-tz",
            metavar="ZONE",
            help="Zone of times in the log; RocketMQ writes its logs in +08:00 wherever it runs.",
        ),
    ] = "+08:00",
    unknown: Annotated[
        int, typer.Option("--unknown", metavar="N", min=0, help="Show so many kinds of unexplained lines.")
    ] = 20,
    *,
    store: StoreOptions,
    output: OutputOptions,
) -> ExitCode:
    """RocketMQ log lines: their meaning, normal or not, what to look at, the next command.

    A whole log is summarised by cause, with counts and first and last time; stack traces belong to their
    line.
    Warnings and errors that the table does not know are counted by their form. Exit code 0 means that every
    line is normal or harmless, 1 that a problem was found or a warning could not be explained.
    """
    from rmqtool.explain.reading import sources_of
    from rmqtool.explain.report import cause_rows, summary_of, unknown_rows
    from rmqtool.explain.tally import Tally
    from rmqtool.output.explain_page import ExplainPage

    context = Context(output)
    evidence = _evidence(context, store_path, store)
    sources = sources_of(lines or [], _piped())
    zone = _zone(log_tz)
    tally, unreadable = Tally(), cast("list[Row]", [])
    with context.rows("rmqtool.explain/1", [], csv_columns=_CSV_COLUMNS) as rows:
        rows.covered = lambda: summary_of(tally, unreadable)
        _read(context, sources, tally, unreadable, zone)
        found = cause_rows(tally, store_path or "STORE", evidence)
        found += unknown_rows(tally, unknown)
        if context.format == "table":
            ExplainPage(context.page(), context.text_style, context.zone).write(found)
        else:
            rows.write_rows(found)
        rows.finish(summary_of(tally, unreadable))
    return _exit_code(tally, unreadable)


def _exit_code(tally: Tally, unreadable: list[Row]) -> ExitCode:
    codes = [ExitCode.INCOMPLETE] if unreadable else []
    problems = any(cause.entry.severity == "problem" for cause in tally.causes.values())
    if problems or tally.unknown_lines:
        codes.append(ExitCode.DAMAGE)
    return worst(codes)


def _zone(text: str) -> tzinfo | None:
    from rmqtool.cli.parse import named
    from rmqtool.output.times import zone_of

    with named("--log-tz"):
        return zone_of(text).info


def _evidence(
    context: Context, path: str | None, options: StoreOptions
) -> Callable[[Cause], list[str]] | None:
    if path is None:
        if options.store_config or options.commitlog:
            raise UsageError("--store-config and --commitlog need --store")
        return None
    from rmqtool.cli.opened import open_store
    from rmqtool.explain.evidence import StoreEvidence

    return StoreEvidence(open_store(context, path, options))


def _piped() -> IO[bytes] | None:
    """Standard input as bytes, None when a person sits there."""
    if sys.stdin is None or sys.stdin.isatty():
        return None
    return cast("IO[bytes]", sys.stdin.buffer)


def _read(
    context: Context, sources: list[Source], tally: Tally, unreadable: list[Row], zone: tzinfo | None
) -> None:
    """Feeds all sources; one that cannot be read (on) is noted, and the others follow."""
    from rmqtool.explain.collect import Collector
    from rmqtool.explain.match import Table
    from rmqtool.explain.reading import READ_ERRORS

    table = Table()
    with context.progress("reading", sum(source.size for source in sources)) as progress:
        for source in sources:
            collector = Collector(tally, table, source.name, zone)
            try:
                for block in source.blocks(progress.advance):
                    collector.feed(block)
            except READ_ERRORS as error:
                reason = getattr(error, "strerror", None) or str(error)
                unreadable.append({"path": source.name, "error": reason})
                context.console.warn(f"{source.name}: cannot be read any further: {reason}")
