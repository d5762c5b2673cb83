"""Whole records that state another queue than theirs, which has lost its own record of that queue offset.

Nothing is out of order then: of T/0 and T/1, both with 0 to 9, T/0 has lost 5, and its record of that queue
offset states T/1, whose own 5 lies in a hole. Entries tell: that of T/0 leads to the record, that of T/1 into
the hole.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rmqtool.check.queue_files import OpenFiles
from rmqtool.repair.keep.frames import queues_there
from rmqtool.repair.keep.headers import SMALLEST_RECORD, read_header
from rmqtool.repair.keep.logbytes import LogBytes
from rmqtool.repair.keep.missed import differs_in_one
from rmqtool.repair.keep.model import text_of
from rmqtool.store.access import Access

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import numpy.typing as npt

    from rmqtool.check.queue_files import QueueUnits
    from rmqtool.repair.keep.model import QueueKey, Survey
    from rmqtool.repair.keep.order import Order
    from rmqtool.repair.keep.room import Missing
    from rmqtool.store.layout import Store

    Ints = npt.NDArray[np.int64]


def claimed_elsewhere(store: Store, survey: Survey, order: Order) -> set[int]:
    """Where such records begin."""
    if not order.missing:
        return set()
    access = Access("pread")
    files = OpenFiles(access)
    with LogBytes(survey.segments, access) as log:
        try:
            return set(_Claims(survey, dict(queues_there(store, files)), log).claimed(order.missing))
        finally:
            files.close()


class _Claims:
    def __init__(self, survey: Survey, queues: Mapping[QueueKey, QueueUnits], log: LogBytes) -> None:
        self._survey, self._log = survey, log
        self._queues = {key: one for key, one in queues.items() if one.files and not one.batch}
        self._starts = np.array([one.start for one in survey.holes], np.int64)
        self._ends = np.array([one.end for one in survey.holes], np.int64)

    def claimed(self, missing: list[Missing]) -> Iterator[int]:
        gaps: dict[QueueKey, list[tuple[int, int, int, int]]] = {}
        for one in missing:
            if one.key in self._queues:
                gaps.setdefault(one.key, []).append((one.first, one.last, one.low, one.high))
        for key, some in gaps.items():
            for slot, offset, size in self._entries(self._queues[key], np.array(sorted(some), np.int64)):
                if self._states_another(key, slot, offset, size):
                    yield offset

    def _entries(self, queue: QueueUnits, gaps: Ints) -> Iterator[tuple[int, int, int]]:
        """Slot, offset, size of entries in gaps (first and last slot, low, high) that lead to no hole."""
        firsts, lasts, lows, highs = gaps.T
        for number in range(len(queue.files)):
            for at, units in queue.parts(number):
                slots = queue.first_slot(number) + at + np.arange(len(units))
                offsets, sizes = (units[name].astype(np.int64) for name in ("physical_offset", "size"))
                gap = np.searchsorted(firsts, slots, "right") - 1
                leads = (gap >= 0) & (slots <= lasts[gap]) & (sizes >= SMALLEST_RECORD)
                leads &= (offsets >= lows[gap]) & (offsets < highs[gap])
                leads[leads] = ~self._in_hole(offsets[leads])
                yield from zip(*(part[leads].tolist() for part in (slots, offsets, sizes)), strict=True)

    def _states_another(self, key: QueueKey, slot: int, offset: int, size: int) -> bool:
        """Whether a whole record there states this slot of a queue whose own entry leads into a hole."""
        header = read_header(self._log.read(offset, size), offset, size)
        if header is None or not (header.sound and header.own_place) or header.queue_offset != slot:
            return False
        other = text_of(header.topic) or "", header.queue_id
        queue = self._queues.get(other)
        if queue is None or other not in self._survey.runs or not differs_in_one(key, other):
            return False
        return bool(self._in_hole(queue.gather(np.array([slot], np.int64))[0])[0])

    def _in_hole(self, offsets: Ints) -> npt.NDArray[np.bool_]:
        if not len(self._starts):
            return np.zeros(len(offsets), np.bool_)
        at = np.maximum(np.searchsorted(self._starts, offsets, "right") - 1, 0)
        return np.asarray((self._starts[at] <= offsets) & (offsets < self._ends[at]), np.bool_)
