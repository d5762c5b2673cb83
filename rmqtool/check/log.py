"""Commit log records by themselves: what a broker checks at recovery, and what it does not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from formats.crc_trailer import TRAILER_SIZE, CrcTrailer, value_of
from formats.errors import FormatError
from rmqtool.check.findings import finding
from rmqtool.scan.crc import crc32
from rmqtool.scan.events import Blank, Gap, Tail, TailContent
from rmqtool.scan.fields import CrcState, Field, Issue, Stop

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    from rmqtool.check.findings import Finding
    from rmqtool.scan.events import Records
    from rmqtool.store.segments import Segment

    Rows = npt.NDArray[np.int64]

DAY_MS = 86_400_000
"""a record that lies further than this from both its neighbours in time has a wrong store time"""

GAP_CODES = {
    Stop.ZERO: "CL-ZERO",
    Stop.BAD_MAGIC: "CL-MAGIC",
    Stop.BAD_SIZE: "CL-SIZE",
    Stop.EXCEEDS_FILE: "CL-SIZE",
    Stop.SIZE_MISMATCH: "CL-SIZE",
    Stop.BAD_BODY_LENGTH: "CL-LENGTH",
    Stop.BAD_TOPIC_LENGTH: "CL-LENGTH",
    Stop.BAD_PROPERTIES_LENGTH: "CL-LENGTH",
    Stop.SHORT: "CL-SHORT",
    Stop.END: "CL-SHORT",
    Stop.BLANK_LENGTH: "CL-BLANK",
}

_PARTS = {
    Stop.ZERO: "magic",
    Stop.BAD_MAGIC: "magic",
    Stop.BAD_SIZE: "total_size",
    Stop.EXCEEDS_FILE: "total_size",
    Stop.SIZE_MISMATCH: "total_size",
    Stop.BAD_BODY_LENGTH: "body_length",
    Stop.BAD_TOPIC_LENGTH: "topic_length",
    Stop.BAD_PROPERTIES_LENGTH: "properties_length",
    Stop.BLANK_LENGTH: "total_size",
}


class LogCheck:
    """Fed with everything that a scan of one segment after the other yields, in physical order."""

    def __init__(self) -> None:
        self._carried: list[tuple[Segment, Rows]] = []
        """the last two records before the run: whether a time is out of place shows with its neighbours"""

    def records(self, run: Records, segment: Segment) -> Iterator[Finding]:
        """A run of records. The store time of its last one is judged with the next run."""
        rows = run.rows
        yield from self._crc(rows, segment)
        yield from self._issues(rows, segment)
        yield from self._trailers(run, segment)
        yield from self._times(rows, segment)

    def _crc(self, rows: Rows, segment: Segment) -> Iterator[Finding]:
        for row in rows[rows[:, Field.CRC_STATE] == CrcState.BAD]:
            yield about(
                "CL-CRC", row, segment, part="body", expected=int(row[Field.BODY_CRC]), found="another CRC"
            )

    def _issues(self, rows: Rows, segment: Segment) -> Iterator[Finding]:
        odd = rows[rows[:, Field.ISSUES] != 0]
        for row in odd:
            issues = Issue(int(row[Field.ISSUES]))
            if issues & Issue.OFFSET:
                place = segment.base + int(row[Field.POSITION])
                stored = int(row[Field.STORED_PHYSICAL_OFFSET])
                yield about("CL-OFFSET", row, segment, part="physical_offset", expected=place, found=stored)
            if issues & (Issue.TOPIC_UTF8 | Issue.TOPIC_CHARACTERS):
                yield about("CL-TOPIC", row, segment, part="topic")
            if issues & (Issue.TOPIC_NUL | Issue.PROPERTIES_NUL):
                part = "topic" if issues & Issue.TOPIC_NUL else "properties"
                yield about("CL-NUL", row, segment, part=part)
            if issues & Issue.PROPERTIES_UTF8:
                yield about("CL-UTF8", row, segment, part="properties")
            if issues & Issue.PROPERTIES_SYNTAX:
                yield about("CL-PROPERTIES", row, segment, part="properties")

    def _trailers(self, run: Records, segment: Segment) -> Iterator[Finding]:
        """`__CRC32#` where a record ends in one: over all of the record in front of it."""
        rows, window = run.rows, run.window
        long = np.flatnonzero(rows[:, Field.PROPERTIES_LENGTH] >= TRAILER_SIZE)
        ends = rows[long, Field.POSITION] + rows[long, Field.STORE_SIZE] - run.origin
        mark = np.frombuffer(_TRAILER_NAME, np.uint8)
        # most records have none: the first byte tells
        maybe = window[ends - TRAILER_SIZE] == mark[0]
        if not maybe.any():
            return
        long, ends = long[maybe], ends[maybe]
        heads = window[(ends - TRAILER_SIZE)[:, None] + np.arange(len(mark))]
        for index in long[(heads == mark).all(axis=1)]:
            row = rows[index]
            start = int(row[Field.POSITION]) - run.origin
            record = window[start : start + int(row[Field.STORE_SIZE])].tobytes()
            expected, found = _trailer(record)
            if expected != found:
                yield about("CL-CRC32", row, segment, part="properties", expected=expected, found=found)

    def _times(self, rows: Rows, segment: Segment) -> Iterator[Finding]:
        stamps = np.ascontiguousarray(rows[:, Field.STORE_TIMESTAMP])
        placed = stamps > 0
        for row in rows[~placed]:
            yield about(
                "CL-TIME", row, segment, part="store_timestamp", found=int(row[Field.STORE_TIMESTAMP])
            )
        own, stamps = (rows, stamps) if placed.all() else (rows[placed], stamps[placed])
        known = [row[Field.STORE_TIMESTAMP] for _, row in self._carried]
        times = np.concatenate([known, stamps])
        before, middle, after = times[:-2], times[1:-1], times[2:]
        far = (np.abs(middle - before) > DAY_MS) & (np.abs(middle - after) > DAY_MS)
        far &= np.abs(after - before) <= DAY_MS
        for index in np.flatnonzero(far):
            place, row = self._at(int(index) + 1, own, segment)
            yield about(
                "CL-TIME",
                row,
                place,
                part="store_timestamp",
                expected=int(before[index]),
                found=int(middle[index]),
            )
        self._carried = (self._carried + [(segment, row.copy()) for row in own[-2:]])[-2:]

    def close(self, dispatched_timestamp: int | None) -> Iterator[Finding]:
        """The store time of the last record, which has one neighbour only.

        `dispatched_timestamp`: what the checkpoint says of the last record that was dispatched (ms).
        """
        if len(self._carried) < 2 or not dispatched_timestamp:
            return
        (_, before), (segment, last) = self._carried
        own, previous = int(last[Field.STORE_TIMESTAMP]), int(before[Field.STORE_TIMESTAMP])
        if abs(own - previous) > DAY_MS and abs(own - dispatched_timestamp) > DAY_MS:
            yield about(
                "CL-TIME", last, segment, part="store_timestamp", expected=dispatched_timestamp, found=own
            )

    def _at(self, index: int, own: Rows, segment: Segment) -> tuple[Segment, Rows]:
        """The record at a place in the carried ones and those of the run."""
        carried = len(self._carried)
        return self._carried[index] if index < carried else (segment, own[index - carried])


_TRAILER_NAME = b"__CRC32#\x01"


def _trailer(record: bytes) -> tuple[int, int | None]:
    try:
        stored = value_of(CrcTrailer.parse(record[-TRAILER_SIZE:]).digits.decode("latin-1"))
    except FormatError:
        stored = None
    return crc32(record[:-TRAILER_SIZE]), stored


def about(code: str, row: Rows, segment: Segment, **facts: Any) -> Finding:
    """A finding about one record, by its row."""
    position = int(row[Field.POSITION])
    return finding(
        code,
        path=segment.file.shown,
        position=position,
        physical_offset=segment.base + position,
        length=int(row[Field.STORE_SIZE]),
        queue_id=int(row[Field.QUEUE_ID]),
        queue_offset=int(row[Field.QUEUE_OFFSET]),
        **facts,
    )


def gap_finding(event: Gap, segment: Segment) -> Finding:
    """Bytes that are no record."""
    return finding(
        GAP_CODES[event.reason],
        path=segment.file.shown,
        position=event.position,
        physical_offset=segment.base + event.position,
        length=event.length,
        part=_PARTS.get(event.reason),
        expected=event.expected,
        found=event.found,
    )


def blank_findings(event: Blank, segment: Segment, filled: bool) -> Iterator[Finding]:
    """A filler that does not say how long it is, or (`filled`) is followed by bytes that are not zero."""
    place: dict[str, Any] = {
        "path": segment.file.shown,
        "position": event.position,
        "physical_offset": segment.base + event.position,
        "length": event.length,
    }
    if event.stored_length != event.length:
        yield finding(
            "CL-BLANK-LENGTH", part="total_size", expected=event.length, found=event.stored_length, **place
        )
    if filled:
        yield finding("CL-BLANK-REST", **place)


def tail_finding(event: Tail, segment: Segment) -> Finding | None:
    """What follows the last record of the active segment; zeros are as it should be."""
    if event.content is TailContent.ZERO:
        return None
    code = "CL-STALE" if event.content is TailContent.STALE else "CL-TAIL"
    return finding(
        code,
        path=segment.file.shown,
        position=event.position,
        physical_offset=segment.base + event.position,
        length=event.length,
        expected=event.expected,
        found=event.records if event.content is TailContent.STALE else event.found,
    )
