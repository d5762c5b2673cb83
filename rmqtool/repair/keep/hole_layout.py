"""Where in the holes the positions go that no broken record claims."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import defaultdict
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple

from formats.commitlog import END_FILE_MIN_BLANK_LENGTH
from formats.crc_trailer import TRAILER_SIZE
from rmqtool.repair.filler import SMALLEST_FILLER
from rmqtool.repair.keep.chain import BATCH
from rmqtool.repair.keep.first_fit import FirstFit
from rmqtool.repair.place import Place
from rmqtool.repair.tombstone import LONGEST_TIME, smallest

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence

    from rmqtool.repair.keep.model import Frame, Hole, QueueKey
    from rmqtool.repair.keep.room import Missing
    from rmqtool.repair.keep.slot_assignment import Claims


_NONE = -1
"""room that nothing fits into"""


class Placed(NamedTuple):
    """Queue positions [slot, slot + positions) that one record takes, in `need` bytes at least."""

    key: QueueKey
    slot: int
    need: int
    positions: int


@dataclass
class HoleLayout:
    """A part of a hole between claimed frames. frames: what may have been records in it.

    placed: queue positions that it takes, in order. room: bytes that are left beside them. single: it is the
    place of one record, as a unit of a further queue tells. number: the queue id that this record has.
    """

    hole: Hole
    start: int
    end: int
    frames: list[Frame] = field(default_factory=list)
    placed: list[Placed] = field(default_factory=list)
    room: int = 0
    single: bool = False
    number: int | None = None

    @property
    def length(self) -> int:
        """Bytes."""
        return self.end - self.start

    @property
    def closes(self) -> bool:
        """Whether a filler at the end of the segment follows what is placed."""
        return self.end == self.hole.placed.end


def layouts_of(hole: Hole, frames: Sequence[Frame], end: int, *, apart: bool = True) -> Iterator[HoleLayout]:
    """The parts of a hole, up to the physical offset `end`, that no frame claims.

    apart: a frame that a unit of a further queue tells is a part by itself, where the bytes beside it can
    be filled.
    """
    at, stop = hole.start, min(hole.end, end)
    loose: list[Frame] = []
    for frame, behind in zip(frames, _behind(frames, stop), strict=True):
        if frame.start >= end:
            break
        beside = frame.start - at, behind - frame.end
        alone = apart and _is_place(frame) and all(_fillable(hole, length) for length in beside)
        if frame.key is None and not alone:
            loose.append(frame)
            continue
        if frame.start > at:
            yield _cell(hole, at, frame.start, loose)
        if alone:
            layout = _cell(hole, frame.start, frame.end, [frame])
            yield replace(layout, single=True, number=frame.number)
        at, loose = frame.end, []
    if stop > at:
        yield _cell(hole, at, stop, loose)


def _behind(frames: Sequence[Frame], stop: int) -> list[int]:
    """Where behind each frame the next one begins that bounds a layout."""
    found: list[int] = []
    for frame in reversed(frames):
        found.append(stop)
        if frame.key is not None or _is_place(frame):
            stop = min(frame.start, stop)
    return found[::-1]


def _is_place(frame: Frame) -> bool:
    return frame.key is None and frame.further


def _fillable(hole: Hole, length: int) -> bool:
    return length == 0 or length >= smallest_filler(hole)


def smallest_filler(hole: Hole) -> int:
    """Bytes of the smallest record that fills a part of a hole."""
    return SMALLEST_FILLER + (TRAILER_SIZE if hole.trailer else 0)


def _cell(hole: Hole, start: int, end: int, loose: list[Frame]) -> HoleLayout:
    layout = HoleLayout(hole, start, end, [one for one in loose if start <= one.start and one.end <= end])
    layout.room = layout.length - (END_FILE_MIN_BLANK_LENGTH if layout.closes else 0)
    return layout


def allocate(claims: Claims, layouts: Sequence[HoleLayout], batches: Collection[str]) -> list[Missing]:
    """Puts every open position into a layout; what finds no room is handed back. batches: topics.

    In a batch queue one record takes as many positions as there are. What is in front of a queue's first
    record is placed as a whole or not at all: a queue may as well begin later (`ConsumeQueue#fillPreBlank`),
    and a record in front of blank units would be out of its order. Layouts with a broken record to spare come
    first; where that leaves positions without room, all go as far to the front as they can, those first that
    have to end first. Either way the last ones go where units of further queues lead, whose positions then
    have a record again; where such a queue has the number of its records, only positions of that number do.
    """
    gaps = [gap for key in sorted(claims.open) for gap in claims.open[key]]
    without = _allocated(gaps, layouts, batches)
    if not without:
        return []
    urgent = sorted(gaps, key=lambda gap: (gap.high, gap.low))
    least = _allocated(urgent, layouts, batches, close=True)
    if sum(one.count for one in least) < sum(one.count for one in without):
        return least
    return _allocated(gaps, layouts, batches)


def _allocated(
    gaps: Sequence[Missing], layouts: Sequence[HoleLayout], batches: Collection[str], *, close: bool = False
) -> list[Missing]:
    """One try, from empty layouts on."""
    for layout in layouts:
        layout.room += sum(one.need for one in layout.placed)
        layout.placed.clear()
    allocation = _Allocation(layouts, close=close)
    left = (allocation.put(gap, BATCH if gap.key[0] in batches else 1) for gap in gaps)
    return [one for one in left if one is not None]


class _Allocation:
    """Room that layouts have: those for queues of any number by None, the others by their number."""

    def __init__(self, layouts: Sequence[HoleLayout], *, close: bool) -> None:
        grouped: dict[int | None, list[HoleLayout]] = defaultdict(list)
        for layout in layouts:
            grouped[layout.number].append(layout)
        self._kinds = (_any,) if close else (_spare, _any)
        self._groups = {number: _Group(some, self._kinds) for number, some in grouped.items()}

    def put(self, gap: Missing, most: int) -> Missing | None:
        """Layouts for the positions of a gap, `most` in one record; those from the first without room on."""
        numbers = dict.fromkeys((None, gap.key[1]))
        groups = [self._groups[number] for number in numbers if number in self._groups]
        low, taken = gap.low, list[_Found]()
        for slot in range(gap.first, gap.last + 1, most):
            count = min(gap.last + 1 - slot, most)
            batch_size = count if most > 1 else None
            place = Place(gap.key[0], gap.key[1], slot, 0, LONGEST_TIME, batch_size=batch_size)
            needs = smallest(place), smallest(place, crc_trailer=True)
            records = -(-(gap.last + 1 - slot) // most)
            found = self._layout_for(groups, needs, low, gap.high, records)
            if found is None and gap.first == 0:
                for one in reversed(taken):
                    one.group.give_back(one.place)
                return gap
            if found is None:
                return type(gap)(gap.key, slot, gap.last, low, gap.high)
            layout = found.group.layouts[found.place]
            found.group.take(found.place, Placed(gap.key, slot, needs[layout.hole.trailer], count))
            taken.append(found)
            low = layout.start
        return None

    def _layout_for(
        self, groups: Sequence[_Group], needs: tuple[int, int], low: int, high: int, records: int
    ) -> _Found | None:
        """The first layout of those that come first, else of the others.

        needs: bytes without and with a `__CRC32#` property. records: how many there are to place, this one
        and those behind it.
        """
        singles = [group.singles(low, high) for group in groups]
        single = min((one for _, one in singles if one is not None), key=_start, default=None)
        if single is not None and records <= sum(count for count, _ in singles):
            layout = single.group.layouts[single.place]
            if layout.room >= needs[layout.hole.trailer]:
                return single
        for kind in range(len(self._kinds)):
            candidates = [found for group in groups if (found := group.first(kind, needs, low)) is not None]
            first = min(candidates, key=_start, default=None)
            if first is not None and first.start < high:
                return first
        return None


class _Found(NamedTuple):
    """A layout of a group, by its place in it, and where it starts."""

    start: int
    group: _Group
    place: int


def _start(found: _Found) -> int:
    return found.start


class _Group:
    """Layouts that are open to the same queues, in order, by kind: those of the first kind go in front.

    Free ones that are the place of one record are known besides.
    """

    def __init__(self, layouts: Sequence[HoleLayout], kinds: Sequence[Callable[[HoleLayout], bool]]) -> None:
        self.layouts = layouts
        self._kinds = kinds
        self._starts = [layout.start for layout in layouts]
        self._rooms = [
            {trailer: FirstFit(self._in(trailer, kind)) for trailer in (False, True)} for kind in kinds
        ]
        self._singles = [index for index, layout in enumerate(layouts) if layout.single]

    def _in(self, trailer: bool, kind: Callable[[HoleLayout], bool]) -> list[int]:
        return [
            layout.room if layout.hole.trailer is trailer and kind(layout) else _NONE
            for layout in self.layouts
        ]

    def singles(self, low: int, high: int) -> tuple[int, _Found | None]:
        """How many free places of one record start in [low, high), and the first one."""
        first = bisect_left(self._singles, bisect_left(self._starts, low))
        count = bisect_left(self._singles, bisect_left(self._starts, high)) - first
        if count <= 0:
            return 0, None
        index = self._singles[first]
        return count, _Found(self._starts[index], self, index)

    def first(self, kind: int, needs: tuple[int, int], low: int) -> _Found | None:
        """The first one of a kind that starts at `low` or behind and has room; needs as in `_layout_for`."""
        at = bisect_left(self._starts, low)
        rooms = self._rooms[kind]
        found = [rooms[trailer].first(at, needs[trailer]) for trailer in (False, True)]
        index = min((one for one in found if one is not None), default=None)
        return None if index is None else _Found(self._starts[index], self, index)

    def take(self, index: int, placed: Placed) -> None:
        """Positions into a layout."""
        layout = self.layouts[index]
        if layout.single:
            del self._singles[bisect_left(self._singles, index)]
        layout.placed.append(placed)
        layout.room -= placed.need
        self._changed(index, layout)

    def give_back(self, index: int) -> None:
        """The last positions of a layout out of it."""
        layout = self.layouts[index]
        if layout.single:
            insort(self._singles, index)
        layout.room += layout.placed.pop().need
        self._changed(index, layout)

    def _changed(self, index: int, layout: HoleLayout) -> None:
        full = layout.single and bool(layout.placed)
        for kind, rooms in zip(self._kinds, self._rooms, strict=True):
            rooms[layout.hole.trailer].put(index, layout.room if kind(layout) and not full else _NONE)


def _any(layout: HoleLayout) -> bool:
    del layout
    return True


def _spare(layout: HoleLayout) -> bool:
    """Whether it has a broken record to spare."""
    return len(layout.placed) < len(layout.frames)
