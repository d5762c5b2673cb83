"""Index files: hashes, positions, and a small whole file."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formats import index
from formats.errors import FormatError
from formats.primitives import offset_of

SMALL = {
    "header": "0000018BCFE5687B 0000018BCFE5704B 0000000000000000 0000000000000108 00000002 00000004",
    "slots": "00000000" * 4 + "00000003" + "00000002" + "00000000" * 4,
    "items": "00" * 20
    + "0029E6A8 0000000000000000 00000000 00000000"
    + "0029E6A9 0000000000000084 00000001 00000000"
    + "0029E6A8 0000000000000108 00000002 00000001"
    + "00" * 20 * 4,
}


@pytest.mark.parametrize(
    ("topic", "key", "key_hash", "position"),
    [
        ("TopicTest", "k1", 2746024, 10_984_136),
        ("TopicA", "order_123", 1253987440, 15_949_800),
        ("TopicA", "trace_abc", 138085321, 12_341_324),
        ("T", "jllgvmc", 0, 40),
    ],
)
def test_key_vectors(topic: str, key: str, key_hash: int, position: int) -> None:
    assert index.key_hash(topic, key) == key_hash
    assert index.slot_position(index.slot_of(key_hash, index.DEFAULT_SLOTS)) == position


@given(st.text(), st.text(), st.integers(1, 100_000))
def test_hashes_and_slots_are_in_range(topic: str, key: str, slots: int) -> None:
    assert 0 <= index.key_hash(topic, key) < 1 << 31
    assert 0 <= index.slot_of(index.key_hash(topic, key), slots) < slots


@pytest.mark.parametrize(("key_hash", "slots"), [(-1, 10), (5, 0), (5, -1)])
def test_hashes_without_slot(key_hash: int, slots: int) -> None:
    with pytest.raises(FormatError):
        index.slot_of(key_hash, slots)


def test_geometry() -> None:
    assert index.file_size(index.DEFAULT_SLOTS, index.DEFAULT_ITEMS) == 420_000_040
    assert index.file_size(100, 400) == 8440
    assert index.item_position(index.FIRST_ITEM, index.DEFAULT_SLOTS) == 20_000_060
    small = index.index_file(100, 400)
    assert offset_of(small, "slots.7") == index.slot_position(7)
    assert offset_of(small, "items.3") == index.item_position(3, 100)


def test_header_after_one_put() -> None:
    expected = "0000018BCFE5687B0000018BCFE5687B000000000000000000000000000000000000000100000002"
    fields = {
        "begin_timestamp": 1700000000123,
        "end_timestamp": 1700000000123,
        "begin_physical_offset": 0,
        "end_physical_offset": 0,
        "hash_slot_count": 1,
        "index_count": 2,
    }
    assert index.Header.build(fields).hex().upper() == expected
    parsed = index.Header.parse_exact(bytes.fromhex(expected))
    assert {name: parsed[name] for name in fields} == fields


def test_small_file() -> None:
    """Three puts, two of them of one key: 10 slots, 8 items."""
    raw = b"".join(bytes.fromhex(part) for part in SMALL.values())
    assert len(raw) == index.file_size(10, 8)
    schema = index.index_file(10, 8)
    parsed = schema.parse_exact(raw)
    assert schema.build(parsed) == raw
    assert (parsed.header.hash_slot_count, parsed.header.index_count) == (2, 4)
    begin = parsed.header.begin_timestamp
    puts = [("k1", 0, 1700000000123), ("k2", 132, 1700000001999), ("k1", 264, 1700000002123)]
    for number, (key, physical_offset, stored) in enumerate(puts, start=index.FIRST_ITEM):
        item = parsed["items"][number]
        assert item.key_hash == index.key_hash("TopicTest", key)
        assert item.physical_offset == physical_offset
        assert item.time_diff == (stored - begin) // 1000
    heads = {slot: number for slot, number in enumerate(parsed.slots) if number}
    assert heads == {
        index.slot_of(index.key_hash("TopicTest", key), 10): n for key, n in (("k1", 3), ("k2", 2))
    }
    assert [item.prev for item in parsed["items"]] == [0, 0, 0, 1, 0, 0, 0, 0]
