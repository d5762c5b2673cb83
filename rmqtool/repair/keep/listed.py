"""Records as a plan lists them: a row for each range of consecutive queue offsets, not for each record."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rmqtool.repair.keep.model import QueueKey

    Row = dict[str, int | str]


@dataclass(slots=True)
class Listed:
    """Rows: topic, queue_id, queue_offset (the first), count (queue offsets), physical_offset, length.

    length: bytes from the begin of the first record to the end of the last one; records of other queues may
    lie between. records, bytes: of all of them. Memory goes with the number of ranges.
    """

    rows: list[Row] = field(default_factory=list)
    records: int = 0
    bytes: int = 0
    _open: dict[QueueKey, _Range] | None = None

    def add(self, key: QueueKey, slot: int, count: int, start: int, length: int) -> None:
        """One record, in the order of the log."""
        self.records += 1
        self.bytes += length
        ranges = self._open = self._open or {}
        last = ranges.get(key)
        if last is not None and last.next_slot == slot:
            last.next_slot = slot + count
            last.row["count"] = slot + count - last.first
            last.row["length"] = start + length - last.start
            return
        row: Row = {
            "topic": key[0],
            "queue_id": key[1],
            "queue_offset": slot,
            "count": count,
            "physical_offset": start,
            "length": length,
        }
        self.rows.append(row)
        ranges[key] = _Range(row, slot, slot + count, start)

    def close(self) -> None:
        """Nothing more is added; forgets what would be needed for it."""
        self._open = None

    def __bool__(self) -> bool:
        return bool(self.rows)


@dataclass(slots=True)
class _Range:
    """A range that may go on. first, start: its first queue offset and physical offset."""

    row: Row
    first: int
    next_slot: int
    start: int
