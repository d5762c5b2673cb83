"""Commands as processes, against what the broker's own store takes for the same, in the same run.

`verify` by the seconds that its summary tells; `rebuild` by the time of the process, its start included.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

from tests.bench.measure import Figure, in_turn, run_alone
from tests.bench.rebuilding import java_rebuilds, remove_derived
from tests.bench.scanning import JAVA_RELEASE, java_loads
from tests.helpers import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.bench.data import BenchLog
    from tests.bench.measure import Timing

JOBS_TARGETS = {1: 2.0, 2: 3.0}
WHOLE_TARGET, WHOLE_REBUILD_TARGET = 1.0, 3.0
REBUILD_TARGETS = {"1 KiB": 2.5, "300 B": 4.0}
ROUNDS = 5


def against_java(log: BenchLog) -> Iterator[Figure]:
    """Raises UnavailableError without Java or its jars."""
    remove_derived(log.root)
    with java_loads(log.root, log.size) as load:
        bare = log.root / "commitlog"
        verifying = {str(jobs): lambda jobs=jobs: verified(bare, jobs) for jobs in JOBS_TARGETS}
        taken = in_turn({"java": load, **verifying}, ROUNDS)
    anchor = f"Java {JAVA_RELEASE} clean load"
    for jobs, target in JOBS_TARGETS.items():
        subject = f"`verify --jobs {jobs}` of the log, {log.name}"
        yield _figure(subject, anchor, taken["java"], taken[str(jobs)], target)
    with java_loads(log.root, log.size, index=True) as load:
        taken = in_turn({"java": load, "whole": lambda: verified(log.root, 2)}, ROUNDS)
    whole = taken["whole"]
    subject = f"`verify --jobs 2` with queues and index, {log.name}"
    yield _figure(subject, anchor, taken["java"], whole, WHOLE_TARGET)
    with java_rebuilds(log.root, log.size) as java:
        taken = in_turn({"java": java, "ours": lambda: rebuilt(log)}, ROUNDS - 2)
    anchor = f"Java {JAVA_RELEASE} rebuild"
    yield _figure(subject, anchor, taken["java"], whole, WHOLE_REBUILD_TARGET)
    yield _figure(f"`rebuild`, {log.name}", anchor, taken["java"], taken["ours"], REBUILD_TARGETS[log.name])


def _figure(subject: str, anchor: str, java: Timing, ours: Timing, target: float) -> Figure:
    note = f"{ours.best:.2f} s, Java {java.best:.2f} s; medians {java.median / ours.median:.2f}"
    return Figure(subject, anchor, java.best / ours.best, target, note=note)


def verified(path: Path, jobs: int) -> float:
    """Seconds of a verification without an error."""
    command = [sys.executable, "-m", "rmqtool", "verify", path, "--json", "--quiet", "--jobs", str(jobs)]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, check=False)
    summary = json.loads(done.stdout)["summary"]
    assert not summary["by_severity"]["error"], summary["by_code"]
    return float(summary["seconds"])


def rebuilt(log: BenchLog) -> float:
    """Seconds of a process that builds queues and index of a bare log."""
    out = log.root.parent / f"{log.root.name}.rebuilt"
    remove_derived(log.root)
    shutil.rmtree(out, ignore_errors=True)
    arguments = ("--what", "cq,index", "--deleted-topics", "--output", out, "--apply", "--quiet")
    try:
        return run_alone("rebuild", log.root, *arguments, one_core=False).seconds
    finally:
        shutil.rmtree(out, ignore_errors=True)
