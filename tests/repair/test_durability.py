"""What a power failure leaves: nothing counts that was not synced, and each step rests on those before it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from rmqtool.repair.disk import Disk
from rmqtool.repair.marker import NAME
from rmqtool.repair.to_copy import apply_to_copy, prepare_copy
from rmqtool.store.layout import Store
from tests.repair.carrying import apply, put_back
from tests.repair.smallstore import planner

CONTENT = {"write", "truncate"}
NAMES = {"create", "symlink", "unlink", "mkdir", "rmdir"}


class Recorder(Disk):
    """Notes every step with `lost` ahead of it: files and directories that a power failure would take back.

    Times, owners and modes are no loss.
    """

    def __init__(self) -> None:
        self.steps: list[tuple[str, str, frozenset[str]]] = []
        self.lost: frozenset[str] = frozenset()

    def before(self, what: str, path: str) -> None:
        self.steps.append((what, path, self.lost))
        if what == "sync":
            self.lost -= {path}
        elif what in CONTENT:
            self.lost |= {path}
        elif what in NAMES:
            self.lost |= {os.path.dirname(path)}
        if what in {"unlink", "rmdir"}:
            self.lost -= {path}

    def rename(self, path: str, target: str) -> None:
        super().rename(path, target)
        self.lost |= {os.path.dirname(path), os.path.dirname(target)}
        if path in self.lost:
            self.lost = self.lost - {path} | {target}

    def link(self, path: str, target: str) -> None:
        super().link(path, target)
        self.lost |= {os.path.dirname(target)}

    def at(self, what: str, path: Path) -> frozenset[str]:
        """What would be lost ahead of the first such step."""
        return next(lost for step, place, lost in self.steps if (step, place) == (what, str(path)))


def below(lost: frozenset[str], place: Path) -> list[str]:
    return sorted(one for one in lost if Path(one).is_relative_to(place))


@pytest.fixture
def marker(root):
    return root / "commitlog" / NAME


def test_the_journal_lasts_before_the_store_is_touched(root, tmp_path, marker):
    disk = Recorder()
    apply(root, tmp_path / "backup", disk)
    first = next(
        lost for what, path, lost in disk.steps if Path(path).is_relative_to(root) and what != "link"
    )
    assert below(first, tmp_path) == []


def test_the_marker_lasts_before_anything_else_changes(root, tmp_path, marker):
    disk = Recorder()
    apply(root, tmp_path / "backup", disk)
    inside = [one for one in disk.steps if Path(one[1]).is_relative_to(root) and one[0] != "link"]
    first = next(lost for _, path, lost in inside if NAME not in path and Path(path) != marker.parent)
    assert below(first, root) == []


def test_all_edits_last_before_the_marker_goes(root, tmp_path, marker):
    disk = Recorder()
    apply(root, tmp_path / "backup", disk)
    assert below(disk.at("unlink", marker), tmp_path) == []
    assert below(disk.lost, tmp_path) == []


def test_an_undo_lasts_before_the_marker_goes(root, tmp_path, marker):
    apply(root, tmp_path / "backup")
    disk = Recorder()
    put_back(root, tmp_path / "backup", disk)
    assert below(disk.at("unlink", marker), root) == []
    assert below(disk.lost, root) == []


def test_a_copy_lasts_before_its_marker_goes(root, tmp_path):
    target, disk = tmp_path / "copy", Recorder()
    store = Store.open(root)
    planned = planner(store, {}, "")
    copy = prepare_copy(store, planned, str(target))
    apply_to_copy(store, planned, copy, quarantine=str(tmp_path / "kept"), disk=disk)
    ahead = disk.at("unlink", target / "commitlog" / NAME)
    assert below(ahead, target) + below(ahead, tmp_path / "kept") == []
    assert below(disk.lost, tmp_path) == []
