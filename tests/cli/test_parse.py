"""Times, offsets, sizes, ranges from text."""

from __future__ import annotations

import contextlib
import datetime as dt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rmqtool.cli import parse
from rmqtool.errors import UsageError
from rmqtool.output.times import Zone, zone_of

UTC = zone_of("UTC")
NOW = 1_700_000_000_000
MIDNIGHT = NOW - NOW % 86_400_000
INT64 = st.integers(parse.INT64_MIN, parse.INT64_MAX)
PARSERS = {
    "time": lambda text: parse.parse_time(text, UTC, NOW),
    "int": parse.parse_int,
    "offset": parse.parse_offset,
    "size": parse.parse_size,
    "offset range": parse.parse_offset_range,
    "range": lambda text: parse.parse_range(text, parse.parse_int),
    "name": parse.parse_name_value,
    "zone": zone_of,
}


@pytest.mark.parametrize(
    ("text", "millis"),
    [
        ("0", 0),
        ("1700000000000", NOW),
        ("1700000000", NOW),
        ("-1", -1),
        ("-9223372036854775808", -(1 << 63)),
        ("9223372036854775807", (1 << 63) - 1),
        ("now", NOW),
        ("-2h", NOW - 7_200_000),
        ("-30m", NOW - 1_800_000),
        ("-1d12h", NOW - 129_600_000),
        ("-250ms", NOW - 250),
        ("-1W", NOW - 604_800_000),
        ("2h ago", NOW - 7_200_000),
        ("1d", NOW - 86_400_000),
        ("1d12h ago", NOW - 129_600_000),
        ("today", MIDNIGHT),
        ("Yesterday", MIDNIGHT - 86_400_000),
        ("12:00", MIDNIGHT + 43_200_000),
        ("9:05:01.5", MIDNIGHT + 32_701_500),
        ("yesterday 23:59", MIDNIGHT - 60_000),
        ("1970-01-02", 86_400_000),
        ("1970-01-01T00:00:01.234Z", 1234),
        ("1970-01-01T08:00:00+08:00", 0),
        ("1970-01-01 00:00:02", 2000),
        ("1970-01-01#00:00:01:005", 1005),
        ("1969-12-31T23:59:59.9999", -1),
    ],
)
def test_times(text: str, millis: int) -> None:
    assert parse.parse_time(text, UTC, NOW) == millis


def test_ten_digits_are_seconds_only_without_a_sign() -> None:
    assert parse.parse_time("-1700000000", UTC) == -1_700_000_000
    assert parse.parse_time("170000000", UTC) == 170_000_000


def test_times_without_a_zone_are_read_in_the_given_one() -> None:
    assert parse.parse_time("1970-01-01", zone_of("+08:00")) == -28_800_000
    assert parse.parse_time("1970-01-01#00:00:00:000", zone_of("Asia/Shanghai")) == -28_800_000
    # 22:13:20 in UTC is the next day there
    assert parse.parse_time("12:00", zone_of("+08:00"), NOW) == MIDNIGHT + 86_400_000 + 14_400_000
    # the hour that New York shows twice: the first one
    assert parse.parse_time("2021-11-07T01:30", zone_of("America/New_York")) == 1_636_263_000_000


@pytest.mark.parametrize(
    "text",
    [
        *("", "soon", "2hours", "ago", "-2x", "-h", "2021-13-01", "9223372036854775808"),
        *("1970-01-01#0:0:0:0", "25:00", "12:60", "yesterday noon", "tomorrow", ":00"),
    ],
)
def test_bad_times_are_usage_errors(text: str) -> None:
    with pytest.raises(UsageError):
        parse.parse_time(text, UTC, NOW)


@given(INT64)
def test_iso_form_reads_back(millis: int) -> None:
    zone = zone_of("Europe/Berlin")
    shown = zone.iso(millis)
    if shown.endswith("ms"):
        assert shown == f"{millis}ms"
        assert not dt.MINYEAR < 1970 + millis / 31_556_952_000 < dt.MAXYEAR - 1
    else:
        assert parse.parse_time(shown, UTC) == millis


@given(st.datetimes().filter(lambda moment: moment.year > 1))
def test_broker_form_equals_iso_form(moment: dt.datetime) -> None:
    moment = moment.replace(microsecond=moment.microsecond // 1000 * 1000)
    broker = f"{moment:%Y-%m-%d#%H:%M:%S}:{moment.microsecond // 1000:03}".rjust(23, "0")
    assert parse.parse_time(broker, UTC) == parse.parse_time(moment.isoformat(), UTC)


@pytest.mark.parametrize("name", ["local", "UTC", "z", "+08:00", "-0330", "UTC+5", "Asia/Shanghai"])
def test_zones(name: str) -> None:
    zone = zone_of(name)
    assert isinstance(zone, Zone)
    assert zone.name
    assert zone.iso(0)[-6] in "+-"


def test_local_zone_has_a_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    assert zone_of("local").name == "Asia/Tokyo"
    monkeypatch.delenv("TZ")
    assert zone_of("local").name


@pytest.mark.parametrize("name", ["", "Mars", "+25:00", "../../etc/passwd", "/etc/passwd", "a\0b"])
def test_unknown_zones_are_usage_errors(name: str) -> None:
    with pytest.raises(UsageError, match="not a valid time zone"):
        zone_of(name)


@pytest.mark.parametrize(
    ("text", "offset"),
    [("0", 0), ("4096", 4096), ("0x1000", 4096), ("00000000000000032768", 32768), ("32768:12", 32780),
     ("0x8000:0xc", 32780), ("00000000001073741824:5", 1_073_741_829)],
)  # fmt: skip
def test_offsets(text: str, offset: int) -> None:
    assert parse.parse_offset(text) == offset


def test_segment_and_position_go_to_the_resolver() -> None:
    def resolve(segment: int, position: int) -> int:
        if segment != 32768:
            raise UsageError(f"no segment {segment}")
        return segment + position

    assert parse.parse_offset("32768:12", resolve) == 32780
    assert parse.parse_offset("7", resolve) == 7
    with pytest.raises(UsageError, match="no segment 5"):
        parse.parse_offset("5:12", resolve)


@pytest.mark.parametrize(
    "text",
    ["", "-1", "1.5", "0x", "a:b", "1:", ":1", "1:2:3", "9223372036854775808", "9223372036854775807:1"],
)
def test_bad_offsets_are_usage_errors(text: str) -> None:
    with pytest.raises(UsageError):
        parse.parse_offset(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1:2", (1, 2)), ("1:", (1, None)), (":2", (None, 2)), (":", (None, None)), ("5:5", (5, 5)),
        ("100:5:200:6", (105, 206)),
        ("00000000000000000100:5:200", (105, 200)), ("50:00000000000000000100:5", (50, 105)),
        ("00000000000000000100:5:", (105, None)), (":00000000000000000100:5", (None, 105)),
    ],
)  # fmt: skip
def test_offset_ranges(text: str, expected: tuple[int | None, int | None]) -> None:
    assert parse.parse_offset_range(text) == expected


@pytest.mark.parametrize("text", ["", "1", "1:2:3", "2:1", "1:2:3:4:5", "a:b"])
def test_bad_offset_ranges_are_usage_errors(text: str) -> None:
    with pytest.raises(UsageError):
        parse.parse_offset_range(text)


@pytest.mark.parametrize(
    ("text", "size"),
    [("0", 0), ("4096", 4096), ("4096B", 4096), ("64KiB", 65536), ("64K", 65536), ("64 kB", 64000),
     ("1.5MB", 1_500_000), ("1GiB", 1 << 30), ("0.5TiB", 1 << 39), ("50MiB/s", 50 << 20)],
)  # fmt: skip
def test_sizes(text: str, size: int) -> None:
    assert parse.parse_size(text) == size


@pytest.mark.parametrize("text", ["", "-1", "KiB", "1XB", "1iB", "1.", "1e9", "9" * 5000, "99999PiB"])
def test_bad_sizes_are_usage_errors(text: str) -> None:
    with pytest.raises(UsageError):
        parse.parse_size(text)


def test_name_value() -> None:
    assert parse.parse_name_value("a=b=c") == ("a", "b=c")
    assert parse.parse_name_value("a=") == ("a", "")
    for text in ("a", "=b", ""):
        with pytest.raises(UsageError):
            parse.parse_name_value(text)


@pytest.mark.parametrize("parser", PARSERS.values(), ids=PARSERS)
@given(text=st.text() | st.text("0123456789:-+x.KMGiB#T=hmsd", max_size=60))
def test_any_text_is_read_or_refused(parser, text: str) -> None:
    with contextlib.suppress(UsageError):
        parser(text)


@given(INT64)
def test_whole_numbers_read_back(number: int) -> None:
    assert parse.parse_int(str(number)) == number
    assert parse.parse_int(f"{'-' if number < 0 else ''}{abs(number):#x}") == number
    assert parse.parse_time(f"{number:020d}", UTC) == number
