"""How long a process takes to start: `--help` against an empty program, `verify` against `info`."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from typing import TYPE_CHECKING

from fixtures.builder import HandmadeLog
from rmqtool.scan.engine import WORTH_LOADING
from tests.bench.measure import Figure, in_turn
from tests.helpers import ROOT

if TYPE_CHECKING:
    from pathlib import Path

LOG_BYTES = WORTH_LOADING["numba"]
HELP_TARGET = 2.0
START_TARGET = 1.5
BARE = """
import typer
app = typer.Typer()
@app.command()
def one(): ...
@app.command()
def two(): ...
app()
"""


def help_time() -> Figure:
    """`--help` of both programs, as processes."""
    taken = in_turn({"ours": lambda: _help("-m", "rmqtool"), "bare": lambda: _help("-c", BARE)})
    ratio = taken["ours"].best / taken["bare"].best
    note = f"medians {taken['ours'].median / taken['bare'].median:.2f}"
    return Figure("rmqtool --help", "bare typer program", ratio, HELP_TARGET, at_most=True, note=note)


def start_time(place: Path) -> Figure:
    """`verify` of a log for compiled kernels, where nothing was compiled before, and `info` of it."""
    body = bytes(4096)
    log = HandmadeLog(segment_size=2 * LOG_BYTES)
    for _ in range(LOG_BYTES // len(body) + 1):
        log.put("TopicTest", body, {"TAGS": "A"})
    log.write(place / "store" / "commitlog")
    store, cache = str(place / "store"), {"XDG_CACHE_HOME": str(place / "none"), "RMQTOOL_KERNELS": "ahead"}
    taken = in_turn(
        {
            "verify": lambda: _run("-m", "rmqtool", "verify", store, **cache),
            "info": lambda: _run("-m", "rmqtool", "info", store),
        }
    )
    ratio = taken["verify"].best / taken["info"].best
    note = f"medians {taken['verify'].median / taken['info'].median:.2f}"
    return Figure("`verify`, first on a machine", "`info`", ratio, START_TARGET, at_most=True, note=note)


def _help(*program: str) -> float:
    return _run(*program, "--help")


def _run(*program: str, **settings: str) -> float:
    command = [sys.executable, *program]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), **settings}
    began = time.perf_counter()
    subprocess.run(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=ROOT, env=environment, check=True
    )
    return time.perf_counter() - began
