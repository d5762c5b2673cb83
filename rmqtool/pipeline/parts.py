"""A commit log cut into parts that are read apart and add up to the log, record for record.

A part is a segment, or a piece of a large one. A piece holds what a scan of the whole segment meets from the
first record behind one place up to the first record behind the next. Its task finds both by making that
scan as far as needed, looking at the frames of records only: it goes from record to record (a GiB of them in
the page cache in a tenth of a second) and finds the next one behind damage, as every scan does. So whatever
the segment holds, old records behind the end, fillers, bytes that cannot be read, records in the bodies of
others, all tasks agree where their parts begin, and what one scan would not read none of them does.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from rmqtool.errors import RmqtoolError
from rmqtool.scan.events import Records
from rmqtool.scan.fields import Check, Field
from rmqtool.scan.log_end import end_of_data
from rmqtool.scan.opened import opened
from rmqtool.scan.options import ReadOptions
from rmqtool.store.remote.address import is_remote
from rmqtool.store.segments import SegmentSet

if TYPE_CHECKING:
    from collections.abc import Callable

    from rmqtool.store.layout import Store
    from rmqtool.store.segments import Hole, Segment

MOST_PIECES = 4096
"""of a segment, however small they are wanted"""
PART_BYTES = 128 << 20
"""bytes of a segment that one task reads, where segments are cut and nothing else is said"""
MANY_SEGMENTS = 64
"""a log of so many gives enough tasks as it is"""


@dataclass(frozen=True)
class LogPart:
    """One task's share of a log, small enough to be sent.

    store: the store with this segment as its only file. number: of `count` pieces. reach: position behind
    the data of the segment as far as it was known when it was cut, for pieces of about the same size.
    active, hole: what only the whole log tells of the segment (`SegmentSet.is_active`, the missing bytes in
    front of it).
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

    @property
    def share(self) -> tuple[int, int]:
        """Positions [from, to) about which the part lies: it begins and ends at records from there on."""
        size = -(-self.reach // self.count)
        last = self.number == self.count - 1
        return self.number * size, self.segment.size if last else (self.number + 1) * size

    def resolved(self, within: tuple[int, int] | None = None) -> Store | None:
        """The store as if this part were its whole log; None for a part that is empty.

        within: only physical offsets [from, to), where a record or a segment begins at `from`. A segment
        that cannot be opened gives its part by position, which then tells so when it is read.
        """
        base, end = self.segment.base, self.segment.end
        low, high = (base, end) if within is None else (max(base, within[0]), min(end, within[1]))
        if self.count > 1:
            try:
                found = self._between_records(low - base)
            except RmqtoolError:
                found = self.share
            if found is None:
                return None
            low, high = max(low, base + found[0]), min(high, base + found[1])
        if low >= high and self.segment.size:
            return None
        return self.store.with_segments(PartOfLog(self, (low, high)))

    def _between_records(self, origin: int) -> tuple[int, int] | None:
        """Positions of the first record of this part and of the next one, by a scan from `origin` on."""
        first, behind = self.share
        last = behind == self.segment.size
        start = origin if first <= origin < behind else None
        if origin >= behind or (start is not None and last):
            return None if start is None else (start, behind)
        with opened(
            self.segment,
            ReadOptions.of(self.store),
            active=self.active,
            checks=Check.FRAME,
            false_blanks=True,
            start=origin,
        ) as (_, scan):
            for event in scan:
                if not isinstance(event, Records):
                    continue
                positions = event.rows[:, Field.POSITION]
                for place in positions[positions.searchsorted(first) :][:1].tolist():
                    start = place if start is None else start
                if start is not None and last:
                    return start, behind
                for place in positions[positions.searchsorted(behind) :][:1].tolist():
                    return None if start is None else (start, place)
        return None if start is None else (start, self.segment.size)


class PartOfLog(SegmentSet):
    """One part in the place of the segments of a store."""

    def __init__(self, part: LogPart, span: tuple[int, int]) -> None:
        super().__init__([part.segment])
        self._part = part
        self._span = span

    @property
    def is_whole(self) -> bool:
        """See `SegmentSet.is_whole`."""
        return False

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


def pieces(length: int, part_bytes: int) -> int:
    """Into how many pieces so many bytes are cut."""
    return min(max(-(-length // part_bytes), 1), MOST_PIECES)


def cut_segment(segment: Segment, part_bytes: int, *, active: bool) -> tuple[int, int]:
    """Number of pieces, and the position behind the data. part_bytes: 0 leaves segments whole."""
    if not part_bytes or segment.size <= part_bytes:
        return 1, segment.size
    try:
        reach = end_of_data(segment) if active else segment.size
    except RmqtoolError:
        return 1, segment.size
    return pieces(reach, part_bytes), reach


def log_parts(
    store: Store, part_bytes: int | None = None, wanted: Callable[[Segment], bool] | None = None
) -> list[LogPart]:
    """The log of a store as parts, in physical order. wanted: False leaves a segment out.

    part_bytes: None for `PART_BYTES` where that pays: the task of a part reads what lies in front of it as
    well, which costs little where the page cache has it and a transfer where it does not.
    """
    segments = store.segments
    if part_bytes is None:
        cut = len(segments) < MANY_SEGMENTS and not is_remote(store.root)
        part_bytes = PART_BYTES if cut else 0
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
