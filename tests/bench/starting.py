"""How long `rmqtool --help` takes, in units of a program that typer serves and that does nothing."""

from __future__ import annotations

import os
import subprocess
import sys
import time

from tests.bench.measure import Figure, in_turn
from tests.helpers import ROOT

HELP_TARGET = 2.0
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


def _help(*program: str) -> float:
    command = [sys.executable, *program, "--help"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    began = time.perf_counter()
    subprocess.run(command, stdout=subprocess.DEVNULL, cwd=ROOT, env=environment, check=True)
    return time.perf_counter() - began
