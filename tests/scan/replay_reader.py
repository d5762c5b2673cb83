"""Replayable files read entry by entry, straight from the schema: what `ReplayScan` is held against."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING

from formats.replay import END_SIZE, ENTRY_HEAD_SIZE, HEADER_SIZE, EntryHead
from rmqtool.scan.fields import LARGEST_RECORD
from rmqtool.scan.replay import ReplayEnd, ReplayStop, end_of, refuse_header

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import IO


class ReplayReader:
    """Iterates over the records of a replayable file; afterwards `end` says how it ended.

    Raises what `refuse_header` raises. A file cut inside its header has no records and the end `cut`.
    """

    def __init__(self, stream: IO[bytes], name: str = "the file") -> None:
        self._stream = stream
        self._position = HEADER_SIZE
        self._count = 0
        self.end: ReplayEnd | None = None
        raw = stream.read(HEADER_SIZE)
        if refuse_header(raw, name):
            self.end = ReplayEnd(ReplayStop.CUT, len(raw), 0)

    def __iter__(self) -> Iterator[bytes]:
        while self.end is None:
            raw = self._stream.read(ENTRY_HEAD_SIZE)
            if len(raw) < ENTRY_HEAD_SIZE:
                self._stop(ReplayStop.CUT)
                return
            head = EntryHead.parse(raw)
            if head.length == 0:
                raw += self._stream.read(END_SIZE + 1 - len(raw))
                self.end = end_of(raw, self._position, self._count)
                return
            if not 0 < head.length <= LARGEST_RECORD:
                self._stop(ReplayStop.BAD_LENGTH)
                return
            record = self._stream.read(head.length)
            if len(record) < head.length or zlib.crc32(record) != head.crc:
                self._stop(ReplayStop.CUT if len(record) < head.length else ReplayStop.BAD_CRC)
                return
            self._position += ENTRY_HEAD_SIZE + head.length
            self._count += 1
            yield record

    def _stop(self, why: ReplayStop) -> None:
        self.end = ReplayEnd(why, self._position, self._count)
