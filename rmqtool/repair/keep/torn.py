"""Records whose body is right and whose properties hold zeros: a torn page, or a block that was lost.

The message is there, so it stays, with the properties that are whole. What the zeros are in goes, and
separators take its place, which no reader sees. Those that a client may have sent stay (`scan.torn`).
"""

from __future__ import annotations

from formats import crc_trailer
from formats.commitlog import HEADERS, MESSAGE_MAGIC_CODE_V2, is_v6
from formats.primitives import sizeof
from formats.properties import decode_pairs
from rmqtool.repair.keep.restore import sealed
from rmqtool.scan.fields import OFF_BODY_LENGTH, OFF_MAGIC, OFF_SYS_FLAG
from rmqtool.scan.torn import is_lost, is_torn


def with_whole_properties(record: bytes, *, trailer: bool) -> bytes | None:
    """The record with those properties that are whole, of the same length; None where none is torn.

    trailer: records around it end in a `__CRC32#` property.
    """
    at = _properties_at(record)
    raw = record[at:]
    if not is_torn(raw):
        return None
    whole = [one.raw for one in decode_pairs(raw) if one.is_pair and not is_lost(one)]
    seal = b""
    if crc_trailer.has_trailer(record):
        seal = raw[-crc_trailer.TRAILER_SIZE :]
        whole = [one for one in whole if one + b"\x02" != seal]
    kept = b"".join(one + b"\x02" for one in whole)
    if trailer and not seal and len(kept) + crc_trailer.TRAILER_SIZE <= len(raw):
        seal = crc_trailer.build(0)
    return sealed(record[:at] + kept.ljust(len(raw) - len(seal), b"\x02")[: len(raw) - len(seal)] + seal)


def _properties_at(record: bytes) -> int:
    flags = int.from_bytes(record[OFF_SYS_FLAG : OFF_SYS_FLAG + 4], "big")
    fixed = sizeof(HEADERS[is_v6(flags)])
    at = fixed - (sizeof(HEADERS[False, False]) - OFF_BODY_LENGTH)
    at = fixed + max(int.from_bytes(record[at : at + 4], "big", signed=True), 0)
    magic = int.from_bytes(record[OFF_MAGIC : OFF_MAGIC + 4], "big", signed=True)
    wide = 2 if magic == MESSAGE_MAGIC_CODE_V2 else 1
    return at + wide + int.from_bytes(record[at : at + wide], "big") + 2
