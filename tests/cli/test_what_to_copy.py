"""A copy without most of the log: what is copied, and that no command calls such a copy whole or safe."""

from __future__ import annotations

import json
import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest

from fixtures.damage import copy_base, damage_case
from rmqtool.store.layout import Store
from rmqtool.store.partial import MOST, NAME
from tests.helpers import Result, rmq, snapshot
from tests.recovery.corpus import damaged_store

if TYPE_CHECKING:
    from pathlib import Path

BASE = "v498-a-clean"
DAMAGED = (
    "v498-block-head-zero-mid-abort", "v498-rebuild-body-clean", "v498-rebuild-sysflag-tx-clean",
    "v533-cq-pre-blank-clean",
)  # fmt: skip
"""of the first three a copy without a list of what it lacks looks safe"""
WHOLE_LOG: dict[str, tuple[str, ...]] = {
    "doctor": (),
    "verify": (),
    "dump": (),
    "stats": (),
    "map": (),
    "query-key": ("k", "--source", "scan"),
    "export": ("--to", "NEW/a.replay"),
    "report": ("--output", "NEW/a.html"),
    "diff": ("ORIGINAL",),
    "sql": ("select count(*) from messages",),
    "recover": (),
    "rebuild": (),
    "checkpoint set": (),
    "config salvage": (),
    "store put": ("TopicTest", "--body", "x"),
    "trace": ("k",),
    "delayed": (),
}
"""commands that need what was not copied"""


def copied(root: Path, place: Path) -> Path:
    """The copy that a person makes of the printed paths and the list."""
    place.mkdir()
    asked = ("info", root, "--what-to-copy", "--print0", "--manifest", place / NAME)
    done = rmq(*asked)
    assert done.exit_code == 0, done.stderr
    for path in done.stdout.split("\0")[:-1]:
        (place / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(root / path, place / path)
    return place


@pytest.fixture
def original(tmp_path: Path) -> Path:
    return copy_base(BASE, tmp_path / "original")


@pytest.fixture
def copy(original: Path, tmp_path: Path) -> Path:
    return copied(original, tmp_path / "copy")


def doctor(root: Path) -> tuple[Result, dict[str, object]]:
    done = rmq("doctor", root, "--full", "--json")
    return done, json.loads(done.stdout)


def test_what_is_listed(original: Path) -> None:
    before = snapshot(original)
    done = rmq("info", original, "--what-to-copy", "--json")
    answered = json.loads(done.stdout)
    taken = {row["path"] for row in answered["rows"] if row["copy"]}
    left = {row["path"]: row for row in answered["rows"] if not row["copy"]}
    assert taken | set(left) == {one.display_path for one in Store.open(original).files}
    assert {row["kind"] for row in left.values()} == {"commitlog"}
    assert len(left) == answered["summary"]["left_out_files"] == 4
    assert answered["summary"]["left_out_bytes"] == sum(row["size"] for row in left.values())
    shown = rmq("info", original, "--what-to-copy").stdout
    assert "Leave out" in shown
    assert f"--print0 --manifest {NAME} | tar" in shown
    assert snapshot(original) == before


def test_the_printed_command_makes_the_copy(original: Path, tmp_path: Path) -> None:
    shown = rmq("info", original, "--what-to-copy").stdout
    line = next(line for line in shown.splitlines() if "| tar" in line)
    paths = rmq("info", original, "--what-to-copy", "--print0", "--manifest", tmp_path / NAME).stdout
    tar = line.partition("| ")[2]
    subprocess.run(["sh", "-c", tar], cwd=tmp_path, input=paths.encode(), check=True)
    (tmp_path / "there").mkdir()
    subprocess.run(["tar", "-xzf", "../copy.tar.gz"], cwd=tmp_path / "there", check=True)
    done, answer = doctor(tmp_path / "there")
    assert (done.exit_code, answer["verdict"]) == (3, "uncertain")


def test_doctor_says_what_it_did_not_see(original: Path, copy: Path) -> None:
    assert doctor(original)[1]["verdict"] == "safe"
    done, answer = doctor(copy)
    assert (done.exit_code, answer["verdict"], answer["safe_to_start"]) == (3, "uncertain", None)
    assert "lacks 4 of the" in done.stderr
    shown = rmq("doctor", copy)
    assert "0000000000000000" in shown.stdout
    assert "--full" not in shown.stdout  # which could not read it either
    listing = f"cd {original} && find -L . -type f -printf '%s %T@ %P\\0'"
    (copy / NAME).write_bytes(subprocess.run(["sh", "-c", listing], capture_output=True, check=True).stdout)
    assert doctor(copy)[1]["verdict"] == "uncertain"
    for one in ("00000000000000000000", "00000000000000065536"):
        shutil.copy2(original / "commitlog" / one, copy / "commitlog")
    assert doctor(copy)[1]["verdict"] == "uncertain"
    shutil.copytree(original, copy, dirs_exist_ok=True)
    done, answer = doctor(copy)
    assert (answer["verdict"], done.stderr.count("lacks")) == ("safe", 0)
    with (copy / "commitlog" / "00000000000000000000").open("r+b") as file:
        file.truncate(4096)
    assert doctor(copy)[1]["verdict"] == "uncertain"
    (copy / "checkpoint").unlink()
    assert doctor(copy)[1]["verdict"] == "uncertain"  # a start reads that


@pytest.mark.parametrize("name", DAMAGED)
def test_a_copy_is_never_better_than_its_store(name: str, tmp_path: Path) -> None:
    with damaged_store(damage_case(name)) as store:
        was = doctor(store.root)[0].exit_code
        now = doctor(copied(store.root, tmp_path / "copy"))[0].exit_code
    assert was == 1
    assert now in {1, 3}


@pytest.mark.share
@pytest.mark.parametrize("name", WHOLE_LOG)
def test_no_command_takes_it_for_whole(name: str, original: Path, copy: Path, tmp_path: Path) -> None:
    further = [
        one.replace("NEW", str(tmp_path)).replace("ORIGINAL", str(original)) for one in WHOLE_LOG[name]
    ]
    before = snapshot(copy)
    done = rmq(*name.split(), copy, *further)
    assert done.exit_code in {1, 3}, (done.stdout, done.stderr)
    assert "lacks" in done.stderr
    assert snapshot(copy) == before


@pytest.mark.parametrize(
    "data",
    [
        b"", b"12 1.0 commitlog/0", b"\0", b"x 1 a\0", b"1 1 ../a\0", b"1 1 /etc/passwd\0", b"1 1 a//b\0",
        b"9999999999999 1 a\0", b"1 1 " + b"a" * 5000 + b"\0", b"-1 1 a\0", b"1 1 \0",
        b"1 1 a\0" * (MOST + 1),
    ],
)  # fmt: skip
def test_a_list_that_is_none(data: bytes, original: Path) -> None:
    (original / NAME).write_bytes(data)
    done = rmq("doctor", original)
    assert (done.exit_code, done.stdout) == (1, "")
    assert NAME in done.stderr


def test_names_of_a_stranger(copy: Path) -> None:
    (copy / NAME).write_bytes(b"1099511627776 1 commitlog/\xff\n\x1b[2J\0")
    done = rmq("doctor", copy)
    assert done.exit_code in {1, 3}
    assert "\x1b" not in done.stdout + done.stderr


def test_wrong_words(original: Path, tmp_path: Path) -> None:
    for words in (["--print0"], ["--manifest", tmp_path / "m"]):
        assert rmq("info", original, *words).exit_code == 2
    assert rmq("info", original, "--what-to-copy", "--print0", "--json").exit_code == 2
    link = original / "link"
    link.symlink_to(tmp_path / "elsewhere")
    for place in (original / NAME, link):
        inside = rmq("info", original, "--what-to-copy", "--manifest", place)
        assert (inside.exit_code, "lies in the store" in inside.stderr) == (2, True)
    (tmp_path / "there").touch()
    assert rmq("info", original, "--what-to-copy", "--manifest", tmp_path / "there").exit_code == 2
    assert rmq("info", original / "commitlog", "--what-to-copy").exit_code == 2
