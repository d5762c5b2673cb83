"""How a replayable file begins and ends, and why reading may stop before; `replay_scan` reads the entries."""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from enum import StrEnum

from formats.errors import FormatError
from formats.replay import END_SIZE, HEADER_SIZE, MAGIC, VERSION, End, Header
from rmqtool.errors import NewerFormatError, NotAStoreError


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
    """Whether a file that begins with `raw` is cut inside its header.

    Raises `NotAStoreError` for a file that does not begin as one, `NewerFormatError` for an unknown version.
    """
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
