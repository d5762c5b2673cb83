"""`dump` to NDJSON: rate against re-encoding the same lines, and memory."""

from __future__ import annotations

import os
import sys
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING
from unittest import mock

import orjson

from tests.bench.measure import Figure, in_turn, run_alone

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from tests.bench.data import BenchLog
    from tests.bench.measure import Ran

RATE_TARGET = 100_000
"""messages a second; shown in the report, while the test holds the ratio"""

RECODE_TARGET = 4.0
"""cost of a dumped message at most, in units of reading and writing its line with orjson"""

MEMORY_TARGET = 500.0
GROWTH_TARGET = 48.0
"""MiB that a log several times as large may add"""

STEADY_BYTES = 128 << 20
"""bytes of the smallest log whose dump needs as much memory as any: four windows of plain reads"""

SEVERAL_BYTES = 512 << 20
SEVERAL = 16
"""bytes and segments of the log that many jobs read"""

MODES: dict[str, Sequence[str]] = {"mapped": (), "--safe-io": ("--safe-io",)}
FORMS: dict[str, Sequence[str]] = {"bodies": (), "--body none": ("--body", "none")}


@dataclass(frozen=True)
class Rate:
    """Rows a second of one command: as a whole process on one core, and inside a warm one."""

    process: float
    warm: float
    figure: Figure


def dump_rate(path: Path, rows: int, subject: str, options: Sequence[str] = (), rounds: int = 2) -> Rate:
    """`dump PATH --format ndjson` against reading and writing its own lines with orjson."""
    command = ["dump", path, "--format", "ndjson", "--jobs", "1", "--quiet", *options]
    sample = _sample(command)
    taken = in_turn(
        {
            "process": lambda: run_alone(*command).cpu_seconds / rows,
            "warm": lambda: _in_process(command) / rows,
            "recode": lambda: _recode(sample) / len(sample),
        },
        rounds,
    )
    process, warm = 1 / taken["process"].best, 1 / taken["warm"].best
    cost = taken["warm"].best / taken["recode"].best
    note = f"{process / 1000:,.0f} k/s as a process, {warm / 1000:,.0f} k/s warm"
    figure = Figure(f"dump, {subject}", "orjson loads + dumps", cost, RECODE_TARGET, at_most=True, note=note)
    return Rate(process, warm, figure)


def log_rates(log: BenchLog) -> dict[str, Rate]:
    """Rates of `dump` on a log with its default options and without bodies."""
    return {
        name: dump_rate(log.root / "commitlog", log.facts.messages, f"{log.name}, {name}", options)
        for name, options in FORMS.items()
    }


def memory(small: BenchLog, large: BenchLog, mode: str) -> list[Figure]:
    """Peak memory of a dump of both, with mapped files or with plain reads."""
    first, second = (_peak(run_alone(*_quiet(log, MODES[mode])), mode) for log in (small, large))
    name = f"dump {mode}, {large.name}"
    return [
        Figure(f"peak MiB of {name}", "", max(first, second), MEMORY_TARGET, at_most=True),
        Figure(
            f"MiB more for a log {large.size // small.size} times as large, {name}",
            "",
            second - first,
            GROWTH_TARGET,
            at_most=True,
            note=f"{first:.0f} and {second:.0f} MiB",
        ),
    ]


def memory_of_jobs(log: BenchLog) -> list[Figure]:
    """Peak memory of commands that read several segments at once, on all cores: the default, and far more."""
    figures = []
    for command in ("dump", "verify"):
        for jobs in ((), ("--jobs", str(len(log.facts.segments)))):
            for mode, options in MODES.items():
                ran = run_alone(
                    *(command, log.root, "--format", "ndjson", "--quiet", *jobs, *options),
                    one_core=False,
                    good=(0, 1),  # these logs have no consume queues, which verify tells
                )
                how = f"{command} {' '.join(jobs) or 'with its default jobs'}, {mode}, {log.name}"
                peak = _peak(ran, mode)
                figures.append(Figure(f"peak MiB of {how}", "", peak, MEMORY_TARGET, at_most=True))
    return figures


def _quiet(log: BenchLog, options: Sequence[str]) -> list[str | Path]:
    return ["dump", log.root / "commitlog", "--format", "ndjson", "--jobs", "1", "--quiet", *options]


def _peak(ran: Ran, mode: str) -> float:
    """A mapped file counts as resident; without the mapping only what the process owns is left."""
    return ran.peak_own if mode == "mapped" else ran.peak_all


def _sample(command: Sequence[str | Path], lines: int = 20_000) -> list[bytes]:
    from tests.helpers import rmq

    return rmq(*command, "--limit", lines).stdout.encode().splitlines()[:-1]


def _recode(lines: Sequence[bytes]) -> float:
    began = time.process_time()
    for line in lines:
        orjson.dumps(orjson.loads(line))
    return time.process_time() - began


def _in_process(command: Sequence[str | Path]) -> float:
    """CPU seconds of the command in this process, output dropped."""
    from rmqtool.cli.main import run

    with open(os.devnull, "w", encoding="utf-8") as sink, mock.patch.object(sys, "stdout", sink):
        began = time.process_time()
        code = run([str(word) for word in command])
        seconds = time.process_time() - began
    assert code == 0
    return seconds
