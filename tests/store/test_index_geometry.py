from __future__ import annotations

import random
import struct
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from formats.index import DEFAULT_ITEMS, DEFAULT_SLOTS, file_size
from rmqtool.store.access import open_source
from rmqtool.store.bytes import MemorySource
from rmqtool.store.config import StoreConfig
from rmqtool.store.index_geometry import DEFAULT_LENGTH, Source, geometry_of, index_geometry, likely_pairs
from rmqtool.store.index_solver import solve_index
from rmqtool.store.layout import Store


def build(slots, items, hashes, counters=(0, 0)):
    """An index file by the rules of `IndexFile#putKey`; the header's counters are whatever is given."""
    data = bytearray(file_size(slots, items))
    struct.pack_into(">qqqqii", data, 0, 1700000000123, 1700000002123, 0, 264, *counters)
    newest = [0] * slots
    for number, key_hash in enumerate(hashes, 1):
        slot = key_hash % slots
        at = 40 + 4 * slots + 20 * number
        struct.pack_into(">iqii", data, at, key_hash, number * 132, number, newest[slot])
        newest[slot] = number
        struct.pack_into(">i", data, 40 + 4 * slot, number)
    return bytes(data)


def numbers(seed, count):
    source = random.Random(seed)
    return [source.getrandbits(31) for _ in range(count)]


def test_default_length():
    assert DEFAULT_LENGTH == 420_000_040


def test_the_worked_example():
    """10 slots, 8 items, keys k1, k2, k1 of TopicTest (format section "putKey")."""
    data = bytes.fromhex(
        "0000018BCFE5687B0000018BCFE5704B0000000000000000000000000000010800000002 00000004".replace(" ", "")
        + "00000000" * 4 + "00000003" + "00000002" + "00000000" * 4 + "00" * 20
        + "0029E6A8" + "0000000000000000" + "00000000" + "00000000"
        + "0029E6A9" + "0000000000000084" + "00000001" + "00000000"
        + "0029E6A8" + "0000000000000108" + "00000002" + "00000001"
        + "00" * 80
    )  # fmt: skip
    assert len(data) == file_size(10, 8)
    assert solve_index(MemorySource(data)) == (10, 8)


hashes = st.lists(st.integers(0, (1 << 31) - 1), min_size=1, max_size=60)


@settings(max_examples=300, deadline=None)
@given(st.integers(1, 300), hashes, st.integers(1, 400), st.tuples(st.integers(0, 500), st.integers(0, 500)))
def test_any_file_with_entries_is_solved_whatever_its_counters_say(slots, keys, room, counters):
    # A lone key with hash 0 at offset 0 would be an item of zeros; the builder's offsets start at 132.
    items = len(keys) + room
    assert solve_index(MemorySource(build(slots, items, keys, counters))) == (slots, items)


def test_a_full_file():
    keys = numbers(3, 119)
    assert solve_index(MemorySource(build(30, 120, keys))) == (30, 120)


@pytest.mark.parametrize("length", [0, 7, 39, 40, 60, 63, 64, 65, 8440])
def test_zeros_are_not_solved(length):
    assert solve_index(MemorySource(bytes(length))) is None
    assert geometry_of(MemorySource(bytes(length))).source is Source.AMBIGUOUS


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=2000))
def test_any_bytes_give_an_answer(data):
    geometry = geometry_of(MemorySource(data))
    assert geometry.length == len(data)
    for slots, items in geometry.candidates:
        assert file_size(slots, items) == len(data)
        assert slots > 0
        assert items > 0


def test_damage_is_outvoted():
    keys = numbers(5, 300)
    sound = build(100, 400, keys)
    slot_flipped, tail, zeroed = bytearray(sound), bytearray(sound), bytearray(sound)
    struct.pack_into(">i", slot_flipped, 40 + 4 * 50, 0x7FFFFFF0)
    tail[-40:] = b"\xff" * 40
    zeroed[40 + 400 + 20 * 250 : 40 + 400 + 20 * 260] = bytes(200)
    for data in (slot_flipped, tail, zeroed):
        assert solve_index(MemorySource(data)) == (100, 400)


def test_damage_and_one_chain_alone_leave_it_open():
    """All entries have one key: 50 slots explain the chain as well as 100."""
    data = bytearray(build(100, 400, [1337671202] * 300))
    data[-40:] = b"\xff" * 40
    assert geometry_of(MemorySource(data)).source is Source.AMBIGUOUS
    assert solve_index(MemorySource(build(100, 400, [1337671202] * 300))) == (100, 400)


def test_a_file_without_slots_is_ambiguous():
    data = bytearray(build(100, 400, [1, 2, 3, 4]))
    data[40:440] = bytes(400)
    geometry = geometry_of(MemorySource(data))
    assert (geometry.slots, geometry.source) == (None, Source.AMBIGUOUS)


def test_settings_come_first_and_misfits_are_said():
    data = MemorySource(build(100, 400, [7, 107, 9]))
    given_pair = geometry_of(data, (100, 400))
    assert (given_pair.slots, given_pair.source) == (100, Source.GIVEN)
    wrong = geometry_of(data, (50, 100))
    assert (wrong.slots, wrong.items, wrong.source) == (100, 400, Source.INFERRED)
    assert "50 slots, 100 entries) do not fit" in wrong.detail


def test_a_cut_file_keeps_the_geometry_that_was_given():
    for length in (2000, 505):
        data = MemorySource(build(100, 400, [7, 107, 9])[:length])
        geometry = geometry_of(data, (100, 400))
        assert (geometry.slots, geometry.items, geometry.source) == (100, 400, Source.GIVEN)
    nothing_left = MemorySource(build(100, 400, [7, 107, 9])[:480])
    assert geometry_of(nothing_left, (100, 400)).source is Source.AMBIGUOUS


def test_settings_without_index_options_do_not_count(golden):
    store = Store.open(golden("v533-basic").path)
    geometry = index_geometry(store.index_files()[0], StoreConfig(brokerName="a"))
    assert geometry.source is Source.INFERRED


def test_likely_pairs_begin_with_the_proportion_of_the_default():
    assert next(likely_pairs(DEFAULT_LENGTH)) == (DEFAULT_SLOTS, DEFAULT_ITEMS)
    assert next(likely_pairs(8440)) == (100, 400)
    assert next(likely_pairs(2560)) == (30, 120)
    assert list(likely_pairs(41)) == []
    assert list(likely_pairs(64)) == [(1, 1)]


def sparse(path, slots, items, keys):
    """A file of any size with few entries, without writing its zeros."""
    with path.open("wb") as stream:
        stream.truncate(file_size(slots, items))
        newest: dict[int, int] = {}
        for number, key_hash in enumerate(keys, 1):
            slot = key_hash % slots
            stream.seek(40 + 4 * slots + 20 * number)
            stream.write(struct.pack(">iqii", key_hash, number * 132, number, newest.get(slot, 0)))
            newest[slot] = number
        for slot, number in newest.items():
            stream.seek(40 + 4 * slot)
            stream.write(struct.pack(">i", number))


@pytest.mark.parametrize("pair", [(DEFAULT_SLOTS, DEFAULT_ITEMS), (2_500_000, 20_500_000)])
def test_a_file_of_420_mb_takes_about_a_second(tmp_path, pair):
    path = tmp_path / "20231114221320123"
    sparse(path, *pair, numbers(7, 2000))
    begun = time.process_time()
    with open_source(path, "pread") as source:
        geometry = geometry_of(source)
    assert time.process_time() - begun < 5
    assert (geometry.slots, geometry.items) == pair
    assert geometry.source is (Source.DEFAULT if pair[0] == DEFAULT_SLOTS else Source.INFERRED)


def test_an_empty_file_of_the_default_length_is_the_default(tmp_path):
    path = tmp_path / "20231114221320123"
    sparse(path, DEFAULT_SLOTS, DEFAULT_ITEMS, [])
    with open_source(path, "pread") as source:
        geometry = geometry_of(source)
    assert (geometry.slots, geometry.items, geometry.source) == (DEFAULT_SLOTS, DEFAULT_ITEMS, Source.DEFAULT)
    assert geometry.item_position(1) == 20_000_060
    assert geometry.slot_position(2746024) == 10_984_136


def test_a_young_file_is_known_by_a_few_reads(tmp_path, monkeypatch):
    """As a broker begins it: three entries anywhere in 20 MB of slots that are a hole otherwise."""
    path = tmp_path / "20231114221320123"
    sparse(path, DEFAULT_SLOTS, DEFAULT_ITEMS, [1_234_567, 2_345_678, 4_999_999])
    monkeypatch.setattr("rmqtool.store.index_geometry.solve_index", lambda _: pytest.fail("read through"))
    with open_source(path, "pread") as source:
        assert geometry_of(source).source is Source.DEFAULT
