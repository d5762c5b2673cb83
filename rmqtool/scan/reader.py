"""The reader of a log: segments, and parts of large ones, side by side; what they hold in physical order.

Bytes are copied where what is made of a run of records looks at them later: it must see what the scan saw,
whatever happens to the file. With `mapped` what is made holds no bytes, or a copy of them that may be newer
than the rows; it is made once more, of a copy, where some could not be read meanwhile
(`ByteSource.had_fault`).

With several jobs a large segment is cut. A part begins at the first whole record at its own place behind a
cut. That may lie in the body of another record, or behind the end of the data: so a part counts only if the
one before it ends just there, as a scan of the whole segment would, and is dropped otherwise; the one before
it then goes on to the next part that begins where it has come to.
"""

from __future__ import annotations

from collections import deque
from contextlib import closing
from dataclasses import dataclass, replace
from threading import Lock
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, Protocol, TypeVar, runtime_checkable

from formats.commitlog import END_FILE_MIN_BLANK_LENGTH
from rmqtool.errors import RmqtoolError, VanishedError
from rmqtool.scan.events import End, Records
from rmqtool.scan.fields import Check, Stop
from rmqtool.scan.opened import before, behind, opened, unread
from rmqtool.scan.parallel import WorkerContext, in_order
from rmqtool.scan.sound import Passed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from rmqtool.scan.events import Event
    from rmqtool.scan.kernel_types import Kernels
    from rmqtool.scan.opened import OpenSegment
    from rmqtool.scan.options import ReadOptions
    from rmqtool.scan.sound import Runs
    from rmqtool.store.patched import ZeroFilledSource
    from rmqtool.store.segments import Segment, SegmentSet

PART_BYTES = 64 << 20
"""bytes of a segment between two cuts, holes left out"""

SUMMED_PART_BYTES = 128 << 20
"""the same where runs come by their sums: what a thread is ahead takes little memory then"""

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


Result_co = TypeVar("Result_co", covariant=True)


class Making(Protocol[Result_co]):
    """Takes the runs of records of a segment, in their order."""

    def __call__(self, run: Records, /) -> Result_co:
        """What becomes of a run."""


@runtime_checkable
class Summing(Making[Result_co], Protocol[Result_co]):
    """Makes the same of records with nothing to tell by their sums, where `sound` is what takes these."""

    sound: Runs[Any] | None

    def of_sound(self, run: Any, /) -> Result_co:
        """What becomes of a run by its sums."""


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
    part_bytes: of a segment between two cuts. mapped: see above; a live store is copied nevertheless.
    """

    segments: SegmentSet
    options: ReadOptions
    kernels: Kernels
    made: Callable[[Segment], Making[Made]]
    chosen: Sequence[Segment] | None = None
    checks: Check = Check.ALL
    batch_rows: int = BATCH_ROWS
    false_blanks: bool = False
    part_bytes: int = PART_BYTES
    mapped: bool = False

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
            # holes cost nothing: a sparse file may have any length
            data = min(end, one.file.disk_bytes)
            count = 1 if whole else max(-(-data // self.part_bytes), 1)
            parts = _Parts(one, start, end, count, self)
            found += [_Part(parts, number) for number in range(count)]
        return found

    def _read(self, part: _Part, worker: WorkerContext) -> Iterator[_Progress]:
        """One part, for one thread."""
        parts, number = part
        start = parts.start(number)
        if start is None or start < parts.due:
            return
        now = start
        for now, event in self._events(parts, number, start, worker):
            if start < parts.due:
                return
            yield _Progress(parts, start, now, event)
        yield _Progress(parts, start, now, None)

    def _events(
        self, parts: _Parts, number: int, start: int, worker: WorkerContext
    ) -> Iterator[tuple[int, object]]:
        """Where the part has come to, and what was read; at the end where it ends."""
        segment = parts.segment
        live = self.options.live
        if not (segment.size or live):
            yield 0, End(0, Stop.END, END_FILE_MIN_BLANK_LENGTH, 0)
            return
        done = start
        try:
            with opened(
                segment,
                self.options if self.mapped else self.copying,
                worker=worker,
                kernels=self.kernels,
                active=self.segments.is_active(segment),
                checks=self.checks,
                false_blanks=self.false_blanks,
                start=start,
                until=parts.behind(number, start + 1),
                batch_rows=self.batch_rows,
                window_bytes=WINDOW_BYTES,
            ) as found:
                for now, event in self._made(parts, number, done, found, worker):
                    done = now
                    yield now, event
        except VanishedError as error:
            yield segment.size, unread(error, 0, segment.size, live=live) or Expired()
        except RmqtoolError as error:
            yield segment.size, unread(error, done, parts.high, live=live)

    def _made(
        self, parts: _Parts, number: int, done: int, found: OpenSegment, worker: WorkerContext
    ) -> Iterator[tuple[int, object]]:
        """What becomes of the events of a scan, and where each ends."""
        segment, stop = parts.segment, parts.behind(number, done + 1)
        source, scan = found
        made = self.made(segment)
        summing = made if isinstance(made, Summing) else None
        for event in scan.summed(None if summing is None else summing.sound):
            waiting: deque[Event | Passed] = deque([event])
            while waiting:
                one = waiting.popleft()
                if isinstance(one, Records):
                    # behind the last cut all is read, also what a file has gained since it was listed
                    run, rest = _divided(one, stop) if stop < segment.size else (one, None)
                    of_run = made(run)
                    if source.had_fault():  # zeros in the place of bytes; from here on the source copies
                        made = self.made(segment)
                        waiting.extendleft(reversed([*scan.reread(one)]))
                        continue
                    if rest is not None:
                        waiting.appendleft(rest)
                    done = behind(run)
                    worker.take(of_run.nbytes)
                    yield done, of_run
                elif not isinstance(one, Passed):
                    done = done if isinstance(one, End) else max(done, one.position + one.length)
                    yield done, self.of_event(source, one)
                elif summing is not None:
                    of_run, done = summing.of_sound(one), one.end
                    worker.take(of_run.nbytes)
                    yield done, of_run
                if done >= stop:
                    stop = parts.behind(number, done)
                if done >= stop < segment.size:
                    return
        yield segment.size, None

    def of_event(self, source: ZeroFilledSource, event: Event) -> Any:  # noqa: ARG002 - for who looks closer
        """What becomes of an event of `SegmentScan` that is not a run of records."""
        return event


def _divided(run: Records, stop: int) -> tuple[Records, Records | None]:
    """The records that begin in front of a position (at least one), and the others."""
    first = before(run, stop)
    count = len(first.rows)
    rest = Records(run.rows[count:], run.window, run.origin) if count < len(run.rows) else None
    return first, rest


def _size(part: _Part) -> int:
    return part.parts.segment.size
