"""The two logs that everything is measured on, and queue files to go with them."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pytest

from fixtures import logs
from formats.commitlog import HEADERS
from formats.consumequeue import Unit
from formats.primitives import dtype_of, offset_of, sizeof

if TYPE_CHECKING:
    from pathlib import Path

LOG_BYTES = int(os.environ.get("RMQTOOL_BENCH_BYTES", str(1 << 30)))
"""bytes of each log"""

LEAST_BYTES = 384 << 20

BODY_SIZES = {"1 KiB": logs.BODY_1_KIB, "300 B": logs.BODY_OF_300}
"""records with a body of 1 KiB, and records of 300 bytes in all"""

EACH_SIZE = [pytest.param(name, marks=pytest.mark.full if name == "300 B" else ()) for name in BODY_SIZES]
"""small records make the same point as large ones, in three times the time"""

UNITS_IN_A_FILE = 300_000


@dataclass(frozen=True)
class BenchLog:
    """A store with a full commit log, of one segment unless asked for more."""

    name: str
    root: Path
    facts: logs.LogFacts
    size: int

    @property
    def segment(self) -> Path:
        return self.root / "commitlog" / f"{0:020d}"


def make_log(directory: Path, name: str, size: int = LOG_BYTES, segments: int = 1) -> BenchLog:
    """Write (and so warm) a log of `size` bytes of the kind `name`."""
    root = directory / f"{name.replace(' ', '')}-{size}-{segments}"
    one = size // segments
    facts = logs.write_log(root / "commitlog", size, body_size=BODY_SIZES[name], segment_size=one)
    return BenchLog(name, root, facts, size)


def spread(log: BenchLog, topics: int, days: int) -> None:
    """Gives the records of a log of one segment other topics, by chance, and store times over some days."""
    header = HEADERS[False, False]
    with log.segment.open("r+b") as file:
        whole = np.memmap(file, np.uint8, "r+")
        width = int.from_bytes(whole[:4].tobytes(), "big")
        rows = whole[: log.facts.messages * width].reshape(-1, width)
        place = sizeof(header) + BODY_SIZES[log.name] + 1
        name = len(logs.TOPICS[0])
        numbers = np.random.default_rng(7).integers(0, topics, len(rows))
        rows[:, place + name - 5 : place + name] = (
            ord("0") + numbers[:, None] // 10 ** np.arange(4, -1, -1) % 10
        )
        times = logs.FIRST_TIME + np.arange(len(rows)) * (days * 86_400_000 // len(rows))
        place = offset_of(header, "store_timestamp")
        rows[:, place : place + 8] = times.astype(">i8").view(np.uint8).reshape(-1, 8)
        whole.flush()


def make_queue(directory: Path, files: int = 4) -> tuple[Path, int]:
    """A consume queue of full files: its topic's directory, and how many units it has."""
    queue = directory / "units" / "consumequeue" / "TopicTest0" / "0"
    queue.mkdir(parents=True)
    numbers = np.arange(files * UNITS_IN_A_FILE, dtype=np.int64)
    units = np.empty(len(numbers), dtype_of(Unit))
    units["physical_offset"] = numbers * 300
    units["size"] = 300
    units["tags_code"] = 2598919 + numbers % 3
    for number in range(files):
        part = units[number * UNITS_IN_A_FILE : (number + 1) * UNITS_IN_A_FILE]
        (queue / f"{number * UNITS_IN_A_FILE * units.itemsize:020d}").write_bytes(part.tobytes())
    return queue.parents[1], len(units)
