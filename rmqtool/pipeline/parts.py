"""A commit log cut into parts that are read apart and add up to the log, record for record.

A part is a segment, or a piece of a large one. Pieces are cut at borders: places where a record begins that
follows from an unbroken run of records before it, found by the same resynchronisation that a scan makes
behind damage. Every task finds the borders of its own part; neighbours look at the same bytes and find the
same. Where no border is found the part in front reaches further, and the one behind is empty.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from rmqtool.errors import RmqtoolError
from rmqtool.query.log_end import end_of_data
from rmqtool.scan.events import Gap, Records, Unreadable
from rmqtool.scan.fields import Check, Field
from rmqtool.scan.log import open_patched
from rmqtool.scan.parallel import Lane
from rmqtool.scan.segment import SegmentScan
from rmqtool.store.access import Access
from rmqtool.store.segments import SegmentSet

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from rmqtool.store.bytes import ByteSource
    from rmqtool.store.layout import Store
    from rmqtool.store.segments import Hole, Segment

PART_BYTES = 128 << 20
"""bytes of a segment that one task reads, unless told otherwise"""

_MARGIN = 8 << 20
"""bytes in front of a border in which records must follow each other; twice the largest usual message"""
_BATCH_ROWS = 4096


class CutError(RmqtoolError):
    """A piece of a segment cannot be told from its neighbours: the segment has to be read as one."""


@dataclass(frozen=True)
class LogPart:
    """One task's share of a log, small enough to be sent.

    store: the store with this segment as its only file. number: of `count` pieces. reach: position behind
    the data of the segment, as far as it was known when it was cut; no border lies behind it. active, hole:
    what only the whole log tells of the segment (`SegmentSet.is_active`, the missing bytes in front of it).
    """

    store: Store
    segment: Segment
    number: int
    count: int
    reach: int
    active: bool
    hole: Hole | None = None

    @property
    def whole(self) -> LogPart:
        """The segment of this part, uncut."""
        return replace(self, number=0, count=1)

    def resolved(self, within: tuple[int, int] | None = None) -> Store | None:
        """The store as if this part were its whole log; None for a part that is empty.

        within: only physical offsets [from, to), where a record or a segment begins at `from`. Raises
        `CutError` where bytes around a border cannot be read.
        """
        start, end = 0, self.segment.end
        if self.count > 1:
            borders = _Borders(self)
            if self.number:
                found = borders.at(self.number)
                if found is None:
                    return None
                start = found
            end = next((self.segment.base + one for one in borders.behind(self.number)), end)
        low, high = self.segment.base + start, end
        if within is not None:
            low, high = max(low, within[0]), min(high, within[1])
            if low >= high:
                return None
        part = replace(self.store)
        vars(part)["segments"] = PartOfLog(self, (low, high), end)
        return part


class PartOfLog(SegmentSet):
    """One part in the place of the segments of a store. border: offset at which the next one begins."""

    def __init__(self, part: LogPart, span: tuple[int, int], border: int) -> None:
        super().__init__([part.segment])
        self._part = part
        self._span = span
        self._border = border

    @property
    def span(self) -> tuple[int, int]:
        """See `SegmentSet.span`."""
        return self._span

    def is_active(self, segment: Segment) -> bool:  # noqa: ARG002 - there is but one
        """See `SegmentSet.is_active`."""
        return self._part.active

    def holes(self) -> list[Hole]:
        """The one in front of the segment."""
        return [self._part.hole] if self._part.hole is not None and self._part.number == 0 else []

    def check_end(self, segment: Segment, position: int) -> None:
        """Raises `CutError` where the segment ends in front of the border that the part reaches to.

        A reader of the whole segment would stop there, while the next part goes on.
        """
        if self._border < segment.end:
            raise CutError(f"{segment.file.shown} ends at {segment.base + position}, in front of records")


def cut_segment(segment: Segment, part_bytes: int, *, active: bool) -> tuple[int, int]:
    """Number of pieces, and the position behind the data. part_bytes: 0 leaves segments whole."""
    if not part_bytes or segment.size <= part_bytes:
        return 1, segment.size
    try:
        reach = end_of_data(segment) if active else segment.size
    except RmqtoolError:
        return 1, segment.size
    return max(-(-reach // part_bytes), 1), reach


def log_parts(
    store: Store, part_bytes: int = PART_BYTES, wanted: Callable[[Segment], bool] | None = None
) -> list[LogPart]:
    """The log of a store as parts, in physical order. wanted: False leaves a segment out."""
    segments = store.segments
    holes = {hole.after: hole for hole in segments.holes()}
    parts: list[LogPart] = []
    for segment in segments:
        if wanted is not None and not wanted(segment):
            continue
        active = segments.is_active(segment)
        count, reach = cut_segment(segment, part_bytes, active=active)
        light = replace(store, files=(segment.file,), directories=(), notes=())
        parts += [
            LogPart(light, segment, number, count, reach, active, holes.get(segment))
            for number in range(count)
        ]
    return parts


class _Borders:
    """Finds the borders of the pieces of one segment."""

    def __init__(self, part: LogPart) -> None:
        self._segment = part.segment
        self._reach = part.reach
        self._count = part.count
        self._size = -(-part.reach // part.count)
        self._margin = min(_MARGIN, max(self._size // 2, 1))

    def behind(self, number: int) -> Iterator[int]:
        """Positions of the borders behind a piece."""
        for one in range(number + 1, self._count):
            found = self.at(one)
            if found is not None:
                yield found

    def at(self, number: int) -> int | None:
        """Position at which a piece begins; None where it is not certain."""
        wanted = number * self._size
        try:
            source, _ = open_patched(self._segment, Access("auto"), Lane())
            with source:
                return _border(source, self._segment.base, wanted, self._margin)
        except RmqtoolError as error:
            raise CutError(str(error)) from error


def _border(source: ByteSource, base: int, wanted: int, margin: int) -> int | None:
    """The first record from `wanted` on, if records follow each other there from well before it."""
    start = max(wanted - margin, 0)
    scan = SegmentScan(source, base, checks=Check.FRAME, active=False, start=start, batch_rows=_BATCH_ROWS)
    run: int | None = None
    for event in scan:
        if isinstance(event, Unreadable):
            raise CutError(f"bytes around {base + wanted} cannot be read: {event.reason}")
        if isinstance(event, Gap) and event.position + event.length <= wanted:
            run = None
            continue
        if not isinstance(event, Records):
            return None
        positions = event.rows[:, Field.POSITION]
        if run is None:
            run = int(positions[0])
        behind = int(positions.searchsorted(wanted))
        if behind < len(positions):
            border = int(positions[behind])
            certain = run == 0 or wanted - run >= margin // 2
            return border if certain and border < wanted + margin else None
    return None


def by_segment(parts: Sequence[LogPart]) -> dict[Segment, list[LogPart]]:
    """The parts of each segment."""
    found: dict[Segment, list[LogPart]] = {}
    for one in parts:
        found.setdefault(one.segment, []).append(one)
    return found
