"""What a verification has looked at so far, and what it has not: the other half of its summary."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from rmqtool.check.levels import PHASE_PATHS, Phase
from rmqtool.check.unchecked import unchecked_index, unchecked_rows
from rmqtool.scan.fields import Field
from rmqtool.store.coverage import Incomplete, coverage, rest_of_log, unopened, unopened_entries, unreadable
from rmqtool.store.kinds import COMPACTION_KINDS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import numpy as np
    import numpy.typing as npt

    from rmqtool.check.findings import Finding
    from rmqtool.store.coverage import Row
    from rmqtool.store.layout import Store
    from rmqtool.store.segments import Segment

_NOT_READ = frozenset({"DIR-UNREADABLE", "IDX-UNREADABLE", "CP-UNREADABLE", "CFG-UNREADABLE"})
"""findings that say: nothing is known of this"""


@dataclass(frozen=True, slots=True)
class Extent:
    """How many records a run has, one behind the other at positions [start, end) of their segment."""

    records: int
    start: int
    end: int
    last_timestamp: int

    @classmethod
    def of(cls, rows: npt.NDArray[np.int64]) -> Extent:
        """Of rows of the matrix."""
        start, position, size, time = rows[[0, -1, -1, -1], _EXTENT].tolist()
        return cls(len(rows), start, position + size, time)


_EXTENT = [Field.POSITION, Field.POSITION, Field.STORE_SIZE, Field.STORE_TIMESTAMP]


@dataclass
class Covered:
    """Counts of one run. Offsets are physical ones of the commit log."""

    records: int = 0
    bytes: int = 0
    last_timestamp: int | None = None
    end_offset: int | None = None
    """end of the last record, once the log was read to its end"""
    read_to: int | None = None
    """offset up to which the log was read"""
    expired_end: int = 0
    """where the segments end that a live store has deleted since it was listed"""
    phase: Phase = Phase.LAYOUT
    not_covered: list[Row] = field(default_factory=list)
    """what could not be read, by place"""

    def count(self, run: Extent, segment: Segment) -> None:
        """Records that were looked at."""
        self.records += run.records
        self.last_timestamp = run.last_timestamp
        self.bytes += run.end - run.start
        self.read_to = segment.base + run.end

    def watched(self, findings: Iterable[Finding]) -> Iterator[Finding]:
        """The same findings; those that tell of what cannot be read are kept in mind."""
        for one in findings:
            if one.code in _NOT_READ:
                self._note(one)
            elif one.code == "IDX-GEOMETRY":
                self.not_covered.append(unchecked_index(one))
            yield one

    def _note(self, one: Finding) -> None:
        start = one.position if one.length is None else one.position or 0
        row = unreadable(one.path or ".", str(one.found), start, one.length)
        if one.physical_offset is not None:
            row["physical_offset"] = one.physical_offset
        if row not in self.not_covered[-1:]:
            self.not_covered.append(row)

    def note_entries(self, store: Store) -> None:
        """What lies there and is never opened: forms that no check reads, a FIFO, a device, a dead link."""
        self.not_covered += unchecked_rows(store)
        self.not_covered += filter(None, map(unopened, unopened_entries(store)))

    def left(self, store: Store, reason: Incomplete) -> list[Row]:
        """What a run that ends here leaves out, besides `not_covered`."""
        rows: list[Row] = []
        for phase, path in PHASE_PATHS.items():
            if phase < self.phase or (phase is Phase.COMPACTION and not store.of_kind(*COMPACTION_KINDS)):
                continue
            if phase is Phase.LOG:
                rows += rest_of_log(list(store.segments), self.read_to or 0, reason)
            else:
                rows.append({"path": path, "reason": reason.value})
        return rows

    def as_row(self) -> Row:
        """The end of a summary."""
        if self.phase is Phase.DONE:
            return coverage(self.not_covered)
        return {
            "stopped_in": self.phase.name.lower(),
            "covered_to": self.read_to,
            "complete": False,
            "incomplete_reason": Incomplete.INTERRUPTED.value,
            "not_covered": list(self.not_covered),
        }
