"""`rmqtool verify`: is this store right?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from rmqtool.cli.context import Context
from rmqtool.cli.options import KindOptions, OutputOptions, ReadOptions, StoreOptions
from rmqtool.cli.verb import verb
from rmqtool.errors import ExitCode, UsageError, worst

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rmqtool.check.verify import Verification
    from rmqtool.store.coverage import Incomplete, Row

_ORDER = ("note", "warning", "error")


@verb(
    examples=[
        "rmqtool verify /data/store",
        "rmqtool verify /data/store --json | jq '.summary.by_code'",
        "rmqtool verify --quick /data/store",
        "rmqtool verify --deep /data/store --format ndjson",
        "rmqtool verify /backup/*/store --fail-on error --quiet",
        "rmqtool verify /tmp/copied/20261121093752154 --as index",
    ]
)
def command(
    stores: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="STORE…", help="Stores; if omitted, $RMQTOOL_STORE is used.", show_default=False
        ),
    ] = None,
    fail_on: Annotated[
        Literal["error", "warning", "note", "never"],
        typer.Option("--fail-on", help="Exit 1 from this severity up."),
    ] = "warning",
    quick: Annotated[
        bool,
        typer.Option(
            "--quick",
            help="Layout, sizes, first record of every segment, frames of the last three segments, "
            "last file of each queue, index headers, checkpoint and configuration: seconds for 100 GiB.",
        ),
    ] = False,
    deep: Annotated[
        bool,
        typer.Option(
            "--deep",
            help="Also decompress every body, decode properties as Java does, and unwrap batches.",
        ),
    ] = False,
    *,
    store: StoreOptions,
    kind: KindOptions,
    read: ReadOptions,
    output: OutputOptions,
) -> ExitCode:
    """Is this store right? Every record, consume queue entry and index entry, each against the others."""
    from rmqtool.check.levels import Level
    from rmqtool.check.verify import Verification
    from rmqtool.cli.opened import open_store

    if quick and deep:
        raise UsageError("--quick and --deep cannot be combined")
    level = Level.QUICK if quick else Level.DEEP if deep else Level.DEFAULT
    context = Context(output)
    paths: list[str | None] = [*stores] if stores else [None]
    # all of them before the first is read: a wrong path must not end a run that took hours
    all_opened = [open_store(context, path, store, as_kind=kind.as_kind) for path in paths]
    runs: list[Verification] = []
    several = len(paths) > 1
    named = [str(opened.given) for opened in all_opened]
    with context.findings("rmqtool.verify/1", named, several=several) as rows:
        rows.covered = lambda: _summary(runs)
        rows.left = lambda reason: _left(runs, paths, reason)
        for opened in all_opened:
            with context.progress("verifying", 0) as progress:
                run = Verification(opened, read.of_log(opened, progress.advance), level)
                progress.expect(run.bytes_to_read)
                runs.append(run)
                whose = {"store": str(opened.given)} if several else {}
                for one in run.findings():
                    rows.write_rows([one.row() | whose])
        rows.finish(_summary(runs))
    if context.format == "table":
        _say_next(context, runs, store)
    return _exit_code(runs, fail_on)


def _say_next(context: Context, runs: list[Verification], options: StoreOptions) -> None:
    """What to do about the findings, of the first store that has some."""
    from rmqtool.cli.opened import invocation_of
    from rmqtool.recovery.advice import advise_findings
    from rmqtool.store.layout import StoreForm

    for run in runs:
        whole = run.store.form is StoreForm.STORE
        asked = invocation_of(str(run.store.given), options.words, None, run.store)
        advice = advise_findings(
            run.tally.by_code,
            run.tally.by_severity,
            asked if whole else None,
            partial=bool(run.store.absent),
        )
        if advice:
            context.console.do_next([(one.command, one.why) for one in advice])
            break


def _summary(runs: list[Verification]) -> dict[str, Any]:
    from rmqtool.store.coverage import coverage

    if len(runs) == 1:
        return runs[0].summary()
    parts = [run.summary() | {"store": str(run.store.given)} for run in runs]
    reported = {"stores": parts, "by_severity": _added(parts, "by_severity")}
    return reported | coverage(
        [row | {"store": part["store"]} for part in parts for row in _not_covered(part)]
    )


def _not_covered(part: dict[str, Any]) -> list[Row]:
    rows: list[Row] = part.get("not_covered", [])
    return rows


def _left(runs: list[Verification], paths: list[str | None], reason: Incomplete) -> list[Row]:
    """What an interrupt left of the store at hand, and the stores after it, unopened."""
    several = len(paths) > 1
    rows = [
        row | ({"store": str(run.store.given)} if several else {})
        for run in runs[-1:]
        for row in run.left(reason)
    ]
    return [*rows, *({"path": str(path), "reason": reason.value} for path in paths[len(runs) :])]


def _added(parts: list[dict[str, Any]], key: str) -> Mapping[str, int]:
    added: dict[str, int] = {}
    for part in parts:
        for name, count in part[key].items():
            added[name] = added.get(name, 0) + count
    return added


def _exit_code(runs: list[Verification], fail_on: str) -> ExitCode:
    codes = [ExitCode.INCOMPLETE for run in runs if run.covered.not_covered]
    if fail_on != "never":
        counted = _ORDER[_ORDER.index(fail_on) :]
        if any(run.tally.by_severity[name] for run in runs for name in counted):
            codes.append(ExitCode.DAMAGE)
    return worst(codes)
