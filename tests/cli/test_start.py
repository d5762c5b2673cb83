"""The program starts at once: nothing heavy is imported before a command needs it."""

from __future__ import annotations

import json
import subprocess
import sys
import time

import pytest

from rmqtool.cli.commands import COMMANDS

HEAVY = {"numpy", "pyarrow", "numba", "llvmlite", "construct", "crcmod", "pydantic", "orjson", "isal", "lz4"}
HEAVY |= {
    "zstandard",
    "chompjs",
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
for words in json.loads(sys.argv[1]):
    if os.fork() == 0:
        main.run([*words, "--help"])
        print(json.dumps([words, sorted(sys.modules)]), file=sys.__stderr__, flush=True)
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
def after_help() -> dict[str, set[str]]:
    """Command → the modules that its `--help` has loaded."""
    commands = json.dumps([name.split() for name in COMMANDS])
    command = [sys.executable, "-c", LIST_EACH, commands]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    told = (json.loads(line) for line in done.stderr.splitlines())
    return {" ".join(words): set(loaded) for words, loaded in told}


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


@pytest.mark.parametrize("name", COMMANDS)
def test_command_module_imports_nothing_heavy(name: str, after_help: dict[str, set[str]]) -> None:
    loaded = after_help[name]
    assert COMMANDS[name].module in loaded
    assert HEAVY & loaded <= {"pydantic"}  # typer's own


def test_help_takes_at_most_twice_the_time_of_a_bare_typer_program() -> None:
    def seconds(*command: str) -> float:
        began = time.perf_counter()
        subprocess.run([sys.executable, *command, "--help"], stdout=subprocess.DEVNULL, check=True)
        return time.perf_counter() - began

    ours = min(seconds("-m", "rmqtool") for _ in range(5))
    bare = min(seconds("-c", BARE) for _ in range(5))
    assert ours <= 2 * bare
