"""Files of a store that are cut while they are read: no SIGBUS, nothing wrong that looks whole."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import pytest

from rmqtool.errors import ExitCode
from tests.cli.writing import IN_PLACE, MAKING, words
from tests.disks import replace
from tests.helpers import rmq
from tests.repair.smallstore import tree

if TYPE_CHECKING:
    from pathlib import Path

COMMANDS = {name: MAKING[name] for name in ("ndjson", "salvage", "rebuild", "recover")}
COMMANDS["in-place"] = IN_PLACE["recover"]


def cutting(patch: pytest.MonkeyPatch, victim: Path, call: str, number: int) -> list[int]:
    """Ahead of `os.CALL` with this number the file loses its second half; gives the calls so far."""
    real, seen = getattr(os, call), list[int]()

    def calling(*given: Any, **more: Any) -> Any:
        found = real(*given, **more)
        seen.append(0)
        if len(seen) == number:
            os.truncate(victim, os.stat(victim).st_size // 2)
        return found

    replace(patch, call, calling)
    return seen


def files(place: Path) -> dict[str, bytes]:
    """All but what names the run."""
    return {
        str(one.relative_to(place)): one.read_bytes()
        for one in sorted(place.rglob("*"))
        if one.is_file() and one.suffix != ".json" and "topics" not in one.name
    }


def cut_meanwhile(golden, tmp_path: Path, name: str, call: str, *, often: bool) -> None:
    for place in list(golden.path.glob("consumequeue/*/*/*"))[:2]:
        place.unlink()
    victim = sorted(golden.path.glob("commitlog/*"))[1]
    whole, before = victim.read_bytes(), tree(golden.path)
    (tmp_path / "whole").mkdir()
    with pytest.MonkeyPatch.context() as patch:
        seen = cutting(patch, victim, call, -1)
        rmq(*words(COMMANDS[name], golden, tmp_path / "whole/new"))
    count = len(seen)
    if name == "in-place":
        assert rmq("undo", tmp_path / "whole/new", "--apply").exit_code == 0
    assert tree(golden.path) == before
    for number in sorted({1, count // 4, count // 2, count - 1}) if often else [count // 2]:
        place = tmp_path / f"{number}"
        place.mkdir()
        with pytest.MonkeyPatch.context() as patch:
            cutting(patch, victim, call, number)
            done = rmq(*words(COMMANDS[name], golden, place / "new"))
        assert "Traceback" not in done.stderr
        assert done.exit_code in {0, 1, 3, 4}
        assert len([one for one in done.stderr.splitlines() if one.startswith("rmqtool: ")]) <= 1
        if name == "in-place" and (place / "new/journal.json").exists():
            rmq("undo", place / "new", "--apply", "--partial")
        elif done.exit_code == 0:  # cut ahead of all reading, or when all was read
            (place / "cut").mkdir()
            rmq(*words(COMMANDS[name], golden, place / "cut/new"))
            made = {path: data for path, data in files(place).items() if not path.startswith("cut/")}
            assert made in (files(tmp_path / "whole"), files(place / "cut")), number
        victim.write_bytes(whole)
        os.utime(victim, ns=(0, before[str(victim.relative_to(golden.path))][3]))
        assert tree(golden.path) == before, number


@pytest.mark.share
@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("ndjson", "fstat"),
        pytest.param("salvage", "pwrite", marks=pytest.mark.full),
        ("rebuild", "fstat"),
        ("in-place", "fstat"),
    ],
)
def test_what_is_cut_meanwhile_is_reported(fresh_golden, tmp_path, name, call):
    cut_meanwhile(fresh_golden("v533-basic"), tmp_path, name, call, often=False)


@pytest.mark.parametrize(("name", "code"), [("salvage", ExitCode.INCOMPLETE), ("rebuild", ExitCode.DAMAGE)])
def test_what_is_cut_behind_the_look_at_it_is_not_called_whole(fresh_golden, tmp_path, name, code):
    """Records were found there, and are read again to be written: then nothing is left, and exit 0 is not."""
    golden, to = fresh_golden("v533-basic"), tmp_path / "new"
    for place in list(golden.path.glob("consumequeue/*/*/*"))[:2]:
        place.unlink()
    victim = sorted(golden.path.glob("commitlog/*"))[1]
    real, seen = os.open, list[int]()

    def opening(path: str, flags: int, *given: Any, **more: Any) -> int:
        if flags & (os.O_WRONLY | os.O_RDWR):
            seen.append(0)
            if len(seen) == 2:
                os.truncate(victim, os.stat(victim).st_size // 2)
        return real(path, flags, *given, **more)

    with pytest.MonkeyPatch.context() as patch:
        replace(patch, "open", opening)
        done = rmq(*words(MAKING[name], golden, to))
    assert (done.exit_code, to.exists()) == (code, False), done.stderr
    assert victim.name in done.stderr


@pytest.mark.full
@pytest.mark.parametrize("call", ["fstat", "pwrite"])
@pytest.mark.parametrize("name", COMMANDS)
def test_what_is_cut_at_any_time_is_reported(fresh_golden, tmp_path, name, call):
    cut_meanwhile(fresh_golden("v533-basic"), tmp_path, name, call, often=True)
