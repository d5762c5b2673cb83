"""Memory of the tasks of `rmqtool pipeline`, as the system sees their processes."""

from __future__ import annotations

import os
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Self

from fixtures.derived import write_derived
from rmqtool.cli.main import run
from rmqtool.pipeline.session import one_session
from tests.bench.data import make_log
from tests.bench.measure import Figure

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.bench.data import BenchLog

BYTES = int(os.environ.get("RMQTOOL_BENCH_MEMORY_BYTES", str(256 << 20)))
"""bytes of the log; docs/pipeline.md has the figures for 2 GiB"""
SEGMENTS = 2
TARGET_MIB = 512
"""memory of its own that a task is said to need at most"""
NAME = "300 B"
POLL_SECONDS = 0.02


@dataclass
class Workers:
    """Watches the Python processes below this one. A context manager; peaks are in MiB, of one process."""

    own: float = 0.0
    """most memory that is not a mapped file"""
    all: float = 0.0
    """most resident memory, mapped files included"""
    _stop: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def __enter__(self) -> Self:
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._stop.set()
        if self._thread is not None:
            self._thread.join()

    def _watch(self) -> None:
        while not self._stop.is_set():
            for pid in _python_below(os.getpid()):
                facts = _status(pid)
                self.own = max(self.own, facts.get("RssAnon", 0) / 1024)
                self.all = max(self.all, facts.get("VmRSS", 0) / 1024)
            time.sleep(POLL_SECONDS)


def _python_below(root: int) -> list[int]:
    parents: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            parents.setdefault(int(_status(int(entry.name)).get("PPid", -1)), []).append(int(entry.name))
    found, waiting = [], [root]
    while waiting:
        for pid in parents.get(waiting.pop(), ()):
            waiting.append(pid)
            if "python" in str(_status(pid).get("Name", "")):
                found.append(pid)
    return found


def _status(pid: int) -> dict[str, int | str]:
    try:
        text = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return {}
    facts: dict[str, int | str] = {}
    for line in text.splitlines():
        name, _, value = line.partition(":")
        word = value.split()[0] if value.split() else ""
        if name in {"PPid", "RssAnon", "VmRSS", "Name"}:
            facts[name] = int(word) if word.isdecimal() else word
    return facts


def jobs(made: BenchLog, directory: Path) -> dict[str, list[str | Path]]:
    """What is watched; the store has as many keys as messages."""
    root = made.root
    return {
        "verify": ["verify", root],
        "stats": ["stats", root, "--by", "topic,hour,host"],
        "stats --duplicates": ["stats", root, "--duplicates", "--by-key"],
        "export": ["export", root, "--to", directory / "plain"],
        "export --partition": ["export", root, "--to", directory / "cut", "--partition", "topic,day"],
        "rebuild": ["rebuild", root, "--output", directory / "derived"],
        "sql": ["sql", root, "select topic, count(*), sum(length(body)) from messages group by topic"],
    }


def figures(directory: Path) -> list[Figure]:
    """The peak of each job, each in a session of its own on two cores."""
    made = make_log(directory, NAME, BYTES, SEGMENTS)
    write_derived(made.root, made.facts)
    return [
        _figure(name, lambda words=words: run(["pipeline", *map(str, words), "--quiet"]))
        for name, words in jobs(made, directory).items()
    ]


def _figure(name: str, job: Callable[[], int]) -> Figure:
    with one_session("local[2]", {"spark.driver.host": "127.0.0.1"}), Workers() as seen:
        code = job()
    assert code == 0, f"{name} ended with {code}"
    return Figure(
        f"pipeline {name}: MiB of a Python process",
        f"{TARGET_MIB} MiB",
        seen.own / TARGET_MIB,
        1.0,
        at_most=True,
        note=f"{seen.own:,.0f} MiB, with mapped files {seen.all:,.0f} MiB",
    )
