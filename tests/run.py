"""Sets up an environment and runs everything that CI checks; nothing but Python 3.11 or later is needed.

python3 tests/run.py              environment, lint, types, benches, tests: what a change must pass
python3 tests/run.py --fast       lint, types and the unit tests, for whoever edits
python3 tests/run.py --full       what is too long for every change; goes on where it was stopped
python3 tests/run.py --explore    the property tests with a random seed
python3 tests/run.py --table      writes what `--full` has done into docs/testing.md
python3 tests/run.py -k golden    other arguments go to pytest, and only it runs
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import time
import tomllib
import venv
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
ENVIRONMENT = ROOT / ".venv"
BIN = ENVIRONMENT / "bin"
PYTEST = (BIN / "python", "-m", "pytest", "-q")
MOST = 8
WORKERS = ("-n", str(min((os.cpu_count() or 1) + 2, MOST)), "--dist", "loadfile")
"""two more than there are cores: tests with real stores and those on Spark, a worker each, mostly wait"""
SLOWEST = ("--durations=20", "--durations-min=5")
MODES = ("--fast", "--full", "--explore", "--table")
TABLE = ROOT / "docs" / "testing.md"
BEGIN, END = "<!-- done -->", "<!-- /done -->"


@dataclass(frozen=True)
class Step:
    """One command: its title, what it takes on two quiet cores, and how to run it again by itself."""

    title: str
    about: str
    command: tuple[str | Path, ...]
    again: str
    beside: tuple[str | Path, ...] = ()

    def run(self) -> int:
        """Exit code of the command. What runs `beside` it is no check, and may fail."""
        print(f"\n== {self.title}: about {self.about}", flush=True)
        other = subprocess.Popen([str(part) for part in self.beside], cwd=ROOT) if self.beside else None
        code = subprocess.run([str(part) for part in self.command], cwd=ROOT, check=False).returncode
        if other is not None:
            other.wait()
        return code


def requirements(project: dict, group: str) -> list[str]:
    """The packages of a dependency group: pip knows `--group` only from 25.1 on."""
    found: list[str] = []
    for item in project["dependency-groups"][group]:
        found += requirements(project, item["include-group"]) if isinstance(item, dict) else [item]
    return found


def prepare() -> None:
    """Makes `.venv`, or brings it up to date when pyproject.toml has changed."""
    text = (ROOT / "pyproject.toml").read_bytes()
    stamp = ENVIRONMENT / "rmqtool-tests"
    state = hashlib.sha256(text + sys.version.encode()).hexdigest()
    if not stamp.exists() or stamp.read_text() != state:
        print("\n== environment: about 1 minute", flush=True)
        if not (BIN / "python").exists():
            venv.create(ENVIRONMENT, with_pip=True)
        wanted = requirements(tomllib.loads(text.decode()), "dev")
        # most of what is installed is never imported; what is imported is compiled then
        pip = (BIN / "python", "-m", "pip", "install", "-q", "--disable-pip-version-check", "--no-compile")
        # the kernels are compiled later, with what is installed here
        os.environ["HATCH_BUILD_NO_HOOKS"] = "1"
        run([Step("packages", "1 minute", (*pip, "-e", ".", *wanted), "python3 tests/run.py")])
        del os.environ["HATCH_BUILD_NO_HOOKS"]
        stamp.write_text(state)
    os.environ["PATH"] = f"{BIN}{os.pathsep}{os.environ.get('PATH', '')}"
    # thousands of processes follow: each would compile what it imports
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)


def run(steps: list[Step], *, to_the_end: bool = False) -> None:
    """One step after the other; one that fails ends the run or, `to_the_end`, the run's success.

    Ends with the first exit code that is not 0, and with the commands for what failed. pytest's 5, nothing
    to do, is not a failure where what is done is left out.
    """
    failed: list[str] = []
    first = 0
    for step in steps:
        began = time.monotonic()
        code = step.run()
        if code and not (to_the_end and code == 5):
            first = first or code
            failed.append(f"== {step.title}: exit {code}; again: {step.again}")
            if not to_the_end:
                break
        elif step is not steps[-1]:
            print(f"== {step.title}: {time.monotonic() - began:.0f} s", flush=True)
    if failed:
        print("", *failed, sep="\n", flush=True)
        sys.exit(first)


def announce(about: str, steps: list[Step]) -> None:
    """What will be done, before anything is."""
    print(f"{about}:")
    for step in steps:
        print(f"  {step.title:10} {step.about}")


def checks() -> list[Step]:
    """What reads the source; kernels and tests are compiled meanwhile, once for all processes with tests."""
    ruff = BIN / "ruff"
    kernels = (BIN / "python", "-m", "tests.warm")
    return [
        Step("lint", "1 s", (ruff, "check", "."), ".venv/bin/ruff check ."),
        Step("format", "1 s", (ruff, "format", "--check", "."), ".venv/bin/ruff format ."),
        Step("types", "30 s; kernels and tests are compiled", (BIN / "mypy",), ".venv/bin/mypy", kernels),
    ]


def usual() -> list[Step]:
    """Everything that a change must pass, cheapest first; pytest's closing line is the last line."""
    # an eighth of what the docs report: ratios need no more, and CI has other things to do
    os.environ.setdefault("RMQTOOL_BENCH_BYTES", str(128 << 20))
    benches = (*PYTEST, "--durations=10", "-m", "bench and not full", "tests/bench")
    tests = (*PYTEST, *WORKERS, *SLOWEST, "-m", "not full and not bench")
    return [
        *checks(),
        Step("benches", "1 minute", benches, "python3 tests/run.py -m 'bench and not full' --lf tests/bench"),
        Step("tests", "6 to 10 minutes", tests, "python3 tests/run.py --lf"),
    ]


def fast() -> list[Step]:
    """Lint, types, and of every room what needs neither Spark nor a real store nor seconds."""
    quick = "not full and not bench and not packaging and not interop"
    tests = (*PYTEST, *WORKERS, "--few", "-m", quick)
    return [*checks(), Step("tests", "1 minute", tests, "python3 tests/run.py --few --lf")]


def explore(arguments: list[str]) -> list[Step]:
    """The property tests, each run with another seed."""
    tests = (*PYTEST, *WORKERS, "--explore", "-m", "hypothesis and not full", *arguments)
    return [Step("explore", "1 minute", tests, "with the seed above: --hypothesis-seed")]


def tree() -> str:
    """Digest of everything that is tested: what was done for another tree is not done for this one."""
    found = hashlib.sha256((ROOT / "pyproject.toml").read_bytes())
    for room in ("fixtures", "formats", "rmqtool", "tests"):
        for path in sorted((ROOT / room).rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts:
                found.update(f"{path.relative_to(ROOT)} {path.stat().st_size}\n".encode())
                found.update(path.read_bytes())
    return found.hexdigest()[:16]


def ledger() -> Path:
    """Where the tests of this tree that `--full` has done are listed; git ignores it."""
    place = ROOT / ".full"
    place.mkdir(exist_ok=True)
    return place / f"{tree()}.jsonl"


def full(arguments: list[str]) -> list[Step]:
    """All that other runs leave out. What fails is tried again by the next run, what passed is not."""
    done = ("--done", str(ledger()))
    exhaustive = ("-m", "(full or packaging) and not bench")
    again = "python3 tests/run.py --full"
    return [
        Step("full", "hours", (*PYTEST, *WORKERS, *done, *exhaustive, *arguments), again),
        Step("benches", "20 minutes", (*PYTEST, *done, "-m", "bench", *arguments), again),
        *explore(arguments),
    ]


def table() -> str:
    """What `--full` has done for this tree: a row a file."""
    rows = {row["id"]: row for row in map(json.loads, ledger().read_text().splitlines())}
    files: dict[str, list[dict]] = defaultdict(list)
    for row in rows.values():
        files[row["id"].split("::")[0]].append(row)
    lines = ["| file | tests | seconds | result | date |", "|---|---|---|---|---|"]
    for name, tests in sorted(files.items()):
        counts = {one: sum(row["result"] == one for row in tests) for one in ("passed", "failed", "skipped")}
        result = ", ".join(f"{count} {one}" for one, count in counts.items() if count)
        seconds = sum(row["seconds"] for row in tests)
        lines.append(
            f"| `{name}` | {len(tests)} | {seconds:.0f} | {result} | {max(row['date'] for row in tests)} |"
        )
    return "\n".join(lines)


def write_table() -> None:
    """Puts the table between its two marks in docs/testing.md."""
    before, _, rest = TABLE.read_text().partition(BEGIN)
    _, _, after = rest.partition(END)
    TABLE.write_text(f"{before}{BEGIN}\n{table()}\n{END}{after}")


def main() -> None:
    """One of the modes, or pytest with the arguments as they are."""
    mode = next((one for one in sys.argv[1:] if one in MODES), None)
    rest = [one for one in sys.argv[1:] if one != mode]
    if mode == "--table":
        write_table()
    elif mode is None and rest:
        prepare()
        run([Step("tests", "as long as it takes", (*PYTEST[:-1], *rest), "python3 tests/run.py --lf")])
    else:
        chosen = {
            "--fast": ("Checks for whoever edits, about 2 minutes", fast),
            "--full": ("All that other runs leave out, resumed", lambda: full(rest)),
            "--explore": ("Property tests with a random seed", lambda: explore(rest)),
            None: ("All that a change must pass, about 10 minutes on two cores", usual),
        }
        about, steps = chosen[mode]
        announce(about, steps())
        prepare()
        run(steps(), to_the_end=mode == "--full")


if __name__ == "__main__":
    main()
