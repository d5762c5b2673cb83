"""A planner that is wrong changes nothing: its plan is printed with what speaks against it, exit 1."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from fixtures import strict
from rmqtool.repair.content import Zeros
from rmqtool.repair.keep import planner
from rmqtool.repair.plan import Action, Change, Edit, Planned
from tests.helpers import rmq
from tests.repair.smallstore import tree

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

BODY = "v533-record-body-middle-first-abort0"


def summary(result: Any) -> dict[str, Any]:
    reported: dict[str, Any] = json.loads(result.stdout)["summary"]
    return reported


@pytest.fixture
def root(damaged: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch) -> Path:
    """A damaged store, and a planner that puts zeros over an intact record of it."""
    place = damaged(BODY)
    record = max(strict.carve(place).values(), key=lambda one: one.offset)
    base, _ = [one for one in strict.segments(place) if one[0] <= record.offset][-1]
    change = Change(
        action=Action.WRITE,
        path=f"commitlog/{base:020d}",
        position=record.offset - base,
        length=record.size,
        why="test",
        message="-",
    )
    wrong = Edit(change, Zeros(record.size))
    right = planner.keep

    def keep(*arguments: Any) -> planner.Kept:
        made = right(*arguments)
        edits = (*made.planned.edits, wrong)
        changes = tuple(one.change for one in edits)
        planned = Planned(made.planned.plan.model_copy(update={"changes": changes}), edits)
        return replace(made, planned=planned)

    monkeypatch.setattr(planner, "keep", keep)
    return place


def test_it_is_printed_with_what_speaks_against_it(root: Path) -> None:
    done = rmq("recover", root, "--json")
    assert done.exit_code == 1
    checked = summary(done)["checked"]
    assert checked["proven"] is False
    assert any("intact record" in one for one in checked["problems"])
    page = rmq("recover", root)
    assert (page.exit_code, "Not proven" in page.stdout, "--apply" in page.stdout) == (1, True, False)


@pytest.mark.parametrize("place", ["copy", "in-place"])
def test_it_is_not_carried_out(root: Path, tmp_path: Path, place: str) -> None:
    before = tree(root)
    target = ("--output", tmp_path / "out")
    if place == "in-place":
        target = ("--in-place", "--backup", tmp_path / "out")
    done = rmq("recover", root, *target, "--apply", "--json")
    assert (done.exit_code, summary(done)["applied"]) == (1, False)
    assert "--apply-unproven" in done.stderr
    assert not (tmp_path / "out").exists()
    assert tree(root) == before


def test_a_saved_plan_is_checked_again(root: Path, tmp_path: Path) -> None:
    saved = tmp_path / "plan.json"
    rmq("recover", root, "--save-plan", saved)
    assert json.loads(saved.read_text())["checked"]["problems"]
    done = rmq("recover", root, "--plan", saved, "--output", tmp_path / "out", "--apply")
    assert (done.exit_code, (tmp_path / "out").exists()) == (1, False)


def test_but_it_may_be_demanded(root: Path, tmp_path: Path) -> None:
    target = ("--output", tmp_path / "out")
    done = rmq("recover", root, *target, "--apply", "--apply-unproven", "--json")
    found = summary(done)
    # done as demanded, and not green: the record that it takes is the last of its queue, which a start cuts
    assert (done.exit_code, found["applied"]) == (1, True)
    assert [one.rpartition(" ")[2] for one in found["checked"]["remains"]] == ["(DR-QUEUE-CUT)"]
    assert "applied anyway" in done.stderr
    assert rmq("recover", root, *target, "--apply-unproven").exit_code == 2


def test_a_right_one_says_how_it_was_checked(damaged: Callable[[str], Path], tmp_path: Path) -> None:
    place = damaged(BODY)
    saved = tmp_path / "plan.json"
    done = rmq("recover", place, "--save-plan", saved, "--json")
    checked = summary(done)["checked"]
    assert (checked["proven"], checked["problems"], len(checked["by"])) == (True, [], 3)
    assert json.loads(saved.read_text())["checked"]["by"] == checked["by"]
    assert "Checked before it was printed" in rmq("recover", place).stdout
    done = rmq("recover", place, "--plan", saved, "--output", tmp_path / "out", "--apply")
    assert done.exit_code == 0, done.stderr
    assert summary(rmq("recover", tmp_path / "out", "--json"))["checked"] is None
