"""Ctrl-C and SIGTERM while a query, tail, export or sql reads: exit 130, and a summary that says so."""

from __future__ import annotations

import importlib.util
import json
import os
import signal
import subprocess
import sys
import time
from itertools import product
from pathlib import Path

import pytest

from fixtures.builder import HandmadeLog
from tests.helpers import ROOT
from tests.tiers import sampled

# Every look at the log takes a while, from the moment on at which the command says that it has begun. A shell
# ignores SIGINT for what it runs in the background, and children inherit that.
DRIVER = """
import os, signal, sys, time
signal.signal(signal.SIGINT, signal.default_int_handler)
from rmqtool.store.bytes import PreadSource
from rmqtool.store.mapped import MappedSource
begun = sys.argv.pop(1)
def slowly(inner):
    def window(self, offset, length):
        if self.name.startswith(("commitlog/", "consumequeue/")) and length > 8:
            open(begun, "w").close()
            time.sleep(0.3)
        return inner(self, offset, length)
    return window
for kind in (PreadSource, MappedSource):
    kind.window = slowly(kind.window)
from rmqtool.cli.main import main
main()
"""

needs_duckdb = pytest.mark.skipif(
    importlib.util.find_spec("duckdb") is None, reason="the extra 'sql' is not installed"
)
COMMANDS = {
    "query-key": ("query-key", "{}", "k1", "--source", "scan"),
    "query-id": ("query-id", "{}", "nobody's id"),
    "query-offset": ("query-offset", "{}", "T", "0", "0", "-n", "10000"),
    "query-time": ("query-time", "{}", "T", "0", "now"),
    "tail": ("tail", "{}", "-n", "10000"),
    "stats": ("stats", "{}"),
    "sql": ("sql", "{}", "SELECT topic, count(*) FROM messages GROUP BY topic"),
}
SEGMENT = 1 << 16


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Forty segments and a queue over them: their looks take many times as long as any of the tests waits."""
    from formats.consumequeue import Unit

    log = HandmadeLog(segment_size=SEGMENT)
    while len(log.segments) < 40:
        log.put("T", b"x" * 4000, {"KEYS": f"k{len(log.records)}"})
    root = tmp_path_factory.mktemp("slow") / "store"
    log.write(root / "commitlog")
    queue = root / "consumequeue" / "T" / "0"
    queue.mkdir(parents=True)
    units = [
        {"physical_offset": one.physical_offset, "size": len(one.data), "tags_code": 0} for one in log.records
    ]
    raw = b"".join(Unit.build(one) for one in units)
    (queue / f"{0:020d}").write_bytes(raw)
    return root


def interrupted(
    store: Path, tmp_path: Path, arguments: tuple[str, ...], sent: str
) -> tuple[bytes, bytes, int]:
    """Output, talk and exit code of a command that is interrupted in the middle of its reading."""
    begun = tmp_path / "begun"
    command = [str(store) if one == "{}" else one for one in arguments]
    process = subprocess.Popen(
        [sys.executable, "-c", DRIVER, str(begun), *command],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    try:
        until = time.monotonic() + 60
        while not begun.exists():
            assert process.poll() is None, process.communicate()
            assert time.monotonic() < until
            time.sleep(0.01)
        time.sleep(0.2)
        process.send_signal(getattr(signal, sent))
        out, error = process.communicate(timeout=20)
    finally:
        process.kill()
    return out, error, process.returncode


@pytest.mark.share
@pytest.mark.parametrize(
    ("name", "sent"),
    [
        *sampled(
            product([one for one in COMMANDS if one != "sql"], ["SIGINT", "SIGTERM"]),
            kind=lambda one: one[0],
            unpack=True,
        ),
        pytest.param("sql", "SIGINT", marks=needs_duckdb),
        pytest.param("sql", "SIGTERM", marks=[needs_duckdb, pytest.mark.full]),
    ],
)
def test_a_summary_says_that_it_was_interrupted(store: Path, tmp_path: Path, name: str, sent: str) -> None:
    form = "ndjson" if sent == "SIGINT" else "json"
    out, error, code = interrupted(store, tmp_path, (*COMMANDS[name], "--format", form, "--quiet"), sent)
    assert (code, error) == (130, b"")
    summary = json.loads(out.splitlines()[-1]) if form == "ndjson" else json.loads(out)["summary"]
    assert (summary["complete"], summary["incomplete_reason"]) == (False, "interrupted")
    assert "interrupted" in {row["reason"] for row in summary["not_covered"]}
    assert summary["schema"] == f"rmqtool.{name}/1"


@pytest.mark.parametrize("form", ["table", pytest.param("raw", marks=pytest.mark.full)])
def test_people_are_told_too(store: Path, tmp_path: Path, form: str) -> None:
    _, error, code = interrupted(store, tmp_path, (*COMMANDS["query-offset"], "--format", form), "SIGINT")
    assert code == 130
    assert b"Incomplete (interrupted)" in error
    assert b"internal" not in error


@pytest.mark.parametrize("sent", ["SIGINT", pytest.param("SIGTERM", marks=pytest.mark.full)])
def test_an_export_says_so_and_can_go_on(store: Path, tmp_path: Path, sent: str) -> None:
    target = tmp_path / "out.ndjson"
    command = ("export", "{}", "--to", str(target), "--jobs", "1", "--json")
    out, _, code = interrupted(store, tmp_path, command, sent)
    document = json.loads(out)
    assert code == 130
    assert (document["complete"], document["incomplete_reason"]) == (False, "interrupted")
    assert not target.exists()
    assert any(one.name.startswith(target.name) for one in tmp_path.iterdir())
