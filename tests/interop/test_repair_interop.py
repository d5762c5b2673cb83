"""Locks and markers of an apply, tried with the real stores."""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING

import pytest

from fixtures import apply_case, damage_cases
from rmqtool.errors import StoreIOError
from rmqtool.repair.content import Inline
from rmqtool.repair.in_place import apply_in_place
from rmqtool.repair.marker import find_marker
from rmqtool.repair.plan import Action, Change, Edit, make_planned
from rmqtool.repair.to_copy import apply_to_copy, prepare_copy
from rmqtool.repair.undo import plan_undo, undo
from rmqtool.store.holding import acquire_store_lock
from rmqtool.store.layout import Store
from tests.helpers import rmq
from tests.interop.javastore import JavaError
from tests.repair.smallstore import StopsAt, failing, tree

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.interop.javastore import JavaStore

pytestmark = pytest.mark.interop


@pytest.fixture
def torn(release: str, tmp_path: Path) -> tuple[Path, dict[str, object]]:
    """A store of which a start would delete files, and its settings."""

    def costly(case) -> bool:
        gone = case.result.get("filesAfterLoad", {}).get("deleted", [])
        return case.mode == "a" and case.result["load"] == "ok" and any("commitlog" in one for one in gone)

    case = next(damage_cases(cls="record", release=release, where=costly))
    return apply_case(case, tmp_path / "store"), case.settings


def planned(store: Store):
    change = Change(
        action=Action.WRITE, path=store.segments[0].file.path, position=64, length=1, why="test", message="-"
    )
    return make_planned("test", store, "5.3.3", {}, [Edit(change, Inline(b"x"))], inputs=())


def change_of(store: Store, action: Action, position: int, data: bytes) -> Edit:
    path = store.segments[0].file.path
    change = Change(action=action, path=path, position=position, length=len(data), why="test", message="-")
    return Edit(change, Inline(data))


def content(root: Path) -> dict[str, object]:
    """Paths, times and bytes, but for the lock file, which a broker touches first of all."""
    return {path: facts[3:] for path, facts in tree(root).items() if path not in {".", "lock"}}


def half_applied(root: Path, backup: Path) -> None:
    """Stops an apply once the marker is there."""
    for number in range(100):
        with acquire_store_lock(root) as held:
            store = Store.open(root)
            disk = StopsAt(number, failing(errno.EIO))
            with pytest.raises(StoreIOError):
                apply_in_place(store, planned(store), str(backup / str(number)), held, disk=disk)
        if find_marker(root) is not None:
            return


def test_no_broker_starts_between_two_states(
    java_store: Callable[..., JavaStore], torn: tuple[Path, dict[str, object]], tmp_path: Path
) -> None:
    root, settings = torn
    before = tree(root)
    half_applied(root, tmp_path / "backups")
    between = content(root)
    with java_store(root, start=False, **settings) as java:
        assert not java.loaded
    assert content(root) == between
    journal = find_marker(root).journal
    with acquire_store_lock(root) as held:
        undo(plan_undo(journal), held)
    assert tree(root) == before
    with java_store(root, start=False, **settings) as java:
        assert java.loaded
    assert content(root) != before


def test_no_broker_starts_on_an_unfinished_copy(
    java_store: Callable[..., JavaStore], torn: tuple[Path, dict[str, object]], tmp_path: Path, monkeypatch
) -> None:
    root, settings = torn
    store = Store.open(root)
    plan = planned(store)
    copy = prepare_copy(store, plan, str(tmp_path / "out"))
    monkeypatch.setattr("rmqtool.repair.to_copy.remove_marker", lambda disk, path: None)
    apply_to_copy(store, plan, copy)
    before = content(tmp_path / "out")
    with java_store(tmp_path / "out", start=False, **settings) as java:
        assert not java.loaded
    assert content(tmp_path / "out") == before


def test_a_running_store_keeps_changes_away(java_store: Callable[..., JavaStore], tmp_path: Path) -> None:
    root = tmp_path / "store"
    with java_store(root) as java:
        java.put("Topic", b"hello")
        done = rmq("checkpoint", "set", root, "--in-place", "--backup", tmp_path / "b", "--apply")
        assert done.exit_code == 5
        assert f"process {java.pid}" in done.stderr
    assert not (tmp_path / "b").exists()
    assert rmq("checkpoint", "set", root).exit_code in {0, 1}


def test_no_store_starts_while_its_lock_is_held(java_store: Callable[..., JavaStore], tmp_path: Path) -> None:
    root = tmp_path / "store"
    with java_store(root) as java:
        java.put("Topic", b"hello")
    with acquire_store_lock(root), pytest.raises(JavaError, match="Lock failed"):
        java_store(root)
    with java_store(root) as java:
        assert java.loaded


def test_with_a_proven_checkpoint_a_crashed_store_loses_nothing(
    java_store: Callable[..., JavaStore], tmp_path: Path
) -> None:
    root = tmp_path / "store"
    with java_store(root) as java:
        for number in range(900):
            java.put("Topic", b"x" * 300, queue_id=number % 4, properties={"KEYS": f"k{number}"})
        java.call("drain")
    done = rmq("checkpoint", "set", root, "--in-place", "--backup", tmp_path / "b", "--apply", "--json")
    assert done.exit_code == 0, done.stderr
    (root / "abort").touch()
    with java_store(root, start=False) as java:
        assert java.loaded
        assert {(one["queue"], one["max"]) for one in java.call("queues")} == {(q, 225) for q in range(4)}


def test_undo_sees_that_a_broker_ran_since(java_store: Callable[..., JavaStore], tmp_path: Path) -> None:
    root = tmp_path / "store"
    with java_store(root) as java:
        java.put("Topic", b"hello")
    first = min((root / "commitlog").iterdir())
    data = first.read_bytes()
    with acquire_store_lock(root) as held:
        store = Store.open(root)
        edits = [change_of(store, Action.WRITE, 4, b"\xda"), change_of(store, Action.WRITE, 60000, b"x")]
        plan = make_planned("test", store, "5.3.3", {}, edits, inputs=())
        apply_in_place(store, plan, str(tmp_path / "b"), held)
    with java_store(root) as java:
        for _ in range(42):
            java.put("Topic", b"y" * 1400)
        java.call("drain")
    written = first.read_bytes()
    done = rmq("undo", tmp_path / "b", "--apply", "--format", "ndjson")
    assert done.exit_code == 1
    reasons = {row.get("position"): row.get("reason") for row in done.of_type("restore")}
    assert reasons[60000] == "was written since"
    assert first.read_bytes() == written
    assert rmq("undo", tmp_path / "b", "--apply", "--partial").exit_code == 1
    assert first.read_bytes()[60000] == written[60000]
    assert first.read_bytes()[4] == data[4]
