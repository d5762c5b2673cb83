"""A queue of a topic in memory: units as in a consume queue's files."""

from __future__ import annotations

from bisect import bisect_left
from struct import Struct
from typing import TYPE_CHECKING

import numpy as np

from rmqtool.scan.units import UNIT

if TYPE_CHECKING:
    from rmqtool.broker.queue_records import QueueRecords

_WIDTH = UNIT.itemsize
_ADDRESS = Struct(">q")
"""at the beginning of a unit"""


class MemoryQueue:
    """Units of the messages that are there and were dispatched. Use it with the log's lock held.

    first: queue offset of the first of them.
    """

    def __init__(self) -> None:
        self.first = 0
        self._units = bytearray()

    def __len__(self) -> int:
        return len(self._units) // _WIDTH

    def add(self, run: QueueRecords) -> None:
        """Units of messages that follow; those in front have been evicted where they do not."""
        first = int(run.slots[0])
        if first != self.first + len(self):
            self.first = first
            self._units.clear()
        units = np.empty(len(run), UNIT)
        units["physical_offset"], units["size"], units["tags_code"] = run.offsets, run.sizes, run.codes
        self._units += units.tobytes()

    def trim(self, low: int) -> None:
        """Messages in front of an address are gone."""
        if self._units and self._address(0) < low:
            gone = bisect_left(range(len(self)), low, key=self._address)
            del self._units[: gone * _WIDTH]
            self.first += gone

    def _address(self, number: int) -> int:
        return int(_ADDRESS.unpack_from(self._units, number * _WIDTH)[0])

    def read(self, start: int, stop: int) -> bytes:
        """Bytes of units by their numbers here."""
        return bytes(self._units[max(start, 0) * _WIDTH : stop * _WIDTH])
