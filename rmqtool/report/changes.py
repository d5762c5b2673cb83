"""What would be done and what was done: the plan of `recover`, and undo journals, as sections."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from rmqtool.errors import UsageError
from rmqtool.output.plan_rows import change_row, plan_facts
from rmqtool.repair.authentic import read_journal
from rmqtool.store.names import escape_name

if TYPE_CHECKING:
    from rmqtool.repair.plan import Plan
    from rmqtool.store.layout import Store

    Row = dict[str, Any]

MOST = 200
"""changes of a plan that are listed"""


def plan_section(plan: Plan) -> Row:
    """The section of the plan: what `recover` prints, without the check of its result."""
    return {"made": True, "why": None, **plan_facts(plan), **_changes(plan)}


def _changes(plan: Plan) -> Row:
    rows = [change_row(one) for one in plan.changes[:MOST]]
    return {"changes": len(plan.changes), "rows": rows, "changes_left_out": len(plan.changes) - len(rows)}


def journal_section(store: Store, given: str) -> Row:
    """What was done by the command that wrote this journal, and how far it came.

    Raises `UsageError` when there is none, it is not to be trusted, or is of another store,
    `NewerFormatError`, `StoreIOError`.
    """
    directory, journal, state = read_journal(given)
    if journal.store != os.path.realpath(store.root):
        raise UsageError(f"the journal {escape_name(directory)} is of {escape_name(journal.store)}")
    return {
        "journal": escape_name(directory),
        "journal_id": journal.journal_id,
        "created_timestamp": journal.created_timestamp,
        "phase": state.phase.value,
        **plan_facts(journal.plan),
        "tool_version": journal.tool_version,
        **_changes(journal.plan),
    }
