"""The policy `broker` against what the real store left of over a thousand damaged stores.

One case of each class for each release; all of them with `-m full`. Not compared: the names of index files,
which contain the broker's clock, and a checkpoint that a background thread of the broker happened to write.
"""

from __future__ import annotations

import hashlib
import shutil
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from fixtures import damage_case, damage_cases
from fixtures.stores import HandmadeStore
from rmqtool.broker.settings import settings_of
from rmqtool.errors import UsageError
from rmqtool.recovery.simulation import reading_for
from rmqtool.repair.broker.policy import plan_broker_policy
from rmqtool.repair.disk import Disk
from rmqtool.repair.in_place import apply_in_place
from rmqtool.repair.plan import Action
from rmqtool.repair.to_copy import apply_to_copy, prepare_copy
from rmqtool.repair.undo import plan_undo, undo
from rmqtool.scan.units import BATCH_UNIT, UNIT
from rmqtool.store.config import config_of
from rmqtool.store.holding import acquire_store_lock
from rmqtool.store.layout import Store
from tests.recovery.corpus import damaged_store
from tests.repair.smallstore import tree

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from fixtures import DamageCase, Golden

RELEASES = ("4.9.8", "5.3.3")
CLASSES = sorted({case.cls for case in damage_cases()})


class Quick(Disk):
    """Nothing is synced."""

    def sync(self, descriptor: int, path: str) -> None:
        del descriptor, path

    def sync_directory(self, path: str, descriptor: int | None = None) -> None:
        del path, descriptor


def compared(case: DamageCase) -> bool:
    """Not where there is no place for a marker: commitlog is a file."""
    reported = case.result.get("filesAfterLoad") is not None
    return reported and not case.facts.get("lockHeld") and case.variant != "commitlog-is-file"


def planned_for(store: Store, case: DamageCase):
    return plan_broker_policy(store, case.release, settings_of(store), reading_for(store), {})


def left(case: DamageCase) -> tuple[dict[str, Any], dict[str, Any]]:
    """Files with size and digest: as planned, as the real store left them."""
    changes = case.result["filesAfterLoad"]
    wanted = {path: facts for path, facts in case.before.items() if path not in changes["deleted"]}
    wanted |= changes.get("changed", {}) | changes.get("created", {})
    with damaged_store(case) as store:
        planned, out = planned_for(store, case), store.root.parent / "out"
        apply_to_copy(store, planned, prepare_copy(store, planned, str(out)), disk=Quick())
        had = {one.relative_to(out).as_posix(): facts(one) for one in out.rglob("*") if one.is_file()}
    written = "checkpoint" in changes.get("changed", {}) | changes.get("created", {})
    gone = {"lock"} | ({"checkpoint"} if written else set())
    return nameless(had, gone), nameless(wanted, gone)


def facts(path: Path) -> list[Any]:
    return [path.stat().st_size, hashlib.sha256(path.read_bytes()).hexdigest()[:16]]


def nameless(files: dict[str, Any], without: set[str]) -> dict[str, Any]:
    """The files of the index as a list."""
    index = sorted(facts for path, facts in files.items() if path.startswith("index/"))
    rest = {p: f for p, f in files.items() if not p.startswith("index/") and p not in without}
    return rest | {"index": index}


@pytest.mark.parametrize("cls", CLASSES)
@pytest.mark.parametrize("release", RELEASES)
def test_one_of_each_class(release: str, cls: str) -> None:
    cases = list(damage_cases(cls=cls, release=release, where=compared))
    if not cases:
        pytest.skip("no such case")
    had, wanted = left(cases[len(cases) // 3])
    assert had == wanted


@pytest.mark.full
@pytest.mark.parametrize("case", list(damage_cases(where=compared)), ids=lambda case: case.id)
def test_every_one(case: DamageCase) -> None:
    had, wanted = left(case)
    assert had == wanted


def test_a_healthy_store_is_not_changed(golden) -> None:
    for name in ("v498-basic", "v533-basic"):
        found = golden(name)
        store = Store.open(found.path)
        planned = plan_broker_policy(store, found.release, settings_of(store), reading_for(store), {})
        assert [one.change for one in planned.edits if one.change.action is not Action.SET_ASIDE] == []


def test_what_recovery_gives_up_is_set_aside_and_what_it_deletes_is_kept() -> None:
    case = damage_case("v498-record-magic-flip-middle-first-abort0")
    with damaged_store(case) as store:
        planned, base = planned_for(store, case), store.root.parent
        copy = prepare_copy(store, planned, str(base / "out"))
        apply_to_copy(store, planned, copy, quarantine=str(base / "kept"), disk=Quick())
        for path in case.result["filesAfterLoad"]["deleted"]:
            assert (base / "kept" / "files" / path).read_bytes() == (store.root / path).read_bytes()
        aside = next(one.change for one in planned.edits if one.change.action is Action.SET_ASIDE)
        kept = (base / "kept" / "ranges" / f"{aside.path}@{aside.position}").read_bytes()
        segment = (store.root / aside.path).read_bytes()
        assert kept == segment[aside.position : aside.position + aside.length]
        assert not any(segment[aside.position + aside.length :])
        assert planned.plan.lost.messages > 0


def test_in_place_it_keeps_the_same_and_undo_brings_all_back() -> None:
    case = damage_case("v498-record-magic-flip-middle-first-abort0")
    with damaged_store(case) as store:
        root, base = store.root, store.root.parent
        before, planned = tree(root), planned_for(store, case)
        with acquire_store_lock(root) as held:
            apply_in_place(store, planned, str(base / "backup"), held, disk=Quick())
        aside = next(one.change for one in planned.edits if one.change.action is Action.SET_ASIDE)
        assert (base / "backup" / "ranges" / f"{aside.path}@{aside.position}").stat().st_size == aside.length
        gone = set(case.result["filesAfterLoad"]["deleted"])
        assert gone.isdisjoint(tree(root))
        again = planned_for(Store.open(root, config=store.config), case)
        assert all(one.change.action is Action.SET_ASIDE for one in again.edits)
        with acquire_store_lock(root) as held:
            undo(plan_undo(str(base / "backup")), held, disk=Quick())
        assert tree(root) == before


def test_a_missing_checkpoint_is_made() -> None:
    with damaged_store(damage_case("v533-checkpoint-missing-clean")) as store:
        made = planned_for(store, damage_case("v533-checkpoint-missing-clean")).plan.changes
        assert [(one.action, one.path, one.size) for one in made] == [(Action.PUT, "checkpoint", 4096)]


def test_stores_that_are_not_modelled_are_refused(golden) -> None:
    found = golden("v533-rocksdb")
    store = Store.open(found.path)
    with pytest.raises(UsageError, match="RocksDB queues"):
        plan_broker_policy(store, "5.3.3", settings_of(store), reading_for(store), {})


@pytest.mark.parametrize("release", RELEASES)
def test_units_that_truncation_takes_away_again_stay_as_bytes(tmp_path: Path, release: str) -> None:
    """Law seed 13716: recovery appends units, then cuts the queue in front of one that leads too far."""
    made = HandmadeStore()
    for topic in ("Orders", "Other"):
        for _ in range(12):
            made.put(topic, b"body")
    made.write(tmp_path / "store")
    made.add("abort")
    paths = [f"consumequeue/{topic}/0/{0:020d}" for topic in ("Orders", "Other")]
    wanted = bytearray(made.read(paths[0]))
    for path, number in zip(paths, (3, 11), strict=True):
        made.patch(path, number * 20, (1 << 40).to_bytes(8, "big"))
    wanted[60:68] = (1 << 40).to_bytes(8, "big")
    made.patch(paths[0], 8 * 20, bytes(4 * 20))
    store = Store.open(made.root)
    planned = plan_broker_policy(store, release, settings_of(store), reading_for(store), {})
    out = str(tmp_path / "out")
    apply_to_copy(store, planned, prepare_copy(store, planned, out), disk=Quick())
    assert (tmp_path / "out" / paths[0]).read_bytes() == wanted


def test_nor_do_those_of_a_batch_queue_go(golden: Callable[[str], Golden], tmp_path: Path) -> None:
    """As 5.3.3 leaves it, which was measured."""
    found = golden("v533-batchcq")
    root = tmp_path / "store"
    shutil.copytree(found.path, root)
    (root / "abort").touch()
    path = "batchconsumequeue/TopicBCQ/0/00000000000000001840"
    wanted = np.fromfile(root / path, BATCH_UNIT)
    wanted["physical_offset"][1] = 1 << 40
    damaged = wanted.copy()
    damaged[17:] = np.zeros(1, BATCH_UNIT)
    damaged.tofile(root / path)
    plain = next((root / "consumequeue/TopicPlain/0").iterdir())
    units = np.fromfile(plain, UNIT)
    units["physical_offset"][np.flatnonzero(units["size"])[-1]] = 1 << 40
    units.tofile(plain)
    store = Store.open(root, config=config_of(dict(found.expected["storeConfig"])))
    planned = plan_broker_policy(store, "5.3.3", settings_of(store), reading_for(store), {})
    apply_to_copy(store, planned, prepare_copy(store, planned, str(tmp_path / "out")), disk=Quick())
    assert (tmp_path / "out" / path).read_bytes() == wanted.tobytes()
