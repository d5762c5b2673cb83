"""Planning a checkpoint whose values the data proves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from formats.checkpoint import (
    CHECKPOINT_FIELDS,
    CHECKPOINT_HEAD_SIZE,
    CHECKPOINT_SIZE,
    TIMES,
    Checkpoint,
    parse_checkpoint,
)
from rmqtool.errors import PlanRefusedError
from rmqtool.repair.content import Inline
from rmqtool.repair.plan import Action, Change, Edit, Planned, PlanSummary, make_planned
from rmqtool.store.kinds import FileKind
from rmqtool.store.unseen import refuse_lost_segments
from rmqtool.store.whole import read_whole

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rmqtool.repair.proof import Proof
    from rmqtool.store.layout import Store

PATH = "checkpoint"


def stored_values(store: Store) -> dict[str, int]:
    """The values of the checkpoint as a broker reads them: zeros where there is none.

    Raises `PlanRefusedError` for what is not a file, and what reading raises.
    """
    file = store.file(PATH)
    raw = b""
    if file is not None:
        if not file.regular:
            raise PlanRefusedError(f"{PATH} is not a regular file: move it away")
        raw = read_whole(file)
    found = parse_checkpoint(raw)
    return {name: int(found[name]) for name in CHECKPOINT_FIELDS}


def plan_checkpoint(
    store: Store, release: str, parameters: dict[str, Any], proof: Proof, wanted: Mapping[str, int]
) -> Planned:
    """A plan that sets `wanted` (some of `CHECKPOINT_FIELDS`), and the proven values for the other fields.

    Raises `UnfitStoreError` where a part of the log cannot be seen.
    """
    refuse_lost_segments(store)
    stored = stored_values(store)
    confirms = int(release.partition(".")[0]) >= 5
    safe = proof.safe(stored, confirms=confirms)
    values = {**safe, **wanted}
    edits = [] if values == stored and _is_whole(store) else [_edit(store, values, stored)]
    notes = tuple(_notes(proof, safe, values))
    kinds = (FileKind.COMMITLOG, FileKind.CONSUMEQUEUE, FileKind.BATCHCONSUMEQUEUE, FileKind.INDEX)
    inputs = [*store.of_kind(*kinds), *(one for one in (store.file(PATH),) if one is not None)]
    return make_planned(
        "checkpoint set", store, release, parameters, edits, inputs=inputs, summary=PlanSummary(notes=notes)
    )


def _is_whole(store: Store) -> bool:
    file = store.file(PATH)
    return file is not None and file.size >= CHECKPOINT_SIZE


def _edit(store: Store, values: Mapping[str, int], stored: Mapping[str, int]) -> Edit:
    data = Checkpoint.build(dict(values))
    facts = {
        name: {"from": stored[name], "to": values[name]}
        for name in CHECKPOINT_FIELDS
        if values[name] != stored[name]
    }
    summary = ", ".join(f"{name} {one['from']} to {one['to']}" for name, one in facts.items())
    if _is_whole(store):
        head = data[:CHECKPOINT_HEAD_SIZE]
        change = Change(
            action=Action.WRITE,
            path=PATH,
            position=0,
            length=len(head),
            why="checkpoint",
            message=summary,
            facts=facts,
        )
        return Edit(change, Inline(head))
    change = Change(
        action=Action.PUT,
        path=PATH,
        length=len(data),
        size=len(data),
        why="checkpoint",
        message=summary or "made whole",
        facts=facts,
    )
    return Edit(change, Inline(data))


def _notes(proof: Proof, safe: Mapping[str, int], values: Mapping[str, int]) -> list[str]:
    found = []
    if not proof.is_sound:
        found.append(
            f"the log is damaged at {proof.log_end} ({proof.stop_reason}): nothing behind it is proven, "
            "recover it first"
        )
    if proof.lacking:
        found.append(f"{proof.lacking} messages have no consume queue entry yet")
    late = [name for name in TIMES if values[name] > safe[name]]
    found += [f"{name} {values[name]} is later than the data proves ({safe[name]})" for name in late]
    return found
