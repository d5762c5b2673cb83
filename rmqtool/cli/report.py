"""`rmqtool report`: the incident record, one HTML file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from rmqtool.cli.context import Context
from rmqtool.cli.file_beside import file_beside
from rmqtool.cli.filters import RedactionOptions
from rmqtool.cli.opened import invocation_of, open_store, stopped_journal
from rmqtool.cli.options import (
    OutputOptions,
    ReadOptions,
    StoreArgument,
    StoreOptions,
    VersionOptions,
    resolve_store,
)
from rmqtool.cli.verb import verb
from rmqtool.errors import ExitCode, RmqtoolError, UsageError, worst

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rmqtool.output.export.target import Target
    from rmqtool.recovery.diagnosis import Diagnosis
    from rmqtool.report.document import LogFindings
    from rmqtool.store.layout import Store

    Row = dict[str, Any]


@verb(
    examples=[
        "rmqtool report /data/store --output report.html",
        "rmqtool report /data/store --output report.html --redact body,keys,hosts,properties",
        "rmqtool report /data/store --output after.html --journal /backup/undo",
        "rmqtool report /data/store --output report.html --json | jq .doctor.verdict",
    ],
    formats=("table", "json"),
)
def command(
    path: StoreArgument = None,
    target: Annotated[
        str | None,
        typer.Option(
            "--output", metavar="FILE.html", help="The file to write; it must not exist.", show_default=False
        ),
    ] = None,
    plan: Annotated[
        Literal["auto", "always", "never"],
        typer.Option("--plan", help="Plan what recover would do; auto: where something is wrong."),
    ] = "auto",
    journal: Annotated[
        list[str] | None,
        typer.Option(
            "--journal",
            metavar="JOURNAL",
            help="What was done: the directory given to --backup; repeatable.",
            show_default=False,
        ),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing file.")] = False,
    *,
    store: StoreOptions,
    read: ReadOptions,
    version: VersionOptions,
    redaction: RedactionOptions,
    output: OutputOptions,
) -> ExitCode:
    """The incident record in one HTML file: verdict, findings, map, volume, groups, plan, what was done.

    Says what doctor, verify, stats and the plan of recover say, on one page that needs no network and no
    other file, in light and dark and on paper. --json prints the document that the page has in it. The log
    is read once for findings, map and sums; doctor and the plan read what they need besides.

    Exit code as of verify and doctor together: 0 when a start is safe and nothing is found from warning up,
    1 when something is, 3 when part of the answer is missing. The file is written in each of these cases.
    """
    from rmqtool.recovery.diagnosis import Diagnosis
    from rmqtool.report.page import page
    from rmqtool.store.modes import only_for, readers_of
    from rmqtool.store.required import require_root
    from rmqtool.store.unseen import TABLES, refuse_unseen

    if not target:
        raise UsageError("--output is missing: it names the file")
    context = Context(output)
    opened = open_store(context, path, store)
    require_root(opened)
    refuse_unseen(opened, "there is no verdict without it", TABLES)
    place = file_beside(target, [opened], "--output", force=force)
    only_for(readers_of(opened))
    diagnosis = Diagnosis(opened, version.as_version)
    journals = _journals(context, opened, journal)
    answer = _doctor(context, diagnosis, str(resolve_store(path, store)), store, version, read)
    found = _log(context, opened, read)
    harmed = found.harmed or diagnosis.verdict.value in {"damaged", "unsafe"}
    wanted = plan == "always" or (plan == "auto" and harmed)
    more: Row = {
        "groups": _groups(context, opened, read, found),
        "plan": _plan(context, opened, read, version, plan if not wanted else None),
        "journals": journals,
    }
    document = _document(diagnosis, answer, found, more, redaction)
    _write(place, page(document, context.zone))
    _tell(context, document, place)
    return _code(diagnosis, found)


def _doctor(
    context: Context,
    diagnosis: Diagnosis,
    named: str,
    store: StoreOptions,
    version: VersionOptions,
    read: ReadOptions,
) -> Row:
    from rmqtool.broker.disk import disk_outlook
    from rmqtool.output.start_document import diagnosis_document
    from rmqtool.recovery.advice import advise

    opened = diagnosis.store
    with context.progress("simulating a start", 0) as progress:
        diagnosis.run([], read.of_log(opened, progress.advance), expect=progress.expect)
    asked = invocation_of(named, store.words, version.as_version, opened)
    advice = advise(diagnosis.outcomes, diagnosis.verdict, asked)
    return diagnosis_document(diagnosis, disk_outlook(opened), advice, interrupted=False)


def _log(context: Context, opened: Store, read: ReadOptions) -> LogFindings:
    from rmqtool.check.verify import Verification
    from rmqtool.report.document import LogFindings

    with context.progress("verifying", 0) as progress:
        found = LogFindings(Verification(opened, read.of_log(opened, progress.advance)))
        progress.expect(found.run.bytes_to_read)
        found.read()
    return found


def _groups(context: Context, opened: Store, read: ReadOptions, found: LogFindings) -> list[Row]:
    from rmqtool.query.group_lag import group_rows

    left: list[Row] = []
    with context.progress("reading", 0) as progress:
        reading = read.of_log(opened, progress.advance, expect=progress.expect_more)
        rows = list(group_rows(opened, left, reading))
    found.run.covered.not_covered += left
    return rows


def _plan(
    context: Context, opened: Store, read: ReadOptions, version: VersionOptions, skipped: str | None
) -> Row:
    """The plan of `recover`, or why there is none: also what recover itself would say."""
    from rmqtool.report.document import no_plan

    if skipped is not None:
        auto = "nothing was found that recover repairs (--plan always makes one)"
        return no_plan(auto if skipped == "auto" else "not asked for (--plan never)")
    from rmqtool.cli.recover import plan_recovery
    from rmqtool.repair.interrupted import refuse_if_interrupted
    from rmqtool.repair.workplace import work_place
    from rmqtool.report.changes import plan_section
    from rmqtool.store.holding import refuse_if_held

    chosen: Row = {"policy": "keep", "release": version.release, "damaged_body": "tombstone", "donors": []}
    try:
        refuse_if_interrupted(opened.root)
        refuse_if_held(opened.root)
        with work_place(None, opened.root) as work:
            planned = plan_recovery(context, opened, chosen, work.directory, read)
            return plan_section(planned.plan)
    except RmqtoolError as error:
        return no_plan(str(error))


def _journals(context: Context, opened: Store, given: Sequence[str] | None) -> list[Row]:
    """Those that are named, and the one of an apply that was stopped, as far as that can be read."""
    stopped = stopped_journal(opened)
    if not given and stopped is None:
        return []
    from rmqtool.report.changes import journal_section

    rows = [journal_section(opened, one) for one in given or ()]
    if stopped is not None and not rows:
        try:
            rows.append(journal_section(opened, stopped))
        except RmqtoolError as error:
            context.console.warn(f"the journal of the apply that was stopped is left out: {error}")
    return rows


def _document(
    diagnosis: Diagnosis, answer: Row, found: LogFindings, more: Row, redaction: RedactionOptions
) -> Row:
    from rmqtool.report.document import report_document

    return report_document(diagnosis, answer, found, more, redaction.redacted)


def _write(place: Target, content: bytes) -> None:
    from rmqtool.output.export.target import writing

    with writing(place.part), open(place.open_part(fresh=True), "wb") as file:
        file.write(content)
    place.publish()


def _tell(context: Context, document: Row, place: Target) -> None:
    from rmqtool.report.document import SCHEMA

    if context.format == "json":
        context.document(SCHEMA, document)
    else:
        page = context.page()
        page.words(document["headline"])
        page.line(f"The record is {place.path}.")
        page.close()


def _code(diagnosis: Diagnosis, found: LogFindings) -> ExitCode:
    codes = {"safe": ExitCode.OK, "uncertain": ExitCode.INCOMPLETE}
    given = [codes.get(diagnosis.verdict.value, ExitCode.DAMAGE)]
    if found.run.covered.not_covered:
        given.append(ExitCode.INCOMPLETE)
    if found.harmed:
        given.append(ExitCode.DAMAGE)
    return worst(given)
