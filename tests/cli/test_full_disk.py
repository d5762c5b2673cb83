"""A disk that is full at any call: the source as it was, nothing half made that looks whole, one line."""

from __future__ import annotations

import errno
import os
import re
import shutil
import subprocess
from dataclasses import replace
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
LINE = re.compile(r"rmqtool: .*(No space left on device|bytes are needed.* \d+ are free).*")


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


@pytest.mark.share
@pytest.mark.parametrize("name", ["ndjson", "lake", "salvage", "rebuild", "plan"])
def test_nothing_half_made_is_left(damaged, tmp_path, name):
    full_at_some_call(damaged, tmp_path, name, every=False)


@pytest.mark.full
@pytest.mark.timeout(1800)
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
@pytest.mark.timeout(1800)
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


FORMS = {name: ("export", "{store}", "--to", f"{{to}}.{name}") for name in ("csv", "raw", "replay")}
STEPS = 30
"""sizes of a disk that are tried"""


def used(place: Path) -> int:
    """KiB of a file system."""
    facts = os.statvfs(place)
    return (facts.f_blocks - facts.f_bfree) * facts.f_frsize >> 10


def on_small_disks(golden, tmp_path: Path, disk, name: str, sizes: Callable[[int], Sequence[int]]) -> None:
    """Also what libraries, and files that Python opened, write by themselves finds no room."""
    given, before, refused = (MAKING | FORMS)[name], tree(golden.path), 0
    place = disk(1 << 20)
    code = run(given, golden, place / "new").exit_code
    whole, need = names(place), used(place)
    assert code in {0, 1, 3}
    for kib in (*sizes(need), 1 << 20):
        shutil.rmtree(place, ignore_errors=True)  # but for the directory that it is mounted on
        disk(kib)
        done = run(given, golden, place / "new")
        assert tree(golden.path) == before
        if done.exit_code == code:
            assert names(place) == whole
            continue
        refused += 1
        check_said(done)
        assert not any((place / one).exists() for one in whole if "/" not in one), kib
        assert all(".part" in one.name for one in place.iterdir())
        assert name in RESUMED | FORMS.keys() or not any(place.iterdir())
    assert refused


@pytest.mark.share
@pytest.mark.parametrize("name", ["ndjson", "parquet", "lake"])
def test_on_a_small_disk(damaged, tmp_path, disk, name):
    on_small_disks(damaged, tmp_path, disk, name, lambda need: (4, need // 2))


@pytest.mark.full
@pytest.mark.parametrize("name", MAKING | FORMS)
def test_on_disks_of_every_size(damaged, tmp_path, disk, name):
    on_small_disks(damaged, tmp_path, disk, name, lambda need: range(4, need, max(4, need // STEPS)))


@pytest.mark.parametrize(
    "name", ["recover", *(pytest.param(one, marks=pytest.mark.full) for one in ("rebuild", "checkpoint"))]
)
def test_a_change_in_place_on_a_small_disk(damaged, tmp_path, disk, name):
    """The store, and what undo needs, on a disk with so much room left."""
    place = disk(1 << 20)
    shutil.copytree(damaged.path, place / "store", symlinks=True)
    golden, before = replace(damaged, path=place / "store"), tree(place / "store")
    full, refused = used(place), 0
    for room in range(0, 64, 4):
        disk(full + room)
        done = run(IN_PLACE[name], golden, place / "backup")
        if done.exit_code == 4:
            refused += 1
            check_said(done)
        if (place / "backup" / "journal.json").exists():
            disk(full + 64)
            undone = rmq("undo", place / "backup", "--apply")
            assert undone.exit_code == 0, (room, undone.stderr)
        assert tree(golden.path) == before, room
        shutil.rmtree(place / "backup", ignore_errors=True)
    assert refused
