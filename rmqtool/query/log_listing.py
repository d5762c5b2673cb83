"""A commit log as a listing: records and what lies between them, within limit and sample, counted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from rmqtool.scan.events import Blank, Doubtful, End, Gap, Tail, TailContent, Unreadable
from rmqtool.scan.sample import Sample
from rmqtool.store.coverage import Incomplete, rest_of_log, unreadable
from rmqtool.store.doubts import Doubt

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    import pyarrow as pa

    from rmqtool.query.counts import LogCounts
    from rmqtool.query.message_filter import MessageFilter
    from rmqtool.scan.log import Piece
    from rmqtool.store.segments import Hole, Segment, SegmentSet

    Row = dict[str, Any]
    Listed = tuple[pa.RecordBatch | None, list[Row]]


class LogListing:
    """What of a scanned log is listed. `counts` holds at any time what has been, and is added to.

    may_hold: whether a segment is wanted, that of the scan. start: physical offset at which an interrupted
    listing goes on; `counts` then has what was listed before.
    """

    def __init__(
        self,
        segments: SegmentSet,
        wanted: MessageFilter,
        may_hold: Callable[[Segment], bool],
        counts: LogCounts,
        start: int = 0,
    ) -> None:
        self.counts = counts
        self._segments = segments
        self._wanted = wanted
        self._may_hold = may_hold
        self._holes = {hole.after.base: hole for hole in segments.holes() if hole.after.base >= start}
        self._reached = max(wanted.offset_from or 0, start)
        self._bad = np.empty(0, np.int64)

    def left(self, reason: Incomplete) -> list[Row]:
        """What lies behind the last piece that was listed, of the segments that are wanted."""
        wanted = [one for one in self._segments if self._may_hold(one)]
        return rest_of_log(wanted, self._reached, reason, end=self._wanted.offset_to)

    def pieces(self, pieces: Iterable[Piece]) -> Iterator[Listed]:
        """Batches and rows of other kinds as they are to be shown, within `limit` and `sample`."""
        if self._wanted.sample is not None:
            yield from self._sampled(pieces, Sample(self._wanted.sample))
            return
        left = None if self._wanted.limit is None else self._wanted.limit - self.counts.messages
        for piece in pieces:
            batch, others = self._take(piece)
            full = batch is not None and left is not None and batch.num_rows > left
            if batch is not None and left is not None:
                batch = batch.slice(0, left)
                left -= batch.num_rows
            self._count(batch)
            yield batch, others
            self._reach(piece, batch)
            if full:
                self._stop_at_limit()
                return

    def _sampled(self, pieces: Iterable[Piece], sample: Sample) -> Iterator[Listed]:
        held: list[Row] = []
        for piece in pieces:
            batch, others = self._take(piece)
            held += others
            if batch is not None:
                sample.offer(batch)
        before = self.counts.messages
        for batch in sample.batches(self._wanted.limit):
            self._count(batch)
            yield from _merged(batch, held)
        left_out = sample.offered - (self.counts.messages - before)
        if left_out:
            self.counts.not_covered += [row | {"messages": left_out} for row in self.left(Incomplete.LIMIT)]
        yield None, held

    def _reach(self, piece: Piece, batch: pa.RecordBatch | None) -> None:
        """Remembers where a piece ends that has been written."""
        if batch is not None and batch.num_rows:
            self._reached = batch["physical_offset"][-1].as_py() + batch["store_size"][-1].as_py()
        elif isinstance(piece.content, (Blank, Gap, Tail, Unreadable)):
            self._reached = piece.segment.base + piece.content.position + piece.content.length

    def _stop_at_limit(self) -> None:
        """What lies behind the last record listed is neither covered nor counted."""
        self.counts.not_covered += self.left(Incomplete.LIMIT)
        self.counts.bad_crc -= int((self._bad >= self._reached).sum())

    def _count(self, batch: pa.RecordBatch | None) -> None:
        if batch is None or not batch.num_rows:
            return
        self.counts.messages += batch.num_rows
        offsets, sizes = batch["physical_offset"], batch["store_size"]
        self.counts.bytes += sum(sizes.to_numpy().tolist())
        if self.counts.first_offset is None:
            self.counts.first_offset = offsets[0].as_py()
        self.counts.end_offset = offsets[-1].as_py() + sizes[-1].as_py()

    def _take(self, piece: Piece) -> tuple[pa.RecordBatch | None, list[Row]]:
        counts, content = self.counts, piece.content
        if piece.bad_bodies is not None:
            self._bad = piece.bad_bodies
            counts.bad_crc += len(piece.bad_bodies)
        others = self._hole_before(piece.segment)
        if isinstance(content, Blank):
            counts.blanks += 1
            if self._wanted.selects_all:
                others.append(_event_row("blank", piece.segment, content))
        elif isinstance(content, Gap):
            counts.gaps += 1
            counts.gap_bytes += content.length
            others.append(_event_row("gap", piece.segment, content) | _why(content))
        elif isinstance(content, Tail):
            counts.tail = content.content
            row = _event_row("tail", piece.segment, content) | {"content": content.content.value}
            if content.content is not TailContent.ZERO:
                row |= {"records": content.records, **_why(content)}
            if self._wanted.selects_all or content.content is TailContent.GARBAGE:
                others.append(row)
        elif isinstance(content, Unreadable):
            row = _event_row("gap", piece.segment, content) | {
                "reason": "unreadable",
                "error": content.reason,
            }
            place = unreadable(row["path"], content.reason, content.position, content.length)
            counts.not_covered.append(place | {"physical_offset": row["physical_offset"]})
            others.append(row)
        elif isinstance(content, Doubtful):
            counts.misplaced += content.records * (content.cause is Doubt.MISPLACED)
            counts.torn += content.records * (content.cause is Doubt.TORN)
        elif not isinstance(content, End):
            return content, others
        return None, others

    def _hole_before(self, segment: Segment) -> list[Row]:
        hole = self._holes.pop(segment.base, None)
        if hole is None:
            return []
        self.counts.gaps += 1
        self.counts.gap_bytes += hole.end - hole.start
        return [_hole_row(hole)]


def _merged(batch: pa.RecordBatch, rows: list[Row]) -> Iterator[tuple[pa.RecordBatch, list[Row]]]:
    """Parts of the batch, each with the rows that follow it; `rows`, in physical order too, is used up."""
    offsets = batch["physical_offset"].to_numpy()
    start = 0
    while start < len(offsets):
        end = int(offsets.searchsorted(rows[0]["physical_offset"])) if rows else len(offsets)
        part = batch.slice(start, max(end - start, 0))
        start = max(end, start)
        following = offsets[start] if start < len(offsets) else None
        between: list[Row] = []
        while rows and following is not None and rows[0]["physical_offset"] <= following:
            between.append(rows.pop(0))
        yield part, between


def _event_row(kind: str, segment: Segment, event: Blank | Gap | Tail | Unreadable) -> Row:
    row: Row = {
        "type": kind,
        "path": segment.file.display_path,
        "segment": segment.base,
        "position": event.position,
        "physical_offset": segment.base + event.position,
        "length": event.length,
    }
    if isinstance(event, Blank) and event.stored_length != event.length:
        row["stored_length"] = event.stored_length
    return row


def _why(event: Gap | Tail) -> Row:
    return {"reason": event.reason.name.lower(), "expected": event.expected, "found": event.found}


def _hole_row(hole: Hole) -> Row:
    return {
        "type": "gap",
        "path": hole.before.file.display_path,
        "segment": hole.before.base,
        "position": hole.start - hole.before.base,
        "physical_offset": hole.start,
        "length": hole.end - hole.start,
        "reason": "missing",
        "expected": hole.start,
        "found": hole.end,
    }
