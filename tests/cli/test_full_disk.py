"""A disk that is full at any call: the source as it was, nothing half made that looks whole, one line."""

from __future__ import annotations

import errno
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.cli.writing import IN_PLACE, MAKING, words
from tests.disks import fails_at
from tests.helpers import Result, rmq
from tests.repair.smallstore import tree

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

RESUMED = {"ndjson", "parquet", "lake"}
LINE = re.compile(r"rmqtool: .*No space left on device.*")


@pytest.fixture
def damaged(fresh_golden):
    """A store that lacks queues, and whose log has a hole."""
    golden = fresh_golden("v533-basic")
    for place in sorted(golden.path.glob("consumequeue/*/*/*"))[:2]:
        place.unlink()
    with min(golden.path.glob("commitlog/*")).open("r+b") as file:
        file.seek(5000)
        file.write(bytes(900))
    return golden


def run(given: tuple[str, ...], golden, to: Path) -> Result:
    return rmq(*words(given, golden, to))


def check_said(done: Result) -> None:
    """One line says what went wrong, with the code of an error of the system."""
    lines = [one for one in done.stderr.splitlines() if one.startswith("rmqtool: ")]
    assert (done.exit_code, len(lines)) == (4, 1), done.stderr
    assert LINE.fullmatch(lines[0]), lines
    assert "Traceback" not in done.stderr
    assert "/proc/self" not in done.stderr


def some(count: int, *, every: bool) -> Sequence[int]:
    """Numbers of calls: all of them, or the second, one in the middle and the last ones."""
    return range(count) if every else sorted({1, count // 2, count - 2, count - 1})


def made_in_full(golden, place: Path, given: tuple[str, ...]) -> tuple[int, dict, int]:
    """Exit code, what it makes, and how many calls that takes."""
    with pytest.MonkeyPatch.context() as patch:
        calls = fails_at(patch, -2, errno.ENOSPC)
        code = run(given, golden, place / "new").exit_code
    return code, names(place), len(calls)


def names(place: Path) -> set[str]:
    return {str(one.relative_to(place)) for one in place.rglob("*")}


def full_at_some_call(golden, tmp_path: Path, name: str, *, every: bool) -> None:
    given, before = MAKING[name], tree(golden.path)
    (tmp_path / "whole").mkdir()
    code, whole, count = made_in_full(golden, tmp_path / "whole", given)
    assert code in {0, 1, 3}
    for number in some(count, every=every):
        place = tmp_path / str(number)
        place.mkdir()
        with pytest.MonkeyPatch.context() as patch:
            fails_at(patch, number, errno.ENOSPC)
            done = run(given, golden, place / "new")
        assert tree(golden.path) == before
        if done.exit_code == code:  # it had another way, or the call was one of cleaning up
            assert names(place) == whole, (number, names(place) ^ whole, done.stderr)
            continue
        check_said(done)
        left = names(place)
        if left == whole:  # only that its name lasts was refused
            continue
        kept = {one for one in left if one.startswith("new") and ".part" in one.split("/")[0]}
        assert left - kept == set(), (number, left - kept, left ^ whole, done.stderr)
        assert not kept or name in RESUMED, number
        if name in RESUMED:
            done = run((*given, "--resume"), golden, place / "new")
            assert (done.exit_code, names(place)) == (code, whole), (number, done.stderr)
        shutil.rmtree(place)


@pytest.mark.parametrize("name", ["ndjson", "lake", "salvage", "rebuild", "plan"])
def test_nothing_half_made_is_left(damaged, tmp_path, name):
    full_at_some_call(damaged, tmp_path, name, every=False)


@pytest.mark.full
@pytest.mark.parametrize("name", MAKING)
def test_nothing_half_made_is_left_at_any_call(damaged, tmp_path, name):
    full_at_some_call(damaged, tmp_path, name, every=True)


def full_in_place(golden, tmp_path: Path, name: str, *, every: bool) -> None:
    given, before = IN_PLACE[name], tree(golden.path)
    _, _, count = made_in_full(golden, tmp_path, given)
    assert run(("undo", "{to}", "--apply"), golden, tmp_path / "new").exit_code == 0
    assert tree(golden.path) == before
    for number in some(count, every=every):
        backup = tmp_path / f"backup-{number}"
        with pytest.MonkeyPatch.context() as patch:
            fails_at(patch, number, errno.ENOSPC)
            done = run(given, golden, backup)
        if done.exit_code == 4:
            check_said(done)
            assert not [one for one in names(tmp_path) if one.startswith(".rmqtool-work-")]
        if (backup / "journal.json").exists():
            done = rmq("undo", backup, "--apply")
            assert done.exit_code == 0, (number, done.stderr)
        assert tree(golden.path) == before, number


def test_a_change_in_place_is_undone(damaged, tmp_path):
    full_in_place(damaged, tmp_path, "recover", every=False)


@pytest.mark.full
@pytest.mark.parametrize("name", IN_PLACE)
def test_a_change_in_place_is_undone_at_any_call(damaged, tmp_path, name):
    full_in_place(damaged, tmp_path, name, every=True)


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Callable[[int], Path]]:
    """A file system of its own with so many KiB."""
    place = tmp_path / "disk"
    place.mkdir()
    mounted = ["mount", "-t", "tmpfs", "-o", "size=4k", "tmpfs", str(place)]
    if os.geteuid() != 0 or subprocess.run(mounted, capture_output=True, check=False).returncode:
        pytest.skip("mounts a file system, which only root may")

    def sized(kib: int) -> Path:
        subprocess.run(["mount", "-o", f"remount,size={kib}k", str(place)], check=True)
        return place

    yield sized
    subprocess.run(["umount", "--lazy", str(place)], check=True)


@pytest.mark.parametrize("name", ["parquet", "lake"])
def test_on_a_small_disk(damaged, tmp_path, disk, name):
    """Libraries that write by themselves are met here, too."""
    before = tree(damaged.path)
    (tmp_path / "whole").mkdir()
    code, whole, _ = made_in_full(damaged, tmp_path / "whole", MAKING[name])
    for kib in (4, 16, 48, 1 << 20):
        place = disk(kib)
        done = run(MAKING[name], damaged, place / "new")
        assert tree(damaged.path) == before
        if done.exit_code == code:
            assert names(place) == whole
            break
        lines = [one for one in done.stderr.splitlines() if one.startswith("rmqtool: ")]
        assert (done.exit_code, len(lines)) == (4, 1), done.stderr
        assert not any((place / one).exists() for one in whole if "/" not in one)
        for one in place.iterdir():
            assert ".part" in one.name
            assert name in RESUMED
            shutil.rmtree(one) if one.is_dir() else one.unlink()
    else:
        raise AssertionError("never made")
