"""A broken record with all parts but one right: the part is put right and the message stays."""

from __future__ import annotations

from typing import TYPE_CHECKING

from formats import crc_trailer
from formats.commitlog import (
    HEADERS,
    MESSAGE_MAGIC_CODE,
    MESSAGE_MAGIC_CODE_V2,
    SysFlag,
    is_v6,
    transaction_of,
)
from formats.primitives import crc32_masked, sizeof
from rmqtool.repair.keep.model import Trust, text_of
from rmqtool.scan.fields import (
    OFF_BODY_CRC,
    OFF_BODY_LENGTH,
    OFF_MAGIC,
    OFF_PHYSICAL_OFFSET,
    OFF_QUEUE_ID,
    OFF_QUEUE_OFFSET,
    OFF_SYS_FLAG,
)

if TYPE_CHECKING:
    from rmqtool.repair.keep.model import Frame

_POSITION = frozenset({"topic", "queue_id", "queue_offset"})


def wrong_parts(frame: Frame) -> list[str]:
    """Parts of a framed record that are not what its place asks for; the body is not looked at."""
    header, key = frame.header, frame.key
    if header is None or key is None or not header.framed:
        return ["frame"]
    topic = text_of(header.topic)
    wrong = ["head"] if header.headless else []
    if topic != key[0]:
        same_length = len(header.topic or b"") == len(key[0].encode())
        wrong.append("topic" if same_length else "frame")
    if header.queue_id != key[1]:
        wrong.append("queue_id")
    if header.queue_offset != frame.slot:
        wrong.append("queue_offset")
    if not header.own_place:
        wrong.append("physical_offset")
    if transaction_of(header.sys_flag) in {"prepared", "rollback"}:
        wrong.append("sys_flag")
    return wrong


def restored(frame: Frame, record: bytes, *, correct_crc: bool) -> bytes | None:
    """The record with its one wrong part put right, None when more than that is wrong.

    Of queue and queue offset all may be wrong where a proven unit tells them. correct_crc: the body stays as
    it is, whatever its CRC says, and gets a CRC that fits.
    """
    header, key, wrong = frame.header, frame.key, wrong_parts(frame)
    if header is None or key is None or frame.slot is None or "frame" in wrong:
        return None
    if len(wrong) > 1 and not (frame.trust is Trust.PROVEN and _POSITION.issuperset(wrong)):
        return None
    if not header.sound and not correct_crc:
        return None
    data = bytearray(record)
    data[: OFF_MAGIC + 4] = len(record).to_bytes(4, "big") + header.magic.to_bytes(4, "big", signed=True)
    data[OFF_QUEUE_ID : OFF_QUEUE_ID + 4] = key[1].to_bytes(4, "big", signed=True)
    data[OFF_QUEUE_OFFSET : OFF_QUEUE_OFFSET + 8] = frame.slot.to_bytes(8, "big")
    data[OFF_PHYSICAL_OFFSET : OFF_PHYSICAL_OFFSET + 8] = frame.start.to_bytes(8, "big")
    if "sys_flag" in wrong:
        kept = header.sys_flag & ~int(SysFlag.TRANSACTION_MASK)
        kept |= int(SysFlag.COMMIT) if header.prepared_transaction_offset else 0
        data[OFF_SYS_FLAG : OFF_SYS_FLAG + 4] = (kept & 0xFFFFFFFF).to_bytes(4, "big")
    fixed = sizeof(HEADERS[is_v6(header.sys_flag)])
    at = fixed - (sizeof(HEADERS[False, False]) - OFF_BODY_LENGTH)
    length = max(int.from_bytes(data[at : at + 4], "big", signed=True), 0)
    body_end = fixed + length
    if not header.sound:
        crc = crc32_masked(bytes(data[fixed:body_end]))
        data[OFF_BODY_CRC : OFF_BODY_CRC + 4] = crc.to_bytes(4, "big")
    wide = {MESSAGE_MAGIC_CODE: 1, MESSAGE_MAGIC_CODE_V2: 2}[header.magic]
    raw = key[0].encode()
    data[body_end + wide : body_end + wide + len(raw)] = raw
    return sealed(bytes(data))


def sealed(record: bytes) -> bytes:
    """The record with a fitting `__CRC32#` property, if it has one."""
    return crc_trailer.seal(record) if crc_trailer.has_trailer(record) else record


def padded(record: bytes, count: int) -> bytes | None:
    """An intact record made `count` bytes longer by separators among its properties, which no reader sees.

    None where its properties would be too long.
    """
    fixed_at = int.from_bytes(record[OFF_SYS_FLAG : OFF_SYS_FLAG + 4], "big")
    fixed = sizeof(HEADERS[is_v6(fixed_at)])
    at = fixed - (sizeof(HEADERS[False, False]) - OFF_BODY_LENGTH)
    at = fixed + max(int.from_bytes(record[at : at + 4], "big", signed=True), 0)
    magic = int.from_bytes(record[4:8], "big", signed=True)
    wide = {MESSAGE_MAGIC_CODE: 1, MESSAGE_MAGIC_CODE_V2: 2}[magic]
    at += wide + int.from_bytes(record[at : at + wide], "big")
    length = len(record) - at - 2 + count
    if length > 0x7FFF:
        return None
    properties, end = record[at + 2 :], b""
    if crc_trailer.has_trailer(record):
        properties, end = properties[: -crc_trailer.TRAILER_SIZE], properties[-crc_trailer.TRAILER_SIZE :]
    made = record[:at] + length.to_bytes(2, "big") + properties + b"\x02" * count + end
    return sealed((len(record) + count).to_bytes(4, "big") + made[4:])
