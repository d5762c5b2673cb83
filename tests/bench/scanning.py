"""Reading a log: against one plain CRC-32 pass over the same bytes, and against the broker's own store."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

from rmqtool.scan.engine import choose_kernels
from rmqtool.scan.events import Records
from rmqtool.scan.fields import Check, CrcState, Field
from rmqtool.scan.segment import SegmentScan
from rmqtool.store.access import open_source
from tests.bench.data import UNITS_IN_A_FILE
from tests.bench.measure import Figure, in_turn

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from rmqtool.store.bytes import ByteSource
    from tests.bench.data import BenchLog

FRAME_TARGETS = {"1 KiB": 0.50, "300 B": 0.40}
ALL_TARGETS = {"1 KiB": 0.40, "300 B": 0.20}
JAVA_TARGET = 3.0
JAVA_RELEASE = "5.3.3"


def scan(source: ByteSource, checks: Check) -> int:
    """Whole records with a right body; stops the bench when the kernels see anything else."""
    kernels = choose_kernels()
    found = 0
    for event in SegmentScan(source, 0, checks=checks, kernels=kernels):
        if isinstance(event, Records):
            found += len(event.rows)
            assert (event.rows[:, Field.CRC_STATE] == CrcState.OK).all()
    return found


def against_plain_crc(log: BenchLog) -> list[Figure]:
    """Walk, frames and CRC of every body, without and with the checks of text."""
    from isal import isal_zlib

    with open_source(log.segment, "map") as source:
        whole = memoryview(source.window(0, log.size))
        taken = in_turn(
            {
                "plain": lambda: _nothing(isal_zlib.crc32(whole)),
                "frame": lambda: _expect(log, scan(source, Check.CRC)),
                "all": lambda: _expect(log, scan(source, Check.ALL)),
            }
        )
        whole.release()
    plain = taken["plain"].best
    figures = []
    for kind, what, targets in (
        ("frame", "walk, frame, CRC", FRAME_TARGETS),
        ("all", "with topic, properties, UTF-8", ALL_TARGETS),
    ):
        speed = log.size / taken[kind].best / 1e9
        note = f"{speed:.1f} GB/s; medians {taken['plain'].median / taken[kind].median:.2f}"
        figures.append(
            Figure(
                f"{what}, {log.name}",
                "plain isal CRC-32",
                plain / taken[kind].best,
                targets[log.name],
                note=note,
            )
        )
    return figures


def against_java(log: BenchLog) -> list[Figure]:
    """Opening and checking the log, against `DefaultMessageStore#load` of a store that was shut down cleanly.

    Raises UnavailableError without Java or its jars.
    """
    with java_loads(log.root, log.size) as load:
        taken = in_turn(
            {"java": load, "frame": lambda: _fresh(log, Check.CRC), "all": lambda: _fresh(log, Check.ALL)}
        )
    java = taken["java"]
    anchor = f"Java {JAVA_RELEASE} clean load"
    return [
        Figure(
            f"{what}, {log.name}",
            anchor,
            java.best / taken[kind].best,
            JAVA_TARGET,
            note=f"medians {java.median / taken[kind].median:.1f}",
        )
        for kind, what in (("frame", "map, walk, frame, CRC"), ("all", "with topic, properties, UTF-8"))
    ]


@contextmanager
def java_loads(root: Path, size: int, *, index: bool = False, **others: int) -> Iterator[Callable[[], float]]:
    """A function that loads the store once more in one JVM and returns the seconds. others: settings.

    A first run builds the consume queues, with `index` the index too, and shuts down: later loads have
    nothing to dispatch; a log of one segment is then read from its first byte.
    """
    from tests.interop.jars import jars
    from tests.interop.javastore import JavaProcess, JavaStore

    jars(JAVA_RELEASE)
    settings = {
        "mappedFileSizeCommitLog": size,
        "mappedFileSizeConsumeQueue": UNITS_IN_A_FILE * 20,
        "messageIndexEnable": index,
        **others,
    }
    with ExitStack() as stack:
        java = JavaProcess(JAVA_RELEASE, root.parent, quick=False)
        store = JavaStore(JAVA_RELEASE, root, idle=[java], **settings)
        stack.callback(store.kill)
        store.call("drain")
        store.call("close")

        def load() -> float:
            opened = store.call("open", root=str(root), start=False, settings=settings)
            assert opened["loaded"]
            end = store.call("bounds")["max"]
            store.call("close")
            assert end > size - 4096, "Java did not read to the end of the log"
            return float(opened["seconds"])

        yield load


def _fresh(log: BenchLog, checks: Check) -> None:
    with open_source(log.segment, "map") as source:
        _expect(log, scan(source, checks))


def _expect(log: BenchLog, found: int) -> None:
    assert found == log.facts.messages


def _nothing(_: object) -> None:
    return None
