"""Hostile input by seed, in a process of its own: what ends that process is the last seed it printed.

A share here; with `-m full` RMQTOOL_FUZZ_HOURS (one, unless said) for each, from RMQTOOL_FUZZ_FIRST on.
By hand: `python -m tests.fuzz commands SEED 1`.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fuzz.commands import troubles
from tests.helpers import ROOT, Result
from tests.scan.conftest import numba_kernels

FAST = {"kernels": 100, "commands": 40}
"""seeds of the usual run"""
LONG = (*FAST, "jobs")
HOURS = float(os.environ.get("RMQTOOL_FUZZ_HOURS", "1"))
FIRST = os.environ.get("RMQTOOL_FUZZ_FIRST", "1000000")


def fuzz(reported: Path, *words: object) -> None:
    """Runs the seeds; what was printed is kept in a file, also when the process is ended."""
    with reported.open("w") as file:
        done = subprocess.run(
            [sys.executable, "-m", "tests.fuzz", *map(str, words)],
            env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONWARNINGS": "error"},
            cwd=ROOT,
            stdout=file,
            stderr=subprocess.STDOUT,
            check=False,
        )
    lines = reported.read_text("utf-8", "replace").splitlines()
    broken = [line for line in lines if line.startswith("BROKEN")]
    assert (done.returncode, broken) == (0, []), "\n".join(lines[-40:])


@pytest.mark.parametrize("what", FAST)
def test_nothing_breaks(what: str, tmp_path: Path) -> None:
    numba_kernels()
    fuzz(tmp_path / "fuzz", what, 1, FAST[what])


@pytest.mark.full
@pytest.mark.timeout(0)
@pytest.mark.parametrize("what", LONG)
def test_nothing_breaks_for_hours(what: str, tmp_path: Path) -> None:
    numba_kernels()
    fuzz(tmp_path / "fuzz", what, FIRST, 0, "--hours", HOURS)


@pytest.mark.parametrize(
    ("code", "stdout", "stderr", "form"),
    [
        (4, "", "rmqtool: internal error: x\n", "table"),
        (0, "", "Traceback (most recent call last):\n", "table"),
        (2, "", "", "table"),
        (2, "", "rmqtool: a\nrmqtool: b\n", "table"),
        (0, "a\x1b[2J", "", "table"),
        (0, "", "a\x9b", "table"),
        (0, '{"a":NaN}\n', "", "ndjson"),
        (0, '{"a":"\\ud800"}', "", "json"),
        (0, '{"type":"message"}\n', "", "ndjson"),
    ],
)
def test_the_laws_bite(code: int, stdout: str, stderr: str, form: str) -> None:
    assert troubles(Result(code, stdout, stderr), form)


def test_a_kernel_that_reads_too_far_names_its_seed() -> None:
    code = (
        "import ctypes, tests.fuzz.__main__ as fuzz\n"
        "fuzz.run_all_kernels = lambda buffer, _: ctypes.string_at(buffer.ctypes.data, buffer.size + 1)\n"
        "fuzz.fuzz_kernels([17, 18])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (-11, "seed 17\n")
