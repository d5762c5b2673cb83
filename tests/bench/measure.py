"""Timing: rounds of several actions in turn, so that what else the machine does meets all of them."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tests.helpers import ROOT

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    Action = Callable[[], float | None]

POLL_SECONDS = 0.005
QUIET_SECONDS, MOST_SECONDS = 0.1, 5.0
"""how long nothing may run before a round, and how long that is waited for"""
_IDLE, _IO_WAIT = 3, 4
"""places in the first line of /proc/stat (proc(5))"""


@dataclass(frozen=True)
class Timing:
    """Seconds of the counted rounds of one action."""

    seconds: tuple[float, ...]

    @property
    def best(self) -> float:
        return min(self.seconds)

    @property
    def median(self) -> float:
        return statistics.median(self.seconds)


def in_turn(actions: Mapping[str, Action], rounds: int = 7) -> dict[str, Timing]:
    """Wall time of every action, `rounds` times in turn behind one round that is not counted.

    An action that returns a number has measured itself; the others are timed here.
    """
    taken: dict[str, list[float]] = {name: [] for name in actions}
    for number in range(rounds + 1):
        for name, action in actions.items():
            began = time.perf_counter()
            own = action()
            seconds = time.perf_counter() - began if own is None else own
            if number:
                taken[name].append(seconds)
    return {name: Timing(tuple(seconds)) for name, seconds in taken.items()}


def settle() -> None:
    """Waits until what was written before is on the disk and nothing runs, at most some seconds.

    Engines clean up, and the system writes back, behind a round: that does not count for the next.
    """
    os.sync()
    until = time.monotonic() + MOST_SECONDS
    while time.monotonic() < until:
        before = _ticks()
        time.sleep(QUIET_SECONDS)
        busy, idle = (now - then for now, then in zip(_ticks(), before, strict=True))
        if busy * 10 <= idle:
            return


def _ticks() -> tuple[int, int]:
    """Time that all cores were busy and idle; nothing where the system does not tell."""
    try:
        ticks = [int(one) for one in Path("/proc/stat").read_text().splitlines()[0].split()[1:]]
    except OSError:
        return 0, 0
    idle = ticks[_IDLE] + ticks[_IO_WAIT]
    return sum(ticks) - idle, idle


@dataclass(frozen=True)
class Ran:
    """One command as a process of its own, its output thrown away. Memory in MiB."""

    seconds: float
    cpu_seconds: float
    peak_all: float
    """high-water mark of all resident memory, mapped files included"""
    peak_own: float
    """most memory that is not a mapped file, as seen by looking every few milliseconds"""


def run_alone(*arguments: str | Path, one_core: bool = True, good: Collection[int] = (0,)) -> Ran:
    """Run `rmqtool` with its output to the null device, all threads on one core by default.

    good: exit codes that do not raise `CalledProcessError`.
    """
    command = [sys.executable, "-m", "rmqtool", *map(str, arguments)]
    core = min(os.sched_getaffinity(0)) if one_core and hasattr(os, "sched_getaffinity") else None
    began = time.perf_counter()
    process = subprocess.Popen(
        command, stdout=subprocess.DEVNULL, cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)}
    )
    if core is not None:
        os.sched_setaffinity(process.pid, {core})
    peak_all = peak_own = 0.0
    while True:
        # not ru_maxrss: it begins with the memory of the process that forked
        pid, status, usage = os.wait4(process.pid, os.WNOHANG)
        if pid:
            break
        facts = _memory(process.pid)
        peak_all = max(peak_all, facts.get("VmHWM", 0.0))
        peak_own = max(peak_own, facts.get("RssAnon", 0.0))
        time.sleep(POLL_SECONDS)
    seconds = time.perf_counter() - began
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode not in good:
        raise subprocess.CalledProcessError(process.returncode, command)
    return Ran(seconds, usage.ru_utime + usage.ru_stime, peak_all, peak_own)


def _memory(pid: int) -> dict[str, float]:
    try:
        text = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return {}
    fields = (line.split() for line in text.splitlines() if line.startswith(("VmHWM", "RssAnon")))
    return {name.rstrip(":"): int(amount) / 1024 for name, amount, _ in fields}


@dataclass(frozen=True)
class Figure:
    """One line of the report: what was compared, the ratio, and the target that it is held against."""

    subject: str
    anchor: str
    ratio: float
    target: float
    at_most: bool = False
    """the ratio is a cost, and the target an upper bound"""
    note: str = ""

    @property
    def met(self) -> bool:
        return self.ratio <= self.target if self.at_most else self.ratio >= self.target

    def held(self, slack: float = 0.5) -> bool:
        """Is the ratio near the target at least? Tests ask this: other work moves every ratio."""
        return self.ratio <= self.target / slack if self.at_most else self.ratio >= self.target * slack

    def cells(self) -> Sequence[str]:
        """Cells of the table of docs/performance.md."""
        sign = "≤" if self.at_most else "≥"
        return (
            self.subject, self.anchor, f"{self.ratio:.2f}", f"{sign} {self.target:g}",
            "yes" if self.met else "**no**", self.note,
        )  # fmt: skip
