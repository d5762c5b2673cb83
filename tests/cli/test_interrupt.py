"""Ctrl-C and SIGTERM while a command reads: it ends soon, with a summary, however slow the reading is."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from fixtures.builder import HandmadeLog
from tests.helpers import ROOT
from tests.tiers import sampled

if TYPE_CHECKING:
    from collections.abc import Sequence

# A shell ignores SIGINT for what it runs in the background, and children inherit that.
DRIVER = """
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)
from rmqtool.cli.main import main
main()
"""

SEGMENT = 1 << 20
SEGMENTS = 4
SOON = 10
"""seconds: well below what is interrupted takes, and enough on a machine with other things to do"""


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Segments that take a minute in all at the rate of these tests; the second holds no record at all."""
    log = HandmadeLog(segment_size=SEGMENT)
    for number in range(SEGMENTS):
        for _ in range(9):
            log.put("TopicTest", b"x" * 100_000, {"TAGS": f"T{number}"})
        if number + 1 < SEGMENTS:
            log.roll()
    root = tmp_path_factory.mktemp("slow") / "store"
    log.write(root / "commitlog")
    (root / "commitlog" / f"{SEGMENT:020d}").write_bytes(b"no record" * (SEGMENT // 9 + 1))
    return root


def started(arguments: Sequence[object], output: Path) -> subprocess.Popen[bytes]:
    """The program, once it has segments open and has had time to wait for its turn to read."""
    with output.open("wb") as out:
        process = subprocess.Popen(
            [sys.executable, "-c", DRIVER, *map(str, arguments)],
            stdout=out,
            stderr=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )
    until = time.monotonic() + 60
    while not _reads(process.pid):
        assert process.poll() is None
        assert time.monotonic() < until
        time.sleep(0.02)
    time.sleep(0.3)
    return process


def _reads(pid: int) -> bool:
    places = []
    for descriptor in Path(f"/proc/{pid}/fd").iterdir():
        try:
            places.append(os.readlink(descriptor))
        except OSError:
            continue
    return any("/commitlog/0" in place for place in places)


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="needs /proc to see what is open")
@pytest.mark.parametrize(
    ("command", "sent", "jobs"),
    sampled(
        [(one, *how) for one in ("dump", "verify") for how in (("SIGINT", 4), ("SIGINT", 1), ("SIGTERM", 2))],
        kind=lambda one: one[0],
        unpack=True,
    ),
)
def test_a_throttled_read_ends_soon(log: Path, tmp_path: Path, command: str, sent: str, jobs: int) -> None:
    options = ["--format", "ndjson", "--quiet", "--max-read-rate", "64KiB", "--jobs", jobs]
    process = started([command, log, *options], tmp_path / "out")
    try:
        process.send_signal(getattr(signal, sent))
        error = process.communicate(timeout=SOON)[1]
    finally:
        process.kill()
    assert (process.returncode, error) == (130, b"")
    summary = json.loads((tmp_path / "out").read_bytes().splitlines()[-1])
    assert (summary["type"], summary["complete"]) == ("summary", False)
    assert summary["incomplete_reason"] == "interrupted"


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="needs /proc to see what is open")
@pytest.mark.parametrize("jobs", [4, pytest.param(1, marks=pytest.mark.full)])
def test_doctor_says_that_it_is_not_the_whole_answer(log: Path, tmp_path: Path, jobs: int) -> None:
    shutil.copytree(log, tmp_path / "store")
    log = tmp_path / "store"
    shutil.copyfile(log / "commitlog" / f"{0:020d}", log / "commitlog" / f"{SEGMENT:020d}")
    options = ["--as-version", "4.9.8", "--json", "--max-read-rate", "64KiB", "--jobs", jobs]
    process = started(["doctor", log, *options], tmp_path / "out")
    try:
        process.send_signal(signal.SIGINT)
        error = process.communicate(timeout=SOON)[1].decode()
    finally:
        process.kill()
    assert process.returncode == 130
    assert error.splitlines()[-1].startswith("interrupted: ")
    document = json.loads((tmp_path / "out").read_bytes())
    assert (document["schema"], document["safe_to_start"]) == ("rmqtool.doctor/1", None)
    assert (document["complete"], document["incomplete_reason"]) == (False, "interrupted")


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="needs /proc to see what is open")
@pytest.mark.parametrize("command", ["dump", "verify"])
def test_an_interrupted_table_says_what_is_left(log: Path, tmp_path: Path, command: str) -> None:
    process = started([command, log, "--max-read-rate", "64KiB"], tmp_path / "out")
    try:
        process.send_signal(signal.SIGINT)
        error = process.communicate(timeout=SOON)[1].decode()
    finally:
        process.kill()
    assert process.returncode == 130
    assert "Incomplete (interrupted), left: commitlog/" in error
    assert "internal" not in error


LONG_CALL = """
import os, signal, sys, threading, time
from rmqtool.query.sql.session import SqlSession

def interrupt():
    print(time.monotonic(), file=sys.stderr)
    os.kill(os.getpid(), signal.SIGINT)

def run(session, sql, real=SqlSession.run):
    threading.Timer(0.3, interrupt).start()
    return real(session, sql)

SqlSession.run = run
"""


def test_a_call_of_a_function_that_takes_long(log: Path) -> None:
    """DuckDB looks for an interrupt between its steps only, and this is one step of twenty seconds."""
    query = "select levenshtein(repeat('a', 60000), repeat('b' || range, 30000)) as n from range(1)"
    words = [sys.executable, "-c", LONG_CALL + DRIVER, "sql", str(log), query, "--json", "--quiet"]
    done = subprocess.run(
        words, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, timeout=60, check=False
    )
    assert time.monotonic() - float(done.stderr) < SOON
    assert done.returncode == 130
    assert json.loads(done.stdout)["summary"]["incomplete_reason"] == "interrupted"
