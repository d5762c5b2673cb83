"""What tests keep to: they ask the behaviour, not the source, and replace nothing that has no public name.

Calls of the system are replaced in `tests/disks.py` and nowhere else.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest

from tests.project.files import ROOT, sources

PATCHING = {"setattr", "patch", "object"}
"""`MonkeyPatch.setattr`, `mock.patch`, `mock.patch.object`"""
READS_SOURCE = {"getsource", "getsourcelines", "getsourcefile"}
ABOUT_THE_SOURCE = ("tests/project/", "tests/faults/")


def texts(node: ast.AST) -> Iterator[str]:
    """Texts in an expression, of formatted ones the parts that are fixed."""
    for one in ast.walk(node):
        if isinstance(one, ast.Constant) and isinstance(one.value, str):
            yield one.value


def is_private(name: str) -> bool:
    last = name.rpartition(".")[2]
    return last.startswith("_") and not last.endswith("__")


def troubles(tree: ast.AST) -> Iterator[str]:
    """What a module of tests does that it should not, in words."""
    for call in (node for node in ast.walk(tree) if isinstance(node, ast.Call)):
        called = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
        if called in PATCHING:
            if called == "setattr" and isinstance(call.args[0], ast.Name) and call.args[0].id == "os":
                yield "setattr of os: see tests/disks.py"
            for argument in call.args[:2]:
                yield from (f"{called} of private {name}" for name in texts(argument) if is_private(name))
        if called in READS_SOURCE or (
            called in {"glob", "rglob"} and any(one.endswith(".py") for one in texts(call))
        ):
            yield f"{called} of source"


def test_modules_of_tests() -> None:
    wrong = {}
    for path in sources("tests"):
        found = list(troubles(ast.parse(path.read_text(encoding="utf-8"))))
        if path.relative_to(ROOT).as_posix().startswith(ABOUT_THE_SOURCE):
            found = [one for one in found if "source" not in one]
        if path == ROOT / "tests/disks.py":
            found = [one for one in found if "of os" not in one]
        if found:
            wrong[path] = found
    assert wrong == {}


@pytest.mark.parametrize(
    "text",
    [
        'monkeypatch.setattr(module, "_MOST", 3)',
        'patch.setattr("rmqtool.scan.segment._STEP", 1)',
        'mock.patch("rmqtool.scan.log._advance", None)',
        'mock.patch.object(module, "_held", {})',
        'monkeypatch.setattr(os, "open", refuse)',
        "inspect.getsource(module)",
        '(ROOT / "rmqtool").rglob("*.py")',
    ],
)
def test_the_check_sees_what_is_wrong(text: str) -> None:
    assert list(troubles(ast.parse(text)))
