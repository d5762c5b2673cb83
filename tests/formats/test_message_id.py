"""Offset message ids and unique client ids."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formats.errors import FormatError
from formats.message_id import OffsetMessageId, UniqueClientId
from tests.formats.catalogue import I64, addresses

V4_ID = "0A00000100002A9F0000000000001234"
V6_ID = "20010DB800000000000000000000000100002A9F0000000000001234"
UNIQUE = "C0A8010A10922A139A0F075BCD150007"


def ms(year: int, month: int, day: int, hour: int = 0, minutes_east: int = 0) -> int:
    zone = timezone(timedelta(minutes=minutes_east))
    return int(datetime(year, month, day, hour, tzinfo=zone).timestamp() * 1000)


@pytest.mark.parametrize(
    ("text", "ip", "host"),
    [
        (V4_ID, "0a000001", "10.0.0.1:10911"),
        (V6_ID, "20010db8000000000000000000000001", "[2001:db8::1]:10911"),
    ],
)
def test_offset_id_vectors(text: str, ip: str, host: str) -> None:
    found = OffsetMessageId.decode(text)
    assert found == (bytes.fromhex(ip), 10911, 0x1234)
    assert found.host == host
    assert found.build() == text == OffsetMessageId.decode(text.lower()).build()


@given(addresses(), I64)
def test_offset_ids_round_trip(address: tuple[bytes, int], offset: int) -> None:
    made = OffsetMessageId(*address, offset)
    assert OffsetMessageId.decode(made.build()) == made
    assert len(made.build()) == (32 if len(address[0]) == 4 else 56)


@pytest.mark.parametrize(
    "text", ["", "0A", V4_ID[:-1], V4_ID + "00", "G" * 32, " " * 32, "0 " * 16, "é" * 32, "\uff11" * 56]
)
def test_no_ids(text: str) -> None:
    for kind in (OffsetMessageId, UniqueClientId):
        with pytest.raises(FormatError):
            kind.decode(text)


def test_parts_that_do_not_fit() -> None:
    for made in (
        OffsetMessageId(bytes(5), 1, 1),
        OffsetMessageId(bytes(4), 1 << 31, 1),
        UniqueClientId(bytes(4), 65536, 0, 0, 0),
        UniqueClientId(bytes(4), -1, 0, 0, 0),
    ):
        with pytest.raises(FormatError):
            made.build()


def test_unique_id_vector() -> None:
    made = UniqueClientId.decode(UNIQUE)
    assert made == (bytes([192, 168, 1, 10]), 4242, 0x2A139A0F, 123456789, 7)
    assert made.build() == UNIQUE


@given(
    st.binary(min_size=4, max_size=4) | st.binary(min_size=16, max_size=16),
    st.integers(0, 65535),
    st.integers(-(1 << 31), (1 << 31) - 1),
    st.integers(0, (1 << 32) - 1),
    st.integers(0, 65535),
)
def test_unique_ids_round_trip(ip: bytes, pid: int, loader: int, time: int, counter: int) -> None:
    made = UniqueClientId(ip, pid, loader, time, counter)
    assert UniqueClientId.decode(made.build()) == made


def test_time_of_the_vector() -> None:
    """Day 2 of the month, 10:17:36.789."""
    made = UniqueClientId.decode(UNIQUE).created_near(ms(2023, 11, 14))
    assert datetime.fromtimestamp(made / 1000, UTC) == datetime(2023, 11, 2, 10, 17, 36, 789000, UTC)


@pytest.mark.parametrize("minutes_east", [-720, -210, 0, 330, 480, 840])
@given(
    created=st.integers(ms(2010, 1, 1), ms(2040, 1, 1)),
    delay=st.integers(-(10 * 86_400_000), 10 * 86_400_000),
)
def test_time_is_found_from_a_moment_near_it(minutes_east: int, created: int, delay: int) -> None:
    local = datetime.fromtimestamp(created // 1000, timezone(timedelta(minutes=minutes_east)))
    start = ms(local.year, local.month, 1, minutes_east=minutes_east)
    made = UniqueClientId.decode(UniqueClientId(bytes(4), 1, 2, created - start, 3).build())
    assert made.created_near(created + delay, minutes_east) == created


def test_made_in_one_month_and_stored_in_the_next() -> None:
    made = UniqueClientId(bytes(4), 1, 2, ms(2024, 3, 31, 23) - ms(2024, 3, 1), 3)
    assert made.created_near(ms(2024, 4, 1, 1)) == ms(2024, 3, 31, 23)


@pytest.mark.parametrize(
    ("now", "expected"),
    [
        (ms(2023, 11, 14), ms(2023, 11, 2) + 37_056_789),
        (ms(2023, 11, 1), ms(2023, 10, 2) + 37_056_789),
        (ms(2023, 11, 2) + 37_056_789, ms(2023, 10, 2) + 37_056_789),
        (ms(2024, 1, 1), ms(2023, 12, 2) + 37_056_789),
    ],
)
def test_time_as_java_tells_it(now: int, expected: int) -> None:
    """The current month if that is past, else the one before."""
    assert UniqueClientId.decode(UNIQUE).nearly_time(now) == expected
