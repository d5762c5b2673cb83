"""A whole log through the builder: segments read side by side, built in the order of the log."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from rmqtool.build.run import PlacedRun, Run
from rmqtool.scan.events import Gap, Tail, TailContent, Unreadable
from rmqtool.scan.fields import CrcState, Field
from rmqtool.scan.reader import Expired, LogReader

if TYPE_CHECKING:
    from rmqtool.build.builder import Builder
    from rmqtool.scan.events import Event, Records
    from rmqtool.scan.kernel_types import Kernels
    from rmqtool.scan.options import ReadOptions
    from rmqtool.store.segments import Segment, SegmentSet

BATCH_ROWS = 8192
"""records that are looked at together: so many that threads seldom wait for each other, their bytes still in
a cache when keys are hashed"""

_LISTED = 1000
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
class LogAnomalies:
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

    def add(self, more: LogAnomalies) -> None:
        """Adds what a later part of the log had."""
        for name in ("gaps", "unreadable", "bad_bodies", "tails"):
            known = getattr(self, name)
            room = len(getattr(more, name)) if name == "tails" else max(_LISTED - len(known), 0)
            known += getattr(more, name)[:room]
        self.bad_body_count += more.bad_body_count
        self.lost_bytes += more.lost_bytes


def build_log(segments: SegmentSet, builder: Builder, kernels: Kernels, how: ReadOptions) -> LogAnomalies:
    """Feeds every record of the log to the builder and closes it; what else there was.

    Bytes between two records that are none make a gap, as does a missing file: queues keep the places of
    their messages behind it. Of files that begin at the same offset one is read. Memory depends neither on
    the log nor on `jobs`.
    """
    anomalies = LogAnomalies()
    chosen = [one for one in segments if segments.by_base(one.base) is one]
    missing = {hole.end: hole for hole in segments.holes()}
    factory = builder.run_factory(kernels, how.jobs)
    reader = LogReader(segments, how, kernels, factory, chosen, batch_rows=BATCH_ROWS, mapped=factory.placed)
    current = None
    for segment, event in reader.events():
        if segment is not current:
            current = segment
            if segment.base in missing:
                hole = missing[segment.base]
                span = Span(hole.start, hole.end - hole.start, "missing", segment.file.display_path)
                _lose(anomalies, builder, anomalies.gaps, span)
        _record(anomalies, builder, segment, event)
    builder.close()
    return anomalies


def _record(
    anomalies: LogAnomalies, builder: Builder, segment: Segment, event: Run | PlacedRun | Event | Expired
) -> None:
    if isinstance(event, Run | PlacedRun):
        builder.take(event)
        if isinstance(event, Run) and event.bad_bodies:
            _record_bodies(anomalies, segment, event.records)
        return
    if isinstance(event, Expired):
        event = Unreadable(0, segment.size, "it was deleted")
    if not isinstance(event, Gap | Unreadable | Tail):
        return
    offset = segment.base + event.position
    reason = "unreadable" if isinstance(event, Unreadable) else event.reason.name.lower()
    span = Span(offset, event.length, reason, segment.file.display_path, event.position)
    if isinstance(event, Tail):
        if event.content is not TailContent.ZERO:
            anomalies.tails.append(replace(span, reason=event.content.value))
    else:
        _lose(anomalies, builder, anomalies.gaps if isinstance(event, Gap) else anomalies.unreadable, span)


def _lose(anomalies: LogAnomalies, builder: Builder, spans: list[Span], span: Span) -> None:
    builder.damage(span.length)
    anomalies.lost_bytes += span.length
    if len(spans) < _LISTED:
        spans.append(span)


def _record_bodies(anomalies: LogAnomalies, segment: Segment, run: Records) -> None:
    bad = np.flatnonzero(run.rows[:, Field.CRC_STATE] == CrcState.BAD)
    anomalies.bad_body_count += len(bad)
    for row in run.rows[bad[: max(_LISTED - len(anomalies.bad_bodies), 0)]]:
        offset, size = segment.base + int(row[Field.POSITION]), int(row[Field.STORE_SIZE])
        span = Span(offset, size, "crc", segment.file.display_path, int(row[Field.POSITION]))
        anomalies.bad_bodies.append(span)
