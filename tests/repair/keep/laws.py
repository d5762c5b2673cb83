"""What must be true of a repaired store, whatever was damaged."""

from __future__ import annotations

import tempfile
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from fixtures import copy_base, strict
from rmqtool.recovery.simulation import simulate
from rmqtool.repair.keep.planner import KeepOptions, Kept, keep
from rmqtool.repair.to_copy import apply_to_copy, prepare_copy
from rmqtool.store.config import config_of
from rmqtool.store.layout import Store
from rmqtool.store.lock import LockState

if TYPE_CHECKING:
    from fixtures import DamageCase
    from fixtures.strict import Record
    from rmqtool.repair.plan import Plan

NOBODY = LockState(False, None, "")


def kept(root: Path, release: str, settings: dict[str, object] | None = None, **options: object) -> Plan:
    """The plan for a store."""
    with tempfile.TemporaryDirectory() as work:
        return planned(root, release, work, settings, **options).planned.plan


def planned(
    root: Path, release: str, work: str, settings: dict[str, object] | None = None, **options: object
) -> Kept:
    """The plan for a store, with its bytes; `work` has to stay as long as these are wanted."""
    store = Store.open(root, config=None if settings is None else config_of(settings))
    return keep(store, KeepOptions(release, **options), work)  # type: ignore[arg-type]


def repair(
    root: Path,
    release: str,
    target: Path,
    settings: dict[str, object] | None = None,
    **options: object,
) -> Plan:
    """A repaired copy of a store in `target`."""
    with tempfile.TemporaryDirectory(dir=target.parent) as work:
        made = planned(root, release, work, settings, **options).planned
        store = Store.open(root, config=None if settings is None else config_of(settings))
        apply_to_copy(store, made, prepare_copy(store, made, str(target)))
    return made.plan


def wanted(case: DamageCase, root: Path, place: Path) -> dict[int, Record]:
    """Records that have to survive: at their own place and as they were written.

    Behind the end of the undamaged store also those that go on without a gap, in the log and in their queue.
    """
    here = strict.carve(root)
    was, end = strict.walk(copy_base(case.base, place))
    found = {at: one for at, one in here.items() if at in was and was[at].raw == one.raw}
    tops: Counter[tuple[str, int]] = Counter()
    for one in was.values():
        if one.placed:
            tops[one.slot[:2]] = max(tops[one.slot[:2]], one.queue_offset + 1)
    while end in here and end not in was and here[end].queue_offset == tops[here[end].slot[:2]]:
        found[end] = here[end]
        tops[here[end].slot[:2]] += 1
        end += here[end].size
    return {at: one for at, one in found.items() if one.placed}


def problems(root: Path, wanted: dict[int, Record], release: str, settings: dict[str, object]) -> list[str]:
    """What is wrong with a repaired store; nothing it should be."""
    log, _ = strict.walk(root)
    found = [f"{one.slot} is lost" for at, one in wanted.items() if not _survived(log.get(at), one)]
    ends, begin = _order(log, found)
    _aligned(root, log, begin, found)
    for crash in (False, True):
        _starts(root, release, settings, ends, found, crash=crash)
    return found


def _survived(now: Record | None, was: Record) -> bool:
    return now is not None and (now.slot, now.body, now.properties) == (was.slot, was.body, was.properties)


def _order(log: dict[int, Record], found: list[str]) -> tuple[dict[tuple[str, int], int], int]:
    """Queue offsets grow by one from record to record."""
    ends: dict[tuple[str, int], int] = {}
    begin = min(log, default=0)
    for at, one in sorted(log.items()):
        if not one.placed:
            continue
        key = one.slot[:2]
        if one.queue_offset != ends.get(key, one.queue_offset if begin else 0):
            found.append(f"{one.slot} at {at} where {ends.get(key)} follows")
        ends[key] = one.queue_offset + 1
    return ends, begin


def _aligned(root: Path, log: dict[int, Record], begin: int, found: list[str]) -> None:
    """Every record has its unit, and no unit points at anything else."""
    units = strict.units(root)
    expected = {one.slot: (at, one.size) for at, one in log.items() if one.placed}
    found += [f"unit {slot} is {units.get(slot)}" for slot in expected if units.get(slot) != expected[slot]]
    found += [
        f"unit {slot} points at {place}"
        for slot, place in units.items()
        if slot not in expected and place[0] >= begin and place != strict.PRE_BLANK
    ]


def _starts(
    root: Path,
    release: str,
    settings: dict[str, object],
    ends: dict[tuple[str, int], int],
    found: list[str],
    *,
    crash: bool,
) -> None:
    """A broker starts, deletes nothing, and gives the next queue offsets; also after a crash."""
    checkpoint = root / "checkpoint"
    before = checkpoint.read_bytes() if checkpoint.exists() else b""
    if crash:
        (root / "abort").touch()
        checkpoint.write_bytes(bytes(24) + before[24:])
    outcome = simulate(Store.open(root, config=config_of(settings)), release, lock=NOBODY)
    gone = [one for one in outcome.deletes if any((root / one).read_bytes())]
    gone = [one for one in gone if not (crash and one.startswith("index/"))]
    if crash:
        (root / "abort").unlink()
        checkpoint.unlink()
        if before:
            checkpoint.write_bytes(before)
    when = "after a crash" if crash else "normally"
    if not outcome.starts or gone or outcome.loss.messages or outcome.safe_to_start is False:
        found.append(f"a start {when}: {outcome.refusal}, deletes {gone}, loses {outcome.loss.messages}")
    bounds = {(one.topic, one.queue_id): one.max_offset for one in outcome.queues}
    found += [f"{key} ends at {bounds.get(key)}" for key, end in ends.items() if bounds.get(key) != end]
