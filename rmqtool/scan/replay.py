"""Replayable files, read record by record as a stream."""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from formats.errors import FormatError
from formats.replay import (
    END_SIZE,
    ENTRY_HEAD_SIZE,
    HEADER_SIZE,
    MAGIC,
    VERSION,
    End,
    EntryHead,
    Header,
)
from rmqtool.errors import NewerFormatError, NotAStoreError
from rmqtool.scan.fields import LARGEST_RECORD

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import IO


class ReplayStop(StrEnum):
    """Why reading ended. Only `END` means that the file is whole."""

    END = "end"
    CUT = "cut"
    BAD_LENGTH = "bad_length"
    BAD_CRC = "bad_crc"
    BAD_END = "bad_end"
    BAD_COUNT = "bad_count"
    TRAILING = "trailing"


@dataclass(frozen=True, slots=True)
class ReplayEnd:
    """How a file ended: at which byte, behind how many records."""

    stop: ReplayStop
    position: int
    count: int

    @property
    def whole(self) -> bool:
        """Whether all that was written is there."""
        return self.stop is ReplayStop.END


def refuse_header(raw: bytes, name: str) -> bool:
    """Whether a file that begins with `raw` is cut inside its header; raises for what is none."""
    if raw[: len(MAGIC)] != MAGIC[: len(raw)]:
        raise NotAStoreError(f"{name} is not a replayable file: it does not begin with {MAGIC.decode()}")
    if len(raw) < HEADER_SIZE:
        return True
    version = Header.parse(raw).version
    if version != VERSION:
        raise NewerFormatError(f"{name} has version {version} of the replayable format, not {VERSION}")
    return False


def end_of(raw: bytes, position: int, count: int) -> ReplayEnd:
    """How a file ends whose marker begins at `position` behind `count` entries.

    raw: the bytes from there on, one more than the marker has if there are as many.
    """
    if len(raw) < END_SIZE:
        return ReplayEnd(ReplayStop.CUT, position, count)
    try:
        marker = End.parse(raw[:END_SIZE])
    except FormatError:
        return ReplayEnd(ReplayStop.BAD_END, position, count)
    if marker.crc != zlib.crc32(int(marker.count).to_bytes(8, "big", signed=True)):
        return ReplayEnd(ReplayStop.BAD_END, position, count)
    if marker.count != count:
        return ReplayEnd(ReplayStop.BAD_COUNT, position, count)
    stop = ReplayStop.TRAILING if len(raw) > END_SIZE else ReplayStop.END
    return ReplayEnd(stop, position + END_SIZE, count)


class ReplayReader:
    """Iterates over the records of a replayable file; afterwards `end` says how it ended.

    Raises `NotAStoreError` for a file that does not begin as one, `NewerFormatError` for an unknown version.
    A file cut inside its header has no records and the end `cut`. Memory: one record at a time.
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
