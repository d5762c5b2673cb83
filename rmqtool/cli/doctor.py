"""`rmqtool doctor`: is it safe to start this broker, and what will it do?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from rmqtool.cli.completing import complete_scenarios
from rmqtool.cli.context import Context
from rmqtool.cli.opened import open_store
from rmqtool.cli.options import (
    OutputOptions,
    ReadOptions,
    StoreArgument,
    StoreOptions,
    VersionOptions,
    resolve_store,
)
from rmqtool.cli.parse import named
from rmqtool.cli.verb import verb
from rmqtool.errors import ExitCode, UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rmqtool.broker.start import StartPlan
    from rmqtool.recovery.advice import Invocation
    from rmqtool.recovery.diagnosis import Diagnosis
    from rmqtool.recovery.scenarios import Scenario
    from rmqtool.store.layout import Store

SCHEMA = "rmqtool.doctor/1"


@verb(
    examples=[
        "rmqtool doctor /data/store",
        "rmqtool doctor /data/store --as-version 5.3.3 --store-config broker.conf",
        "rmqtool doctor /data/store --what-if delete-consumequeue --what-if remove-abort+zero-checkpoint",
        "rmqtool doctor /data/store --what-if 'remove-file commitlog/00000000001073741824'",
        "rmqtool doctor /data/store --json | jq .safe_to_start",
    ],
    formats=("table", "json"),
)
def command(
    path: StoreArgument = None,
    what_if: Annotated[
        list[str] | None,
        typer.Option(
            "--what-if",
            metavar="SCENARIO",
            help="Simulate the start after a workaround (it is not made): delete-consumequeue, delete-index, "
            "remove-abort, remove-checkpoint, zero-checkpoint, 'remove-file PATH', start-twice, 'release X', "
            "'set NAME=VALUE'; several joined with + are made together. Repeatable: all are compared.",
            show_default=False,
            autocompletion=complete_scenarios,
        ),
    ] = None,
    full: Annotated[
        bool,
        typer.Option(
            "--full", help="Read all old segments too, however long that takes; default: up to 2 GiB of them."
        ),
    ] = False,
    budget: Annotated[
        str | None,
        typer.Option(
            "--budget",
            metavar="SECONDS",
            help="Stop after this time and report what is certain by then.",
            show_default=False,
        ),
    ] = None,
    *,
    store: StoreOptions,
    read: ReadOptions,
    version: VersionOptions,
    output: OutputOptions,
) -> ExitCode:
    """Is it safe to start this broker, and what will it do?

    Simulates the start of a broker of the given release, or of every release that may have written the
    store, without changing a byte: where recovery begins and stops, what it deletes, the bounds of every
    queue afterwards, what is lost, what is damaged already. Exit 0 when a start is safe, 1 when it is not or
    something is damaged already, 3 when that is not certain, 4 when this user may not list a directory or
    read a table.

    The files that a start reads are read whole. Whether queue offsets would be reused, and what is damaged
    already, is found in older segments too: up to 2 GiB of them are read, all with --full.
    """
    from rmqtool.recovery.diagnosis import Diagnosis
    from rmqtool.store.required import require_root
    from rmqtool.store.unseen import TABLES, refuse_unseen

    context = Context(output)
    seconds = None if budget is None else _seconds(budget)
    opened = open_store(context, path, store)
    require_root(opened)
    refuse_unseen(opened, "there is no verdict without it", TABLES)
    asked = _asked(path, store, version, opened)
    diagnosis = Diagnosis(opened, version.as_version, full=full, budget=seconds)
    scenarios = diagnosis.parse(what_if or [])
    try:
        _run(context, diagnosis, scenarios, read)
    except KeyboardInterrupt:
        _show(context, diagnosis, asked, interrupted=True)
        raise
    _show(context, diagnosis, asked)
    codes = {"safe": ExitCode.OK, "uncertain": ExitCode.INCOMPLETE}
    return codes.get(diagnosis.verdict.value, ExitCode.DAMAGE)


def _run(context: Context, diagnosis: Diagnosis, scenarios: Sequence[Scenario], read: ReadOptions) -> None:
    from rmqtool.output.sizes import human_bytes

    def tell(release: str, plan: StartPlan) -> None:
        where = "no commit log" if plan.start_segment is None else f"segment {plan.start_segment}"
        most = human_bytes(plan.bytes_to_scan)
        context.console.note(f"{release}: {plan.mode} recovery from {where}, at most {most} to scan")

    store = diagnosis.store
    with context.progress("reading", 0) as progress:
        diagnosis.run(scenarios, read.of_log(store, progress.advance), tell, progress.expect)


def _seconds(text: str) -> float:
    with named("--budget"):
        try:
            value = float(text)
        except ValueError:
            raise UsageError(f"{text} is not a valid number of seconds") from None
        if not 0 < value < float("inf"):
            raise UsageError("must be more than 0")
        return value


def _asked(path: str | None, store: StoreOptions, version: VersionOptions, opened: Store) -> Invocation:
    from rmqtool.cli.opened import invocation_of

    return invocation_of(str(resolve_store(path, store)), store.words, version.as_version, opened)


def _show(context: Context, diagnosis: Diagnosis, asked: Invocation, *, interrupted: bool = False) -> None:
    from rmqtool.broker.disk import disk_outlook
    from rmqtool.output.start_document import diagnosis_document
    from rmqtool.recovery.advice import advise

    outcomes = diagnosis.outcomes
    if interrupted:
        context.console.note("interrupted: what was found so far is not the whole answer")
    advice = advise(outcomes, diagnosis.verdict, asked) if outcomes else []
    disk = disk_outlook(diagnosis.store)
    if context.format == "json":
        context.document(SCHEMA, diagnosis_document(diagnosis, disk, advice, interrupted=interrupted))
    elif outcomes and not interrupted:
        from rmqtool.output.start_page import StartPage

        reported = [(scenario.text, found, verdict) for scenario, found, verdict in diagnosis.scenarios]
        page = StartPage(context.page(), context.zone)
        page.write(outcomes, diagnosis.verdict, disk, advice, reported)
