"""Whole records that light queues have entries of, and that name other queues, or none.

What consumers know of a light queue are its entries, and no CRC but `__CRC32#` covers what a record names. So
where something is left of its lists they are made again, of the entries. Where nothing is, the entry goes.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from formats.commitlog import FLAT_HEADERS, TOPIC_LENGTH, SysFlag, is_v6
from formats.primitives import sizeof
from rmqtool.repair.keep.headers import SMALLEST_RECORD
from rmqtool.repair.list_remains import has_remains
from rmqtool.scan.torn import is_torn
from rmqtool.scan.units import UNIT

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from rmqtool.check.queue_files import QueueUnits
    from rmqtool.repair.keep.logbytes import LogBytes
    from rmqtool.repair.keep.model import QueueKey, Run, Survey

    Ints = npt.NDArray[np.int64]
    Dropped = dict[QueueKey, tuple[int, int]]
    """how many entries of each queue, and the lowest queue offset"""

_HEAD = FLAT_HEADERS[True, True].size
_REST = 1 << 16
"""bytes of topic and properties at most"""


@dataclass
class Unlisted:
    """Collects such records. survey: of the log whose bytes `log` reads.

    offsets: physical, of those of whose lists something is left. gone: entries that lead to others.
    """

    survey: Survey
    log: LogBytes
    offsets: set[int] = field(default_factory=set)
    gone: Dropped = field(default_factory=dict)

    def __post_init__(self) -> None:
        holes = self.survey.holes
        self._starts = np.array([one.start for one in holes], np.int64)
        self._ends = np.array([one.end for one in holes], np.int64)

    def look(
        self, key: QueueKey, queue: QueueUnits, runs: Sequence[Run], ahead: Sequence[int | None]
    ) -> None:
        """At the entries of a queue that lie between those of its records.

        runs: records that name it, in the order of the log. ahead: by how much each states more than its
        place, None where no entry says so.
        """
        gaps = self._gaps(runs, ahead)
        if not len(gaps):
            return
        for number, file in enumerate(queue.files):
            slot = queue.first_slot(number)
            if not ((gaps[:, 0] < slot + file.size // UNIT.itemsize) & (gaps[:, 1] >= slot)).any():
                continue
            for low, units in queue.parts(number):
                slots = slot + low + np.arange(len(units))
                offsets, sizes = (units[name].astype(np.int64) for name in ("physical_offset", "size"))
                at = np.maximum(np.searchsorted(gaps[:, 0], slots, "right") - 1, 0)
                _, last, begin, end = gaps[at].T
                inside = (slots >= gaps[at, 0]) & (slots <= last) & (offsets >= begin)
                inside &= (sizes >= SMALLEST_RECORD) & (sizes <= end - offsets)
                for k in np.flatnonzero(inside & ~self._in_hole(offsets)).tolist():
                    if not self._look_at(int(offsets[k]), int(sizes[k])):
                        count_dropped(self.gone, key, int(slots[k]))

    def _gaps(self, runs: Sequence[Run], ahead: Sequence[int | None]) -> Ints:
        """Rows: first and last place that no run has, and between which physical offsets its record lies.

        None beside a run of which no entry tells the place.
        """
        begin = self.survey.segments[0].base if self.survey.segments else 0
        found: list[tuple[int, int, int, int]] = []
        reached, known = 0, True
        for run, by in zip(runs, ahead, strict=True):
            if by is None:
                known = False
                continue
            first = run.first - by
            if first < reached:
                return np.empty((0, 4), np.int64)
            if known and first > reached:
                found.append((reached, first - 1, begin, run.start))
            reached, begin, known = run.last - by + 1, run.end, True
        if known:
            found.append((reached, np.iinfo(np.int64).max, begin, self.survey.data_end))
        return np.array(found, np.int64).reshape(-1, 4)

    def _in_hole(self, offsets: Ints) -> npt.NDArray[np.bool_]:
        if not len(self._starts):
            return np.zeros(len(offsets), np.bool_)
        at = np.searchsorted(self._starts, offsets, "right") - 1
        return np.asarray((at >= 0) & (offsets < self._ends[at]), np.bool_)

    def _look_at(self, offset: int, size: int) -> bool:
        """Takes the record, if it has remains of lists; False for a message that has none."""
        found = self._record(offset, size)
        if found is None:
            return True
        flags, own = found
        if not (has_remains(own) or is_torn(own)):
            return False
        if not flags & int(SysFlag.PREPARED):
            self.offsets.add(offset)
        return True

    def _record(self, offset: int, size: int) -> tuple[int, bytes] | None:
        """Flags and properties of the record of this size, None where none begins. Its body is not read."""
        head = self.log.read(offset, _HEAD)
        if len(head) < SMALLEST_RECORD:
            return None
        wide = is_v6(FLAT_HEADERS[False, False].unpack(head)["sys_flag"])
        if len(head) < FLAT_HEADERS[wide].size:
            return None
        fixed = FLAT_HEADERS[wide].unpack(head)
        width = TOPIC_LENGTH.get(fixed["magic"])
        behind = FLAT_HEADERS[wide].size + max(fixed["body_length"], 0)
        if (
            (fixed["total_size"], fixed["physical_offset"]) != (size, offset)
            or width is None
            or behind >= size
        ):
            return None
        rest = self.log.read(offset + behind, min(size - behind, _REST))
        at = sizeof(width)
        at += int.from_bytes(rest[:at], "big") + 2
        return fixed["sys_flag"], rest[at:]


def count_dropped(dropped: Dropped, key: QueueKey, slot: int) -> None:
    """One more."""
    count, first = dropped.get(key, (0, slot))
    dropped[key] = count + 1, min(first, slot)
