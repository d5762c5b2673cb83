"""Plans in files: saved with digests of everything, read back, and compared with planning again."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING

from rmqtool.errors import PlanRefusedError, UsageError
from rmqtool.repair.digests import sha256_of, sha256_of_file
from rmqtool.repair.disk import Disk
from rmqtool.repair.facts import Facts, facts_of
from rmqtool.repair.journal import parse_as
from rmqtool.repair.parameters import check_parameters
from rmqtool.repair.plan import Edit, Plan, Planned, tool_version
from rmqtool.repair.written import read_document, write_document
from rmqtool.store.access import stat_named
from rmqtool.store.names import escape_name
from rmqtool.store.writing import way_to

if TYPE_CHECKING:
    from collections.abc import Callable

    from rmqtool.store.layout import Store


def digested(planned: Planned) -> Planned:
    """The same plan with the sha256 of what its changes write."""
    edits = tuple(_digested(one) for one in planned.edits)
    plan = planned.plan.model_copy(update={"changes": tuple(one.change for one in edits)})
    return replace(planned, plan=plan, edits=edits)


def _digested(edit: Edit) -> Edit:
    if edit.content is None or edit.change.sha256 is not None:
        return edit
    return Edit(edit.change.model_copy(update={"sha256": sha256_of(edit.content)}), edit.content)


def save_plan(
    store: Store, planned: Planned, path: str, advance: Callable[[int], object] | None = None
) -> Plan:
    """Writes a plan with the sha256 of its inputs and changes into the new file `path`.

    Reads all inputs. Raises `UsageError` when there is such a file, `OSError`, `StoreIOError`.
    """
    if os.path.lexists(path):
        raise UsageError(f"--save-plan {escape_name(path)}: exists")
    place, name = os.path.split(os.path.abspath(path))
    folder, missing = way_to(place, "--save-plan")
    with folder:
        plan = _with_digests(store, planned, advance)
        target = os.path.join(folder.here, *missing, name)
        write_document(Disk(), target, plan.model_dump(mode="json", by_alias=True))
    return plan


def _with_digests(store: Store, planned: Planned, advance: Callable[[int], object] | None) -> Plan:
    known = {one.display_path: one for one in store.files}
    inputs = []
    for one in planned.plan.inputs:
        digest = sha256_of_file(known[one.path].location)
        inputs.append(one.model_copy(update={"sha256": digest}))
        if advance is not None:
            advance(one.size)
    return digested(planned).plan.model_copy(update={"inputs": tuple(inputs)})


def load_plan(path: str) -> Plan:
    """A plan that was saved. Raises `UsageError` for anything else, `NewerFormatError`, `StoreIOError`."""
    shown = f"--plan {escape_name(path)}"
    stat_named(path, shown)
    content = read_document(path, "a saved plan", shown)
    return parse_as(Plan, content, path, "a saved plan")


def check_fits(plan: Plan, store: Store, command: str, path: str) -> None:
    """Whether a saved plan may be carried out here; reads all inputs.

    Raises `UsageError` when it is for another command, store or release of rmqtool, and `PlanRefusedError`
    naming the first input that is no longer as it was.
    """
    shown = escape_name(path)
    if plan.command != command:
        raise UsageError(f"--plan {shown}: is a plan of rmqtool {plan.command}, not of {command}")
    if plan.tool_version != tool_version():
        raise UsageError(
            f"--plan {shown}: was made by rmqtool {plan.tool_version}, this is {tool_version()}: plan again"
        )
    if plan.store != os.path.realpath(store.root):
        raise UsageError(f"--plan {shown}: is for the store {escape_name(plan.store)}")
    check_parameters(command, plan.parameters, f"--plan {shown}")
    known = {one.display_path: one for one in store.files}
    for one in plan.inputs:
        file = known.get(one.path)
        found = facts_of(file.location, follow=True) if file is not None else Facts()
        if file is None or not found.exists:
            raise PlanRefusedError(f"{one.path} is gone since the plan was saved: nothing was changed")
        same = (found.size, found.mtime_ns) == (one.size, one.mtime_ns)
        if not same or (
            one.sha256 is not None and sha256_of_file(file.location, like=one.sha256) != one.sha256
        ):
            raise PlanRefusedError(f"{one.path} has changed since the plan was saved: nothing was changed")


def check_same(saved: Plan, planned: Planned, path: str) -> None:
    """Raises `PlanRefusedError` when planning again gave other changes than those saved."""
    now = planned.plan
    before, after = {one.path for one in saved.inputs}, {one.path for one in now.inputs}
    if before != after:
        other = min(before ^ after)
        raise PlanRefusedError(f"{other} came or went since the plan was saved: nothing was changed")
    if now.changes != saved.changes:
        pairs = zip(saved.changes, now.changes, strict=False)
        first = next((old.path for old, new in pairs if old != new), None)
        where = f", first at {first}" if first else ""
        raise PlanRefusedError(
            f"planning again gives other changes than {escape_name(path)}{where} (other settings?): "
            "nothing was changed"
        )
