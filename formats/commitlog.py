"""Commit log records: message V1 and V2 with their four host layouts, the blank record, sysFlag.

Layout and limits: docs/format/commitlog.md. Rules: `MessageExtEncoder`,
`CommitLog#checkMessageAndReturnSize`, `MessageSysFlag`.
"""

from __future__ import annotations

import struct
from enum import IntFlag
from functools import cache
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypedDict, Unpack

import construct as cs

from formats import crc_trailer as trailer
from formats.errors import FormatError
from formats.java import utf16_length
from formats.primitives import (
    Flat,
    HostV4,
    HostV6,
    Require,
    Schema,
    crc32_masked,
    java_utf8_encode,
    offset_of,
    sizeof,
)

if TYPE_CHECKING:
    from formats.primitives import AnyConstruct, Container

MESSAGE_MAGIC_CODE = -626843481
MESSAGE_MAGIC_CODE_V2 = -626843477
BLANK_MAGIC_CODE = -875286124
MESSAGE_MAGIC_CODES = (MESSAGE_MAGIC_CODE, MESSAGE_MAGIC_CODE_V2)

END_FILE_MIN_BLANK_LENGTH = 8
"""A record is appended only if this much stays free behind it in the file."""

MAX_TOPIC_LENGTH_V1 = 127
IPV6_LENGTH = sizeof(HostV6) - sizeof(cs.Int32sb)
MAX_PROPERTIES_LENGTH = 32767


class SysFlag(IntFlag):
    """Bits of the sysFlag field (`MessageSysFlag`, `CompressionType`)."""

    COMPRESSED = 0x1
    MULTI_TAGS = 0x2
    PREPARED = 0x4
    COMMIT = 0x8
    ROLLBACK = 0xC
    TRANSACTION_MASK = 0xC
    BORNHOST_V6 = 0x10
    STOREHOST_V6 = 0x20
    NEED_UNWRAP = 0x40
    INNER_BATCH = 0x80
    COMPRESSION_LZ4 = 0x100
    COMPRESSION_ZSTD = 0x200
    COMPRESSION_ZLIB = 0x300
    COMPRESSION_MASK = 0x700


_TRANSACTIONS = {0x0: "none", 0x4: "prepared", 0x8: "commit", 0xC: "rollback"}
_COMPRESSIONS = {0x000: "zlib", 0x100: "lz4", 0x200: "zstd", 0x300: "zlib"}


def transaction_of(sys_flag: int) -> str:
    """`none`, `prepared`, `commit` or `rollback`."""
    return _TRANSACTIONS[sys_flag & SysFlag.TRANSACTION_MASK]


def compression_of(sys_flag: int) -> str | None:
    """None for a plain body, else `zlib`, `lz4` or `zstd`; `unknown` for the type bits that make Java fail.

    The type bits count only when COMPRESSED is set. No type bits at all mean zlib, as written before 4.9.4.
    """
    if not sys_flag & SysFlag.COMPRESSED:
        return None
    return _COMPRESSIONS.get(sys_flag & SysFlag.COMPRESSION_MASK, "unknown")


def _header_fields(born_host: AnyConstruct, store_host: AnyConstruct) -> list[AnyConstruct]:
    return [
        "total_size" / cs.Int32sb,
        "magic" / cs.Int32sb,
        "body_crc" / cs.Int32sb,
        "queue_id" / cs.Int32sb,
        "flag" / cs.Int32sb,
        "queue_offset" / cs.Int64sb,
        "physical_offset" / cs.Int64sb,
        "sys_flag" / cs.Int32sb,
        "born_timestamp" / cs.Int64sb,
        "born_host" / born_host,
        "store_timestamp" / cs.Int64sb,
        "store_host" / store_host,
        "reconsume_times" / cs.Int32sb,
        "prepared_transaction_offset" / cs.Int64sb,
        "body_length" / cs.Int32sb,
    ]


HEADERS: dict[tuple[bool, bool], Schema] = {
    (born_v6, store_v6): Schema(
        cs.Struct(*_header_fields(HostV6 if born_v6 else HostV4, HostV6 if store_v6 else HostV4))
    )
    for born_v6 in (False, True)
    for store_v6 in (False, True)
}
"""The fixed part of a record, up to and including the body length, by (born host is IPv6, store host is
IPv6)."""

FLAT_HEADERS = {wide: Flat(schema) for wide, schema in HEADERS.items()}
"""The same for records one by one."""

Blank = Schema(cs.Struct("total_size" / cs.Int32sb, "magic" / cs.Const(BLANK_MAGIC_CODE, cs.Int32sb)))
"""The filler at the end of a file. Only its magic is to be trusted; what follows these 8 bytes is
undefined."""

TOPIC_LENGTH: dict[int, AnyConstruct] = {MESSAGE_MAGIC_CODE: cs.Int8sb, MESSAGE_MAGIC_CODE_V2: cs.Int16sb}
"""The signed type of the topic length, the only difference between V1 and V2."""

PROPERTIES_LENGTH = cs.Int16sb


def fits(length: int, free: int) -> bool:
    """Whether a record (or a whole client batch) of this length goes into a file with `free` bytes left.

    If not, the file is closed with a blank record of `free` bytes and the record opens the next one.
    """
    return length + END_FILE_MIN_BLANK_LENGTH <= free


_BORN_V6, _STORE_V6 = int(SysFlag.BORNHOST_V6), int(SysFlag.STOREHOST_V6)


def is_v6(sys_flag: int) -> tuple[bool, bool]:
    """(born host is IPv6, store host is IPv6): the key of `HEADERS`."""
    return bool(sys_flag & _BORN_V6), bool(sys_flag & _STORE_V6)


@cache
def overhead(magic: int, sys_flag: int) -> int:
    """Bytes of a record without body, topic and properties; FormatError where `magic` is not of one."""
    if magic not in TOPIC_LENGTH:
        raise FormatError(f"{magic} is not a record magic", "magic")
    return sizeof(HEADERS[is_v6(sys_flag)]) + sizeof(TOPIC_LENGTH[magic]) + sizeof(PROPERTIES_LENGTH)


def record_size(
    magic: int, sys_flag: int, body_length: int, topic_length: int, properties_length: int
) -> int:
    """The total size that the fields of a record add up to (`MessageExtEncoder#calMsgLength`).

    Negative body and properties lengths count as 0, a negative topic length as it is.
    """
    return overhead(magic, sys_flag) + max(body_length, 0) + topic_length + max(properties_length, 0)


def magic_of(topic: str) -> int:
    """The magic with which a 5.x broker stores a topic: V2 when it has more than 127 UTF-16 units."""
    return MESSAGE_MAGIC_CODE_V2 if utf16_length(topic) > MAX_TOPIC_LENGTH_V1 else MESSAGE_MAGIC_CODE


def _magic_rule(message: Container) -> str | None:
    return None if message.magic in TOPIC_LENGTH else f"{message.magic} is not a record magic"


def _body_rule(message: Container) -> str | None:
    room = message.total_size - overhead(message.magic, message.sys_flag)
    if room < 0:
        return f"total size {message.total_size} is less than the fixed part, {message.total_size - room}"
    if message.body_length > room:
        return f"{message.body_length} bytes are more than the record has left, {room}"
    return None


def _topic_rule(message: Container) -> str | None:
    return f"{message.topic_length} is negative" if message.topic_length < 0 else None


def _total_rule(message: Container) -> str | None:
    lengths = (message.body_length, message.topic_length, message.properties_length)
    expected = record_size(message.magic, message.sys_flag, *lengths)
    total_size = message.total_size
    return None if total_size == expected else f"{total_size}, but the fields add up to {expected}"


def _bytes_of(length_field: str) -> AnyConstruct:
    """As many bytes as a length field says; none when it is negative."""
    return cs.Bytes(lambda context: max(context[length_field], 0))


Message = Schema(
    cs.Struct(
        *_header_fields(
            cs.IfThenElse(lambda message: is_v6(message.sys_flag)[0], HostV6, HostV4),
            cs.IfThenElse(lambda message: is_v6(message.sys_flag)[1], HostV6, HostV4),
        ),
        Require("magic", _magic_rule),
        Require("body_length", _body_rule),
        "body" / _bytes_of("body_length"),
        "topic_length" / cs.Switch(cs.this.magic, TOPIC_LENGTH),
        Require("topic_length", _topic_rule),
        "topic" / _bytes_of("topic_length"),
        "properties_length" / PROPERTIES_LENGTH,
        "properties" / _bytes_of("properties_length"),
        Require("total_size", _total_rule),
    )
)
"""A whole record, V1 or V2, with any hosts. Topic, body and properties are raw bytes, as stored.

The frame is checked as by the broker (magic, lengths, total size); `body_crc` is not: see `body_crc_ok`. A
body or properties length below 0 means none, as in Java, and is kept.
"""


_SYS_FLAG = slice(
    offset_of(HEADERS[False, False], "sys_flag"), offset_of(HEADERS[False, False], "born_timestamp")
)


_TEXT_LENGTHS = {
    magic: (sizeof(topic_length), sizeof(PROPERTIES_LENGTH)) for magic, topic_length in TOPIC_LENGTH.items()
}
"""bytes of the lengths of topic and properties, by magic"""

_outlined = itemgetter(
    *map(FLAT_HEADERS[False, False].names.index, ("magic", "sys_flag", "total_size", "body_length"))
)
"""of the values of a header, whose names are the same for hosts of any width"""


class Outline(NamedTuple):
    """Some fields of a record, see `Message`."""

    magic: int
    sys_flag: int
    topic: bytes
    properties: bytes


def outline_of(record: bytes) -> Outline | None:
    """What `Message` parses, for a fraction of its time; None for what it refuses."""
    header = FLAT_HEADERS[is_v6(int.from_bytes(record[_SYS_FLAG], "big"))]
    if len(record) < header.size:
        return None
    magic, sys_flag, total_size, body_length = _outlined(header.unpack_from(record))
    if magic not in TOPIC_LENGTH or body_length > total_size - overhead(magic, sys_flag):
        return None
    texts = []
    at = header.size + max(body_length, 0)
    for width in _TEXT_LENGTHS[magic]:
        length = int.from_bytes(record[at : at + width], "big", signed=True)
        texts.append(record[at + width : at + width + max(length, 0)])
        at += width + max(length, 0)
        if length < 0 and not texts[1:]:
            return None
    return Outline(magic, sys_flag, *texts) if at == total_size <= len(record) else None


def body_crc_ok(message: Container) -> bool:
    """Whether the body of a parsed message has the stored CRC; without a body there is none to fail."""
    return bool(message.body_length <= 0 or crc32_masked(message.body) == message.body_crc)


class MessageFields(TypedDict, total=False):
    """Fields that `encode_message` takes as they are; 0 when left out. Hosts are (ip, port)."""

    queue_id: int
    flag: int
    queue_offset: int
    physical_offset: int
    sys_flag: int
    born_timestamp: int
    born_host: tuple[bytes, int]
    store_timestamp: int
    store_host: tuple[bytes, int]
    reconsume_times: int
    prepared_transaction_offset: int


_HOSTS: tuple[Literal["born_host"], Literal["store_host"]] = ("born_host", "store_host")
_DEFAULTS: MessageFields = {
    "queue_id": 0,
    "flag": 0,
    "queue_offset": 0,
    "physical_offset": 0,
    "sys_flag": 0,
    "born_timestamp": 0,
    "born_host": (bytes(4), 0),
    "store_timestamp": 0,
    "store_host": (bytes(4), 0),
    "reconsume_times": 0,
    "prepared_transaction_offset": 0,
}


def encode_message(
    topic: str,
    body: bytes = b"",
    properties: bytes = b"",
    *,
    magic: int | None = None,
    crc_trailer: bool = False,
    **fields: Unpack[MessageFields],
) -> bytes:
    """The record that a broker stores for these values.

    Filled in: total size, lengths, body CRC, the host width bits of sysFlag (from the 4 or 16 bytes of each
    address), the magic (`magic_of`, unless given), and with `crc_trailer` the `__CRC32#` property (any that
    `properties` bring along is replaced). Raises FormatError when the topic or the properties are too long
    for their length field.
    """
    given: MessageFields = {**_DEFAULTS, **fields}
    magic = magic_of(topic) if magic is None else magic
    raw_topic = java_utf8_encode(topic)
    if crc_trailer:
        properties = trailer.reserve(properties)
    # plain integers: an IntFlag drops bits that it does not know
    sys_flag = int(given["sys_flag"]) & ~int(SysFlag.BORNHOST_V6 | SysFlag.STOREHOST_V6)
    sys_flag |= int(SysFlag.BORNHOST_V6) if len(given["born_host"][0]) == IPV6_LENGTH else 0
    sys_flag |= int(SysFlag.STOREHOST_V6) if len(given["store_host"][0]) == IPV6_LENGTH else 0
    lengths = len(body), len(raw_topic), len(properties)
    values: dict[str, Any] = {
        **given,
        "total_size": record_size(magic, sys_flag, *lengths),
        "magic": magic,
        "body_crc": crc32_masked(body),
        "sys_flag": sys_flag,
        "body_length": lengths[0],
        "topic_length": lengths[1],
        "properties_length": lengths[2],
    }
    for host in _HOSTS:
        values[f"{host}.ip"], values[f"{host}.port"] = values[host]
    if any(len(given[host][0]) not in (4, IPV6_LENGTH) for host in _HOSTS):
        return _refused(values, body, raw_topic, properties)
    try:
        topic_length = lengths[1].to_bytes(sizeof(TOPIC_LENGTH[magic]), "big", signed=True)
        properties_length = lengths[2].to_bytes(sizeof(PROPERTIES_LENGTH), "big", signed=True)
        header = FLAT_HEADERS[is_v6(sys_flag)].pack(values)
        record = b"".join((header, body, topic_length, raw_topic, properties_length, properties))
    except (OverflowError, struct.error):
        record = _refused(values, body, raw_topic, properties)
    return trailer.seal(record) if crc_trailer else record


def _refused(values: dict[str, Any], body: bytes, topic: bytes, properties: bytes) -> bytes:
    """Raises the `FormatError` that says which field has no room."""
    hosts = {host: dict(zip(("ip", "port"), values[host], strict=True)) for host in _HOSTS}
    built: bytes = Message.build({**values, **hosts, "body": body, "topic": topic, "properties": properties})
    return built
