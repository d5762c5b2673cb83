"""The seeded faults still fit the source, and name tests of the fast run."""

from __future__ import annotations

import ast
import re

import pytest

from rmqtool.cli.commands import COMMANDS
from tests.faults.__main__ import main
from tests.faults.patches import Fault, MisfitError, faults
from tests.project.files import ROOT
from tests.project.test_rooms import RANK

SLOW = {"full", "bench", "packaging"}
ROOMS = {*RANK, "recovery", "keep", "salvage", "broker"}
"""`keep`, `salvage`, `broker`: the inner rooms of `repair`"""


def marks(node: ast.AST) -> set[str]:
    """Names behind `pytest.mark.` in an expression."""
    return set(re.findall(r"pytest\.mark\.(\w+)", ast.unparse(node)))


def trouble(test: str) -> str | None:
    """What is wrong with the node id of a test, read without importing it: collecting takes seconds."""
    name, *inner = test.split("[", maxsplit=1)[0].split("::")
    if not (ROOT / name).is_file() or not inner:
        return f"{test}: no such file of tests"
    body: list[ast.stmt] = ast.parse((ROOT / name).read_text(encoding="utf-8")).body
    slow = [
        marks(one.value) for one in body if isinstance(one, ast.Assign) and "pytestmark" in ast.unparse(one)
    ]
    for part in inner:
        found = next((one for one in body if getattr(one, "name", "") == part), None)
        if not isinstance(found, ast.FunctionDef | ast.ClassDef):
            return f"{test}: there is no {part}"
        slow += [marks(one) for one in found.decorator_list if "parametrize" not in ast.unparse(one)]
        body = found.body
    return f"{test}: is not in the fast run" if SLOW & set().union(*slow) else None


@pytest.mark.parametrize("fault", faults(), ids=lambda fault: fault.name)
def test_a_fault_fits(fault: Fault) -> None:
    assert fault.applied(ROOT)
    assert fault.headers["Fault"]
    assert fault.caught_by
    assert [reported for test in fault.caught_by if (reported := trouble(test))] == []
    assert set(fault.headers["Room"][0].split(", ")) <= ROOMS
    assert set(fault.headers.get("Command", ("",))[0].split(", ")) <= {*COMMANDS, ""}


def test_every_room_and_every_command_has_one() -> None:
    found = faults()
    assert len(found) >= 30
    assert {room for one in found for room in one.headers["Room"][0].split(", ")} == ROOMS
    commands = {name for one in found for name in one.headers.get("Command", ("",))[0].split(", ")} - {""}
    assert commands == set(COMMANDS)


def test_what_does_not_fit_is_refused() -> None:
    text = "Fault: none\n--- a/README.md\n+++ b/README.md\n@@ -1 +1 @@\n-no such line\n+another\n"
    with pytest.raises(MisfitError, match="0 times"):
        Fault("none", text).applied(ROOT)
    with pytest.raises(MisfitError, match="changes nothing"):
        _ = Fault("none", "Fault: none\n").edits


def test_a_name_that_is_none() -> None:
    assert trouble("tests/no/test_such.py::test_it")
    assert trouble("tests/faults/test_faults.py::test_no_such")
    assert trouble("tests/faults/test_faults.py::test_all_are_caught")
    with pytest.raises(SystemExit):
        main(["no-such-fault"])


@pytest.mark.full
@pytest.mark.timeout(3600)
def test_all_are_caught() -> None:
    assert main([]) == 0
