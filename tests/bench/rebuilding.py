"""Queues and index rebuilt, against the broker's own store that finds none when it loads."""

from __future__ import annotations

import shutil
import time
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

from formats.index import DEFAULT_ITEMS, DEFAULT_SLOTS
from rmqtool.broker.file_rules import FileRules
from rmqtool.broker.index_files import IndexFiles, IndexNames
from rmqtool.build.builder import Builder, QueueBuilder
from rmqtool.build.files import DerivedFiles
from rmqtool.build.log import build_log
from rmqtool.scan.engine import choose_kernels
from rmqtool.scan.options import ReadOptions
from rmqtool.store.layout import Store
from tests.bench.data import make_log
from tests.bench.measure import Figure, in_turn, run_alone
from tests.bench.scanning import JAVA_RELEASE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.bench.data import BenchLog

REBUILD_TARGETS = {"1 KiB": 2.5, "300 B": 4.0}
DERIVED = ("consumequeue", "index")
ROUNDS = 4
MEMORY_BYTES = 256 << 20
MEMORY_TARGET = 200
"""MiB; the slots of one index file are 20 of them"""
GROWTH_TARGET = 32
"""MiB"""


def against_java_rebuild(log: BenchLog, rounds: int = ROUNDS) -> Figure:
    """Every body verified, all queues and the index written by one thread; neither side waits for the disk.

    Raises UnavailableError without Java or its jars.
    """
    out = log.root.parent / f"{log.root.name}.rebuilt"
    try:
        with java_rebuilds(log.root, log.size) as java:
            taken = in_turn({"java": java, "ours": lambda: _build(log, out)}, rounds)
    finally:
        shutil.rmtree(out, ignore_errors=True)
    ratio = taken["java"].best / taken["ours"].best
    per_second = log.facts.messages / taken["ours"].best / 1e6
    medians = taken["java"].median / taken["ours"].median
    return Figure(
        f"queues and index rebuilt, {log.name}",
        f"Java {JAVA_RELEASE} rebuild",
        ratio,
        REBUILD_TARGETS[log.name],
        note=f"{per_second:.1f} M messages/s; medians {medians:.1f}",
    )


def rebuild_memory(directory: Path) -> list[Figure]:
    """Peak memory of `rebuild` of queues and index, and how much more a log twice as long needs."""
    peaks = []
    for size in (MEMORY_BYTES, 2 * MEMORY_BYTES):
        log = make_log(directory / f"rebuild-{size}", "300 B", size)
        out = directory / "rebuilt"
        arguments = ("--output", out, "--deleted-topics", "--apply", "--jobs", "1", "--quiet")
        peaks.append(run_alone("rebuild", log.root, *arguments).peak_own)
        shutil.rmtree(out)
        shutil.rmtree(log.root)
    note = f"{peaks[0]:.0f} MiB, then {peaks[1]:.0f} MiB"
    return [
        Figure("peak MiB of rebuild", "", peaks[1], MEMORY_TARGET, at_most=True, note=note),
        Figure(
            "MiB more of rebuild, twice the log", "", peaks[1] - peaks[0], GROWTH_TARGET, at_most=True,
            note=note,
        ),
    ]  # fmt: skip


def _build(log: BenchLog, out: Path) -> float:
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir()
    began = time.perf_counter()
    segments = Store.open(log.root / "commitlog").segments
    kernels, rules, files = choose_kernels(), FileRules(), DerivedFiles(out)
    index = IndexFiles(rules, files, kernels, IndexNames().next_name)
    builder = Builder(QueueBuilder(rules, files, kernels), index)
    anomalies = build_log(segments, builder, kernels, ReadOptions())
    seconds = time.perf_counter() - began
    assert builder.records == log.facts.messages
    assert not anomalies.lost_bytes and not anomalies.bad_body_count  # noqa: PT018 - one statement: nothing was wrong
    return seconds


@contextmanager
def java_rebuilds(root: Path, size: int) -> Iterator[Callable[[], float]]:
    """A function that takes queues and index away, loads the store in one JVM and returns the seconds."""
    from tests.interop.jars import jars
    from tests.interop.javastore import JavaProcess, JavaStore

    jars(JAVA_RELEASE)
    settings = {
        "mappedFileSizeCommitLog": size,
        "mappedFileSizeConsumeQueue": FileRules().consume_queue_size,
        "maxHashSlotNum": DEFAULT_SLOTS,
        "maxIndexNum": DEFAULT_ITEMS,
    }
    with ExitStack() as stack:
        java = JavaProcess(JAVA_RELEASE, root.parent, quick=False)
        store = JavaStore(JAVA_RELEASE, root, start=False, idle=[java], **settings)
        stack.callback(remove_derived, root)
        stack.callback(store.kill)
        store.call("close")

        def load() -> float:
            remove_derived(root)
            opened = store.call("open", root=str(root), start=False, settings=settings)
            assert opened["loaded"]
            end = store.call("bounds")["max"]
            store.call("close")
            assert end > size - 4096, "Java did not read to the end of the log"
            return float(opened["seconds"])

        yield load


def remove_derived(root: Path) -> None:
    """Takes away what the store made beside the log."""
    for name in DERIVED:
        shutil.rmtree(root / name, ignore_errors=True)
