"""A store of any apparent size: records in its first, middle and last segment, many queues, holes between."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from fixtures.builder import FIRST_TIME
from formats.checkpoint import Checkpoint
from formats.commitlog import Blank, encode_message
from rmqtool.scan.units import UNIT

if TYPE_CHECKING:
    from pathlib import Path

QUEUES_OF_A_TOPIC = 4
_BODY = 180


@dataclass(frozen=True)
class Large:
    """What to write. rounds: messages of every queue in each of the three segments with records."""

    segments: int = 100
    segment_size: int = 1 << 30
    queues: int = 8000
    rounds: int = 1
    queue_file: int = 6_000_000

    @property
    def with_records(self) -> tuple[int, ...]:
        return 0, self.segments // 2, self.segments - 1

    def write(self, root: Path, *, clean: bool) -> Path:
        """Segments without records hold nothing but a filler; after a crash the last segment is in doubt."""
        (root / "commitlog").mkdir(parents=True)
        units = np.zeros((self.queues, self.rounds * 3), UNIT)
        for number in range(self.segments):
            self._segment(root, number, units)
        for queue in range(self.queues):
            self._queue(root, queue, units[queue])
        last = FIRST_TIME + (self.segments - 1) * 1000
        times = dict.fromkeys(("physic_msg_timestamp", "logics_msg_timestamp"), last + 5000)
        rest = dict.fromkeys(("index_msg_timestamp", "master_flushed_offset", "confirm_physical_offset"), 0)
        (root / "checkpoint").write_bytes(Checkpoint.build({**times, **rest}))
        if not clean:
            (root / "abort").touch()
        return root

    def _segment(self, root: Path, number: int, units: np.ndarray) -> None:
        base = number * self.segment_size
        data = b""
        if number in self.with_records:
            turn = self.with_records.index(number)
            data = self._records(base, turn, FIRST_TIME + number * 1000, units)
        with (root / "commitlog" / f"{base:020d}").open("wb") as file:
            file.write(data)
            if number < self.segments - 1:
                file.write(Blank.build({"total_size": self.segment_size - len(data)}))
            file.truncate(self.segment_size)

    def _records(self, base: int, turn: int, time: int, units: np.ndarray) -> bytes:
        template = encode_message(
            "T0000",
            b"x" * _BODY,
            b"",
            queue_id=0,
            queue_offset=0,
            physical_offset=0,
            born_timestamp=time,
            store_timestamp=time,
            born_host=(bytes([10, 0, 0, 1]), 51000),
            store_host=(bytes([10, 0, 0, 2]), 10911),
        )
        size, count = len(template), self.queues * self.rounds
        rows = np.tile(np.frombuffer(template, np.uint8), (count, 1))
        queue = np.arange(count) % self.queues
        slot = turn * self.rounds + np.arange(count) // self.queues
        offsets = base + np.arange(count, dtype=np.int64) * size
        topic = np.array([list(f"{name:04d}".encode()) for name in queue // QUEUES_OF_A_TOPIC], np.uint8)
        _put(rows, 12, (queue % QUEUES_OF_A_TOPIC).astype(">i4"))
        _put(rows, 20, slot.astype(">i8"))
        _put(rows, 28, offsets.astype(">i8"))
        place = template.index(b"T0000") + 1
        rows[:, place : place + 4] = topic
        units["physical_offset"][queue, slot] = offsets
        units["size"][queue, slot] = size
        return rows.tobytes()

    def _queue(self, root: Path, queue: int, units: np.ndarray) -> None:
        topic, number = divmod(queue, QUEUES_OF_A_TOPIC)
        directory = root / "consumequeue" / f"T{topic:04d}" / str(number)
        directory.mkdir(parents=True)
        with (directory / f"{0:020d}").open("wb") as file:
            file.write(units.tobytes())
            file.truncate(self.queue_file)


def _put(rows: np.ndarray, place: int, values: np.ndarray) -> None:
    width = values.dtype.itemsize
    rows[:, place : place + width] = values.view(np.uint8).reshape(len(rows), width)
