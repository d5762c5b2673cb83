"""Units of consume queues."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formats import consumequeue as cq
from formats.errors import FormatError
from formats.primitives import sizeof
from tests.formats.catalogue import I64

EXT = bytes.fromhex("001C 000000000027A807 0000018BCFE5687B 0008 8000000000000001")
BATCH = bytes.fromhex(
    "0000000000001000000000C8000000000027A8070000018BCFE5687B00000000000000050003FFFFFFFF00000000"
)


@pytest.mark.parametrize(
    ("raw", "unit"),
    [
        ("000000000000000000000084000000000027A807", (0, 132, 2598919)),
        ("0000000000000000000000B90000000000000000", (0, 185, 0)),
        ("00000000000000007FFFFFFF0000000000000000", (0, 2147483647, 0)),
        ("0000000000000001FFFFFFFFFFFFFFFFD11C3206", (1, -1, -786681338)),
    ],
)
def test_unit(raw: str, unit: tuple[int, int, int]) -> None:
    found = cq.Unit.parse_exact(bytes.fromhex(raw))
    assert (found.physical_offset, found.size, found.tags_code) == unit
    assert cq.Unit.build(found).hex().upper() == raw
    assert cq.is_pre_blank(*unit) == (raw == cq.PRE_BLANK.hex().upper())


def test_pre_blank_is_one_pattern_only() -> None:
    assert cq.PRE_BLANK.hex().upper() == "00000000000000007FFFFFFF0000000000000000"
    assert not cq.is_pre_blank(20, cq.PRE_BLANK_SIZE, 0)
    assert not cq.is_pre_blank(0, cq.PRE_BLANK_SIZE, 1)
    assert not cq.is_pre_blank(0, 0, 0)


def test_batch_unit() -> None:
    unit = cq.BatchUnit.parse_exact(BATCH)
    assert (unit.physical_offset, unit.size, unit.tags_code) == (4096, 200, 2598919)
    assert (unit.store_timestamp, unit.base_offset, unit.batch_size) == (1700000000123, 5, 3)
    assert (unit.compacted_offset, unit.reserved) == (cq.COMPACTED_OFFSET, 0)
    assert cq.BatchUnit.build(unit) == BATCH
    assert (sizeof(cq.Unit), sizeof(cq.BatchUnit)) == (20, 46)


def test_end_of_a_compaction_queue_file() -> None:
    expected = "FFFFFFFFFFFFFFFF" + "00000000" + "0000000000000000" * 3 + "0000" + "FFFFFFFF" + "00000000"
    assert cq.COMPACTION_END.hex().upper() == expected


def test_ext_unit() -> None:
    unit = cq.ExtUnit.parse_exact(EXT)
    assert (unit.size, unit.tags_code, unit.msg_store_time) == (28, 2598919, 1700000000123)
    assert (unit.bit_map_size, unit.bit_map) == (8, bytes.fromhex("8000000000000001"))
    assert cq.ExtUnit.build(unit) == EXT
    assert cq.encode_ext_unit(2598919, 1700000000123, unit.bit_map) == EXT


@given(I64, I64, st.binary(max_size=64))
def test_ext_units_round_trip(tags_code: int, store_time: int, bit_map: bytes) -> None:
    raw = cq.encode_ext_unit(tags_code, store_time, bit_map)
    unit = cq.ExtUnit.parse_exact(raw + b"") if raw else None
    assert unit is not None
    assert (unit.size, unit.bit_map) == (len(raw), bit_map)


@pytest.mark.parametrize("size", ["FFFF", "0000", "0013", "0014", "001D", "7FFF"])
def test_ext_unit_with_another_size(size: str) -> None:
    with pytest.raises(FormatError) as caught:
        cq.ExtUnit.parse(bytes.fromhex(size) + EXT[2:])
    assert caught.value.path == "size"


def test_ext_unit_with_a_negative_bit_map_size() -> None:
    raw = bytes.fromhex("0014") + EXT[2:18] + b"\xff\xff"
    unit = cq.ExtUnit.parse_exact(raw)
    assert (unit.bit_map, unit.bit_map_size) == (b"", -1)
    assert cq.ExtUnit.build(unit) == raw


def test_ext_limits() -> None:
    assert (cq.EXT_MIN_SIZE, cq.EXT_MAX_SIZE, cq.EXT_END_MARKER) == (20, 32767, b"\xff\xff")
    assert len(cq.encode_ext_unit(0, 0, bytes(cq.EXT_MAX_SIZE - 20))) == cq.EXT_MAX_SIZE
    with pytest.raises(FormatError):
        cq.encode_ext_unit(0, 0, bytes(cq.EXT_MAX_SIZE - 19))


def test_ext_address() -> None:
    assert (cq.ext_address(24) & 0xFFFFFFFFFFFFFFFF) == 0x8000000000000018
    assert cq.real_offset(cq.ext_address(24)) == 24
    assert cq.ext_address(cq.EXT_MAX_REAL_OFFSET) == cq.EXT_MAX_ADDRESS == -2147483649
    assert cq.EXT_MAX_REAL_OFFSET == 9223372034707292159


@pytest.mark.parametrize(
    ("tags_code", "expected"), [(-2147483649, True), (-2147483648, False), (0, False), (-(1 << 63), True)]
)
def test_no_hash_is_an_address(tags_code: int, expected: bool) -> None:
    assert cq.is_ext_address(tags_code) is expected


@pytest.mark.parametrize("offset", [-1, cq.EXT_MAX_REAL_OFFSET + 1])
def test_offsets_without_address(offset: int) -> None:
    with pytest.raises(FormatError):
        cq.ext_address(offset)


@pytest.mark.parametrize("address", [-2147483648, 0, 24, -(1 << 63) - 1])
def test_addresses_without_offset(address: int) -> None:
    with pytest.raises(FormatError):
        cq.real_offset(address)
