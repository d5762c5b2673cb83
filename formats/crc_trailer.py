"""The `__CRC32#` property that closes a record when `enabledAppendPropCRC` is on (5.2.0 and later).

20 bytes, counted in the properties length and the total size: the name, 0x01, ten digits, 0x02. The digits
are the decimal value with the lowest digit first, filled up with zeros behind. The value is the masked
CRC-32 of the record in front of these 20 bytes. See docs/format/properties.md;
`MessageDecoder#createCrc32`, `CommitLog#checkMessageAndReturnSize`.
"""

from __future__ import annotations

from typing import Literal

import construct as cs

from formats import properties as props
from formats.errors import FormatError
from formats.java import to_i32, utf16_units
from formats.primitives import Schema, crc32_masked, sizeof

DIGITS = 10

CrcTrailer = Schema(
    cs.Struct(
        "name" / cs.Const(props.CRC32.encode()),
        "name_separator" / cs.Const(props.NAME_SEPARATOR, cs.Int8ub),
        "digits" / cs.Bytes(DIGITS),
        "property_separator" / cs.Const(props.PROPERTY_SEPARATOR, cs.Int8ub),
    )
)

TRAILER_SIZE = sizeof(CrcTrailer)
_NAME = props.CRC32.encode() + bytes([props.NAME_SEPARATOR])


def digits_of(value: int) -> str:
    """A masked CRC-32 as its ten digits, lowest first. FormatError when it is negative or has more digits."""
    if not 0 <= value < 10**DIGITS:
        raise FormatError(f"{value} does not fit into {DIGITS} digits", "digits")
    return str(value)[::-1].ljust(DIGITS, "0")


def value_of(digits: str) -> int:
    """The number that Java reads from a property value: last character first, overflowing 32 bits."""
    value = 0
    for unit in reversed(utf16_units(digits)):
        value = to_i32(value * 10 + unit - ord("0"))
    return value


def build(value: int) -> bytes:
    """The 20 bytes for a masked CRC-32."""
    return CrcTrailer.build({"digits": digits_of(value).encode()})


def reserve(properties: bytes) -> bytes:
    """The properties of a record with room for the trailer at their end.

    A CRC property that a client sent is removed; a separator is put between the last own property and the
    trailer if there is none.
    """
    own = props.without(properties, props.CRC32)
    if own and own[-1] != props.PROPERTY_SEPARATOR:
        own += bytes([props.PROPERTY_SEPARATOR])
    return own + bytes(TRAILER_SIZE)


def has_trailer(record: bytes) -> bool:
    """Whether a record ends in the property."""
    return record[-TRAILER_SIZE:].startswith(_NAME)


def seal(record: bytes) -> bytes:
    """The record with the trailer computed over all that is in front of its last 20 bytes."""
    covered = record[:-TRAILER_SIZE]
    return covered + build(crc32_masked(covered))


def verify(record: bytes, properties: bytes) -> Literal["ok", "bad", "absent"]:
    """The check of a broker with `forceVerifyPropCRC`: a whole record and its raw properties.

    `absent` when no CRC property can be decoded (or its number is negative); the broker takes that for a
    broken record. As in Java the value may come from anywhere among the properties, while the last 20 bytes
    are never covered.
    """
    digits = props.decode(properties).get(props.CRC32)
    expected = -1 if digits is None else value_of(digits)
    if expected < 0:
        return "absent"
    return "ok" if crc32_masked(record[:-TRAILER_SIZE]) == expected else "bad"
