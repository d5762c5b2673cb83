"""Carving: an image of zeros, and a log, against one plain CRC-32 pass over the same mapping; memory."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from rmqtool.repair.salvage.carve import Carver
from rmqtool.repair.salvage.sources import collect
from rmqtool.repair.salvage.tables import Run
from rmqtool.repair.salvage.tabulate import Names
from rmqtool.store.access import open_source
from tests.bench.data import LOG_BYTES
from tests.bench.measure import Figure, in_turn, run_alone

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.bench.data import BenchLog

ZERO_TARGET = 0.3
LOG_TARGET = 0.08
MEMORY_MIB = 500


def zeros(directory: Path, size: int = LOG_BYTES) -> Path:
    """A file of zeros that are all written: no hole is there to be skipped."""
    path = directory / "zeros.img"
    with path.open("wb") as stream:
        for _ in range(0, size, 1 << 20):
            stream.write(bytes(1 << 20))
    return path


def carve(path: Path) -> int:
    """Records found with one thread."""
    found = Carver(collect([os.fspath(path)]).files, Names()).run()
    return int(found.runs[:, Run.COUNT].sum())


def _figure(path: Path, records: int, name: str, target: float) -> Figure:
    from isal import isal_zlib

    def carved() -> None:
        assert carve(path) == records

    def plain() -> None:
        with open_source(path, "map") as source:
            isal_zlib.crc32(memoryview(source.window(0, source.size)))

    taken = in_turn({"plain": plain, "carve": carved}, rounds=5)
    speed = path.stat().st_size / taken["carve"].best / (1 << 30)
    ratio = taken["plain"].best / taken["carve"].best
    return Figure(f"salvage: carving {name}", "plain isal CRC-32", ratio, target, note=f"{speed:.1f} GiB/s")


def carving(directory: Path, log: BenchLog) -> Iterator[Figure]:
    """Both kinds."""
    image = zeros(directory)
    yield _figure(image, 0, "zeros", ZERO_TARGET)
    image.unlink()
    yield _figure(log.segment, log.facts.messages, f"a log, {log.name}", LOG_TARGET)


def salvage_memory(log: BenchLog, directory: Path) -> Figure:
    """Memory of a whole salvage, beside mapped files."""
    ran = run_alone("salvage", log.segment, "--output", directory / "salvaged", "--quiet", one_core=False)
    return Figure(f"salvage: peak memory, {log.name}", "none (MiB)", ran.peak_own, MEMORY_MIB, at_most=True)
