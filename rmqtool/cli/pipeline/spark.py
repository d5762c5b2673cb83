"""Where and how Spark runs, and the stores that its jobs are about."""

from __future__ import annotations

import os
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rmqtool.cli.parse import named, parse_size
from rmqtool.errors import ExitCode, UsageError, worst

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rmqtool.cli.context import Context
    from rmqtool.pipeline.options import SourceOptions
    from rmqtool.query.message_filter import MessageFilter
    from rmqtool.store.layout import Store

    Row = dict[str, Any]

_SPARK = "Spark"
_FROM_ENVIRONMENT = "-"
PRIVATE = 0o700
"""permissions of what only this user may read"""

StoresArgument = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="STORE…",
        help="Stores, also as patterns such as '/backup/*/store'; if omitted or '-', $RMQTOOL_STORE is used.",
        show_default=False,
    ),
]


@dataclass(frozen=True)
class SparkOptions:
    """Where Spark runs, and how the work is cut."""

    master: Annotated[
        str | None,
        typer.Option(
            "--master",
            metavar="URL",
            help="local[N], spark://HOST:PORT, yarn …; default local[*], under spark-submit its own.",
            show_default=False,
            rich_help_panel=_SPARK,
        ),
    ] = None
    conf: Annotated[
        list[str] | None,
        typer.Option(
            "--conf",
            metavar="KEY=VALUE",
            help="A setting of Spark; repeatable.",
            show_default=False,
            rich_help_panel=_SPARK,
        ),
    ] = None
    store_config: Annotated[
        str | None,
        typer.Option(
            "--store-config",
            metavar="FILE",
            help="broker.conf with sizes and switches of all stores; otherwise they are inferred.",
            show_default=False,
            rich_help_panel=_SPARK,
        ),
    ] = None

    @property
    def settings(self) -> dict[str, str]:
        """What was given with `--conf`."""
        found: dict[str, str] = {}
        for one in self.conf or ():
            key, equals, value = one.partition("=")
            if not equals or not key.startswith("spark."):
                raise UsageError(f"--conf: '{key}' is not spark.KEY=VALUE")
            found[key] = value
        return found

    @contextmanager
    def session(self, context: Context, *, light: bool = False, readers: int = PRIVATE) -> Iterator[Any]:
        """A session for the time of a command; one that was there before stays. light: see `one_session`.

        readers: permissions that the command's own files may have (`modes.readers_of`). Those that Spark
        makes meanwhile, which hold records as well, have no others.
        """
        from rmqtool.pipeline.session import one_session
        from rmqtool.store.modes import mask, only_for
        from rmqtool.store.trust import refuse_foreign_temporary

        refuse_foreign_temporary()
        before = mask()
        only_for(readers)
        try:
            with one_session(self.master, self.settings, light=light) as session:
                address = session.sparkContext.uiWebUrl
                if address is not None:
                    context.console.note(f"Spark UI at {address}")
                yield session
        finally:
            os.umask(before)


@dataclass(frozen=True)
class CutOptions:
    """How logs are cut."""

    part_size: Annotated[
        str | None,
        typer.Option(
            "--part-size",
            metavar="SIZE",
            help="Bytes of a segment that one task reads; larger segments are cut, 0 leaves them whole."
            " Default 128MiB, and 0 for addresses and logs of 64 segments or more.",
            show_default=False,
            rich_help_panel=_SPARK,
        ),
    ] = None

    @property
    def part_bytes(self) -> int | None:
        """The size given."""
        if self.part_size is None:
            return None
        with named("--part-size"):
            return parse_size(self.part_size)


def refuse_no_utf8(**given: str | None) -> None:
    """Raises `UsageError` for an option, by its name, whose text Java would not take."""
    for name, text in given.items():
        try:
            (text or "").encode()
        except UnicodeEncodeError:
            raise UsageError(f"{name} is not UTF-8 text") from None


def check_installed() -> None:
    """Raises `MissingExtraError` without pyspark, before anything else is looked at."""
    from importlib.util import find_spec

    from rmqtool.errors import MissingExtraError

    if find_spec("pyspark") is None:
        raise MissingExtraError("pipeline", "spark")


def source_options(
    stores: list[str] | None, spark: SparkOptions, wanted: MessageFilter, cut: CutOptions | None = None
) -> SourceOptions:
    """What the jobs of the pipeline read."""
    from rmqtool.pipeline.options import SourceOptions, expand, is_pattern, local_path

    if "" in (stores or ()):
        raise UsageError("STORE is empty")
    known = os.environ.get("RMQTOOL_STORE", "")
    given = [known if one == _FROM_ENVIRONMENT else one for one in stores or (_FROM_ENVIRONMENT,)]
    if "" in given:
        raise UsageError("no STORE given, and RMQTOOL_STORE is not set")
    exact = expand([one for one in given if not is_pattern(local_path(one))])
    paths = expand(given)
    return SourceOptions(
        paths=paths,
        matched=frozenset(paths).difference(exact),
        wanted=wanted,
        part_bytes=None if cut is None else cut.part_bytes,
        store_config=spark.store_config,
    )


def opened(context: Context, options: SourceOptions) -> tuple[SourceOptions, dict[str, Store]]:
    """The stores as they are listed, each remark noted; a wrong path ends a command before it begins.

    What a pattern matches and is not a store is left out, and named in `left_out` of the options.
    """
    from rmqtool.errors import RmqtoolError
    from rmqtool.pipeline.opening import open_any
    from rmqtool.store.coverage import unreadable

    stores: dict[str, Store] = {}
    left_out: list[Row] = []
    for path in options.paths:
        try:
            stores[path] = open_any(path, options.config)
        except RmqtoolError as error:
            if path not in options.matched:
                raise
            left_out.append(unreadable(".", str(error)) | {"store": path})
            context.console.warn(f"{path}: left out: {error}")
    if not stores:
        raise UsageError("nothing that the patterns match is a store")
    for path, store in stores.items():
        for note in store.notes:
            context.console.note(f"{path}: {note}")
    return replace(options, paths=tuple(stores), left_out=tuple(left_out)), stores


def opened_logs(
    context: Context, options: SourceOptions
) -> tuple[SourceOptions, dict[str, Store], dict[str, list[Row]]]:
    """The same for commands that answer from logs; and what of each cannot be opened (`log_left_out`)."""
    from rmqtool.cli.opened import log_left_out

    options, stores = opened(context, options)
    return options, stores, {path: log_left_out(context, store) for path, store in stores.items()}


def with_left_out(summary: Row, options: SourceOptions) -> Row:
    """The summary of a job, with what a pattern matched and was left out."""
    from rmqtool.store.coverage import coverage

    if not options.left_out:
        return summary
    return summary | coverage([*summary.get("not_covered", ()), *options.left_out])


def code_with_left_out(code: ExitCode, options: SourceOptions) -> ExitCode:
    """The exit code of a job, with what a pattern matched and was left out."""
    return worst([code, ExitCode.INCOMPLETE]) if options.left_out else code
