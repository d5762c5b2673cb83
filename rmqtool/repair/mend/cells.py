"""Where in the holes the positions go that no broken record claims."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from formats.commitlog import END_FILE_MIN_BLANK_LENGTH
from rmqtool.repair.mend.chain import BATCH
from rmqtool.repair.mend.first_fit import FirstFit
from rmqtool.repair.place import Place
from rmqtool.repair.tombstone import smallest

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from rmqtool.repair.mend.claims import Claims
    from rmqtool.repair.mend.model import Frame, Hole, QueueKey
    from rmqtool.repair.mend.order import Missing


_NONE = -1
"""room that nothing fits into"""


class Placed(NamedTuple):
    """Queue positions [slot, slot + positions) that one record takes, in `need` bytes at least."""

    key: QueueKey
    slot: int
    need: int
    positions: int


@dataclass
class Cell:
    """A part of a hole between claimed frames. frames: what may have been records in it.

    placed: queue positions that it takes, in order. room: bytes that are left beside them.
    """

    hole: Hole
    start: int
    end: int
    frames: list[Frame] = field(default_factory=list)
    placed: list[Placed] = field(default_factory=list)
    room: int = 0

    @property
    def length(self) -> int:
        """Bytes."""
        return self.end - self.start

    @property
    def closes(self) -> bool:
        """Whether a filler at the end of the segment follows what is placed."""
        return self.end == self.hole.slab.end


def cells_of(hole: Hole, frames: Sequence[Frame], end: int) -> Iterator[Cell]:
    """The parts of a hole, up to the physical offset `end`, that no frame claims."""
    at = hole.start
    loose: list[Frame] = []
    for frame in frames:
        if frame.start >= end:
            break
        if frame.key is None:
            loose.append(frame)
            continue
        if frame.start > at:
            yield _cell(hole, at, frame.start, loose)
        at, loose = frame.end, []
    stop = min(hole.end, end)
    if stop > at:
        yield _cell(hole, at, stop, loose)


def _cell(hole: Hole, start: int, end: int, loose: list[Frame]) -> Cell:
    cell = Cell(hole, start, end, [one for one in loose if start <= one.start and one.end <= end])
    cell.room = cell.length - (END_FILE_MIN_BLANK_LENGTH if cell.closes else 0)
    return cell


def allot(claims: Claims, cells: Sequence[Cell], batches: Collection[str]) -> list[Missing]:
    """Puts every open position into a cell; what finds no room is handed back. batches: topics.

    In a batch queue one record takes as many positions as there are. What is in front of a queue's first
    record is placed as a whole or not at all: a queue may as well begin later (`ConsumeQueue#fillPreBlank`),
    and a record in front of blank units would be out of its order. Cells with a broken record to spare come
    first; where that leaves positions without room, all go as far to the front as they can, those first
    that have to end first.
    """
    gaps = [gap for key in sorted(claims.open) for gap in claims.open[key]]
    without = _allotted(gaps, cells, batches)
    if not without:
        return []
    urgent = sorted(gaps, key=lambda gap: (gap.high, gap.low))
    least = _allotted(urgent, cells, batches, close=True)
    if sum(one.count for one in least) < sum(one.count for one in without):
        return least
    return _allotted(gaps, cells, batches)


def _allotted(
    gaps: Sequence[Missing], cells: Sequence[Cell], batches: Collection[str], *, close: bool = False
) -> list[Missing]:
    """One try, from empty cells on."""
    for cell in cells:
        cell.room += sum(one.need for one in cell.placed)
        cell.placed.clear()
    allotment = _Allotment(cells, close=close)
    left = (allotment.put(gap, BATCH if gap.key[0] in batches else 1) for gap in gaps)
    return [one for one in left if one is not None]


class _Allotment:
    """Room that cells have: all of them, and those with a broken record to spare; close: none of those."""

    def __init__(self, cells: Sequence[Cell], *, close: bool) -> None:
        self._cells, self._close = cells, close
        self._starts = [cell.start for cell in cells]
        self._any = {trailer: FirstFit(self._rooms(trailer)) for trailer in (False, True)}
        self._spare = {trailer: FirstFit(self._rooms(trailer, spare=True)) for trailer in (False, True)}

    def _rooms(self, trailer: bool, *, spare: bool = False) -> list[int]:
        return [
            cell.room if cell.hole.trailer is trailer and (self._has_spare(cell) or not spare) else _NONE
            for cell in self._cells
        ]

    def put(self, gap: Missing, most: int) -> Missing | None:
        """Cells for the positions of a gap, `most` in one record; those from the first without room on."""
        low, taken = gap.low, list[int]()
        for slot in range(gap.first, gap.last + 1, most):
            count = min(gap.last + 1 - slot, most)
            place = Place(gap.key[0], gap.key[1], slot, 0, 0, batch_size=count if most > 1 else None)
            needs = smallest(place), smallest(place, crc_trailer=True)
            number = self._cell_for(needs, bisect_left(self._starts, low), gap.high)
            if number is None and gap.first == 0:
                for one in reversed(taken):
                    self._give_back(one)
                return gap
            if number is None:
                return type(gap)(gap.key, slot, gap.last, low, gap.high)
            cell = self._cells[number]
            self._take(number, Placed(gap.key, slot, needs[cell.hole.trailer], count))
            taken.append(number)
            low = cell.start
        return None

    def _take(self, number: int, placed: Placed) -> None:
        cell = self._cells[number]
        cell.placed.append(placed)
        cell.room -= placed.need
        self._changed(number, cell)

    def _give_back(self, number: int) -> None:
        cell = self._cells[number]
        cell.room += cell.placed.pop().need
        self._changed(number, cell)

    def _changed(self, number: int, cell: Cell) -> None:
        self._any[cell.hole.trailer].put(number, cell.room)
        self._spare[cell.hole.trailer].put(number, cell.room if self._has_spare(cell) else _NONE)

    def _has_spare(self, cell: Cell) -> bool:
        return not self._close and len(cell.placed) < len(cell.frames)

    def _cell_for(self, needs: tuple[int, int], first: int, high: int) -> int | None:
        """The first cell with a broken record to spare, else the first one with room.

        needs: bytes without and with a `__CRC32#` property.
        """
        for rooms in (self._spare, self._any):
            found = [rooms[trailer].first(first, needs[trailer]) for trailer in (False, True)]
            number = min((one for one in found if one is not None), default=len(self._cells))
            if number < len(self._cells) and self._starts[number] < high:
                return number
        return None
