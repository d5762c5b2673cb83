"""Which segments a filter concerns, so that the others are not opened, or only at their ends."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rmqtool.query.segment_times import SegmentTimes

if TYPE_CHECKING:
    from rmqtool.query.message_filter import MessageFilter
    from rmqtool.store.segments import Segment, SegmentSet


class Scope:
    """Judges segments by offsets and by the store times of their first and last record."""

    def __init__(self, segments: SegmentSet, wanted: MessageFilter) -> None:
        self._wanted = wanted
        self._times = SegmentTimes(segments)
        self._skipped: set[int] = set()

    @property
    def skipped(self) -> int:
        """Segments inside of the wanted offsets that were passed over for their times."""
        return len(self._skipped)

    def in_offsets(self, segment: Segment) -> bool:
        """False when no record of the segment can lie in the wanted range of physical offsets."""
        low, high = self._wanted.offset_from, self._wanted.offset_to
        return (low is None or segment.end > low) and (high is None or segment.base < high)

    def may_hold(self, segment: Segment) -> bool:
        """False when no record of the segment can be wanted; damage in it is not in the scope either."""
        if not self.in_offsets(segment):
            return False
        held = self._times.may_hold(segment, self._wanted.store_from, self._wanted.store_to)
        if not held:
            self._skipped.add(segment.base)
        return held
