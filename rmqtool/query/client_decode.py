"""What a consumer makes of the bytes of a pull: `MessageDecoder#decodes`, `#decodesBatch` (5.x), replayed.

The broker sends the bytes that units name and looks at none of them. The client reads fields one behind the
other; it uses neither the length of a record nor the CRC of its body, and up to 4.9.8 not the magic code.
Where reading a field fails, it drops that record and all that lie behind it in the same answer, without an
error, and goes on at the offset that the broker named.
"""

from __future__ import annotations

from dataclasses import dataclass
from struct import Struct
from typing import TYPE_CHECKING

from formats.commitlog import MESSAGE_MAGIC_CODE_V2, MESSAGE_MAGIC_CODES, SysFlag
from formats.java import java_utf8_decode
from formats.primitives import crc32_masked
from rmqtool.scan.bodies import BodyError, decompress

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rmqtool.broker.get_message import Delivered
    from rmqtool.broker.log_view import LogView
    from rmqtool.broker.traits import Traits

_HEAD = Struct(">iiiiiqqiq")
"""size, magic, CRC, queue, flag, queue offset, physical offset, sysFlag, born time"""
_LARGEST_PORT = 65535


@dataclass(frozen=True, slots=True)
class Message:
    """A message as the client has it. start: its first byte in the answer. bad_crc: of its body."""

    start: int
    topic: str
    queue_offset: int
    physical_offset: int
    bad_crc: bool


@dataclass(frozen=True, slots=True)
class ClientView:
    """bytes, messages: of the answer. decoded: by the client, in order.

    lost: index of the record at which it stopped, None when it came to the end. altered: index of the first
    record in whose bytes it has another message or another body, and that message.
    """

    bytes: int
    messages: int
    decoded: tuple[Message, ...]
    lost: int | None
    altered: tuple[int, Message] | None


def client_view(log: LogView, delivered: Sequence[Delivered], traits: Traits) -> ClientView:
    """What a consumer of the release gets of the records of a pull."""
    parts = [log.read(log.low if one.foreign else one.physical_offset, one.size) for one in delivered]
    starts = [sum(map(len, parts[:number])) for number in range(len(parts))]
    messages, end = decodes(b"".join(parts), traits)
    total = sum(map(len, parts))
    lost = None if end == total else max((n for n, at in enumerate(starts) if at <= end), default=0)
    own = {(at, one.physical_offset) for at, one in zip(starts, delivered, strict=True)}
    foreign = {at for at, one in zip(starts, delivered, strict=True) if one.foreign}
    odd = [
        one
        for one in messages
        if one.start not in foreign and (one.bad_crc or (one.start, one.physical_offset) not in own)
    ]
    altered = None
    if odd:
        altered = max(n for n, at in enumerate(starts) if at <= odd[0].start), odd[0]
    return ClientView(total, len(delivered), tuple(messages), lost, altered)


def decodes(data: bytes, traits: Traits) -> tuple[list[Message], int]:
    """The messages of an answer, and the byte behind the last of them."""
    found: list[Message] = []
    at = 0
    while at < len(data):
        try:
            one, end = _decode(_Buffer(data, at), traits)
        except (ValueError, BodyError):
            break
        found.append(one)
        at = end
    return found, at


class _Buffer:
    """A `ByteBuffer`: raises ValueError for what makes Java throw."""

    def __init__(self, data: bytes, at: int) -> None:
        self.data, self.at = data, at

    def take(self, length: int) -> bytes:
        if length < 0 or self.at + length > len(self.data):
            raise ValueError("underflow")
        self.at += length
        return self.data[self.at - length : self.at]

    def number(self, length: int) -> int:
        return int.from_bytes(self.take(length), "big", signed=True)


def _decode(buffer: _Buffer, traits: Traits) -> tuple[Message, int]:
    start = buffer.at
    _, magic, crc, _, _, queue_offset, physical_offset, flags, _ = _HEAD.unpack(buffer.take(_HEAD.size))
    if traits.client_checks_magic and magic not in MESSAGE_MAGIC_CODES:
        raise ValueError("no magic code")
    _host(buffer, v6=bool(flags & SysFlag.BORNHOST_V6))
    buffer.take(8)  # store time
    _host(buffer, v6=bool(flags & SysFlag.STOREHOST_V6))
    buffer.take(12)  # reconsume times, prepared transaction offset
    length = buffer.number(4)
    bad_crc = False
    if length > 0:
        body = buffer.take(length)
        bad_crc = crc32_masked(body) != crc
        if flags & SysFlag.COMPRESSED:
            decompress(body, flags)
    topic = buffer.take(
        buffer.number(2 if traits.client_checks_magic and magic == MESSAGE_MAGIC_CODE_V2 else 1)
    )
    properties = buffer.number(2)
    if properties > 0:
        buffer.take(properties)
    name = java_utf8_decode(topic)[0]
    return Message(start, name, queue_offset, physical_offset, bad_crc), buffer.at


def _host(buffer: _Buffer, *, v6: bool) -> None:
    buffer.take(16 if v6 else 4)
    if not 0 <= buffer.number(4) <= _LARGEST_PORT:
        raise ValueError("no port")
