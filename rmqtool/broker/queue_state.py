"""What a queue of either kind knows of itself in memory of the broker, and what a start did to it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rmqtool.broker.units import recovered_bytes, recovered_prefixes

if TYPE_CHECKING:
    import numpy as np

    from rmqtool.broker.mapped_files import MappedFile, MappedFiles
    from rmqtool.broker.units import Prefix
    from rmqtool.store.access import OpenMode


class QueueState:
    """unit: of its files. max_physical: what it knows of the last message, -1 at first."""

    directory: str
    """where queues of this kind lie in a store"""

    def __init__(
        self, topic: str, queue_id: int, files: MappedFiles, mode: OpenMode, unit: np.dtype[Any]
    ) -> None:
        self.topic, self.queue_id = topic, queue_id
        self.files = files
        self.max_physical = -1
        self.appended = 0
        """units of messages that were appended"""
        self.misplaced = 0
        """units appended at another slot than that of their message"""
        self.blanked = 0
        """blank units that are written in front of the first"""
        self.filled = 0
        """blank units that are left to messages whose records could not be read"""
        self.doubled = 0
        """records that get no unit because their slot is taken"""
        self.skipped = 0
        """records that get no unit because they lie in front of the last one known"""
        self.wrong_offsets = 0
        """units appended for records that lie elsewhere than they state"""
        self.recovered_max = 0
        """`max_offset` after the queue's own recovery"""
        self.phantom: int | None = None
        """queue offset of a unit of size 0 that truncation takes for a message"""
        self.recovered: list[tuple[MappedFile, int]] = []
        """files that `recover` read, with the units it took of each"""
        self._mode = mode
        self._unit = unit
        self._whole = files.size // unit.itemsize

    @property
    def bytes_to_read(self) -> int:
        """How much of the disk `read` may read."""
        return recovered_bytes(self.files.files)

    def read(self) -> list[tuple[MappedFile, Prefix]]:
        """What `recover` asks of the files; a thread may do it ahead."""
        return recovered_prefixes(self.files.files, self._unit, self._mode, self._whole)
