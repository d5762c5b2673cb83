"""What lies at an offset."""

from __future__ import annotations

import pytest

from formats.commitlog import encode_message
from rmqtool.query.locate import What, look_at
from rmqtool.query.one_record import read_record
from rmqtool.store.layout import Store

SIZE = 16384
EMBEDDED_AT = 3


@pytest.fixture
def log(tmp_path):
    """Content of segment 0 → its SegmentSet."""

    def make(data, size=SIZE):
        directory = tmp_path / "commitlog"
        directory.mkdir(exist_ok=True)
        (directory / f"{0:020d}").write_bytes(bytes(data).ljust(size, b"\0"))
        return Store.open(tmp_path).segments

    return make


def chain(count, body=b"x" * 100, time=1_700_000_000_000, start=0):
    """Records one after the other, and where each begins."""
    data, starts = b"", []
    for number in range(count):
        starts.append(start + len(data))
        at = start + len(data)
        data += encode_message("T", body, physical_offset=at, store_timestamp=time + number)
    return data, starts


def test_every_byte_of_a_healthy_log_belongs_to_a_record(log):
    data, starts = chain(4)
    segments = log(data)
    size = len(data) // 4
    for offset in range(0, len(data), 7):
        place = look_at(segments, offset)
        assert place.start == offset // size * size
        assert place.length == size
        assert place.what is (What.RECORD if offset in starts else What.INSIDE)
    behind = look_at(segments, len(data))
    assert (behind.what, behind.before) == (What.ZERO, starts[-1])
    assert look_at(segments, SIZE).what is What.NO_FILE


@pytest.mark.parametrize("inside", [0, 3])
def test_a_record_is_read_once(log, tmp_path, inside):
    data, starts = chain(3)
    place = look_at(log(data), starts[1] + inside)
    (tmp_path / "commitlog" / f"{0:020d}").unlink()
    record = read_record(place)
    assert (record.raw, record.topic) == (data[starts[1] : starts[2]], "T")
    assert record.batch(["physical_offset", "body"]).to_pylist() == [
        {"physical_offset": starts[1], "body": b"x" * 100}
    ]


def test_damage_is_told_with_its_reason_and_neighbours(log):
    data, starts = chain(5)
    broken = bytearray(data)
    broken[starts[2] + 84 : starts[2] + 88] = b"\x7f\xff\xff\xff"
    segments = log(broken)
    place = look_at(segments, starts[2])
    assert place.what is What.DAMAGED
    assert place.reason == "bad_body_length"
    assert place.found == 0x7FFFFFFF
    assert (place.start, place.length) == (starts[2], starts[3] - starts[2])
    assert (place.before, place.after) == (starts[1], starts[3])
    within = look_at(segments, starts[2] + 20)
    assert (within.what, within.before, within.after) == (What.GARBAGE, starts[1], starts[3])


def test_a_lost_magic_still_counts_as_a_damaged_record(log):
    data, starts = chain(3)
    broken = bytearray(data)
    broken[starts[1] + 4] ^= 0xFF
    place = look_at(log(broken), starts[1])
    assert (place.what, place.reason) == (What.DAMAGED, "bad_magic")


def test_a_record_in_the_body_of_another_is_inside_of_that(log):
    inner = encode_message("Inner", b"y" * 10, physical_offset=77)
    data = encode_message("T", b"abc" + inner, physical_offset=0)
    segments = log(data + chain(1, start=len(data))[0])
    at = data.index(inner)
    place = look_at(segments, at)
    assert (place.what, place.start, place.length) == (What.INSIDE, 0, len(data))


def test_records_behind_the_end_are_left_from_an_earlier_life(log):
    living, starts = chain(2)
    stale, stale_starts = chain(2, time=1_600_000_000_000, start=len(living) + 500)
    segments = log(living + bytes(500) + stale)
    assert not look_at(segments, starts[1]).leftover
    assert look_at(segments, stale_starts[1]).leftover
    assert look_at(segments, len(living) + 100).what is What.STALE


def test_a_large_segment_is_entered_near_the_offset(log):
    data, starts = chain(4000, body=b"z" * 400)
    segments = log(data, size=len(data) + 1000)
    assert look_at(segments, starts[3900] + 5).start == starts[3900]
    broken = bytearray(data)
    broken[starts[3500] + 4] ^= 0xFF
    place = look_at(log(broken, size=len(data) + 1000), starts[3500] + 300)
    assert (place.before, place.after) == (starts[3499], starts[3501])
