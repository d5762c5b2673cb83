"""The log of a store, read for its checks: segments side by side, events in physical order.

Segments are always copied, never mapped: the checks look at a run of records more than once and from more
than one thread, and must see the same bytes each time, whatever happens to the file. A whole verification is
no slower for it.
"""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from formats.commitlog import END_FILE_MIN_BLANK_LENGTH as BLANK_HEADER
from rmqtool.check.levels import Level
from rmqtool.errors import RmqtoolError, VanishedError
from rmqtool.scan.events import Blank, Records, Unreadable
from rmqtool.scan.fields import Field
from rmqtool.scan.log import open_patched
from rmqtool.scan.parallel import in_order
from rmqtool.scan.segment import SegmentScan

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import ModuleType

    from rmqtool.check.findings import Finding
    from rmqtool.check.index import IndexCheck
    from rmqtool.check.index_match import Keys
    from rmqtool.check.reading import Reading
    from rmqtool.scan.events import Event
    from rmqtool.scan.parallel import Lane
    from rmqtool.store.access import Access
    from rmqtool.store.patched import PatchedSource
    from rmqtool.store.segments import Segment, SegmentSet

    Deep = Callable[[Records, Segment, ModuleType], list[Finding]]

BATCH_ROWS = 4096
"""records that are looked at together: their bytes are then still in the cache when keys are hashed"""

_PART = 2 << 20
"""bytes of a filler that are looked at together"""


@dataclass(frozen=True, slots=True)
class Run:
    """Records, what they put into the index, and what is wrong inside of their bodies."""

    records: Records
    keys: Keys
    inside: list[Finding]


@dataclass(frozen=True, slots=True)
class Filler:
    """A blank record, and whether the bytes behind its header are not zero."""

    blank: Blank
    filled: bool


@dataclass(frozen=True, slots=True)
class Expired:
    """A segment of a live store that was deleted after it was listed."""


@dataclass(frozen=True)
class LogReader:
    """access: how files are opened. index: is asked for keys. live: a broker may be writing."""

    segments: SegmentSet
    reading: Reading
    access: Access
    kernels: ModuleType
    index: IndexCheck
    live: bool = False

    def events(self) -> Iterator[tuple[Segment, Event | Run | Filler | Expired]]:
        """Everything in all segments, as `SegmentScan` tells it; records as a `Run`."""
        with closing(in_order(list(self.segments), self._one, self.reading.jobs)) as found:
            yield from found

    @cached_property
    def _deep(self) -> Deep | None:
        """What looks into bodies, at the level that does."""
        if self.reading.level is not Level.DEEP:
            return None
        from rmqtool.check.deep import inside

        return inside

    def _one(self, segment: Segment, lane: Lane) -> Iterator[tuple[Segment, Event | Run | Filler | Expired]]:
        """One segment, for one thread."""
        done = 0
        try:
            source, changed = open_patched(segment, replace(self.access, mode="pread"), lane)
            with source:
                for event in self._scan(segment, source, lane, moving=self.live or changed):
                    if isinstance(event, Records):
                        last = event.rows[-1]
                        now = int(last[Field.POSITION] + last[Field.STORE_SIZE])
                        lane.take(event.rows.nbytes + event.window.nbytes)
                        yield segment, self._run(event, segment)
                        self.reading.done(now - done)
                        done = now
                    else:
                        yield segment, event
        except VanishedError as error:
            yield segment, Expired() if self.live else Unreadable(0, segment.size, str(error))
        except RmqtoolError as error:
            yield segment, Unreadable(done, segment.size - done, str(error))
        self.reading.done(segment.size - done)

    def _run(self, found: Records, segment: Segment) -> Run:
        """A run with all that can be said of it without the runs before."""
        inside = self._deep(found, segment, self.kernels) if self._deep is not None else []
        rows = found.rows.copy() if self.reading.jobs > 1 else found.rows
        keys = self.index.keys(found, segment.base)
        return Run(Records(rows, found.window, found.origin), keys, inside)

    def _scan(
        self, segment: Segment, source: PatchedSource, lane: Lane, *, moving: bool
    ) -> Iterator[Event | Filler]:
        scan = SegmentScan(
            source,
            segment.base,
            active=self.segments.is_active(segment),
            batch_rows=BATCH_ROWS,
            kernels=self.kernels,
            moving=moving,
            stop=lane.stop,
        )
        for event in scan:
            yield Filler(event, self._filled(source, event)) if isinstance(event, Blank) else event

    def _filled(self, source: PatchedSource, blank: Blank) -> bool:
        """Whether a filler has bytes behind its header; they are read to the end, holes are not."""
        at: int | None = blank.position + BLANK_HEADER
        while at is not None and at < source.size:
            at = source.next_data(at)
            if at is not None:
                part = source.window(at, _PART)
                if int(self.kernels.first_nonzero(part, 0)) < part.size:
                    return True
                at += part.size
        return False
