"""`rmqtool pipeline verify`: are these stores right?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from rmqtool.cli.context import Context
from rmqtool.cli.options import OutputOptions
from rmqtool.cli.pipeline.spark import SparkOptions, StoresArgument
from rmqtool.cli.verb import verb
from rmqtool.errors import ExitCode, UsageError, worst

if TYPE_CHECKING:
    from rmqtool.pipeline.verify import StoreVerdict


@verb(
    examples=[
        "rmqtool pipeline verify '/backup/*/store' --format ndjson",
        "rmqtool pipeline verify /data/a /data/b --master spark://host:7077 --quick",
    ]
)
def command(
    stores: StoresArgument = None,
    fail_on: Annotated[
        Literal["error", "warning", "note", "never"],
        typer.Option("--fail-on", help="Exit 1 from this severity up."),
    ] = "warning",
    quick: Annotated[bool, typer.Option("--quick", help="As of verify: seconds for 100 GiB.")] = False,
    deep: Annotated[
        bool, typer.Option("--deep", help="As of verify: bodies, properties and batches, too.")
    ] = False,
    *,
    spark: SparkOptions,
    output: OutputOptions,
) -> ExitCode:
    """All checks over many stores, on Spark.

    Findings, summaries and exit code are those of verify. A store is one task; it reads its segments with
    as many threads as there are processors left. A store that is gone meanwhile, or whose task dies each
    time that it is tried, is named in the summary and makes the exit code 3; the others are finished.
    """
    from rmqtool.check.findings import Severity
    from rmqtool.check.levels import Level
    from rmqtool.cli.pipeline.spark import (
        check_installed,
        code_with_left_out,
        opened,
        source_options,
        with_left_out,
    )
    from rmqtool.query.message_filter import MessageFilter

    if quick and deep:
        raise UsageError("--quick and --deep cannot be combined")
    check_installed()
    level = Level.QUICK if quick else Level.DEEP if deep else Level.DEFAULT
    context = Context(output)
    options = source_options(stores, spark, MessageFilter())
    options, _ = opened(context, options)
    several = len(options.paths) > 1
    done: list[StoreVerdict] = []
    with (
        context.findings("rmqtool.verify/1", options.paths, several=several) as rows,
        spark.session(context, light=True) as session,
    ):
        from rmqtool.pipeline.verify import summary_of, verify

        rows.covered = lambda: with_left_out(summary_of(done), options)
        rows.left = lambda reason: [
            {"path": path, "reason": reason.value} for path in options.paths[len(done) :]
        ]
        for one in verify(session, options, level):
            done.append(one)
            rows.write_rows(row | ({"store": one.store} if several else {}) for row in one.findings)
            _say(context, one.store, one.summary)
        rows.finish(with_left_out(summary_of(done), options))
    least = None if fail_on == "never" else Severity(fail_on)
    return code_with_left_out(worst([one.exit_code(least) for one in done]), options)


def _say(context: Context, store: str, summary: dict[str, Any]) -> None:
    """One line for a store that is finished."""
    counts = ", ".join(f"{name} {count}" for name, count in summary["by_severity"].items() if count)
    state = "" if summary["complete"] else f", incomplete ({summary['incomplete_reason']})"
    context.console.note(f"{store}: {counts or 'no finding'}{state}")
    if "read_again" in summary:
        context.console.note(f"{store}: read a second time, as a whole: {summary['read_again']}")
    for row in summary.get("not_covered", ()):
        if "error" in row:
            context.console.warn(f"{store}: {row['path']}: {row['error']}")
