"""What a command that was killed left is removed by the next one, and nothing else."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from rmqtool.repair.workplace import work_place
from rmqtool.store.holding import acquire_store_lock
from tests.repair.smallstore import make_store, tree

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A store without a lock file."""
    root = make_store(tmp_path / "store")
    (root / "lock").unlink()
    os.utime(root, ns=(1, 1_400_000_000_000_000_000))
    return root


def killed(root: Path, beside: Path, work: Callable[[str], None] = lambda directory: None) -> None:
    """A command that ends at once while it holds the store, after `work` in its directory."""
    child = os.fork()
    if not child:
        with work_place(str(beside), root) as place, acquire_store_lock(root) as held:
            place.adopt_lock(held)
            work(place.directory)
            os._exit(9)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9


def leftovers(place: Path) -> list[str]:
    return [one.name for one in place.iterdir() if "rmqtool" in one.name]


def test_directory_and_lock_of_a_killed_command_go(root: Path, tmp_path: Path) -> None:
    before = tree(root)
    for number in range(2):  # the second is killed as well, after it has seen the first
        killed(root, tmp_path / "backup", lambda at: open(f"{at}/big", "x", encoding="ascii").close())
        assert (len(leftovers(tmp_path)), (root / "lock").exists()) == (1, True), number
    with work_place(str(tmp_path / "backup"), root) as place, acquire_store_lock(root) as held:
        place.adopt_lock(held)
        assert [os.path.dirname(one) for one in place.removed] == [str(tmp_path)]
        assert os.listdir(place.directory) == []
        assert len(leftovers(tmp_path)) == 1
    assert leftovers(tmp_path) == []
    assert tree(root) == before


def test_a_lock_that_a_broker_wrote_into_since_stays(root: Path, tmp_path: Path) -> None:
    killed(root, tmp_path / "backup")
    (root / "lock").write_bytes(b"lock")
    with work_place(str(tmp_path / "backup"), root) as place, acquire_store_lock(root) as held:
        place.adopt_lock(held)
    assert (root / "lock").read_bytes() == b"lock"


def test_a_lock_of_another_store_and_one_that_was_there_stay(root: Path, tmp_path: Path) -> None:
    other = make_store(tmp_path / "other")
    (other / "lock").write_bytes(b"")
    killed(root, tmp_path / "backup")
    killed(other, tmp_path / "backup")
    before = tree(other)
    with work_place(str(tmp_path / "backup"), other) as place, acquire_store_lock(other) as held:
        place.adopt_lock(held)
    assert tree(other) == before
    assert len(leftovers(tmp_path)) == 1


def test_what_is_at_work_and_what_is_unknown_stays(root: Path, tmp_path: Path) -> None:
    (tmp_path / ".rmqtool-work-strange").mkdir()
    with work_place(str(tmp_path / "one"), root) as first:
        with work_place(str(tmp_path / "two"), root) as second:
            assert (first.removed, second.removed) == ((), ())
        assert os.path.isdir(first.directory)
    assert leftovers(tmp_path) == [".rmqtool-work-strange"]


def test_what_took_the_place_of_the_work_directory_stays(root: Path, tmp_path: Path) -> None:
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious" / "file").touch()
    with work_place(str(tmp_path / "backup"), root):
        (name,) = leftovers(tmp_path)
        (tmp_path / name).rename(tmp_path / "moved")
        (tmp_path / "precious").rename(tmp_path / name)
    assert os.listdir(tmp_path / name) == ["file"]
