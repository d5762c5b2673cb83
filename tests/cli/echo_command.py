"""The command `echo` of these tests: prints its parsed options, or fails in the way it is reported to."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from rmqtool.cli.context import Context
from rmqtool.cli.filters import BodyOptions, FilterOptions
from rmqtool.cli.options import FORMATS, OutputOptions, PathArgument, ReadOptions, StoreOptions, resolve_store
from rmqtool.cli.verb import verb
from rmqtool.errors import (
    ExitCode,
    LockedError,
    MissingExtraError,
    NewerFormatError,
    NotAStoreError,
    UnreadableError,
)
from rmqtool.output.tablerows import Column

FAILURES = {
    "usage": NotAStoreError("no store"),
    "extra": MissingExtraError("sql", "sql"),
    "unreadable": UnreadableError("commitlog/0", 10, 5, "Input/output error"),
    "newer": NewerFormatError("a format of the future"),
    "locked": LockedError("held by process 7"),
    "os": PermissionError(13, "Permission denied", "a\nb"),
    "defect": ZeroDivisionError("line\nbreak \x1b[2J"),
    "memory": MemoryError(),
    "interrupt": KeyboardInterrupt(),
    "exit": typer.Exit(3),
}


@verb(examples=["rmqtool echo -2h --topic 'T[0-9]*'"], formats=(*FORMATS, "raw"))
def command(
    path: PathArgument = None,
    count: Annotated[int, typer.Option("--rows")] = 0,
    fail: Annotated[str | None, typer.Option("--fail")] = None,
    *,
    store: StoreOptions,
    read: ReadOptions,
    filters: FilterOptions,
    bodies: BodyOptions,
    output: OutputOptions,
) -> ExitCode | None:
    """Says what it was given."""
    context = Context(output)
    if context.format == "raw":
        wanted = filters.build(context.zone, 1_000_000_000_000)
        reading = f"{read} {read.job_count} {read.bytes_per_second} {bodies} {sorted(bodies.redacted)}"
        sys.stdout.write(f"{resolve_store(path, store)}\n{wanted}\n{reading}\n")
        return None
    with context.rows("rmqtool.echo/1", [Column("physical_offset"), Column("topic")]) as rows:
        rows.covered = lambda: {"messages": count}
        for start in range(0, count, 1000):
            block = range(start, min(start + 1000, count))
            rows.write_columns(
                ["type", "physical_offset", "topic"], [["message"] * len(block), block, ["T"] * len(block)]
            )
        if fail:
            raise FAILURES[fail]
        rows.finish({"messages": count, "complete": True})
    return ExitCode.DAMAGE if path == "damaged" else None
