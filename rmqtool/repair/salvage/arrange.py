"""From settled runs to a log that a broker reads from end to end: what stays, what fills, what moves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from formats.commitlog import END_FILE_MIN_BLANK_LENGTH
from rmqtool.repair.salvage import bridge, queues
from rmqtool.repair.salvage.moved import Why
from rmqtool.repair.salvage.segments import crossing
from rmqtool.repair.salvage.tables import Found, Piece, Run, joined, taken
from rmqtool.scan.fields import Field

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt

    from rmqtool.repair.salvage.bridge import Gap
    from rmqtool.repair.salvage.files import Files
    from rmqtool.repair.salvage.placeholders import Placeholders
    from rmqtool.repair.salvage.queues import Hole
    from rmqtool.scan.events import Records

    Ints = npt.NDArray[np.int64]
    Verdict = Callable[[Records, Ints], Ints]


@dataclass(frozen=True, slots=True)
class _Mark:
    """Records of a run that must leave: those in `[start, stop)`, of one partition or (-1) of all."""

    start: int
    stop: int
    partition: int
    why: Why


class Arrangement:
    """Runs at their own offsets and the gaps between them; `moved` (rows of `Moved`) go to the end.

    found: by offset. gaps: with the placeholders that go into them.
    """

    def __init__(self, found: Found, moved: Ints, files: Files, size: int, fill: Placeholders) -> None:
        self.found = found
        self.moved = [moved]
        self.size = size
        self.gaps: list[Gap] = []
        self._files = files
        self._fill = fill
        self._leave_headers()
        self._leave_far()
        while self._step():
            pass

    def _step(self) -> bool:
        """One reason to move records after the other; False when none is left."""
        if self._borders() or self._displaced() or self._narrow():
            return True
        self.gaps = list(bridge.gaps(self.found, self.size))
        unmet = bridge.allocate(self.gaps, list(queues.holes(self.found)), self._fill.sizes)
        if self._unmet(unmet):
            return True
        if len(self.found.runs) and self.found.runs[0, Run.OFFSET] < self.size:
            bridge.allocate(self.gaps, list(queues.heads(self.found)), self._fill.sizes)
        return False

    def _leave_headers(self) -> None:
        runs = self.found.runs
        marks = {
            number: [_Mark(0, _END, -1, Why.HEADERS)]
            for number in np.flatnonzero((runs[:, Run.HEADER] > 0) & (runs[:, Run.COUNT] > 0)).tolist()
        }
        self._leave(marks)

    def _leave_far(self) -> None:
        """Only what lies around the most bytes stays."""
        if len(self.found.runs) == 0:
            return
        found = bridge.islands(self.found, self.size)
        lengths = self.found.runs[:, Run.LENGTH]
        best = max(found, key=lambda one: int(lengths[one[0] : one[1]].sum()))
        far = [number for one in found if one != best for number in range(*one)]
        self._leave({number: [_Mark(0, _END, -1, Why.FAR)] for number in far})

    def _borders(self) -> bool:
        marks: dict[int, list[_Mark]] = {}
        for number in crossing(self.found, self.size).tolist():
            marks[number] = [_Mark(-1, -1, -1, Why.BORDER)]
        return self._leave(marks)

    def _displaced(self) -> bool:
        return self._leave_pieces(queues.displaced(self.found), Why.QUEUE)

    def _unmet(self, unmet: list[Hole]) -> bool:
        """What stands in its queue behind a hole that cannot be bridged has no right place."""
        pieces = self.found.pieces
        from_offset: dict[int, int] = {}
        for hole in unmet:
            from_offset[hole.partition] = min(hole.stop, from_offset.get(hole.partition, _END))
        limit = np.array(
            [from_offset.get(partition, _END) for partition in pieces[:, Piece.PARTITION].tolist()], np.int64
        )
        return self._leave_pieces(np.flatnonzero(pieces[:, Piece.START] >= limit), Why.HOLE)

    def _leave_pieces(self, numbers: Ints, why: Why) -> bool:
        columns = [Piece.RUN, Piece.START, Piece.STOP, Piece.PARTITION]
        marks: dict[int, list[_Mark]] = {}
        for run, start, stop, partition in self.found.pieces[numbers][:, columns].tolist():
            marks.setdefault(run, []).append(_Mark(start, stop, partition, why))
        return self._leave(marks)

    def _narrow(self) -> bool:
        """Where a gap is too small, the record before it leaves, or at a segment's start the next."""
        runs, ends = self.found.runs, self.found.ends
        marks: dict[int, list[_Mark]] = {}
        for gap in bridge.gaps(self.found, self.size):
            if bridge.is_narrow(gap, self._fill.smallest_filler):
                behind = int(np.searchsorted(runs[:, Run.OFFSET], gap.start, "right"))
                if behind and ends[behind - 1] == gap.start and gap.start % self.size:
                    marks.setdefault(behind - 1, []).append(_Mark(gap.start - 1, gap.start, -1, Why.NARROW))
                else:
                    marks.setdefault(behind, []).append(_Mark(gap.end, gap.end + 1, -1, Why.NARROW))
        return self._leave(marks)

    def _leave(self, marks: dict[int, list[_Mark]]) -> bool:
        if not marks:
            return False
        runs = self.found.runs
        kept = np.setdiff1d(np.arange(len(runs)), np.array(sorted(marks)))
        parts = [taken(self.found, kept)]
        for number, asked in marks.items():
            left, gone = self._files.divided(runs[number], _verdict(asked, self.size))
            parts.append(left)
            self.moved.append(gone)
        whole = joined(parts)
        self.found = taken(whole, np.argsort(whole.runs[:, Run.OFFSET], kind="stable"))
        return True


_END = np.iinfo(np.int64).max


def _verdict(marks: list[_Mark], size: int) -> Verdict:
    def verdict(batch: Records, partitions: Ints) -> Ints:
        why = np.full(len(batch.rows), Why.STAYS, np.int64)
        starts = batch.rows[:, Field.STORED_PHYSICAL_OFFSET]
        ends = starts + batch.rows[:, Field.STORE_SIZE]
        for mark in marks:
            if mark.why is Why.BORDER:
                chosen = starts // size != (ends + END_FILE_MIN_BLANK_LENGTH - 1) // size
            else:
                chosen = (starts < mark.stop) & (ends > mark.start)
            if mark.partition >= 0:
                chosen &= partitions == mark.partition
            why[chosen] = mark.why
        return why

    return verdict
