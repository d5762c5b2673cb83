"""A start by the real store, now: what was simulated just before is what it does.

One damaged store of each class for each release that wrote one; every one of them with `-m full`.
"""

from __future__ import annotations

import shutil
import time
from typing import TYPE_CHECKING, Any

import pytest

from fixtures import damage_cases
from fixtures.stores import HandmadeStore
from rmqtool.broker.settings import settings_of
from rmqtool.recovery.outcome import Verdict
from rmqtool.recovery.scenarios import parse_scenario
from rmqtool.recovery.simulation import reading_for, simulate
from rmqtool.recovery.what_if import Conditions
from rmqtool.store.layout import Store
from tests.helpers import rmq
from tests.recovery.corpus import damaged_store, simulated

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from fixtures import DamageCase
    from rmqtool.recovery.outcome import Outcome
    from tests.interop.javastore import JavaStore

pytestmark = pytest.mark.interop

CLASSES = sorted({case.cls for case in damage_cases()} - {"delayoffset"})


def tried(case: DamageCase) -> bool:
    """Not where an error ends the process, another process holds the lock, or a setting is a nested value."""
    plain = all(isinstance(value, (int, bool)) for value in case.settings.values())
    return case.result["load"] != "exception" and not case.facts.get("lockHeld") and plain


def compare(case: DamageCase, java_store: Callable[..., JavaStore]) -> None:
    """Simulate, start, hold one against the other."""
    with damaged_store(case) as store:
        outcome = simulated(store, case)
        before = {file.path for file in store.files}
        refuses_later = outcome.refusal is not None and case.result["load"] == "ok"
        with java_store(store.root, start=False, **case.settings) as java:
            left = {path.relative_to(store.root).as_posix() for path in store.root.rglob("*")}
            assert java.loaded is (outcome.starts or refuses_later)
            if not outcome.starts:
                return
            assert sorted(before - left) == sorted(outcome.deletes)
            bounds = java.call("bounds")
            assert bounds == {"min": outcome.min_physical_offset, "max": outcome.max_physical_offset}
            assert loaded(java.call("queues")) == expected(outcome)


def compare_twice(case: DamageCase, java_store: Callable[..., JavaStore]) -> None:
    """Started, stopped in order and started again."""
    with damaged_store(case) as store:
        conditions = Conditions(store, settings_of(store), reading_for(store))
        outcome = conditions.start(case.release, parse_scenario("start-twice", store))
        before = {file.path for file in store.files} - {"abort"}
        with java_store(store.root, **case.settings) as java:
            assert java.loaded
            java.call("drain")
        with java_store(store.root, start=False, **case.settings) as java:
            left = {path.relative_to(store.root).as_posix() for path in store.root.rglob("*")}
            assert java.loaded is outcome.starts
            assert sorted(before - left) == sorted(outcome.deletes)
            bounds = java.call("bounds")
            assert bounds == {"min": outcome.min_physical_offset, "max": outcome.max_physical_offset}
            assert loaded(java.call("queues")) == expected(outcome)


@pytest.mark.full  # half a minute of tries to make the queue
def test_a_topic_with_a_zero_byte(tmp_path: Path, java_store: Callable[..., JavaStore], release: str) -> None:
    """No queue takes an entry behind it, as no directory has its name; what `recover` makes is served."""
    store = HandmadeStore()
    for number in range(6):
        store.put("Late" if number == 3 else "Orders", b"body")
    store.write(tmp_path / "store")
    path, position = store.segment(store.stored[3].offset)
    store.patch(path, store.read(path).index(b"Late", position), bytes(4))
    shutil.rmtree(store.root / "consumequeue")
    (store.root / "abort").touch()
    sizes = {
        "mappedFileSizeCommitLog": store.log.segment_size,
        "maxHashSlotNum": store.index.slots,
        "maxIndexNum": store.index.capacity,
    }
    done = rmq("recover", store.root, "--output", tmp_path / "out", "--apply")
    assert done.exit_code == 0, done.stderr
    outcome = simulate(Store.open(store.root), release)
    with java_store(store.root, start=False, **sizes) as java:
        assert loaded(java.call("queues")) == expected(outcome) == {("Orders", 0): 3}
    sizes["mappedFileSizeConsumeQueue"] = 6_000_000
    with java_store(tmp_path / "out", **sizes) as java:
        java.call("drain")
        assert loaded(java.call("queues")) == {("Orders", 0): 5}


def loaded(queues: list[dict[str, Any]]) -> dict[tuple[str, int], int]:
    """Next offsets directly after the load."""
    return {(one["topic"], one["queue"]): one["max"] for one in queues}


def expected(outcome: Outcome) -> dict[tuple[str, int], int]:
    return {(one.topic, one.queue_id): one.loaded_max for one in outcome.queues if one.loaded_max}


@pytest.mark.parametrize("cls", CLASSES)
def test_one_of_each_class(java_store: Callable[..., JavaStore], release: str, cls: str) -> None:
    cases = list(damage_cases(cls=cls, release=release, where=tried))
    # the middle of the list: neither the tamest nor always the same mode
    compare(cases[len(cases) // 2], java_store)


def middle(release: str, cls: str) -> DamageCase:
    """A case that starts, of some class."""
    cases = list(damage_cases(cls=cls, release=release, where=lambda case: tried(case) and starts(case)))
    return cases[len(cases) // 2]


def starts(case: DamageCase) -> bool:
    return case.result["load"] == "ok" and case.result.get("start") == "ok"


@pytest.mark.parametrize(
    "cls", [cls if cls == "torn" else pytest.param(cls, marks=pytest.mark.full) for cls in CLASSES]
)
def test_the_second_of_two_starts(java_store: Callable[..., JavaStore], release: str, cls: str) -> None:
    compare_twice(middle(release, cls), java_store)


@pytest.mark.full
@pytest.mark.parametrize("case", list(damage_cases(where=tried)), ids=lambda case: case.id)
def test_every_one(java_store: Callable[..., JavaStore], release: str, case: DamageCase) -> None:
    if case.release != release:
        pytest.skip("written by another release")
    compare(case, java_store)


def test_without_a_place_for_the_index_nothing_is_dispatched(
    tmp_path: Path, java_store: Callable[..., JavaStore], release: str
) -> None:
    """It serves what is there, and the first new message is the last that reaches its queue."""
    root = tmp_path / "store"
    root.mkdir()
    with java_store(root, mappedFileSizeCommitLog=65536) as java:
        for _ in range(3):
            java.put("T", b"before")
        java.call("drain")
    shutil.rmtree(root / "index", ignore_errors=True)
    (root / "index").write_bytes(b"in its place")
    outcome = simulate(Store.open(root), release)
    assert outcome.starts
    assert outcome.verdict is Verdict.UNSAFE
    java = java_store(root, mappedFileSizeCommitLog=65536)
    assert java.loaded
    for _ in range(5):
        java.put("T", b"after")
    time.sleep(3)
    assert [one["max"] for one in java.call("queues")] == [4]
    java.kill()  # as it would wait for dispatching when it stops
    refusal = simulate(Store.open(root), release).refusal
    assert refusal is not None
    assert (refusal.code, refusal.path) == ("index-unopenable", "index")
    with java_store(root, start=False, mappedFileSizeCommitLog=65536) as again:
        assert not again.loaded
