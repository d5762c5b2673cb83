"""The `__CRC32#` property at the end of a record."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given

from formats import commitlog, crc_trailer
from formats import properties as props
from formats.errors import FormatError
from formats.primitives import crc32_masked
from tests.formats.catalogue import message_arguments
from tests.formats.test_commitlog import HELLO, V4

TRAILER = bytes.fromhex("5F5F435243333223013937383433373337323102")


def sealed(properties: bytes) -> bytes:
    return commitlog.encode_message(
        "TopicTest",
        b"Hello RocketMQ",
        properties,
        crc_trailer=True,
        queue_id=3,
        queue_offset=5,
        born_timestamp=1700000000000,
        born_host=(bytes([192, 168, 1, 10]), 54321),
        store_timestamp=1700000000123,
        store_host=(V4, 10911),
    )


def test_the_worked_record() -> None:
    own = commitlog.Message.parse(HELLO).properties
    record = sealed(own)
    message = commitlog.Message.parse_exact(record)
    assert (message.total_size, message.properties_length) == (152, 38)
    assert message.properties == own + TRAILER
    assert crc32_masked(record[:132]) == 1273734879
    assert crc_trailer.verify(record, message.properties) == "ok"


def test_digits() -> None:
    assert crc_trailer.build(1273734879) == TRAILER
    assert crc_trailer.CrcTrailer.parse_exact(TRAILER).digits == b"9784373721"
    assert crc_trailer.digits_of(0) == "0000000000"
    assert crc_trailer.digits_of(120) == "0210000000"
    assert crc_trailer.value_of("9784373721") == 1273734879
    assert crc_trailer.TRAILER_SIZE == len(TRAILER) == 20


@pytest.mark.parametrize("value", [-1, 10**10])
def test_values_without_ten_digits(value: int) -> None:
    with pytest.raises(FormatError):
        crc_trailer.build(value)


@pytest.mark.parametrize(
    ("digits", "expected"), [("", 0), ("1", 1), ("01", 10), ("9999999999", 1410065407), ("a", 49), ("/", -1)]
)
def test_value_as_java_reads_it(digits: str, expected: int) -> None:
    """Any length and any character, in 32 bits; 9999999999 overflows."""
    assert crc_trailer.value_of(digits) == expected


@pytest.mark.parametrize(
    ("own", "stored"),
    [
        (b"", b""),
        (b"A\x01b", b"A\x01b\x02"),
        (b"A\x01b\x02", b"A\x01b\x02"),
        (b"A\x01b\x02__CRC32#\x01123\x02", b"A\x01b\x02"),
        (b"__CRC32#\x01123", b""),
    ],
)
def test_what_stands_in_front_of_the_trailer(own: bytes, stored: bytes) -> None:
    record = sealed(own)
    properties = commitlog.Message.parse_exact(record).properties
    assert properties[:-20] == stored
    assert properties[-20:] == crc_trailer.build(crc32_masked(record[:-20]))
    assert crc_trailer.verify(record, properties) == "ok"


@given(message_arguments())
def test_sealed_records_verify(arguments: dict[str, Any]) -> None:
    record = commitlog.encode_message(**arguments, crc_trailer=True)
    assert crc_trailer.verify(record, commitlog.Message.parse_exact(record).properties) == "ok"


def test_any_changed_byte_in_front_is_noticed() -> None:
    record = sealed(b"A\x01b\x02")
    properties = commitlog.Message.parse(record).properties
    for position in range(len(record) - 20):
        damaged = bytearray(record)
        damaged[position] ^= 1
        assert crc_trailer.verify(bytes(damaged), properties) == "bad"


@pytest.mark.parametrize(
    "properties", [b"", b"A\x01b\x02", b"TAGS\x01TagA__CRC32#\x018702374690\x02", b"__CRC32#\x01/\x02"]
)
def test_absent(properties: bytes) -> None:
    """No such property, one melted into the last value, and one whose number is negative."""
    assert crc_trailer.verify(HELLO, properties) == "absent"


def test_name() -> None:
    assert props.CRC32.encode() == TRAILER[:8]
