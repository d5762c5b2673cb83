"""The program with Spark below it as processes of its own, and ways to find and end what belongs to it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from tests.cli.test_interrupt import DRIVER
from tests.helpers import ROOT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

Process = subprocess.Popen[str]

EXECUTOR = "CoarseGrainedExecutorBackend"
_PATIENCE = 300
"""seconds that something may take until it happens"""


@contextmanager
def program(*words: object, **environment: str) -> Iterator[Process]:
    """A command in a process group of its own, which does not outlive the block."""
    process = subprocess.Popen(
        [sys.executable, "-c", DRIVER, *map(str, words)],
        env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        yield process
    finally:
        end_group(process, signal.SIGKILL)
        process.communicate()


def end_group(process: Process, sent: int) -> None:
    """Sends a signal to the program and what it has started."""
    try:
        os.killpg(process.pid, sent)
    except ProcessLookupError:
        return


def descendants(process: int) -> list[int]:
    """Processes below one, in no order."""
    parents: dict[int, int] = {}
    for place in Path("/proc").glob("[0-9]*"):
        try:
            parents[int(place.name)] = int((place / "stat").read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
    found, level = [], {process}
    while level:
        level = {one for one, parent in parents.items() if parent in level}
        found += level
    return found


def executors(process: int) -> list[int]:
    """The Java processes of executors below one."""
    return [one for one in descendants(process) if EXECUTOR in _text(one, "cmdline")]


def reads(process: int, place: Path) -> bool:
    """Whether a process has a file at or below a place open or mapped."""
    if str(place) in _text(process, "maps"):
        return True
    try:
        return any(os.readlink(one).startswith(str(place)) for one in Path(f"/proc/{process}/fd").iterdir())
    except OSError:
        return False


def soon(process: Process, what: Callable[[], int | bool | None]) -> int:
    """Waits until something is so while the program runs; what it is."""
    until = time.monotonic() + _PATIENCE
    while True:
        found = what()
        if found:
            return int(found)
        if process.poll() is not None or time.monotonic() > until:
            end_group(process, signal.SIGKILL)
            raise AssertionError(f"it did not come to that: {process.communicate()}")
        time.sleep(0.02)


def _text(process: int, name: str) -> str:
    try:
        return Path(f"/proc/{process}/{name}").read_bytes().decode(errors="replace")
    except OSError:
        return ""
