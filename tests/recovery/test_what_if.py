"""Cures foretold: the outcome is the one that the real store had once the cure was really made."""

from __future__ import annotations

import shutil
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from fixtures import damage_case, damage_cases
from fixtures.damage import apply_operation, copy_base
from rmqtool.errors import UsageError
from rmqtool.recovery.cures import parse_cure
from rmqtool.recovery.foretell import foretell, reading_for
from rmqtool.recovery.settings import settings_of
from rmqtool.recovery.what_if import Conditions
from rmqtool.store.config import config_of
from rmqtool.store.layout import Store
from rmqtool.store.lock import LockState
from tests.helpers import snapshot
from tests.recovery.corpus import derived, differences, observed
from tests.recovery.test_corpus import quick

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from fixtures import DamageCase
    from rmqtool.recovery.outcome import Outcome

SHORT = {
    "consumequeue": "delete-consumequeue",
    "index": "delete-index",
    "abort": "remove-abort",
    "checkpoint": "remove-checkpoint",
}
ZEROED = {"op": "fill", "path": "checkpoint", "offset": 0, "length": 24, "byte": 0}


def outcome_of(store: Store, release: str, cure: str, lock: LockState | None = None) -> Outcome:
    conditions = Conditions(settings_of(store), reading_for(store, quick()), lock)
    return conditions.start(store, release, parse_cure(cure, store))


def step_of(operation: dict[str, Any]) -> str | None:
    """The cure that does the same as this operation of a patch."""
    if operation == ZEROED:
        return "zero-checkpoint"
    if operation["op"] != "delete":
        return None
    return SHORT.get(operation["path"], f"remove-file {operation['path']}")


def split(case: DamageCase) -> tuple[list[dict[str, Any]], list[str]]:
    """Operations of the patch that stay, and the cures that stand for the others."""
    patch = case.facts["patch"]
    stay, steps = [], []
    for one in patch:
        step = step_of(one)
        touched = [other.get("to") or other["path"] for other in patch if other is not one]
        if step is None or any(f"{path}/".startswith(one["path"] + "/") for path in touched):
            stay.append(one)
        else:
            steps.append(step)
    return stay, steps


@contextmanager
def before_the_cure(case: DamageCase) -> Iterator[Store]:
    place = Path("/dev/shm")
    directory = Path(tempfile.mkdtemp(dir=place if place.is_dir() else None))
    try:
        root = copy_base(case.base, directory / "store")
        for operation in split(case)[0]:
            apply_operation(root, operation)
        yield Store.open(root, config=config_of(case.settings))
    finally:
        shutil.rmtree(directory)


CURED = [case for case in damage_cases() if split(case)[1]]
CLASSES = sorted({(case.release, case.cls) for case in CURED})


def test_there_are_enough_cases() -> None:
    steps = {step.partition(" ")[0] for case in CURED for step in split(case)[1]}
    assert len(CURED) > 300
    assert steps == {*SHORT.values(), "zero-checkpoint", "remove-file"}


@pytest.mark.parametrize(("release", "cls"), CLASSES)
def test_a_cure_is_foretold_as_the_real_store_met_it(release: str, cls: str) -> None:
    wrong = {}
    for case in CURED:
        if (case.release, case.cls) != (release, cls):
            continue
        lock = LockState(True, None, "held") if case.facts.get("lockHeld") else None
        with before_the_cure(case) as store:
            cure = "+".join(split(case)[1])
            outcome = outcome_of(store, release, cure, lock)
        found = differences(outcome, observed(case) | derived(case))
        if found:
            wrong[case.id, cure] = found
    assert wrong == {}
