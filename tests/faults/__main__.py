"""Runs the seeded faults: `python -m tests.faults [NAME…] [--whole]`, exit code 1 when one is not caught.

Each is put into a copy of the project, where the tests that it names run, with `--whole` the whole fast run.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.faults.patches import Fault, faults
from tests.project.files import ROOT, project_files

FAST = "not full and not bench and not packaging"
PASSED, FAILED = 0, 1
"""exit codes of pytest; others are a run that did not come about"""


@contextmanager
def project_copy() -> Iterator[Path]:
    """A directory with the files of the project, for as long as it is used."""
    with tempfile.TemporaryDirectory(prefix="rmqtool-faults-") as directory:
        copy = Path(directory, "project")
        for path in project_files():
            target = copy / path.relative_to(ROOT)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(path, target)
        yield copy


@contextmanager
def seeded(fault: Fault, copy: Path) -> Iterator[None]:
    """`copy` with the fault; afterwards as it was, times included."""
    changed = fault.applied(copy)
    before = {path: (path.read_bytes(), path.stat()) for path in changed}
    for path, text in changed.items():
        path.write_text(text, encoding="utf-8")
    try:
        yield
    finally:
        for path, (content, facts) in before.items():
            path.write_bytes(content)
            os.utime(path, ns=(facts.st_atime_ns, facts.st_mtime_ns))


def run_tests(copy: Path, tests: tuple[str, ...], *more: str) -> tuple[int, str]:
    """Exit code of pytest in the copy and the last lines that it printed."""
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "--tb=line", "-m", FAST]
    # no bytecode: a fault may leave size and second of a file as they are
    environment = {**os.environ, "PYTHONPATH": str(copy), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [*command, *more, *tests], cwd=copy, env=environment, capture_output=True, text=True, check=False
    )
    return done.returncode, "\n".join(done.stdout.splitlines()[-4:])


def main(arguments: list[str]) -> int:
    """See the module."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="all without")
    parser.add_argument("--whole", action="store_true", help="the whole fast run, not the tests they name")
    options = parser.parse_args(arguments)
    known = {one.name: one for one in faults()}
    if unknown := [name for name in options.names if name not in known]:
        parser.error(f"no such fault: {', '.join(unknown)}")
    chosen = [known[name] for name in options.names or known]
    named = () if options.whole else tuple(dict.fromkeys(test for one in chosen for test in one.caught_by))
    parallel = ("-n", "2", "--dist", "loadfile") if options.whole else ()
    with project_copy() as copy:
        code, reported = run_tests(copy, named, *parallel)
        if code != PASSED:
            print(f"without any fault the tests do not pass (pytest: {code})\n{reported}")
            return 1
        wrong = 0
        for one in chosen:
            start = time.monotonic()
            with seeded(one, copy):
                code, reported = run_tests(copy, () if options.whole else one.caught_by, *parallel)
            word = {PASSED: "NOT CAUGHT", FAILED: "caught"}.get(code, f"NOT RUN (pytest: {code})\n{reported}")
            print(f"{one.name}: {word}, {time.monotonic() - start:.0f} s", flush=True)
            wrong += code != FAILED
    print(f"{len(chosen) - wrong} of {len(chosen)} faults are caught")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
