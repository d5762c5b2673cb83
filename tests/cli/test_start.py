"""The program starts at once: nothing heavy is imported before a command needs it."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from fixtures.builder import HandmadeLog
from rmqtool.cli.commands import COMMANDS
from tests.helpers import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

HEAVY = {"numpy", "pyarrow", "numba", "llvmlite", "construct", "crcmod", "pydantic", "orjson", "isal", "lz4"}
HEAVY |= {
    "zstandard",
    "javaproperties",
    "pyspark",
    "duckdb",
    "hypothesis",
    "formats",
    "rmqtool.scan",
}
HEAVY |= {"rmqtool.store", "rmqtool.build", "rmqtool.check", "rich.progress"}

LIST = """
import json, sys
from rmqtool.cli import main
main.run({argv})
sys.stdout = sys.__stderr__
print(json.dumps(sorted(sys.modules)))
"""
LIST_EACH = """
import json, os, sys
from rmqtool.cli import main
for line in iter(sys.stdin.readline, ""):
    if os.fork() == 0:
        sys.stdout = open(os.devnull, "w")
        main.run([*line.split(), "--help"])
        print(json.dumps(sorted(sys.modules)), file=sys.__stdout__, flush=True)
        os._exit(0)
    os.wait()
"""
"""what only `main` needs is loaded once, and each command into a process of its own"""
BARE = """
import typer
app = typer.Typer()
@app.command()
def one(): ...
@app.command()
def two(): ...
app()
"""


@pytest.fixture(scope="module")
def each() -> Iterator[subprocess.Popen[str]]:
    """Answers the name of a command with the modules that its `--help` has loaded."""
    command = [sys.executable, "-c", LIST_EACH]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        yield process


def modules_after(*argv: str) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-c", LIST.format(argv=list(argv))], capture_output=True, text=True, check=True
    )
    return set(json.loads(done.stderr.splitlines()[-1]))


@pytest.mark.parametrize("argv", [("--help",), ("--version",)])
def test_help_imports_nothing_heavy(argv: tuple[str, ...]) -> None:
    assert not HEAVY & modules_after(*argv)


@pytest.mark.parametrize("argv", [(), ("nonsense",)])
def test_program_imports_nothing_heavy_that_typer_does_not(argv: tuple[str, ...]) -> None:
    assert HEAVY & modules_after(*argv) <= {"pydantic"}


@pytest.mark.share
@pytest.mark.parametrize("name", COMMANDS)
def test_command_module_imports_nothing_heavy(name: str, each: subprocess.Popen[str]) -> None:
    assert each.stdin is not None
    assert each.stdout is not None
    print(name, file=each.stdin, flush=True)
    loaded = set(json.loads(each.stdout.readline()))
    assert COMMANDS[name].module in loaded
    assert HEAVY & loaded <= {"pydantic"}  # typer's own


def test_info_builds_neither_tables_nor_settings(tmp_path: Path) -> None:
    HandmadeLog(segment_size=4096).write(tmp_path / "commitlog")
    assert not {"pyarrow", "numba", "rmqtool.store.config"} & modules_after("info", str(tmp_path))


def test_help_takes_at_most_twice_the_time_of_a_bare_typer_program() -> None:
    def seconds(*command: str) -> float:
        """Of the processor: what else the machine has to do does not count."""
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, *command, "--help"], stdout=subprocess.DEVNULL, check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    ours = min(seconds("-m", "rmqtool") for _ in range(3))
    bare = min(seconds("-c", BARE) for _ in range(3))
    assert ours <= 2 * bare


def test_no_module_of_the_current_directory_is_run(tmp_path: Path) -> None:
    """`python -m` looks there first, and a stranger's store may have anything in it."""
    HandmadeLog(segment_size=4096).write(tmp_path / "commitlog")
    for name in ("typer", "rich", "numpy", "orjson", "pydantic", "secrets"):
        (tmp_path / f"{name}.py").write_text(f"from pathlib import Path\nPath({name + '.ran'!r}).touch()\n")
    done = subprocess.run(
        [sys.executable, "-m", "rmqtool", "verify", "."],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        check=False,
    )
    assert (done.returncode, done.stderr.count(b"Error")) == (0, 0), done.stderr
    assert list(tmp_path.glob("*.ran")) == []
