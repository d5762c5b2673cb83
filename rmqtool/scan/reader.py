"""The reader of a log: segments, and parts of large ones, side by side; what they hold in physical order.

Bytes are copied, never mapped: what is made of a run of records looks at it more than once, and must see the
same bytes each time, whatever happens to the file. It is no slower: reading 1 GiB of a file in the page cache
takes as long as the page faults of a new mapping, and giving that back takes time as well.

With several jobs a large segment is cut. A part begins at the first whole record at its own place behind a
cut. That may lie in the body of another record, or behind the end of the data: so a part counts only if the
one before it ends just there, as a scan of the whole segment would, and is dropped otherwise; the one before
it then goes on to the next part that begins where it has come to.
"""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass, replace
from threading import Lock
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, Protocol, TypeVar

from formats.commitlog import END_FILE_MIN_BLANK_LENGTH
from rmqtool.errors import RmqtoolError, VanishedError
from rmqtool.scan.events import End, Records
from rmqtool.scan.fields import Check, Stop
from rmqtool.scan.opened import before, behind, opened, unread
from rmqtool.scan.parallel import WorkerContext, in_order

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from rmqtool.scan.events import Event
    from rmqtool.scan.kernel_types import Kernels
    from rmqtool.scan.options import ReadOptions
    from rmqtool.store.patched import ZeroFilledSource
    from rmqtool.store.segments import Segment, SegmentSet

PART_BYTES = 16 << 20
"""bytes of a segment between two cuts, holes left out"""

BATCH_ROWS = 8192
"""records in a run at most"""

WINDOW_BYTES = 4 << 20
"""bytes that are read at once: a run of records has them still in a cache"""

_NEAR = 1 << 20
"""bytes behind a cut in which the record must begin that a part begins with"""

_SEARCHED = 64 << 10
"""bytes that are read at once to find it"""


class Sized(Protocol):
    """Anything of known size."""

    @property
    def nbytes(self) -> int:
        """Memory, about."""


Made = TypeVar("Made", bound=Sized)


@dataclass(frozen=True, slots=True)
class Expired:
    """A segment of a live store that was deleted after it was listed."""


class _Parts:
    """Where the parts of positions [low, high) of a segment begin.

    due: where the next part begins that counts, and reported: up to where bytes are done; set by one thread.
    """

    def __init__(self, segment: Segment, low: int, high: int, count: int, reader: LogReader[Any]) -> None:
        self.segment = segment
        self.low, self.high = low, high
        self.due = self.reported = low
        self.count = count
        self._step = -(-high // count)
        self._reader = reader
        self._starts: dict[int, int | None] = {0: low}
        self._lock = Lock()

    def start(self, number: int) -> int | None:
        """Position at which a part begins; None for one that has no beginning."""
        with self._lock:
            if number not in self._starts:
                self._starts[number] = self._found(number)
            return self._starts[number]

    def behind(self, number: int, position: int) -> int:
        """Where the next part behind `number` begins from `position` on, or the end of what is read."""
        for following in range(number + 1, self.count):
            start = self.start(following)
            if start is not None and start >= position:
                return min(start, self.high)
        return self.high

    def _found(self, number: int) -> int | None:
        how = self._reader
        cut = number * self._step
        if not self.low < cut < self.high:
            return None
        try:
            with opened(
                self.segment, how.copying, kernels=how.kernels, batch_rows=1, window_bytes=_SEARCHED
            ) as (_, scan):
                return scan.record_from(cut, cut + _NEAR)
        except RmqtoolError:
            return None


class _Part(NamedTuple):
    parts: _Parts
    number: int


class _Progress(NamedTuple):
    """start: of the part. now: position up to which it has come. event: None at its end."""

    parts: _Parts
    start: int
    now: int
    event: object


@dataclass(frozen=True)
class LogReader(Generic[Made]):
    """made: gives, for each part of a segment, what takes its runs of records.

    chosen: the segments that are read, all unless given. checks, batch_rows, false_blanks: of `SegmentScan`.
    part_bytes: of a segment between two cuts.
    """

    segments: SegmentSet
    options: ReadOptions
    kernels: Kernels
    made: Callable[[Segment], Callable[[Records], Made]]
    chosen: Sequence[Segment] | None = None
    checks: Check = Check.ALL
    batch_rows: int = BATCH_ROWS
    false_blanks: bool = False
    part_bytes: int = PART_BYTES

    @property
    def copying(self) -> ReadOptions:
        """The options, by which segments are never mapped."""
        return replace(self.options, access=replace(self.options.access, mode="pread"))

    def events(self) -> Iterator[tuple[Segment, Any]]:
        """Everything in the segments: what `made` makes of runs of records, and `reported` of other events.

        What cannot be read of a segment is `Unreadable`, or the segment `Expired`.
        """
        with closing(in_order(self._cut(), self._read, self.options.jobs, size=_size)) as found:
            for parts, start, now, event in found:
                if start != parts.due:
                    continue
                self.options.done(now - parts.reported)
                parts.reported = now
                if event is None:
                    parts.due = now
                else:
                    yield parts.segment, event

    def _cut(self) -> list[_Part]:
        low, high = self.segments.span
        found: list[_Part] = []
        for one in self.segments if self.chosen is None else self.chosen:
            start, end = max(low - one.base, 0), min(high - one.base, one.size)
            whole = self.options.jobs <= 1 or self.options.live
            # holes are no work: a sparse file may have any length
            data = min(end, one.file.disk_bytes)
            count = 1 if whole else max(-(-data // self.part_bytes), 1)
            parts = _Parts(one, start, end, count, self)
            found += [_Part(parts, number) for number in range(count)]
        return found

    def _read(self, part: _Part, lane: WorkerContext) -> Iterator[_Progress]:
        """One part, for one thread."""
        parts, number = part
        start = parts.start(number)
        if start is None or start < parts.due:
            return
        now = start
        for now, event in self._events(parts, number, start, lane):
            if start < parts.due:
                return
            yield _Progress(parts, start, now, event)
        yield _Progress(parts, start, now, None)

    def _events(
        self, parts: _Parts, number: int, start: int, lane: WorkerContext
    ) -> Iterator[tuple[int, object]]:
        """Where the part has come to, and what was read; at the end where it ends."""
        segment = parts.segment
        live = self.options.live
        if not (segment.size or live):
            yield 0, End(0, Stop.END, END_FILE_MIN_BLANK_LENGTH, 0)
            return
        done = start
        made = self.made(segment)
        try:
            stop = parts.behind(number, start + 1)
            with opened(
                segment,
                self.copying,
                lane=lane,
                kernels=self.kernels,
                active=self.segments.is_active(segment),
                checks=self.checks,
                false_blanks=self.false_blanks,
                start=start,
                until=stop,
                batch_rows=self.batch_rows,
                window_bytes=WINDOW_BYTES,
            ) as (source, scan):
                for event in scan:
                    rest: Event | None = event
                    while rest is not None:
                        if isinstance(rest, Records):
                            run, rest = _divided(rest, stop)
                            done = behind(run)
                            of_run = made(run)
                            lane.take(of_run.nbytes)
                            yield done, of_run
                        else:
                            done = done if isinstance(rest, End) else max(done, rest.position + rest.length)
                            yield done, self.of_event(source, rest)
                            rest = None
                        if done >= stop:
                            stop = parts.behind(number, done)
                        if done >= stop < segment.size:
                            return
        except VanishedError as error:
            yield segment.size, unread(error, 0, segment.size, live=live) or Expired()
            return
        except RmqtoolError as error:
            yield segment.size, unread(error, done, parts.high, live=live)
            return
        yield segment.size, None

    def of_event(self, source: ZeroFilledSource, event: Event) -> Any:  # noqa: ARG002 - for who looks closer
        """What becomes of an event of `SegmentScan` that is no run of records."""
        return event


def _divided(run: Records, stop: int) -> tuple[Records, Records | None]:
    """The records that begin in front of a position (at least one), and the others."""
    first = before(run, stop)
    count = len(first.rows)
    rest = Records(run.rows[count:], run.window, run.origin) if count < len(run.rows) else None
    return first, rest


def _size(part: _Part) -> int:
    return part.parts.segment.size
