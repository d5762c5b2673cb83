"""A plan, and what became of it, as rows and summary or as a page."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any

from rmqtool.cli.invocation import same_command, store_config
from rmqtool.output.plan_rows import change_row, plan_facts
from rmqtool.output.sizes import human_bytes
from rmqtool.output.tablerows import Column
from rmqtool.store.coverage import reason_of, unreadable
from rmqtool.store.names import escape_name

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rmqtool.cli.changing import ChangeOptions, ChangeRequest
    from rmqtool.cli.context import Context
    from rmqtool.output.page import Page
    from rmqtool.repair.plan import Change, Checked, Planned

_COLUMNS = (
    Column("action"),
    Column("path", shrinks=True),
    Column("position", right=True),
    Column("length", right=True),
    Column("why"),
    Column("message", shrinks=True),
)
CSV_COLUMNS = ("action", "path", "position", "length", "size", "mtime_timestamp", "why", "message")
_MANY = 20
"""changes of one file that the page lists; more are counted"""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a plan.

    needed: bytes that it takes or took beside the store; shares: most of a copy shares blocks with the
    store. output, journal, quarantine: where things went. left_out: links out of the store, not copied.
    """

    applied: bool = False
    needed: int | None = None
    shares: bool = False
    output: str | None = None
    journal: str | None = None
    quarantine: str | None = None
    left_out: tuple[str, ...] = ()


def show_plan(
    context: Context, request: ChangeRequest, options: ChangeOptions, planned: Planned, outcome: Outcome
) -> None:
    """Prints the plan in the form that was asked for."""
    schema = f"rmqtool.{request.command.replace(' ', '-')}/1"
    if context.format == "table":
        _page(context, options, planned, outcome, alone=request.alone)
        return
    with context.rows(schema, _COLUMNS, csv_columns=CSV_COLUMNS) as rows:
        rows.write_rows(change_row(one) for one in planned.plan.changes)
        further = dict(request.reported()) if request.reported is not None else {}
        rows.finish(_summary(planned, outcome) | further)


def _summary(planned: Planned, outcome: Outcome) -> dict[str, Any]:
    return {
        "type": "summary",
        **plan_facts(planned.plan),
        "applied": outcome.applied,
        "bytes_needed": outcome.needed,
        "shares_blocks": outcome.shares,
        "output": outcome.output,
        "journal": outcome.journal,
        "quarantine": outcome.quarantine,
        **_covered(outcome),
    }


def _covered(outcome: Outcome) -> dict[str, Any]:
    why = "a link out of the store, not copied without --follow-links"
    missing = [unreadable(path, why) for path in outcome.left_out]
    reason = {"incomplete_reason": reason_of(missing), "not_covered": missing} if missing else {}
    return {"complete": not missing, **reason}


def _page(
    context: Context, options: ChangeOptions, planned: Planned, outcome: Outcome, *, alone: bool
) -> None:
    plan = planned.plan
    page = context.page()
    if plan.refusal is not None:
        page.line(f"A broker {plan.release} refuses this store: {plan.refusal}", "bold red")
    if not plan.changes:
        page.line("Nothing to change.", "" if plan.leaves_harm else "bold green")
    else:
        count = len(plan.changes)
        page.heading(f"{count} {'change' if count == 1 else 'changes'}")
    for path, group in groupby(plan.changes, key=lambda one: one.path):
        changes = list(group)
        page.heading(path, "cyan")
        for change in changes[:_MANY]:
            page.line(f"  {_line(change)}")
            for line in _tombstones(change):
                page.line(f"    {line}")
        if len(changes) > _MANY:
            page.line(f"  and {len(changes) - _MANY} more (--format ndjson lists all)")
    _costs(context, page, planned)
    if plan.checked is not None:
        _check(page, plan.checked)
        _remains(page, plan.checked.remains)
    page.heading("Plan")
    page.facts(
        [
            ("plan", plan.plan_id),
            ("store", escape_name(plan.store)),
            ("release", plan.release),
            ("saved as", options.save_plan),
            ("takes", None if outcome.needed is None else _takes(outcome)),
            ("written to", outcome.output),
            ("journal", outcome.journal),
            ("quarantine", outcome.quarantine),
            ("left out", _left_out(outcome)),
        ]
    )
    _next(page, options, planned, outcome, alone=alone)
    page.close()


def _undo(options: ChangeOptions, journal: str) -> str:
    return f"rmqtool undo {shlex.quote(journal)} --apply" + " --follow-links" * options.follow_links


def _left_out(outcome: Outcome) -> str | None:
    """Links that are not in a copy, which is not a complete one."""
    if not outcome.left_out:
        return None
    more = f" and {len(outcome.left_out) - 1} more" if len(outcome.left_out) > 1 else ""
    return f"{outcome.left_out[0]}{more}, behind links out of the store (--follow-links)"


def _takes(outcome: Outcome) -> str:
    return human_bytes(outcome.needed or 0) + (
        ", most of the copy shares its blocks" if outcome.shares else ""
    )


def _line(change: Change) -> str:
    where = "" if change.position is None else f" at {change.position}"
    length = "" if change.length is None else f", {change.length:,} bytes"
    size = f" to {change.size:,} bytes" if change.action == "resize" and change.size is not None else ""
    return f"{change.action}{size}{where}{length} ({change.why}): {change.message}"


def _lost(row: Mapping[str, Any]) -> str:
    first, count = row["queue_offset"], row["count"]
    offsets = f"queue offset {first}" if count == 1 else f"queue offsets {first} to {first + count - 1}"
    begin, end = row["physical_offset"], row["physical_offset"] + row["length"]
    return f"{row['topic']}/{row['queue_id']} loses {offsets}, physical offsets {begin} to {end}"


def _tombstones(change: Change) -> list[str]:
    """Which messages are lost there: those that the change puts a tombstone for."""
    reported = [_lost(row) for row in change.facts.get("tombstones", ())[:_MANY]]
    more = len(change.facts.get("tombstones", ())) - len(reported)
    return [*reported, f"and {more} more (--format ndjson lists all)"] if more else reported


def _costs(context: Context, page: Page, planned: Planned) -> None:
    plan = planned.plan
    as_broker = plan.parameters.get("policy") == "broker"
    lost = "Given up, as a broker does" if as_broker else "Lost under any policy"
    for title, cost in (("Kept that a broker would lose", plan.saved), (lost, plan.lost)):
        if not cost.messages and not cost.bytes:
            continue
        times = (cost.first_timestamp, cost.last_timestamp)
        page.heading(title)
        page.facts(
            [
                ("messages", "unknown" if cost.messages is None else f"{cost.messages:,}"),
                ("bytes", f"{cost.bytes:,}"),
                ("stored", " to ".join(context.zone.iso(one) for one in times if one is not None) or None),
            ]
        )
    for note in plan.notes:
        page.line(f"note: {note}")
    if plan.unproven_offsets:
        count = sum(one.messages for one in plan.unproven_offsets)
        page.heading(
            f"Queue offsets of {count:,} {'message is' if count == 1 else 'messages are'} not proven"
        )
    for one in plan.unproven_offsets:
        page.line(
            f"  {one.topic}/{one.queue_id}: {one.messages:,} from physical offset {one.physical_offset} on: "
            "no entry is left that tells how many of the messages lost in front of it were in the queue"
        )
    if plan.undecided:
        page.heading(f"Not decided: what whole records state is right, {len(plan.undecided):,} times")
    for doubt in plan.undecided:
        first, *others = doubt.physical_offsets
        instead = f"the one at {others[0]} might be as well" if others else "it may be another queue's"
        page.line(
            f"  {doubt.topic}/{doubt.queue_id} {doubt.queue_offset}: the one at physical offset {first} is "
            f"believed, {instead}"
        )


def _check(page: Page, checked: Checked) -> None:
    """How the result was checked, or what was found."""
    if checked.proven:
        page.heading("Checked before it was printed")
        for one in checked.by:
            page.line(f"  {one}")
        return
    page.heading("Not proven: the check of the result found problems", "bold red")
    for one in checked.problems:
        page.line(f"  {one}")
    if checked.more:
        page.line(f"  and {checked.more} more")


def _remains(page: Page, remains: Sequence[str]) -> None:
    """Harm that stays when all is done."""
    if not remains:
        return
    page.heading("Left as it is: do not start a broker on the result before you have judged this", "bold red")
    for one in remains[:_MANY]:
        page.line(f"  {one}")
    if len(remains) > _MANY:
        page.line(f"  and {len(remains) - _MANY} more (--format json lists all)")


def _next(page: Page, options: ChangeOptions, planned: Planned, outcome: Outcome, *, alone: bool) -> None:
    """What to do now: how the plan is carried out, or what follows when it was."""
    plan = planned.plan
    if outcome.applied:
        _done(page, options, planned, outcome, alone=alone)
        return
    if not planned.edits:
        return
    page.heading("Do next")
    store = shlex.quote(escape_name(plan.store))
    if plan.checked is not None and not plan.checked.proven:
        page.command(f"rmqtool verify {store}")
        page.words("tells more about the store: do not apply this plan", "      ")
        return
    copy = (
        "writes these files into DIR, new or empty" if alone else "makes a changed copy in DIR, new or empty"
    )
    ways = {
        ("--output", "DIR"): f"{copy}; the store itself is only read",
        ("--in-place", "--backup", "DIR"): "changes the store itself, while no broker runs; "
        "rmqtool undo DIR takes it back",
    }
    if options.words:
        ways = {options.words: "carries it out"}
    for words, why in ways.items():
        saved = () if options.save_plan is None else ("--plan", options.save_plan)
        page.command(same_command(*saved, *(() if options.words else words), "--apply"))
        page.words(why, "      ")


def _done(page: Page, options: ChangeOptions, planned: Planned, outcome: Outcome, *, alone: bool) -> None:
    changes = len(planned.plan.changes)
    count = f"{changes:,} {'change' if changes == 1 else 'changes'}"
    where = f" in {outcome.output}" if outcome.output else ""
    page.heading(
        f"Done: {count} made{where}." if changes else "Done: there was nothing to change.", "bold green"
    )
    place = outcome.output or escape_name(planned.plan.store)
    if alone and outcome.output:
        page.words("Move the files into the store while no broker runs, then:")
        place = escape_name(planned.plan.store)
    page.command(shlex.join(["rmqtool", "doctor", place, *store_config()]))
    page.words("is it safe to start this broker now?", "      ")
    if outcome.output and not alone:
        page.words("Then put the copy in the place of the store while no broker runs, with its owner.")
    if outcome.journal:
        page.command(_undo(options, outcome.journal))
        page.words("takes it back, to the last byte", "      ")
