"""Sets up an environment and runs everything that CI checks; nothing but Python 3.11 or later is needed.

python3 tests/run.py              environment, lint, types, benches, tests
python3 tests/run.py -k golden    arguments go to pytest, and only it runs
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tomllib
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
ENVIRONMENT = ROOT / ".venv"
BIN = ENVIRONMENT / "bin"


def requirements(project: dict, group: str) -> list[str]:
    """The packages of a dependency group: pip knows `--group` only from 25.1 on."""
    found: list[str] = []
    for item in project["dependency-groups"][group]:
        found += requirements(project, item["include-group"]) if isinstance(item, dict) else [item]
    return found


def step(title: str, *command: str | Path) -> None:
    """Runs one step; the run ends with its exit code when it fails."""
    print(f"\n== {title}", flush=True)
    code = subprocess.run([str(part) for part in command], cwd=ROOT, check=False).returncode
    if code:
        print(f"== {title}: exit {code}", flush=True)
        sys.exit(code)


def prepare() -> None:
    """Makes `.venv`, or brings it up to date when pyproject.toml has changed."""
    text = (ROOT / "pyproject.toml").read_bytes()
    stamp = ENVIRONMENT / "rmqtool-tests"
    state = hashlib.sha256(text + sys.version.encode()).hexdigest()
    if stamp.exists() and stamp.read_text() == state:
        return
    if not (BIN / "python").exists():
        print("== environment", flush=True)
        venv.create(ENVIRONMENT, with_pip=True)
    wanted = requirements(tomllib.loads(text.decode()), "dev")
    step(
        "packages",
        BIN / "python",
        "-m",
        "pip",
        "install",
        "-q",
        "--disable-pip-version-check",
        "-e",
        ".",
        *wanted,
    )
    stamp.write_text(state)


def main() -> None:
    """Everything, cheapest first; pytest's closing line is the last line."""
    prepare()
    os.environ["PATH"] = f"{BIN}{os.pathsep}{os.environ.get('PATH', '')}"
    pytest = (BIN / "python", "-m", "pytest")
    if len(sys.argv) > 1:
        step("tests", *pytest, *sys.argv[1:])
        return
    step("lint", BIN / "ruff", "check", ".")
    step("format", BIN / "ruff", "format", "--check", ".")
    step("types", BIN / "mypy")
    # a quarter of what the docs report: ratios need no more, and CI has other things to do
    os.environ.setdefault("RMQTOOL_BENCH_BYTES", str(256 << 20))
    if (ROOT / "tests/bench").is_dir():
        step("benches", *pytest, "-q", "--durations=10", "-m", "bench and not full", "tests/bench")
    slowest = ("--durations=20", "--durations-min=5")
    step("tests", *pytest, "-q", "-n", "2", "--dist", "loadfile", *slowest, "-m", "not full and not bench")


if __name__ == "__main__":
    main()
