"""Outermost records and units, found with few reads."""

from __future__ import annotations

import struct

import pytest

from formats.commitlog import BLANK_MAGIC_CODE, Blank, encode_message
from formats.consumequeue import PRE_BLANK, BatchUnit, Unit
from rmqtool.query.lost_end import behind_end
from rmqtool.query.queue_ends import file_ends
from rmqtool.scan.segment_ends import segment_ends
from rmqtool.store.layout import Store

SIZE = 4 << 20


def records(base, start, count, body=b"x" * 1000, time=1_700_000_000_000):
    data = b""
    for number in range(count):
        at = start + len(data)
        data += encode_message("T", body, physical_offset=base + at, store_timestamp=time + number)
    return data


def blank(length):
    return Blank.build({"total_size": length, "magic": BLANK_MAGIC_CODE})


@pytest.fixture
def segment(tmp_path):
    """A segment with this content, padded with zeros."""

    def make(data, base=0, size=SIZE):
        directory = tmp_path / "commitlog"
        directory.mkdir(exist_ok=True)
        with (directory / f"{base:020d}").open("wb") as file:
            file.write(data)
            file.truncate(size)
        return Store.open(tmp_path).segments.by_base(base)

    return make


@pytest.mark.parametrize("read_through", [True, False])
@pytest.mark.parametrize("count", [1, 3, 900])
def test_an_active_segment_ends_behind_its_last_record(segment, count, read_through):
    data = records(SIZE, 0, count)
    ends = segment_ends(segment(data, base=SIZE), read_through=read_through)
    assert ends.first.position == 0
    assert ends.first.store_timestamp == 1_700_000_000_000
    assert ends.last.store_timestamp == 1_700_000_000_000 + count - 1
    assert ends.end == len(data)
    assert ends.ending == "zero"
    assert ends.read_through is read_through


@pytest.mark.parametrize("read_through", [True, False])
def test_a_full_segment_ends_with_a_blank(segment, read_through):
    data = records(0, 0, 1000)
    free = SIZE - len(data)
    ends = segment_ends(segment(data + blank(free)), read_through=read_through, active=False)
    assert (ends.end, ends.ending) == (len(data), "blank")


@pytest.mark.parametrize("read_through", [True, False])
def test_zeros_inside_a_body_do_not_end_a_segment(segment, read_through):
    data = records(0, 0, 20)
    data += records(0, len(data), 1, body=bytes(1 << 20), time=1_800_000_000_000)
    ends = segment_ends(segment(data), read_through=read_through)
    assert ends.end == len(data)
    assert ends.last.store_timestamp == 1_800_000_000_000


def test_records_of_an_earlier_life_do_not_count_where_the_segment_is_read_through(segment):
    living = records(0, 0, 5)
    stale = records(0, len(living) + 2000, 1000, time=1_600_000_000_000)
    ends = segment_ends(segment(living + bytes(2000) + stale), read_through=True)
    assert ends.end == len(living)
    assert ends.last.store_timestamp == 1_700_000_000_004


@pytest.mark.parametrize("read_through", [True, False])
def test_segments_without_records(segment, read_through):
    empty = segment_ends(segment(b""), read_through=read_through)
    assert (empty.first, empty.last, empty.end, empty.ending) == (None, None, 0, "zero")
    garbage = segment_ends(segment(b"\x55" * 5000), read_through=read_through)
    assert (garbage.first, garbage.last, garbage.end, garbage.ending) == (None, None, None, "other")


def unit(offset, size=100, tags_code=0):
    return Unit.build({"physical_offset": offset, "size": size, "tags_code": tags_code})


@pytest.fixture
def queue_file(tmp_path):
    """A file of queue 0 of topic T with this content, padded with zeros."""

    def make(data, base=0, size=6_000_000, kind="consumequeue"):
        directory = tmp_path / kind / "T" / "0"
        directory.mkdir(parents=True, exist_ok=True)
        with (directory / f"{base:020d}").open("wb") as file:
            file.write(data)
            file.truncate(size)
        return Store.open(tmp_path).file(f"{kind}/T/0/{base:020d}")

    return make


@pytest.mark.parametrize("size", [60_000, 6_000_000])
@pytest.mark.parametrize("count", [1, 2, 1777, 3000])
def test_units_of_a_queue_file(queue_file, size, count):
    data = b"".join(unit(100 * number) for number in range(count))
    ends = file_ends(queue_file(data, base=size, size=size))
    assert (ends.units, ends.pre_blank) == (count, 0)
    assert (ends.min_offset, ends.max_offset) == (size // 20, size // 20 + count)
    assert ends.first["physical_offset"] == 0
    assert ends.last["physical_offset"] == 100 * (count - 1)


@pytest.mark.parametrize("size", [60_000, 6_000_000])
def test_fillers_are_no_messages(queue_file, size):
    ends = file_ends(queue_file(PRE_BLANK * 1000 + unit(7) + unit(8), size=size))
    assert (ends.pre_blank, ends.min_offset, ends.max_offset) == (1000, 1000, 1002)
    assert ends.first["physical_offset"] == 7
    only = file_ends(queue_file(PRE_BLANK * 3, size=size))
    assert (only.first, only.last, only.min_offset, only.max_offset) == (None, None, 3, 3)


def test_empty_full_and_odd_queue_files(queue_file):
    assert file_ends(queue_file(b"", size=200)).max_offset == 0
    full = file_ends(queue_file(unit(5) * 300_000))
    assert (full.units, full.max_offset) == (300_000, 300_000)
    assert file_ends(queue_file(unit(5), size=33)).units == 1
    assert file_ends(queue_file(b"", size=0)).units == 0


def test_batch_units_tell_queue_offsets_themselves(queue_file):
    def batch(base, count):
        values = struct.pack(">qiqqqhii", 100 * base, 90, 0, 1_700_000_000_000, base, count, -1, 0)
        assert len(values) == BatchUnit.sizeof()
        return values

    ends = file_ends(queue_file(batch(30, 5) + batch(35, 7), size=9200, kind="batchconsumequeue"))
    assert (ends.units, ends.min_offset, ends.max_offset) == (2, 30, 42)
    nothing = file_ends(queue_file(b"", size=9200, kind="batchconsumequeue"))
    assert (nothing.min_offset, nothing.max_offset) == (None, None)


def test_without_an_index_the_end_of_the_log_is_not_looked_for(segment, tmp_path, monkeypatch):
    """It may lie behind much damage, and a start asks several times."""

    def asked(store):
        raise AssertionError(f"the log of {store.given} was read")

    segment(records(0, 0, 3))
    monkeypatch.setattr("rmqtool.query.lost_end.log_span", asked)
    assert behind_end(Store.open(tmp_path)) is None
