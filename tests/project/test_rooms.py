"""Dependencies point one way, and each room keeps to its libraries."""

from __future__ import annotations

import ast
import sys
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

from tests.project.files import ROOT, sources

LEVELS = (
    {"formats"}, {"store"}, {"scan"}, {"broker"}, {"build", "check", "query"}, {"recovery", "explain"},
    {"repair", "messagestore"}, {"output"}, {"report"}, {"pipeline"}, {"cli"},
)  # fmt: skip
RANK = {room: rank for rank, rooms in enumerate(LEVELS) for room in rooms}
FREE = {"errors"}
"""modules of the package that every room but formats may import"""
FORMATS_MAY = {"construct", "numpy", "crcmod", "formats"} | set(sys.stdlib_module_names)
ONLY_FOR_TYPES = {"typing_extensions"}
"""modules that may stand under TYPE_CHECKING, where nothing is imported when the program runs"""
TOUCHES_THE_WORLD = {
    "os",
    "pathlib",
    "mmap",
    "shutil",
    "socket",
    "subprocess",
    "tempfile",
    "fcntl",
    "glob",
}
ONLY_IN = {"typer": {"cli", "output"}, "rich": {"cli", "output"}, "pyspark": {"pipeline"}}


@cache
def imported(path: Path) -> set[str]:
    """Dotted names of all imports of a module, wherever they stand."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for_types = {id(node) for block in ast.walk(tree) if is_type_block(block) for node in ast.walk(block)}
    found: set[str] = set()
    for node in ast.walk(tree):
        if id(node) in for_types and isinstance(node, ast.ImportFrom) and node.module in ONLY_FOR_TYPES:
            continue
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports are written in full"
            found |= {node.module or ""} | {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def is_type_block(node: ast.AST) -> bool:
    """Whether this is `if TYPE_CHECKING:`."""
    return isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"


def room_of(name: str) -> str | None:
    """The room of a dotted name: `formats`, or the part behind `rmqtool`."""
    first, *rest = name.split(".")
    if first == "formats":
        return first
    return rest[0] if first == "rmqtool" and rest else None


def room_of_file(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return parts[0] if parts[0] == "formats" else parts[1]


def problems(room: str, imports: set[str]) -> list[str]:
    """What these imports break, in words."""
    found = []
    for name in sorted(imports):
        top, target = name.split(".")[0], room_of(name)
        if top in ONLY_IN and room not in ONLY_IN[top]:
            found.append(f"{room} imports {top}")
        if room == "formats" and (top not in FORMATS_MAY or top in TOUCHES_THE_WORLD):
            found.append(f"formats imports {name}")
        if target is None or target == room or target in FREE or room not in RANK:
            continue
        if target == "output":
            if room not in {"cli", "pipeline", "report"}:
                found.append(f"{room} imports output")
        elif target in RANK and RANK[target] >= RANK[room]:
            found.append(f"{room} imports {target}")
    return found


def test_imports_keep_to_the_rooms() -> None:
    found = {path: problems(room_of_file(path), imported(path)) for path in sources("formats", "rmqtool")}
    assert {path: wrong for path, wrong in found.items() if wrong} == {}


def test_no_import_leads_back_also_for_types() -> None:
    paths = {
        ".".join(path.relative_to(ROOT).with_suffix("").parts): path for path in sources("formats", "rmqtool")
    }
    graph = {name: (imported(path) & paths.keys()) - {name} for name, path in paths.items()}
    assert len(graph) > 500
    list(TopologicalSorter(graph).static_order())


def test_rooms_are_known() -> None:
    folders = {path.parent.name for path in sources("rmqtool") if path.parent.parent.name == "rmqtool"}
    assert folders <= set(RANK)


@pytest.mark.parametrize(
    ("room", "name"),
    [
        ("formats", "rmqtool.errors"), ("formats", "pyarrow"), ("formats", "os.path"),
        ("store", "rmqtool.scan.table"), ("check", "rmqtool.query"), ("scan", "rich.table"),
        ("cli", "pyspark.sql"), ("output", "rmqtool.cli.parse"), ("query", "rmqtool.output.text"),
        ("messagestore", "rmqtool.cli.main"),
    ],
)  # fmt: skip
def test_the_check_sees_what_is_wrong(room: str, name: str) -> None:
    assert problems(room, {name})
