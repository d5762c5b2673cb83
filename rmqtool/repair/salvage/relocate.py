"""A record at another place: its offsets changed, all else as it was."""

from __future__ import annotations

import hashlib
import struct

from formats import crc_trailer
from formats import properties as props
from formats.commitlog import Message, SysFlag
from formats.java import java_parse_int
from rmqtool.scan import fields as f

_PROPERTIES_LENGTH = struct.Struct(">h")
_I32 = struct.Struct(">i")
_I64 = struct.Struct(">q")


def relocated(record: bytes, physical_offset: int, queue_offset: int) -> bytes:
    """The record for this place in log and queue.

    The CRC of a `__CRC32#` property is made again, and `INNER_BASE` of an inner batch follows the queue
    offset, which may change the length.
    """
    sealed = crc_trailer.has_trailer(record)
    old = _I64.unpack_from(record, f.OFF_QUEUE_OFFSET)[0]
    sys_flag = _I32.unpack_from(record, f.OFF_SYS_FLAG)[0]
    data = bytearray(record)
    if sys_flag & SysFlag.INNER_BATCH and old != queue_offset:
        data = _rebased(record, queue_offset)
    _I64.pack_into(data, f.OFF_QUEUE_OFFSET, queue_offset)
    _I64.pack_into(data, f.OFF_PHYSICAL_OFFSET, physical_offset)
    return crc_trailer.seal(bytes(data)) if sealed else bytes(data)


def _rebased(record: bytes, queue_offset: int) -> bytearray:
    message = Message.parse(record)
    changed = [
        props.Segment(f"{props.INNER_BASE}\x01{queue_offset}".encode(), one.terminated)
        if one.name == props.INNER_BASE
        else one
        for one in props.decode_pairs(message.properties)
    ]
    raw = props.encode_segments(changed)
    head = record[: len(record) - len(message.properties) - _PROPERTIES_LENGTH.size]
    data = bytearray(head + _PROPERTIES_LENGTH.pack(len(raw)) + raw)
    _I32.pack_into(data, f.OFF_TOTAL_SIZE, len(data))
    return data


def identity(record: bytes) -> bytes:
    """Digest of all that does not depend on where in the log a record lies."""
    end = len(record) - (crc_trailer.TRAILER_SIZE if crc_trailer.has_trailer(record) else 0)
    digest = hashlib.blake2b(record[: f.OFF_PHYSICAL_OFFSET], digest_size=16)
    digest.update(record[f.OFF_PHYSICAL_OFFSET + _I64.size : end])
    return digest.digest()


def width_of(record: bytes) -> int:
    """Queue offsets that a record takes: those of its messages for an inner batch, else one."""
    if not _I32.unpack_from(record, f.OFF_SYS_FLAG)[0] & SysFlag.INNER_BATCH:
        return 1
    return batch_width(props.decode(Message.parse(record).properties).get(props.INNER_NUM, ""))


def batch_width(text: str) -> int:
    """Number of messages by the property `INNER_NUM`, a Java short; 1 where it is none."""
    return max(java_parse_int(text, 16) or 1, 1)
