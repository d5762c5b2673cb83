"""Scenarios simulated: the outcome is the one that the real store had once the scenario was really made."""

from __future__ import annotations

import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from fixtures import damage_case, damage_cases
from fixtures.damage import apply_operation, copy_base
from rmqtool.broker.settings import settings_of
from rmqtool.check.catalogue import Severity
from rmqtool.errors import UsageError
from rmqtool.recovery.scenarios import parse_scenario
from rmqtool.recovery.simulation import reading_for, simulate
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


def outcome_of(store: Store, release: str, scenario: str, lock: LockState | None = None) -> Outcome:
    conditions = Conditions(store, settings_of(store), reading_for(store, quick()), lock)
    return conditions.start(release, parse_scenario(scenario, store))


def step_of(operation: dict[str, Any]) -> str | None:
    """The scenario that does the same as this operation of a patch."""
    if operation == ZEROED:
        return "zero-checkpoint"
    if operation["op"] != "delete":
        return None
    return SHORT.get(operation["path"], f"remove-file {operation['path']}")


def split(case: DamageCase) -> tuple[list[dict[str, Any]], list[str]]:
    """Operations of the patch that stay, and the scenarios that stand for the others."""
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
    with tempfile.TemporaryDirectory() as directory:
        root = copy_base(case.base, Path(directory) / "store")
        for operation in split(case)[0]:
            apply_operation(root, operation)
        yield Store.open(root, config=config_of(case.settings))


SCENARIOS = [case for case in damage_cases() if split(case)[1]]
CLASSES = sorted({(case.release, case.cls) for case in SCENARIOS})


def test_there_are_enough_cases() -> None:
    steps = {step.partition(" ")[0] for case in SCENARIOS for step in split(case)[1]}
    assert len(SCENARIOS) > 300
    assert steps == {*SHORT.values(), "zero-checkpoint", "remove-file"}


@pytest.mark.share
@pytest.mark.parametrize(("release", "cls"), CLASSES)
def test_a_cure_is_simulated_as_the_real_store_met_it(release: str, cls: str) -> None:
    wrong = {}
    for case in SCENARIOS:
        if (case.release, case.cls) != (release, cls):
            continue
        lock = LockState(True, None, "held") if case.facts.get("lockHeld") else None
        with before_the_cure(case) as store:
            scenario = "+".join(split(case)[1])
            outcome = outcome_of(store, release, scenario, lock)
        found = differences(outcome, observed(case) | derived(case))
        if found:
            wrong[case.id, scenario] = found
    assert wrong == {}


def opened(damaged: Callable[[str], Path], case_id: str) -> tuple[Store, str]:
    case = damage_case(case_id)
    return Store.open(damaged(case_id), config=config_of(case.settings)), case.release


def test_nothing_is_touched(damaged: Callable[[str], Path]) -> None:
    store, release = opened(damaged, "v533-record-body-middle-first-abort0")
    before = snapshot(store.root)
    for scenario in ("delete-consumequeue+delete-index", "remove-abort", "zero-checkpoint", "start-twice"):
        outcome_of(store, release, scenario)
    assert snapshot(store.root) == before


def test_deleting_the_queues_of_a_cleanly_stopped_store_makes_one_bad_record_fatal() -> None:
    """Seen with 5.3.3; 4.9.8 looks at the last three segments only and deletes nothing."""
    case = damage_case("v533-rebuild-body-clean")
    with before_the_cure(case) as store:
        as_it_is = simulate(store, "5.3.3")
        after = outcome_of(store, "5.3.3", "delete-consumequeue")
        with_older = outcome_of(store, "4.9.8", "delete-consumequeue")
        segments = list(store.segments)
    assert as_it_is.safe_to_start is True
    assert as_it_is.start_segment not in {0, None}
    assert (after.mode, after.start_segment, after.stop_reason) == ("normal", 0, "bad_crc")
    assert after.stop_offset is not None
    assert segments[1].covers(after.stop_offset)
    assert (
        list(after.deletes)
        == [one.file.display_path for one in segments[2:]]
        == case.result["filesAfterLoad"]["deleted"]
    )
    assert after.loss is not None
    assert after.loss.messages > 0
    assert after.safe_to_start is False
    assert with_older.deletes == ()


def test_a_release_is_a_cure(damaged: Callable[[str], Path]) -> None:
    store, release = opened(damaged, "v533-cq-all-deleted-clean")
    assert outcome_of(store, release, "release 5.3.3").safe_to_start is True
    older = outcome_of(store, release, "release=5.3.1")
    assert (older.version, older.safe_to_start) == ("5.3.1", False)


def test_a_second_start_finds_what_the_first_left(damaged: Callable[[str], Path]) -> None:
    store, release = opened(damaged, "v533-record-body-middle-first-abort0")
    once, twice = simulate(store, release), outcome_of(store, release, "start-twice")
    assert once.mode == "abnormal"
    assert twice.mode == "normal"
    assert (twice.max_physical_offset, twice.deletes) == (once.max_physical_offset, once.deletes)
    assert once.loss is not None
    assert twice.loss is not None
    assert twice.loss.messages == once.loss.messages
    bounds = {(one.topic, one.queue_id): (one.min_offset, one.max_offset) for one in once.queues}
    assert bounds == {(one.topic, one.queue_id): (one.min_offset, one.max_offset) for one in twice.queues}


def test_what_the_first_of_two_starts_did_is_told_once(damaged: Callable[[str], Path]) -> None:
    store, release = opened(damaged, "v533-record-body-middle-first-abort0")
    once, twice = simulate(store, release), outcome_of(store, release, "start-twice")
    reported = [one.code for one in twice.consequences]
    assert {one.code for one in once.consequences if one.severity is Severity.ERROR} <= set(reported)
    assert reported.count("DR-MESSAGES-LOST") == 1
    assert twice.loss is not None
    lost = next(one for one in twice.consequences if one.code == "DR-MESSAGES-LOST")
    assert lost.facts["messages"] == twice.loss.messages
    assert "DR-ABNORMAL" not in reported


def test_every_start_that_looks_back_tells_the_same(damaged: Callable[[str], Path]) -> None:
    """Files are read once for all starts; what was found in them counts for each."""
    store, release = opened(damaged, "v533-record-magic-flip-middle-mid-clean")
    conditions = Conditions(store, settings_of(store), reading_for(store, quick()))
    first, second = (conditions.start(release) for _ in range(2))
    assert "DR-UNREAD-DAMAGE" in {one.code for one in first.consequences}
    assert first.consequences == second.consequences


def test_files_may_be_named_in_any_way(damaged: Callable[[str], Path]) -> None:
    store, release = opened(damaged, "v533-none-healthy-clean")
    last = list(store.segments)[-1].file
    for name in (last.path, f"./{last.path}", str(last.absolute)):
        outcome = outcome_of(store, release, f"remove-file {name}")
        assert outcome.max_physical_offset < simulate(store, release).max_physical_offset
    assert outcome_of(store, release, "remove-file commitlog").max_physical_offset == 0


@pytest.mark.parametrize(
    ("scenario", "said"),
    [
        ("delete-queues", "known are delete-consumequeue"),
        ("remove-file", 'quoted: "remove-file …"'),
        ("remove-file commitlog/1", "the store has no such file"),
        ("remove-file ../x", "the store has no such file"),
        ("release x", "x is not a release"),
        ("remove-abort+", "unknown workaround remove-abort+"),
        ("", "unknown workaround"),
    ],
)
def test_what_is_no_scenario(damaged: Callable[[str], Path], scenario: str, said: str) -> None:
    store, _ = opened(damaged, "v533-none-healthy-clean")
    with pytest.raises(UsageError, match=r"^[^\n]*$") as error:
        parse_scenario(scenario, store)
    assert said in str(error.value)
