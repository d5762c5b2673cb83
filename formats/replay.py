"""Replayable files: stored records behind each other, for sending or loading them again.

A format of our own, not of RocketMQ; see docs/format/replay.md. A header, entries of one record each, an end
marker with their number. A file without end marker has been cut.
"""

from __future__ import annotations

import zlib

import construct as cs

from formats.primitives import Schema, sizeof

MAGIC = b"RMQREPLY"
VERSION = 1
END_MAGIC = b"RMQRPEND"

Header = Schema(cs.Struct("magic" / cs.Const(MAGIC), "version" / cs.Int32sb))
"""The first bytes of a file. Readers refuse versions that they do not know."""

EntryHead = Schema(cs.Struct("length" / cs.Int32sb, "crc" / cs.Int32ub))
"""In front of each record: its bytes, and their CRC-32 (all 32 bits, as zlib computes it)."""

End = Schema(
    cs.Struct(
        "length" / cs.Const(0, cs.Int32sb),
        "magic" / cs.Const(END_MAGIC),
        "count" / cs.Int64sb,
        "crc" / cs.Int32ub,
    )
)
"""In the place of an entry, at the end of the file: length 0, and the CRC-32 of the count's eight bytes."""

HEADER_SIZE = sizeof(Header)
ENTRY_HEAD_SIZE = sizeof(EntryHead)
END_SIZE = sizeof(End)


def header() -> bytes:
    """The bytes at the start of a file."""
    return Header.build({"version": VERSION})


def entry(record: bytes) -> bytes:
    """One record as an entry. A record has one byte at least: length 0 is the end marker."""
    return EntryHead.build({"length": len(record), "crc": zlib.crc32(record)}) + record


def end(count: int) -> bytes:
    """The bytes at the end of a file with that many records."""
    return End.build({"count": count, "crc": zlib.crc32(count.to_bytes(8, "big"))})
