"""`rmqtool undo`: puts back what an in-place command changed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from rmqtool.cli.context import Context
from rmqtool.cli.options import OutputOptions
from rmqtool.cli.verb import verb
from rmqtool.errors import ExitCode

if TYPE_CHECKING:
    from rmqtool.repair.undo import UndoPlan
    from rmqtool.repair.undo_plan import Step

SCHEMA = "rmqtool.undo/1"
CSV_COLUMNS = ("way", "path", "position", "length", "restorable", "reason")


@verb(
    examples=[
        "rmqtool undo /backup/recover-1",
        "rmqtool undo /backup/recover-1 --apply",
        "rmqtool undo /backup/recover-1/journal.json --apply --partial",
    ]
)
def command(
    journal: Annotated[
        str,
        typer.Argument(
            metavar="JOURNAL",
            help="Directory given to --backup, or the journal.json in it.",
            show_default=False,
        ),
    ],
    apply: Annotated[
        bool,
        typer.Option("--apply", help="Carry out the undo; without it, print what would be done and stop."),
    ] = False,
    partial: Annotated[
        bool, typer.Option("--partial", help="Leave what has changed since and restore the rest.")
    ] = False,
    follow_links: Annotated[
        bool,
        typer.Option("--follow-links", help="Also restore what links to outside the store lead to."),
    ] = False,
    *,
    output: OutputOptions,
) -> ExitCode:
    """Restore what an in-place command changed, from its journal.

    Restores bytes, files, directories, owners, modes and modification times, and removes what the
    command created and the marker that kept brokers from starting. Only what would be restored is compared:
    where a broker or anybody else has written since, that is listed and nothing is done without --partial;
    what was appended is named and never cut. An apply that was stopped in the middle is put back, too.

    A journal is refused (exit 2) when another user may change it or the way to it, or when a path in it is
    not in its store. Set-uid and set-gid bits do not come back.

    Exit 0 when it is done or there is nothing to do, 1 when only the plan was printed or something has
    changed, 5 when a process holds the store.
    """
    from rmqtool.repair.plan_words import counted
    from rmqtool.repair.undo import demand_saved, plan_undo, undo
    from rmqtool.store.holding import acquire_store_lock, refuse_if_held
    from rmqtool.store.names import escape_name

    context = Context(output)
    plan = plan_undo(journal, follow_links=follow_links)
    refuse_if_held(plan.journal.store)
    if not apply or plan.nothing:
        demand_saved(plan)
        _show(context, plan, applied=False)
        if plan.nothing and plan.state.skipped:
            left = plan.state.skipped
            context.console.warn(
                f"{counted(len(left), 'part')} left by --partial, the first {escape_name(left[0])}"
            )
        return ExitCode.OK if plan.nothing and not plan.state.skipped else ExitCode.DAMAGE
    with acquire_store_lock(plan.journal.store) as held:
        plan = plan_undo(journal, follow_links=follow_links)
        if plan.changed and not partial:
            _show(context, plan, applied=False)
        undo(plan, held, partial=partial)
    _show(context, plan, applied=True)
    return ExitCode.DAMAGE if plan.changed else ExitCode.OK


def _row(step: Step) -> dict[str, Any]:
    row = {
        "type": "restore",
        "way": step.way.value,
        "path": step.entry.path,
        "position": step.position,
        "length": step.length,
        "restorable": step.changed is None,
        "reason": step.changed,
    }
    return {name: value for name, value in row.items() if value is not None}


def _show(context: Context, plan: UndoPlan, *, applied: bool) -> None:
    from rmqtool.output.tablerows import Column
    from rmqtool.store.names import escape_name

    columns = [
        Column("way"),
        Column("path", shrinks=True),
        Column("position", right=True),
        Column("length", right=True),
        Column("reason", "changed since"),
    ]
    with context.rows(SCHEMA, columns, csv_columns=CSV_COLUMNS) as rows:
        rows.write_rows(_row(step) for step in plan.steps)
        rows.finish(
            {
                "type": "summary",
                "restored" if applied else "to_restore": len(plan.steps) - len(plan.changed),
                "changed_since": len(plan.changed),
                "store": escape_name(plan.journal.store),
                "journal": escape_name(plan.directory),
                "plan_id": plan.journal.plan.plan_id,
                "interrupted": plan.between,
                "applied": applied,
                "complete": True,
            }
        )
