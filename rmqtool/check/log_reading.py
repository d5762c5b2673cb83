"""The log of a store, read for its checks: segments side by side, events in physical order.

Segments are always copied, never mapped: the checks look at a run of records more than once and from more
than one thread, and must see the same bytes each time, whatever happens to the file. A whole verification is
no slower for it.
"""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from formats.commitlog import END_FILE_MIN_BLANK_LENGTH as BLANK_HEADER
from rmqtool.check.account import BATCH_ROWS
from rmqtool.errors import RmqtoolError, VanishedError
from rmqtool.scan.events import Blank, End, Records, Unreadable
from rmqtool.scan.fields import Check, Field, Stop
from rmqtool.scan.log import open_patched
from rmqtool.scan.parallel import in_order
from rmqtool.scan.segment import SegmentScan

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import ModuleType

    from rmqtool.check.reading import Reading
    from rmqtool.scan.events import Event
    from rmqtool.scan.parallel import Lane
    from rmqtool.store.access import Access
    from rmqtool.store.patched import PatchedSource
    from rmqtool.store.segments import Segment, SegmentSet

_PART = 2 << 20
"""bytes of a filler that are looked at together"""


class Sized(Protocol):
    """Anything of known size."""

    @property
    def nbytes(self) -> int:
        """Memory, about."""


Made = TypeVar("Made", bound=Sized)


@dataclass(frozen=True, slots=True)
class Filler:
    """A blank record, and whether the bytes behind its header are not zero."""

    blank: Blank
    filled: bool


@dataclass(frozen=True, slots=True)
class Expired:
    """A segment of a live store that was deleted after it was listed."""


@dataclass(frozen=True)
class LogReader(Generic[Made]):
    """access: how files are opened. account: makes, for each segment, what takes its runs of records.

    live: a broker may be writing.
    """

    segments: SegmentSet
    reading: Reading
    access: Access
    kernels: ModuleType
    account: Callable[[Segment], Callable[[Records], Made]]
    live: bool = False

    def events(self) -> Iterator[tuple[Segment, Made | Event | Filler | Expired]]:
        """Everything in all segments, as `SegmentScan` tells it; of records what `account` makes of them."""
        with closing(
            in_order(list(self.segments), self._one, self.reading.jobs, size=lambda one: one.size)
        ) as found:
            yield from found

    def _one(self, segment: Segment, lane: Lane) -> Iterator[tuple[Segment, Made | Event | Filler | Expired]]:
        """One segment, for one thread."""
        if not (segment.size or self.live):
            self.reading.done(0)
            yield segment, End(0, Stop.END, BLANK_HEADER, 0)
            return
        done = 0
        account = self.account(segment)
        try:
            source, changed = open_patched(segment, replace(self.access, mode="pread"), lane)
            with source:
                for event in self._scan(segment, source, lane, moving=self.live or changed):
                    if isinstance(event, Records):
                        last = event.rows[-1]
                        now = int(last[Field.POSITION] + last[Field.STORE_SIZE])
                        made = account(event)
                        lane.take(made.nbytes)
                        yield segment, made
                        self.reading.done(now - done)
                        done = now
                    else:
                        yield segment, event
        except VanishedError as error:
            yield segment, Expired() if self.live else Unreadable(0, segment.size, str(error))
        except RmqtoolError as error:
            yield segment, Unreadable(done, segment.size - done, str(error))
        self.reading.done(segment.size - done)

    def _scan(
        self, segment: Segment, source: PatchedSource, lane: Lane, *, moving: bool
    ) -> Iterator[Event | Filler]:
        scan = SegmentScan(
            source,
            segment.base,
            active=self.segments.is_active(segment),
            checks=Check.VERIFY,
            false_blanks=True,
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
