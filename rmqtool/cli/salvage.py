"""`rmqtool salvage`: intact records out of whatever is left, into a new store."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from rmqtool.cli.context import Context
from rmqtool.cli.options import OutputOptions, ReadOptions, VersionOptions
from rmqtool.cli.parse import named, parse_size
from rmqtool.cli.verb import verb
from rmqtool.errors import ExitCode, UsageError

if TYPE_CHECKING:
    from rmqtool.output.rows import Row
    from rmqtool.output.tablerows import Column
    from rmqtool.repair.salvage.run import SalvageOptions
    from rmqtool.repair.salvage.sources import Sources

LEAST_SEGMENT = 4096
_SHOWN = 3
"""hosts of a store that are named in words"""


@verb(
    examples=[
        "rmqtool salvage /mnt/lost+found --output /data/store-new",
        "rmqtool salvage disk.img --output /data/store-new --jobs 4",
        "rmqtool salvage old/store segment.bak --output /data/store-new --segment-size 1GiB",
        "rmqtool salvage broker-a.img broker-b.img --output /data/stores --stores by-host --json",
    ]
)
def command(
    paths: Annotated[
        list[str],
        typer.Argument(metavar="PATH", help="Files, or directories with everything in them."),
    ],
    to: Annotated[
        str | None,
        typer.Option("--output", metavar="DIR", help="Output directory, new or empty.", show_default=False),
    ] = None,
    stores: Annotated[
        Literal["auto", "one", "by-host"],
        typer.Option(
            "--stores",
            help="One store, one for each store host, or (auto) the latter where brokers claim the same "
            "offsets; of more than 64 hosts, those with the fewest messages share DIR/remaining-hosts.",
        ),
    ] = "auto",
    segment_size: Annotated[
        str | None,
        typer.Option(
            "--segment-size",
            metavar="SIZE",
            help="Size of the segments; otherwise inferred, or that of --store-config.",
            show_default=False,
        ),
    ] = None,
    store_config: Annotated[
        str | None,
        typer.Option(
            "--store-config",
            metavar="FILE",
            help="broker.conf with sizes and switches of the new store.",
            show_default=False,
        ),
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Replace what an earlier salvage made, whole or interrupted.")
    ] = False,
    *,
    read: ReadOptions,
    version: VersionOptions,
    output: OutputOptions,
) -> ExitCode:
    """Carve intact records out of fragments, disk images and undeleted files, into a new store.

    Every intact record is found, at any byte of any file, and is put into the new store at the physical
    offset that it states, if that is free; else after the others, with a line in
    rmqtool-salvage-moved.csv. Copies are left out. Missing offsets of a queue become tombstones, so that all
    others keep theirs. The sources are only read.
    Exit code 1 says that records were moved or had no place, or that there were none, 3 that bytes could not
    be read.
    """
    from rmqtool.repair.salvage.report import (
        SCHEMA,
        exit_code,
        source_rows,
        store_rows,
        summary,
        write_report,
    )
    from rmqtool.repair.salvage.run import Salvaged, Target, search, write
    from rmqtool.repair.salvage.sources import collect
    from rmqtool.store.modes import common_readers, only_for

    context = Context(output)
    if not to:
        raise UsageError("--output is missing: name a new directory")
    release = version.release
    target = Target(to, force=force)
    target.check()
    _apart(paths, target.path)
    sources = collect(paths)
    _outside(sources, target.path)
    only_for(common_readers((*paths, *(one.location for one in sources.files))))
    for one in sources.not_covered:
        context.console.warn(f"{one['path']}: {one['error']}")
    reported = Salvaged(sources)
    with context.rows(SCHEMA, _columns()) as out:
        out.covered = lambda: summary(reported)
        with context.progress("searching", sum(file.size for file in sources.files)) as progress:
            options = _options(stores, segment_size, store_config, read, release, progress.advance)
            search(reported, options)
        _warn(context, sources)
        if reported.records:
            with target as part:
                write(reported, part, options)
                write_report(reported, part, target.path)
        else:
            context.console.warn("no whole record was found: nothing was written")
        made = store_rows(reported, target.path)
        out.write_rows(_listed(context, source_rows(reported), made))
        out.finish(summary(reported))
    if context.format in {"table", "csv"}:
        for row in made:
            _describe(context, row)
    return exit_code(reported)


def _warn(context: Context, sources: Sources) -> None:
    for file in sources.files:
        for bad in file.bad:
            context.console.warn(
                f"{file.path}: {bad.length} bytes at {bad.start} cannot be read: {bad.reason}"
            )


def _options(
    stores: Literal["auto", "one", "by-host"],
    segment_size: str | None,
    store_config: str | None,
    read: ReadOptions,
    release: str | None,
    advance: Any,
) -> SalvageOptions:
    from pathlib import Path

    from rmqtool.repair.salvage.run import SalvageOptions
    from rmqtool.store.access import Access
    from rmqtool.store.config import load_broker_conf

    config = None if store_config is None else load_broker_conf(Path(store_config))
    size = None
    if segment_size is not None:
        with named("--segment-size"):
            size = parse_size(segment_size)
            if not LEAST_SEGMENT <= size < 1 << 31:
                raise UsageError(f"must be {LEAST_SEGMENT} to {(1 << 31) - 1} bytes")
    elif config is not None and config.is_set("mapped_file_size_commit_log"):
        size = config.mapped_file_size_commit_log
    how = Access.of(read.bytes_per_second, careful=read.safe_io, live=False)
    return SalvageOptions(release, stores, size, config, read.job_count, how, advance)


def _apart(paths: list[str], output: str) -> None:
    """Nothing is written where something is read."""
    import os

    place = os.path.realpath(output) + os.sep
    for path in paths:
        root = os.path.realpath(path)
        if os.path.isdir(root) and place.startswith(os.path.join(root, "")):
            raise UsageError(f"--output: {output} lies in {path}, which is read; name a directory elsewhere")


def _outside(sources: Sources, path: str) -> None:
    """What is replaced holds nothing that is read."""
    import os

    inside = os.path.realpath(path) + os.sep
    for file in sources.files:
        if os.path.realpath(file.location).startswith(inside):
            raise UsageError(f"--output: {path} holds {file.path}, which is read")


def _columns() -> list[Column]:
    from rmqtool.output.tablerows import Column

    numbers = ("bytes", "records", "duplicates", "moved", "unplaced", "unreadable_bytes")
    return [
        Column("path", shrinks=True, style="cyan"),
        *(Column(key, key.replace("_", " "), right=True, show=lambda value: f"{value:,}") for key in numbers),
    ]


def _listed(context: Context, read: list[Row], made: list[Row]) -> list[Row]:
    """All rows; a table has the files in which something was found, and stores are notes."""
    if context.format == "table":
        return [row for row in read if row["records"] or row["unreadable_bytes"]]
    return read if context.format == "csv" else [*read, *made]


def _describe(context: Context, row: Row) -> None:
    """The store in words, for those who do not read JSON."""
    from rmqtool.repair.plan_words import counted

    hosts = row["store_hosts"]
    more = f" and {len(hosts) - _SHOWN:,} more hosts" if len(hosts) > _SHOWN else ""
    context.console.note(
        f"{row['path']}: {row['messages']:,} messages of {', '.join(hosts[:_SHOWN])}{more}, offsets "
        f"{row['first_offset']} to {row['end_offset']} in {row['segments']} segments of "
        f"{row['segment_size']} bytes ({row['segment_size_source']}), queues and index as of "
        f"{row['version']} ({row['version_source']})"
    )
    if row["other_hosts"]:
        context.console.note(
            f"damaged store hosts: {counted(row['other_hosts'], 'record')} with another one, taken for "
            "messages of this log because of the place"
        )
    if row["tombstones"] or row["fillers"]:
        context.console.note(
            f"bridged: {row['tombstones']:,} tombstones in place of lost messages, {row['fillers']:,} fillers"
        )
    if row.get("mapping"):
        context.console.note(f"moved: {row['moved']:,} messages have new offsets, see {row['mapping']}")
    context.console.note(
        "before a broker starts on it: raise fileReservedTime, or it deletes what is older; delayed messages "
        "that are in the log are delivered again; consumer offsets are not in a log"
    )
