"""Plans, journals and markers that somebody has changed: one line, exit 2, before anything is done."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING

import pytest

from fixtures.stores import healthy_store
from rmqtool.repair.marker import NAME
from tests.helpers import rmq
from tests.repair.smallstore import tree

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(scope="module")
def damaged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("parameters") / "store"
    healthy_store().write(root)
    (root / "consumequeue/Orders/0/00000000000000000400").unlink()
    return root


@pytest.mark.share
@pytest.mark.parametrize("command", ["recover", "rebuild", "checkpoint set"])
def test_parameters_that_no_planning_makes(command: str, damaged: Path, tmp_path: Path) -> None:
    plan, words = tmp_path / "plan.json", (*command.split(), damaged)
    assert rmq(*words, "--save-plan", plan).exit_code in {0, 1}
    saved = json.loads(plan.read_text())
    parameters = saved["parameters"]
    assert rmq(*words, "--plan", plan).exit_code in {0, 1}
    wrong = [{}, parameters | {"more": 1}]
    for name in parameters:
        wrong.append({key: value for key, value in parameters.items() if key != name})
        wrong += [parameters | {name: value} for value in (["x", 7],)]
    if "donors" in parameters:
        wrong += [parameters | {"donors": [place]} for place in ("a\\u0000b", "a\\ud800b")]
    for changed in wrong:
        plan.write_text(json.dumps(saved | {"parameters": changed}))
        done = rmq(*words, "--plan", plan)
        if changed.get("tz") == "x":  # names of zones are not judged: files are named as their store says
            continue
        assert (done.exit_code, done.stdout, done.stderr.count("\n")) == (2, "", 1), (changed, done.stderr)
        assert "is not a saved plan: parameters" in done.stderr, done.stderr


@pytest.mark.parametrize("raw", [b"[" * 100_000, b'{"a":' * 100_000, b'{"schema":"%s"}' % (b"x" * 100_000)])
def test_what_is_no_plan_at_all(raw: bytes, damaged: Path, tmp_path: Path) -> None:
    plan = tmp_path / "plan.json"
    plan.write_bytes(raw)
    done = rmq("recover", damaged, "--plan", plan)
    assert (done.exit_code, done.stderr.count("\n")) == (2, 1), done.stderr
    assert len(done.stderr) < 1000


def test_a_marker_that_is_nested_too_deeply(damaged: Path, tmp_path: Path) -> None:
    root = tmp_path / "store"
    shutil.copytree(damaged, root)
    (root / "commitlog" / NAME).write_bytes(b"[" * 60_000)
    for words in (("recover",), ("rebuild",), ("checkpoint", "set")):
        done = rmq(*words, root)
        assert (done.exit_code, done.stderr.count("\n")) == (1, 1), done.stderr
        assert "is not what rmqtool wrote there" in done.stderr


NUMBERS = (-1, 1 << 63, 10**30, -(10**30))


def test_numbers_in_a_journal_that_no_file_has(damaged: Path, tmp_path: Path) -> None:
    """Refused before anything is touched, in one line."""
    root, backup = tmp_path / "store", tmp_path / "backup"
    shutil.copytree(damaged, root)
    with (root / "commitlog/00000000000000004096").open("r+b") as file:
        file.seek(500)
        file.write(b"\xff" * 200)
    assert rmq("recover", root, "--in-place", "--backup", backup, "--apply").exit_code == 0
    before = tree(root)
    journal = json.loads((backup / "journal.json").read_text())
    state = json.loads((backup / "state.json").read_text())
    edited = next(one for one in journal["entries"] if one["pieces"])
    targets = [(edited["pieces"][0], key) for key in ("position", "before", "after")]
    targets += [(edited["before"], key) for key in ("size", "uid", "gid", "mode", "mtime_ns")]
    for place, key in targets:
        kept = place[key]
        for number in NUMBERS[2:] if key == "mtime_ns" else NUMBERS:
            place[key] = number
            (backup / "journal.json").write_text(json.dumps(journal))
            done = rmq("undo", backup, "--apply")
            assert (done.exit_code, done.stderr.count("\n")) == (2, 1), (key, number, done.stderr)
        place[key] = kept
    (backup / "journal.json").write_text(json.dumps(journal))
    pieces = state["after"][edited["path"]]["pieces"]
    for changed in ([], pieces * 2):
        state["after"][edited["path"]]["pieces"] = changed
        (backup / "state.json").write_text(json.dumps(state))
        done = rmq("undo", backup, "--apply")
        assert (done.exit_code, done.stderr.count("\n")) == (2, 1), done.stderr
    assert tree(root) == before
