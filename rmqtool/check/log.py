"""Commit log records by themselves: what a broker checks at recovery, and what it does not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from formats.commitlog import SysFlag
from formats.crc_trailer import TRAILER_SIZE
from rmqtool.broker.refused_rows import is_without_number
from rmqtool.check.findings import about, finding
from rmqtool.check.foreign import foreign_findings
from rmqtool.scan.crc import crc32
from rmqtool.scan.events import Blank, Gap, Records, Tail, TailContent
from rmqtool.scan.fields import ODD, CrcState, Field, Issue, Stop
from rmqtool.scan.record_python import stored_crc32
from rmqtool.scan.torn import torn_properties

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    from rmqtool.check.findings import Finding
    from rmqtool.store.segments import Segment

    Rows = npt.NDArray[np.int64]

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
    Stop.BLANK: "CL-BLANK",
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
    Stop.BLANK: "magic",
    Stop.BLANK_LENGTH: "total_size",
}


class RecordCheck:
    """Looks at records of one segment; needs their bytes, but none of the records before."""

    def __init__(
        self,
        segment: Segment,
        force_verify_prop_crc: bool = False,
        odd_topics: frozenset[bytes] = frozenset(),
    ) -> None:
        """force_verify_prop_crc: a broker with this setting takes a record without `__CRC32#` for broken.

        odd_topics: see `topics.odd_topics`.
        """
        self._segment = segment
        self._odd_topics = odd_topics
        self._wants_trailer = force_verify_prop_crc

    def records(self, run: Records) -> Iterator[Finding]:
        """Records made with `Check.VERIFY`. `CL-NO-CRC32` is reported of the first of a segment only."""
        segment, rows = self._segment, run.rows
        odd = (rows[:, Field.ISSUES] & ODD != 0) | (rows[:, Field.CRC_STATE] == CrcState.BAD)
        run = Records(rows[odd], run.window, run.origin)
        yield from self._crc(run.rows, segment)
        yield from self._issues(run, segment)
        if self._wants_trailer:
            yield from self._bare(rows, segment)
        yield from self._trailers(run, segment)
        yield from self._numbers(run, segment)
        yield from foreign_findings(run.rows, segment)

    def wants(self, odd: int) -> bool:
        """Whether a run with so many odd records (`kernels.dispatch.outline`) is to be looked at."""
        return bool(odd) or self._wants_trailer

    def _bare(self, rows: Rows, segment: Segment) -> Iterator[Finding]:
        bare = rows[rows[:, Field.ISSUES] & int(Issue.SEALED) == 0]
        if len(bare):
            self._wants_trailer = False
            yield about("CL-NO-CRC32", bare[0], segment, part="properties")

    def _crc(self, rows: Rows, segment: Segment) -> Iterator[Finding]:
        for row in rows[rows[:, Field.CRC_STATE] == CrcState.BAD]:
            yield about(
                "CL-CRC", row, segment, part="body", expected=int(row[Field.BODY_CRC]), found="another CRC"
            )

    def _issues(self, run: Records, segment: Segment) -> Iterator[Finding]:
        for row, torn_pairs in zip(run.rows, torn_properties(run), strict=True):
            issues = Issue(int(row[Field.ISSUES]))
            if issues & Issue.OFFSET:
                place = segment.base + int(row[Field.POSITION])
                stored = int(row[Field.STORED_PHYSICAL_OFFSET])
                yield about("CL-OFFSET", row, segment, part="physical_offset", expected=place, found=stored)
            torn = bool(issues & Issue.TOPIC_NUL)
            odd = issues & Issue.TOPIC_CHARACTERS and not torn and not _is_bare_filler(row)
            if issues & Issue.TOPIC_UTF8 or (odd and self._topic(row, run) not in self._odd_topics):
                yield about("CL-TOPIC", row, segment, part="topic")
            if torn or torn_pairs:
                yield about("CL-NUL", row, segment, part="topic" if torn else "properties")
            elif issues & Issue.PROPERTIES_NUL:
                yield about("CL-NUL-VALUE", row, segment, part="properties")
            if issues & Issue.PROPERTIES_UTF8:
                yield about("CL-UTF8", row, segment, part="properties")
            if issues & Issue.PROPERTIES_SYNTAX:
                yield about("CL-PROPERTIES", row, segment, part="properties")

    def _numbers(self, run: Records, segment: Segment) -> Iterator[Finding]:
        """What no broker takes for a number, as it reads it (`CommitLog#checkMessageAndReturnSize`)."""
        for index in np.flatnonzero(run.rows[:, Field.ISSUES] & int(Issue.NUMBER)).tolist():
            if is_without_number(run, index):
                yield about("CL-NUMBER", run.rows[index], segment, part="properties")

    def _topic(self, row: Rows, run: Records) -> bytes:
        start = int(row[Field.TOPIC_POSITION]) - run.origin
        return run.window[start : start + int(row[Field.TOPIC_LENGTH])].tobytes()

    def _trailers(self, run: Records, segment: Segment) -> Iterator[Finding]:
        """`__CRC32#` where a record ends in one: over all of the record in front of it."""
        for row in run.rows[run.rows[:, Field.ISSUES] & int(Issue.CRC32) != 0]:
            start = int(row[Field.POSITION]) - run.origin
            record = run.window[start : start + int(row[Field.STORE_SIZE])].tobytes()
            expected, found = crc32(record[:-TRAILER_SIZE]), stored_crc32(record[-TRAILER_SIZE:])
            yield about("CL-CRC32", row, segment, part="properties", expected=expected, found=found)


def gap_finding(event: Gap, segment: Segment, usual: int) -> Finding:
    """Bytes that are not a record. usual: bytes of a segment file; a shorter one was cut."""
    code = GAP_CODES[event.reason]
    at_end = event.position + event.length == segment.size < usual
    if event.reason is Stop.EXCEEDS_FILE and at_end and (event.found or 0) <= usual - event.position:
        code = "CL-SHORT"
    return finding(
        code,
        path=segment.file.display_path,
        position=event.position,
        physical_offset=segment.base + event.position,
        length=event.length,
        part=_PARTS.get(event.reason),
        expected=event.expected,
        found=event.found,
    )


def _is_bare_filler(row: Rows) -> bool:
    """A record without a topic that is in no queue: a filler where there was no room for more."""
    rolled_back = int(row[Field.SYS_FLAG]) & SysFlag.TRANSACTION_MASK == SysFlag.ROLLBACK
    return rolled_back and not row[Field.TOPIC_LENGTH]


def blank_findings(event: Blank, segment: Segment, filled: bool) -> Iterator[Finding]:
    """A filler that does not say how long it is, or (`filled`) is followed by bytes that are not zero."""
    place: dict[str, Any] = {
        "path": segment.file.display_path,
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
        path=segment.file.display_path,
        position=event.position,
        physical_offset=segment.base + event.position,
        length=event.length,
        expected=event.expected,
        found=event.records if event.content is TailContent.STALE else event.found,
    )
