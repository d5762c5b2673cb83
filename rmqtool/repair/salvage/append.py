"""New places for moved records, behind the last one that stays."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from formats.commitlog import END_FILE_MIN_BLANK_LENGTH, Blank, fits
from rmqtool.repair.salvage.bridge import Allocation
from rmqtool.repair.salvage.moved import Moved, Why
from rmqtool.repair.salvage.relocate import relocated, width_of
from rmqtool.repair.salvage.tables import Piece

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    from rmqtool.repair.salvage.files import Files
    from rmqtool.repair.salvage.placeholders import Placeholders
    from rmqtool.repair.salvage.tables import Found

    Ints = npt.NDArray[np.int64]

HOLE = 100_000
"""queue offsets that are bridged at most to keep that of a moved record"""


@dataclass(frozen=True, slots=True)
class Appended:
    """Bytes for a place in the log. row: of `Moved`, None for what salvage made; `time` 0 for a blank."""

    physical_offset: int
    data: bytes
    time: int
    row: Ints | None = None
    queue_offset: int = 0
    placeholder: bool = False


class Appender:
    """Places moved records one after the other. `refused`: rows of `Moved` that no segment can hold."""

    def __init__(self, found: Found, at: int, size: int, files: Files, fill: Placeholders) -> None:
        self.at = at
        self.refused: list[Ints] = []
        self._size = size
        self._files = files
        self._fill = fill
        self._next: dict[int, int] = {}
        for partition, end in found.pieces[:, [Piece.PARTITION, Piece.END]].tolist():
            self._next[partition] = max(end, self._next.get(partition, 0))

    def all(self, moved: Ints) -> Iterator[Appended]:
        """Everything to write, in the order of the log: DLedger records by offset, the others by time."""
        headers = moved[:, Moved.WHY] == Why.HEADERS
        order = np.lexsort((moved[:, Moved.OFFSET], np.where(headers, 0, moved[:, Moved.TIME]), ~headers))
        for row in moved[order]:
            yield from self._place(row)

    def _place(self, row: Ints) -> Iterator[Appended]:
        source, position, size = (int(value) for value in row[: Moved.OFFSET])
        partition, slot, time = int(row[Moved.PARTITION]), int(row[Moved.QUEUE_OFFSET]), int(row[Moved.TIME])
        record = self._files.bytes_at(source, position, size).tobytes()
        width = width_of(record) if partition >= 0 else 0
        new = slot
        if partition >= 0:
            following = self._next.get(partition)
            if following is not None and not 0 <= slot - following <= HOLE:
                new = following
        data = relocated(record, 0, new)
        if not fits(len(data), self._size):
            self.refused.append(row)
            return
        if partition >= 0:
            if new > self._next.get(partition, new):
                yield from self._bridge(partition, self._next[partition], new, time)
            self._next[partition] = new + width
        yield from self._roll(len(data))
        yield Appended(self.at, relocated(record, self.at, new), time, row, new)
        self.at += len(data)

    def _bridge(self, partition: int, first: int, end: int, time: int) -> Iterator[Appended]:
        _, wanted, step = self._fill.sizes(partition)
        for start in range(first, end, step):
            yield from self._roll(wanted)
            one = Allocation(partition, start, min(start + step, end), wanted, step, time)
            for data in self._fill.tombstones(one, self.at):
                yield Appended(self.at, data, time, placeholder=True)
                self.at += len(data)

    def _roll(self, length: int) -> Iterator[Appended]:
        """A blank when what comes next does not fit into the segment (`CommitLog`, `doAppend`)."""
        left = self._size - self.at % self._size
        if not fits(length, left):
            yield Appended(self.at, blank(left), 0)
            self.at += left


def blank(length: int) -> bytes:
    """Header of the blank record that closes a segment with `length` bytes left."""
    if length < END_FILE_MIN_BLANK_LENGTH:
        raise AssertionError(f"no blank has {length} bytes")
    return bytes(Blank.build({"total_size": length}))
