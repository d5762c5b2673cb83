"""Planning changed offsets: put back into their queues, or merged with those of another table."""

from __future__ import annotations

import copy
import hashlib
from typing import TYPE_CHECKING, Any

from rmqtool.broker.offset_by_time import Boundary
from rmqtool.errors import PlanRefusedError
from rmqtool.query.by_time import exact_offset
from rmqtool.query.offsets.audit import QueuesOnDisk, State, audit
from rmqtool.query.offsets.compared import differing, offsets_of_store
from rmqtool.query.offsets.places import Chosen, Kind
from rmqtool.query.served_queue import ReadRules
from rmqtool.repair.content import Inline
from rmqtool.repair.plan import Action, Change, Edit, Planned, PlanSummary, make_planned
from rmqtool.repair.plan_words import counted
from rmqtool.scan.options import ReadOptions
from rmqtool.store.config_json import ParseState
from rmqtool.store.config_text import config_text
from rmqtool.store.config_types import with_number_keys
from rmqtool.store.consumer_offsets import DELAY_OFFSETS, offsets_file
from rmqtool.store.coverage import Incomplete
from rmqtool.store.kinds import FileKind
from rmqtool.store.required import require_root
from rmqtool.store.unseen import refuse_lost_segments

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from rmqtool.query.offsets.audit import Audited
    from rmqtool.query.offsets.places import Place
    from rmqtool.store.layout import Store

    Changes = dict[Place, tuple[int | None, int, str]]
    """offset before, offset after and why, by place"""

_LISTED = 20


def plan_clamp(store: Store, release: str, parameters: dict[str, Any]) -> Planned:
    """Offsets outside their queue, of those chosen, go to the bound that they left, or to `to`.

    parameters: `Chosen.parameters` and to: `nearest`, `min`, `max` or a store time (ms). Raises what `audit`
    raises.
    """
    require_root(store)
    refuse_lost_segments(store)
    left: list[dict[str, Any]] = []
    rules = ReadRules(release, "given")
    changes: Changes = {}
    notes: list[str] = []
    outside, seen = [], 0
    chosen = Chosen.of(parameters)
    for one in audit(store, rules, chosen, left, ReadOptions.of(store)):
        seen += 1
        if one.state in {State.BELOW_MIN, State.BEYOND_MAX}:
            outside.append(one)
        elif one.state is State.UNKNOWN_QUEUE:
            notes.append(f"{one.place.text}: there is no such queue, offset {one.offset} stays")
    if not seen and any(chosen.parameters.values()):
        notes.append("no stored offset matches --group, --topic and --kind")
    for row in left:
        unread = row["reason"] == Incomplete.UNREADABLE
        notes.append(
            f"{row['path']} cannot be read, its offsets stay: {row['error']}"
            if unread
            else f"{row['path']} is damaged, rebuild it first: {row['error']}"
        )
    with QueuesOnDisk(store, rules) as queues:
        for one in outside:
            changes[one.place] = (one.offset, *_target(queues, one, parameters["to"]))
    kinds = (FileKind.CONSUMEQUEUE, FileKind.BATCHCONSUMEQUEUE)
    inputs = [*store.of_kind(*kinds), *(one.file for one in store.segments)]
    return _planned("offsets clamp", store, release, parameters, changes, notes, inputs)


def _target(queues: QueuesOnDisk, one: Audited, to: str | int) -> tuple[int, str]:
    low, high = one.low or 0, one.high or 0
    if isinstance(to, int):
        with queues.view(one.place.topic, one.place.queue_id) as view:
            found = None if view is None else exact_offset(view, to, Boundary.LOWER).queue_offset
        return (high, "max: nothing was stored since") if found is None else (max(found, low), "by time")
    if to == "nearest":
        to = "min" if one.state is State.BELOW_MIN else "max"
    return (low if to == "min" else high), to


def plan_merge(store: Store, release: str, parameters: dict[str, Any], other: Mapping[Place, int]) -> Planned:
    """The store's offsets (A) with those of another table (B), entry by entry; what one lacks is added.

    parameters: `Chosen.parameters` and policy: `max`, `min`, `prefer-a` or `prefer-b`. other: of B, those
    chosen.
    """
    require_root(store)
    policy = parameters["policy"]
    changes: Changes = {}
    ours = offsets_of_store(store, Chosen.of(parameters))
    for one in differing(ours, other):
        if one.b is None:
            continue
        if one.a is None:
            changes[one.place] = (None, one.b, "only in B")
            continue
        chosen = {"max": max(one.a, one.b), "min": min(one.a, one.b), "prefer-a": one.a, "prefer-b": one.b}
        if chosen[policy] != one.a:
            changes[one.place] = (one.a, chosen[policy], policy)
    digest = hashlib.sha256(repr(sorted(other.items())).encode()).hexdigest()
    given = parameters | {"other_sha256": digest}
    return _planned("offsets merge", store, release, given, changes, [], [])


def _planned(
    command: str,
    store: Store,
    release: str,
    parameters: dict[str, Any],
    changes: Changes,
    notes: list[str],
    inputs: list[Any],
) -> Planned:
    for name in (offsets_file(store), DELAY_OFFSETS):
        _refuse_damaged(store, name)
    by_file: dict[str, Changes] = {}
    for place, one in changes.items():
        name = DELAY_OFFSETS if place.kind is Kind.DELAY else offsets_file(store)
        by_file.setdefault(name, {})[place] = one
    edits = list(_folder(store, by_file))
    for name, changed in sorted(by_file.items()):
        edits.append(_edit(store, name, changed))
    said = [
        f"{place.text}: {'none' if was is None else was} to {now} ({why})"
        for place, (was, now, why) in sorted(changes.items())
    ]
    more = [f"and {len(said) - _LISTED} more (--format ndjson lists all)"] if len(said) > _LISTED else []
    tables = [f"config/{name}{end}" for name in (offsets_file(store), DELAY_OFFSETS) for end in ("", ".bak")]
    read = [*inputs, *(one for one in map(store.file, tables) if one is not None)]
    summary = PlanSummary(notes=(*said[:_LISTED], *more, *notes[:_LISTED]))
    return make_planned(command, store, release, parameters, edits, inputs=read, summary=summary)


def _refuse_damaged(store: Store, name: str) -> None:
    """What can still be taken out of a table is taken out of it first. Raises `PlanRefusedError`."""
    pair = store.config_pair(name)
    none = {ParseState.MISSING, ParseState.EMPTY}
    damaged = [one for one in (pair.primary, pair.bak) if not one.state.has_data and one.state not in none]
    if damaged and pair.chosen != "primary":
        detail = damaged[0].detail or damaged[0].state.value
        raise PlanRefusedError(f"config/{name} {detail}: rmqtool config salvage comes first")


def _folder(store: Store, by_file: Mapping[str, Changes]) -> Iterator[Edit]:
    if by_file and not store.listing.exists("config"):
        message = "for the tables in it"
        yield Edit(Change(action=Action.MAKE_DIRECTORY, path="config", why="offsets", message=message))


def _edit(store: Store, name: str, changes: Changes) -> Edit:
    data = with_offsets(name, store.config_pair(name).data, {at: now for at, (_, now, _) in changes.items()})
    text = config_text(data).encode()
    rows = [
        {**place.row, "from": was, "to": now, "why": why}
        for place, (was, now, why) in sorted(changes.items())
    ]
    count = len(rows)
    change = Change(
        action=Action.PUT,
        path=f"config/{name}",
        length=len(text),
        size=len(text),
        why="offsets",
        message=f"{counted(count, 'offset')} set",
        facts={"offsets": rows},
    )
    return Edit(change, Inline(text))


def with_offsets(name: str, data: Any, offsets: Mapping[Place, int]) -> dict[str, Any]:
    """A copy of a parsed table with these offsets in it; everything else stays.

    Keys of queues and levels become numbers, as brokers write them.
    """
    made: dict[str, Any] = copy.deepcopy(with_number_keys(name, data)) if isinstance(data, dict) else {}
    held = made.get("offsetTable")
    table = made["offsetTable"] = held if isinstance(held, dict) else {}
    if name == DELAY_OFFSETS:
        table.update({at.queue_id + 1: offset for at, offset in offsets.items()})
        return made
    light = made.get("lmqOffsetTable")
    for place, offset in offsets.items():
        key = f"{place.topic}@{place.group}"
        if isinstance(light, dict) and key not in table and place.kind is Kind.LMQ:
            light[key] = offset
            continue
        table.setdefault(key, {})[place.queue_id] = offset
        topics = made.get("groupTopicMap")
        if isinstance(topics, dict) and isinstance(topics.setdefault(place.group, []), list):
            listed = topics[place.group]
            listed += [place.topic] if place.topic not in listed else []
    return made
