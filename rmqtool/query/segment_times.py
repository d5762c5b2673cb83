"""Store times of whole segments, so that those outside of a window need not be read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rmqtool.errors import RmqtoolError
from rmqtool.scan.segment_ends import segment_ends

if TYPE_CHECKING:
    from rmqtool.store.segments import Segment, SegmentSet

CLOCK_SLACK = 600_000
"""milliseconds by which a clock may have been set back or forth inside a segment"""


class SegmentTimes:
    """First and last store time of segments, by their outermost records; each is looked at once."""

    def __init__(self, segments: SegmentSet) -> None:
        self._segments = segments
        self._known: dict[Segment, tuple[int, int] | None] = {}

    def of(self, segment: Segment) -> tuple[int, int] | None:
        """(first, last) store time in ms, widened by `CLOCK_SLACK`; None where the ends do not tell it."""
        if segment not in self._known:
            self._known[segment] = self._look(segment)
        return self._known[segment]

    def may_hold(self, segment: Segment, low: int | None, high: int | None) -> bool:
        """False when no record of the segment can have been stored in [low, high)."""
        if (low is None and high is None) or self._segments.is_active(segment):
            return True  # what is written last may still grow
        times = self.of(segment)
        return times is None or not (
            (low is not None and times[1] < low) or (high is not None and times[0] >= high)
        )

    def _look(self, segment: Segment) -> tuple[int, int] | None:
        try:
            ends = segment_ends(segment, read_through=False, active=False)
        except RmqtoolError:
            return None
        if ends.first is None or ends.last is None:
            return None
        times = sorted((ends.first.store_timestamp, ends.last.store_timestamp))
        return times[0] - CLOCK_SLACK, times[1] + CLOCK_SLACK
