"""A plan and its changes as rows of the contract."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rmqtool.store.names import escape_name

if TYPE_CHECKING:
    from rmqtool.repair.plan import Change, Checked, Cost, Plan


def change_row(change: Change) -> dict[str, Any]:
    """One change as a row: its facts beside its own keys, times in ms."""
    reported = change.model_dump(mode="json", exclude_none=True, exclude={"facts", "mtime_ns"})
    if change.mtime_ns is not None:
        reported["mtime_timestamp"] = change.mtime_ns // 1_000_000
    return {"type": "change", **reported, **change.facts}


def plan_facts(plan: Plan) -> dict[str, Any]:
    """What a plan is beside its changes."""
    return {
        "plan_id": plan.plan_id,
        "command": plan.command,
        "store": escape_name(plan.store),
        "release": plan.release,
        "parameters": plan.parameters,
        "changes": len(plan.changes),
        "saved": _cost(plan.saved),
        "lost": _cost(plan.lost),
        "notes": list(plan.notes),
        "refusal": plan.refusal,
        "unproven_offsets": [one.model_dump(mode="json") for one in plan.unproven_offsets],
        "undecided": [one.model_dump(mode="json") for one in plan.undecided],
        "not_salvaged": list(plan.not_salvaged),
        "checked": None if plan.checked is None else _checked(plan.checked),
    }


def _cost(cost: Cost) -> dict[str, Any]:
    return cost.model_dump(mode="json")


def _checked(checked: Checked) -> dict[str, Any]:
    return {"proven": checked.proven, **checked.model_dump(mode="json")}
