"""A log that a broker is writing: its segments as they are now, what lies in them, and where that ends.

Everything that is answered is a physical offset at which a record or a segment begins. What lies in front of
`whole_end` never changes any more.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

from rmqtool.errors import RmqtoolError, StoreIOError, UnreadableError
from rmqtool.scan.engine import choose_kernels
from rmqtool.scan.events import Records, Unreadable
from rmqtool.scan.fields import Check, Field
from rmqtool.scan.log_end import end_of_data
from rmqtool.scan.moving import half_written
from rmqtool.scan.opened import behind, opened
from rmqtool.scan.options import ReadOptions
from rmqtool.store.access import Access
from rmqtool.store.growing import segments_now

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import numpy as np
    import numpy.typing as npt

    from rmqtool.scan.events import Event
    from rmqtool.scan.kernel_types import Kernels
    from rmqtool.store.layout import Store
    from rmqtool.store.segments import Segment, SegmentSet

    Rows = npt.NDArray[np.int64]


@dataclass
class LogFollower:
    """The log of a store from one look to the next. live: a broker may be writing.

    access: how segments are opened, never by mapping. segments: as they were listed last.
    """

    store: Store
    live: bool = True
    access: Access = field(default_factory=lambda: Access("pread"))
    segments: SegmentSet = field(init=False)

    def __post_init__(self) -> None:
        self.segments = self.store.segments

    def look(self) -> SegmentSet:
        """Lists the segments again. Raises `StoreIOError`."""
        self.segments = segments_now(self.store)
        return self.segments

    @property
    def first_offset(self) -> int:
        """Where the log begins, 0 where there is none."""
        return max(self.segments.first_offset, 0)

    @property
    def _last_base(self) -> int:
        last = self.segments.last_with_data()
        return self.first_offset if last is None else last.base

    def next_segment(self, at: int) -> Segment | None:
        """The segment that an offset lies in, or the next one behind it."""
        return next((one for one in self.segments if one.end > at), None)

    def end(self, segment: Segment) -> int:
        """Where its data ends: of the one that grows, less than its size."""
        try:
            return end_of_data(segment) if self.segments.is_active(segment) else segment.size
        except RmqtoolError:
            return segment.size  # whoever reads it is reported what is wrong

    def events(
        self,
        segment: Segment,
        start: int,
        end: int,
        *,
        checks: Check = Check.ALL,
        kernels: Kernels | None = None,
    ) -> Iterator[Event]:
        """Events from a position on, as if the file ended at `end`. Raises `StoreIOError`."""
        with opened(
            segment,
            self._reading,
            end=end,
            kernels=choose_kernels(end - start) if kernels is None else kernels,
            active=self.segments.is_active(segment),
            checks=checks,
            start=start,
        ) as (_, scan):
            yield from scan

    @cached_property
    def _reading(self) -> ReadOptions:
        return ReadOptions(self.access, live=self.live)

    def whole_end(self, at: int, *, unreadable: str = "fail") -> int:
        """Offset behind the last record that is whole, not before `at`.

        A record that looks half written, and still does a moment later, is taken once a whole one follows it.
        unreadable: `fail` raises `UnreadableError` where the log ends in bytes that cannot be read. Raises
        `StoreIOError` when the log ends before `at`, which was read already.
        """
        last = self.segments.last_with_data()
        if last is None:
            if at > self.first_offset:
                raise StoreIOError(f"there is no log any more; {at} bytes of it were read")
            return max(self.segments.first_offset, at)
        if at > last.end:
            raise StoreIOError(f"the log ends at {last.end}, although it was read up to {at}")
        start = max(at - last.base, 0)
        end, lost = start, None
        for event in self.events(last, start, max(end_of_data(last), start)):
            if isinstance(event, Unreadable):
                lost = event
            elif isinstance(event, Records):
                whole = event.rows[~half_written(event.rows)]
                if len(whole):
                    end, lost = behind(replace(event, rows=whole)), None
        if lost is not None and unreadable == "fail":
            raise UnreadableError(last.file.display_path, lost.position, lost.length, lost.reason)
        return last.base + end

    def last_end(self) -> int:
        """`whole_end` of a log that was not read yet; bytes that cannot be read are passed over."""
        return self.whole_end(self._last_base, unreadable="skip")

    def end_within(self, at: int, end: int, most: int) -> int:
        """Where to stop reading for now, with about `most` bytes from `at` on, and at least one record."""
        if end - at <= most:
            return end
        target = at + most
        located = self.segments.locate(target)
        if located is None:
            return min(next((one.base for one in self.segments if one.base > at), end), end)
        segment = located[0]
        stop = segment.base

        def reached(rows: Rows) -> int | None:
            nonlocal stop
            ends = rows[:, Field.POSITION] + rows[:, Field.STORE_SIZE] + segment.base
            fitting = int(ends.searchsorted(target, "right"))
            if fitting == len(rows):
                stop = int(ends[-1])
                return None
            if fitting:
                return int(ends[fitting - 1])
            return stop if stop > at else int(ends[0])

        found = self.search(segment, max(at, segment.base) - segment.base, reached)
        return min(segment.end if found is None else found, end)

    def record_from(self, at: int, end: int) -> int:
        """Where the first record begins from `at` on, `end` at most; where no segment lies `at` itself."""
        found = self.segments.locate(at)
        if found is None or at == end:
            return at
        segment, position = found
        after = self.search(segment, position, lambda rows: int(rows[0, Field.POSITION]) + segment.base)
        return min(segment.end if after is None else after, end)

    def search(self, segment: Segment, start: int, reached: Callable[[Rows], int | None]) -> int | None:
        """The first answer of `reached` to runs of records from a position on, None without one."""
        end = max(end_of_data(segment), start)
        for event in self.events(segment, start, end, checks=Check.FRAME):
            if isinstance(event, Records):
                found = reached(event.rows)
                if found is not None:
                    return found
        return None

    def missing(self, start: int, end: int) -> list[tuple[int, int]]:
        """Ranges of [start, end) without a file."""
        lost: list[tuple[int, int]] = []
        at = start
        for one in self.segments:
            if at >= end:
                break
            if one.base > at:
                lost.append((at, min(one.base, end)))
            at = max(at, one.end)
        if at < end:
            lost.append((at, end))
        return lost
