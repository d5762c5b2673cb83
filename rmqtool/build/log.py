"""A whole log through the builder: segments read side by side, built in the order of the log."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from rmqtool.build.run import Run, run_of
from rmqtool.errors import RmqtoolError, StoreIOError
from rmqtool.scan.events import Gap, Records, Tail, TailContent, Unreadable
from rmqtool.scan.fields import CrcState, Field
from rmqtool.scan.log import before, open_patched
from rmqtool.scan.parallel import in_order
from rmqtool.scan.segment import SegmentScan
from rmqtool.store.access import Access

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import ModuleType

    from rmqtool.build.builder import Builder
    from rmqtool.scan.events import Event
    from rmqtool.scan.parallel import Lane
    from rmqtool.store.segments import Segment, SegmentSet

BATCH_ROWS = 2048
"""records that are looked at together: their bytes are then still in the cache when keys are hashed"""

_TOLD = 1000
"""ranges that are remembered one by one"""


@dataclass(frozen=True, slots=True)
class Span:
    """Bytes of the log that gave no record, or a record that is not as it was written.

    reason: a stable word, as of `scan.fields.Stop` in lower case, `unreadable`, `missing` or `crc`. path: of
    the segment, for a missing one of that behind it; position: in it.
    """

    physical_offset: int
    length: int
    reason: str
    path: str
    position: int = 0


@dataclass
class Heard:
    """What a log had beside sound records. spans: the first of each kind; the counts are complete."""

    gaps: list[Span] = field(default_factory=list)
    """no record could be found in them"""
    unreadable: list[Span] = field(default_factory=list)
    """the medium did not give them"""
    bad_bodies: list[Span] = field(default_factory=list)
    """records whose body fails its CRC; they are built like others"""
    tails: list[Span] = field(default_factory=list)
    """behind the last record: stale or senseless bytes"""
    bad_body_count: int = 0
    lost_bytes: int = 0

    def add(self, more: Heard) -> None:
        """Adds what a later part of the log had."""
        for name in ("gaps", "unreadable", "bad_bodies", "tails"):
            known = getattr(self, name)
            room = len(getattr(more, name)) if name == "tails" else max(_TOLD - len(known), 0)
            known += getattr(more, name)[:room]
        self.bad_body_count += more.bad_body_count
        self.lost_bytes += more.lost_bytes


AUTO = Access()


@dataclass(frozen=True)
class LogReading:
    """How the log is read. live: a broker may be writing. advance: told how many bytes are done.

    A log that one thread reads may be mapped; for several it is copied, and so is a live one.
    """

    access: Access = AUTO
    jobs: int = 1
    live: bool = False
    advance: Callable[[int], object] | None = None


def build_log(segments: SegmentSet, builder: Builder, kernels: ModuleType, how: LogReading) -> Heard:
    """Feeds every record of the log to the builder and closes it; what else there was.

    Bytes between two records that are none make a gap, as does a missing file: queues keep the places of
    their messages behind it. Of files that begin at the same offset one is read. Memory depends neither on
    the log nor on `jobs`.
    """
    heard = Heard()
    chosen = [one for one in segments if segments.by_base(one.base) is one]
    work = _Work(segments, kernels, how, builder.index is not None)
    missing = {hole.end: hole for hole in segments.holes()}
    with closing(in_order(chosen, work.one, how.jobs, size=lambda one: one.size)) as found:
        current = None
        for segment, event in found:
            if segment is not current:
                current = segment
                if segment.base in missing:
                    hole = missing[segment.base]
                    span = Span(hole.start, hole.end - hole.start, "missing", segment.file.shown)
                    _lose(heard, builder, heard.gaps, span)
            _hear(heard, builder, segment, event)
    builder.close()
    return heard


def _hear(heard: Heard, builder: Builder, segment: Segment, event: Event | Run) -> None:
    if isinstance(event, Run):
        builder.take(event)
        if event.bad_bodies:
            _hear_bodies(heard, segment, event.records)
        return
    if not isinstance(event, Gap | Unreadable | Tail):
        return
    offset = segment.base + event.position
    reason = "unreadable" if isinstance(event, Unreadable) else event.reason.name.lower()
    span = Span(offset, event.length, reason, segment.file.shown, event.position)
    if isinstance(event, Tail):
        if event.content is not TailContent.ZERO:
            heard.tails.append(replace(span, reason=event.content.value))
    else:
        _lose(heard, builder, heard.gaps if isinstance(event, Gap) else heard.unreadable, span)


def _lose(heard: Heard, builder: Builder, spans: list[Span], span: Span) -> None:
    builder.damage(span.length)
    heard.lost_bytes += span.length
    if len(spans) < _TOLD:
        spans.append(span)


def _hear_bodies(heard: Heard, segment: Segment, run: Records) -> None:
    bad = np.flatnonzero(run.rows[:, Field.CRC_STATE] == CrcState.BAD)
    heard.bad_body_count += len(bad)
    for row in run.rows[bad[: max(_TOLD - len(heard.bad_bodies), 0)]]:
        offset, size = segment.base + int(row[Field.POSITION]), int(row[Field.STORE_SIZE])
        span = Span(offset, size, "crc", segment.file.shown, int(row[Field.POSITION]))
        heard.bad_bodies.append(span)


class _Work:
    """Reads what of a segment belongs to the log that is built, for one thread; keys are hashed there."""

    def __init__(self, segments: SegmentSet, kernels: ModuleType, how: LogReading, keyed: bool) -> None:
        self._segments = segments
        self._kernels = kernels
        self._keyed = keyed
        self._how = how
        copied = how.jobs > 1 or how.live
        self._access = replace(how.access, mode="pread") if copied else how.access

    def one(self, segment: Segment, lane: Lane) -> Iterator[tuple[Segment, Event | Run]]:
        low, high = self._segments.span
        done, stop, spoiled = max(low - segment.base, 0), high - segment.base, False
        try:
            source, changed = open_patched(segment, self._access, lane)
            with source:
                scan = SegmentScan(
                    source,
                    segment.base,
                    active=self._segments.is_active(segment),
                    start=done,
                    batch_rows=BATCH_ROWS,
                    kernels=self._kernels,
                    moving=self._how.live or changed,
                    stop=lane.stop,
                )
                for event in scan:
                    if not isinstance(event, Records):
                        yield segment, event
                        continue
                    found = before(event, stop)
                    if len(found.rows):
                        lane.take(found.rows.nbytes + found.window.nbytes)
                        yield segment, self._run(found, segment.base)
                        spoiled = source.spoiled()
                        if spoiled:
                            break
                        last = found.rows[-1]
                        done = self._advance(done, int(last[Field.POSITION] + last[Field.STORE_SIZE]))
                    if len(found.rows) < len(event.rows):
                        break
        except RmqtoolError as error:
            yield segment, Unreadable(done, min(stop, segment.size) - done, str(error))
        if spoiled:
            raise StoreIOError(f"{segment.file.shown} was changed while it was read")
        self._advance(done, segment.size)

    def _run(self, found: Records, base: int) -> Run:
        rows = found.rows.copy() if self._how.jobs > 1 else found.rows
        records = Records(rows, found.window, found.origin)
        return run_of(records, base, self._kernels, keyed=self._keyed)

    def _advance(self, done: int, now: int) -> int:
        if self._how.advance is not None:
            self._how.advance(now - done)
        return now
