"""The view of a result is, byte for byte, what carrying out the plan leaves."""

from __future__ import annotations

import tempfile
from typing import TYPE_CHECKING

import pytest

from fixtures import apply_case, damage_case
from rmqtool.repair.keep.planner import KeepOptions, keep
from rmqtool.repair.plan import Action
from rmqtool.repair.prove.result import store_with
from rmqtool.repair.to_copy import apply_to_copy, prepare_copy
from rmqtool.store.config import config_of
from rmqtool.store.layout import Store
from tests.repair.smallstore import SECOND, edit, everything, plan_of

if TYPE_CHECKING:
    from pathlib import Path

    from rmqtool.repair.plan import Edit


def seen(store: Store) -> dict[str, tuple[str, int, bytes]]:
    """Kind, time and bytes of every file of a store, the lock apart."""
    found = {}
    for one in store.files:
        with one.open("pread") as source:
            assert source.size == one.size
            parts = [source.window(at, 777).tobytes() for at in range(0, one.size, 777)]
        found[one.path] = one.kind.value, one.mtime_ns, b"".join(parts)
    return found


def compare(store: Store, edits: list[Edit], target: Path) -> None:
    after = store_with(store, edits)
    reported = seen(after), {one.path for one in after.directories}
    planned = plan_of(store, edits)
    apply_to_copy(store, planned, prepare_copy(store, planned, str(target)))
    copied = Store.open(target)
    made = {one.path for one in copied.files} - {one.path for one in store.files}
    now = seen(copied)
    for path in made:  # a new file has the time of its writing where the plan gives none
        now[path] = now[path][0], reported[0][path][1], now[path][2]
    assert reported == (now, {one.path for one in copied.directories})


def test_one_of_every_action(root: Path, tmp_path: Path) -> None:
    compare(Store.open(root), everything(), tmp_path / "out")


def test_a_file_is_written_and_cut(root: Path, tmp_path: Path) -> None:
    edits = [
        edit(Action.WRITE, SECOND, b"x" * 500, position=3800),
        edit(Action.RESIZE, SECOND, size=4000),
        edit(Action.WRITE, SECOND, b"y" * 10, position=3900),
    ]
    compare(Store.open(root), edits, tmp_path / "out")


@pytest.mark.parametrize(
    "case_id", ["v533-record-body-first-last-abort0", "v498-cq-empty-last-file-missing-first-abort"]
)
def test_a_repaired_store(case_id: str, tmp_path: Path) -> None:
    case = damage_case(case_id)
    store = Store.open(apply_case(case, tmp_path / "store"), config=config_of(dict(case.settings)))
    with tempfile.TemporaryDirectory(dir=tmp_path) as work:
        edits = list(keep(store, KeepOptions(case.release), work).planned.edits)
        compare(store, edits, tmp_path / "out")
