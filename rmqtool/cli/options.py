"""The options that commands share, in groups: a command takes a group as one parameter (see `verb`).

A command lists only the groups that mean something to it, so no option is accepted and then ignored. Values
stay the text that was typed until a property or `build` parses them and complains with the option's name.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from rmqtool.cli.completing import complete_topics
from rmqtool.cli.parse import named, parse_int, parse_size
from rmqtool.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

    from rmqtool.scan.options import ReadOptions as LogOptions
    from rmqtool.store.layout import Store

FORMATS = ("table", "ndjson", "json", "csv")
"""what every command offers; one that has more names them in `verb(formats=…)`"""

QUERY_FORMATS = (*FORMATS, "raw", "hex")
"""what commands that list records offer"""

_OUTPUT = "Output"
_READING = "Reading"

StoreArgument = Annotated[
    str | None,
    typer.Argument(
        metavar="STORE",
        help="Store root, commitlog directory or DLedger directory; "
        "if omitted or '-', $RMQTOOL_STORE is used.",
        show_default=False,
    ),
]
"""STORE where no other positional follows it (give it the default None)"""

PathArgument = Annotated[
    str | None,
    typer.Argument(
        metavar="PATH",
        help="A store, a folder inside one, or a single file, which may be a copy; "
        "if omitted or '-', $RMQTOOL_STORE is used.",
        show_default=False,
    ),
]
"""STORE of commands that also take single files (give it the default None)"""

StorePositional = Annotated[
    str,
    typer.Argument(metavar="STORE", help="Store root; '-' means $RMQTOOL_STORE.", show_default=False),
]
"""STORE in front of further positionals"""

TopicArgument = Annotated[
    str,
    typer.Argument(metavar="TOPIC", help="Exact topic name.", autocompletion=complete_topics),
]
QueueArgument = Annotated[str, typer.Argument(metavar="QUEUE", help="Queue number.")]


@dataclass(frozen=True)
class OutputOptions:
    """How results are shown. Every command takes it."""

    format: Annotated[
        str | None,
        typer.Option("--format", help="Output format.", show_default=False, rich_help_panel=_OUTPUT),
    ] = None
    json: Annotated[
        bool, typer.Option("--json", help="Short for --format json.", rich_help_panel=_OUTPUT)
    ] = False
    int64_as_string: Annotated[
        bool,
        typer.Option(
            "--int64-as-string",
            help="JSON: write 64-bit fields as strings, for JavaScript readers.",
            rich_help_panel=_OUTPUT,
        ),
    ] = False
    spreadsheet: Annotated[
        bool,
        typer.Option(
            "--spreadsheet",
            help="CSV: put an apostrophe before text that a spreadsheet would take for a formula.",
            rich_help_panel=_OUTPUT,
        ),
    ] = False
    tz: Annotated[
        str,
        typer.Option(
            "--tz",
            metavar="ZONE",
            help="Time zone of input and output: local, UTC, +08:00 or Asia/Shanghai.",
            rich_help_panel=_OUTPUT,
        ),
    ] = "local"
    color: Annotated[
        Literal["auto", "always", "never"],
        typer.Option("--color", help="auto: on a terminal, unless NO_COLOR is set.", rich_help_panel=_OUTPUT),
    ] = "auto"
    quiet: Annotated[
        bool,
        typer.Option(
            "--quiet", "-q", help="No progress, notes or closing summary on stderr.", rich_help_panel=_OUTPUT
        ),
    ] = False
    debug: Annotated[
        bool,
        typer.Option(
            "--debug",
            help="Show the traceback of an error, and which kernels are used and why.",
            rich_help_panel=_OUTPUT,
        ),
    ] = False


@dataclass(frozen=True)
class StoreOptions:
    """What lies where, and how large its files are."""

    store_config: Annotated[
        str | None,
        typer.Option(
            "--store-config",
            metavar="FILE",
            help="broker.conf with sizes and switches; otherwise they are inferred.",
            show_default=False,
            rich_help_panel=_READING,
        ),
    ] = None
    commitlog: Annotated[
        list[str] | None,
        typer.Option(
            "--commitlog",
            metavar="DIR",
            help="A further commitlog root of a multi-path store; repeatable.",
            show_default=False,
            rich_help_panel=_READING,
        ),
    ] = None

    @property
    def commitlog_roots(self) -> tuple[Path, ...]:
        """The directories given with `--commitlog`."""
        return tuple(Path(root) for root in self.commitlog or ())

    @property
    def config_path(self) -> Path | None:
        """The file given with `--store-config`."""
        return None if self.store_config is None else Path(self.store_config)

    @property
    def words(self) -> tuple[str, ...]:
        """These options as they stand in a command line."""
        config = ("--store-config", self.store_config) if self.store_config else ()
        return (*config, *(word for root in self.commitlog or () for word in ("--commitlog", root)))


@dataclass(frozen=True)
class GentleOptions:
    """How bytes are read where that is not much."""

    safe_io: Annotated[
        bool,
        typer.Option(
            "--safe-io",
            help="Never map files but read them with pread: gentler on a failing disk.",
            rich_help_panel=_READING,
        ),
    ] = False
    max_read_rate: Annotated[
        str | None,
        typer.Option(
            "--max-read-rate",
            metavar="SIZE",
            help="Read at most this many bytes per second, such as 50MiB.",
            show_default=False,
            rich_help_panel=_READING,
        ),
    ] = None

    @property
    def bytes_per_second(self) -> int | None:
        """The rate given, at least 1, or None for no bound."""
        if self.max_read_rate is None:
            return None
        with named("--max-read-rate"):
            rate = parse_size(self.max_read_rate)
            if rate < 1:
                raise UsageError("must be more than 0")
            return rate


@dataclass(frozen=True)
class ReadOptions(GentleOptions):
    """How bytes are read."""

    jobs: Annotated[
        str | None,
        typer.Option(
            "--jobs",
            "-j",
            metavar="N",
            help="Threads that read segment files; default: one per processor.",
            show_default=False,
            rich_help_panel=_READING,
        ),
    ] = None

    @property
    def job_count(self) -> int:
        """Threads to use, at least 1."""
        if self.jobs is None:
            return len(os.sched_getaffinity(0))
        with named("--jobs"):
            return parse_int(self.jobs, minimum=1, maximum=1024)

    def of_log(
        self,
        store: Store,
        advance: Callable[[int], object] | None = None,
        *,
        expect: Callable[[int], object] | None = None,
        live: bool | None = None,
    ) -> LogOptions:
        """How files of this store are read; whether it is live is asked unless it is given."""
        from rmqtool.scan.options import ReadOptions as LogOptions

        return LogOptions.of(
            store,
            self.job_count,
            safe_io=self.safe_io,
            bytes_per_second=self.bytes_per_second,
            advance=advance,
            expect=expect,
            live=live,
        )


@dataclass(frozen=True)
class KindOptions:
    """What a single file or folder is."""

    as_kind: Annotated[
        str | None,
        typer.Option(
            "--as",
            metavar="KIND",
            help="Treat PATH as this kind of file instead of inferring it from path and content.",
            show_default=False,
            rich_help_panel=_READING,
        ),
    ] = None


@dataclass(frozen=True)
class VersionOptions:
    """Which release is meant, for commands whose answer depends on it."""

    as_version: Annotated[
        str | None,
        typer.Option(
            "--as-version",
            metavar="X.Y.Z",
            help="RocketMQ release to answer for; otherwise inferred from the store and reported.",
            show_default=False,
            rich_help_panel=_READING,
        ),
    ] = None

    @property
    def release(self) -> str | None:
        """The release given, None for inferring it."""
        if self.as_version is None:
            return None
        from rmqtool.store.releases import RELEASES

        if self.as_version not in RELEASES:
            known = f"{RELEASES[0]} to {RELEASES[-1]}"
            raise UsageError(
                f"--as-version: {self.as_version} is not a release of RocketMQ known here ({known})"
            )
        return self.as_version

    def release_of(self, store: Store) -> str:
        """The release given, else the last one that the disk does not exclude."""
        from rmqtool.broker.traits import behaviours

        return self.release or list(behaviours(store.release.releases))[-1]


def _path_of_store(named: str) -> Path:
    from rmqtool.store.remote.address import refuse_address

    refuse_address(named)
    return Path(named)


def resolve_store(text: str | None, options: StoreOptions) -> Path:
    """The path that STORE means: as given, or for `-` and absent `$RMQTOOL_STORE`, or `storePathRootDir`."""
    if text == "":
        raise UsageError("STORE is empty")  # an unset variable of a script, not the working directory
    if text not in {None, "-"}:
        return Path(str(text))
    if given := os.environ.get("RMQTOOL_STORE"):
        return _path_of_store(given)
    if options.config_path is not None:
        from rmqtool.store.properties import read_properties

        root = read_properties(options.config_path).get("storePathRootDir")
        if root:
            return _path_of_store(root)
        raise UsageError(f"no STORE given, and {options.store_config} has no storePathRootDir")
    raise UsageError("no STORE given, and RMQTOOL_STORE is not set")
