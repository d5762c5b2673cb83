"""Fillers take any range of at least the smallest record, and stand in no queue."""

from __future__ import annotations

import pytest
from hypothesis import strategies as st

from fixtures.builder import FIRST_TIME
from formats import crc_trailer
from formats.commitlog import Message, transaction_of
from rmqtool.repair.filler import SMALLEST_FILLER, filler, split
from tests.scan.tools import check_property, declared_rows


def test_the_smallest_record_is_the_smallest_filler() -> None:
    assert SMALLEST_FILLER == 91
    assert filler(90, 0, FIRST_TIME) is None
    assert filler(110, 0, FIRST_TIME, crc_trailer=True) is None


def test_every_length_has_a_filler() -> None:
    def prop(more: int, offset: int, trailer: bool) -> None:
        length = SMALLEST_FILLER + (20 if trailer else 0) + more
        data = filler(length, offset, FIRST_TIME, crc_trailer=trailer)
        assert data is not None
        assert len(data) == length
        message = Message.parse_exact(data)
        assert transaction_of(message.sys_flag) == "rollback"
        assert (message.queue_offset, message.physical_offset) == (0, offset)
        assert (message.store_timestamp, message.born_timestamp) == (FIRST_TIME, FIRST_TIME)
        assert b"RMQTOOL_TOMBSTONE".startswith(message.topic)
        assert not trailer or crc_trailer.verify(data, bytes(message.properties)) == "ok"

    check_property(prop, st.integers(0, 3000), st.integers(0, 1 << 62), st.booleans(), examples=150)


def test_a_range_is_filled_to_its_last_byte() -> None:
    def prop(length: int, smallest: int, more: int) -> None:
        largest = 2 * smallest + more
        lengths = split(length, smallest=smallest, largest=largest)
        if lengths is None:
            assert 0 < length < smallest
            return
        assert sum(lengths) == length
        assert all(smallest <= one <= largest for one in lengths)
        assert len(lengths) == -(-length // largest)

    check_property(prop, st.integers(0, 5000), st.integers(91, 140), st.integers(0, 500), examples=400)


def test_fillers_behind_each_other_are_a_log() -> None:
    lengths = split(1000, largest=300)
    assert lengths is not None
    data = b""
    for length in lengths:
        data += filler(length, 5000 + len(data), FIRST_TIME) or b""
    assert len(data) == 1000
    assert len(declared_rows(data, 5000)) == len(lengths) == 4


def test_limits_that_leave_gaps_are_refused() -> None:
    with pytest.raises(ValueError, match="leave gaps"):
        split(1000, smallest=100, largest=199)
