"""Whole records that light queues have entries of, and that name other queues, or none.

What consumers know of a light queue are its entries, and no CRC but `__CRC32#` covers what a record names. So
where something is left of its lists they are made again, of the entries. Where nothing is, the entry goes.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from formats.commitlog import SysFlag
from rmqtool.repair.keep.headers import SMALLEST_RECORD, read_header
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


@dataclass
class Unlisted:
    """Collects such records. survey: of the log whose bytes `log` reads.

    offsets: physical, of those whose lists are made again. gone: of each queue how many entries lead to
    others, and the place of the first.
    """

    survey: Survey
    log: LogBytes
    offsets: set[int] = field(default_factory=set)
    gone: dict[QueueKey, tuple[int, int]] = field(default_factory=dict)

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
                        count, first = self.gone.get(key, (0, int(slots[k])))
                        self.gone[key] = count + 1, first

    def _gaps(self, runs: Sequence[Run], ahead: Sequence[int | None]) -> Ints:
        """Rows: first and last place that no run has, and between which physical offsets its record lies."""
        begin = self.survey.segments[0].base if self.survey.segments else 0
        first, found = 0, []
        for run, by in zip(runs, ahead, strict=True):
            if by is None:
                return np.empty((0, 4), np.int64)
            if run.first - by > first:
                found.append((first, run.first - by - 1, begin, run.start))
            elif run.first - by < first:
                return np.empty((0, 4), np.int64)
            first, begin = run.last - by + 1, run.end
        found.append((first, np.iinfo(np.int64).max, begin, self.survey.data_end))
        return np.array(found, np.int64)

    def _in_hole(self, offsets: Ints) -> npt.NDArray[np.bool_]:
        if not len(self._starts):
            return np.zeros(len(offsets), np.bool_)
        at = np.searchsorted(self._starts, offsets, "right") - 1
        return np.asarray((at >= 0) & (offsets < self._ends[at]), np.bool_)

    def _look_at(self, offset: int, size: int) -> bool:
        """Takes the record, if it has remains of lists; False for a message that has none."""
        header = read_header(self.log.read(offset, size), offset, size)
        if header is None or not (header.framed and header.sound and header.own_place):
            return True
        own = header.properties or b""
        if not (has_remains(own) or is_torn(own)):
            return False
        if not header.sys_flag & int(SysFlag.PREPARED):
            self.offsets.add(offset)
        return True
