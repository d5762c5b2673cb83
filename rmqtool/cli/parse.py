"""Arguments from text: times, offsets, sizes, ranges, NAME=VALUE. Everything wrong is one clear `UsageError`.

The parsers take the text alone; `named` puts the option's name in front of what they complain about.
"""

from __future__ import annotations

import re
import time
from contextlib import contextmanager
from datetime import datetime, timedelta
from difflib import get_close_matches
from typing import TYPE_CHECKING, TypeVar

from rmqtool.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rmqtool.output.times import Zone

T = TypeVar("T")

INT32_MAX = (1 << 31) - 1
INT64_MIN = -(1 << 63)
INT64_MAX = (1 << 63) - 1
MAX_DIGITS = 64  # far beyond any int64, far below where int() gets slow or refuses
SEGMENT_NAME_DIGITS = 20  # UtilAll#offset2FileName

_TIME_FORMS = "epoch milliseconds, ISO 8601, yyyy-MM-dd#HH:mm:ss:SSS, now, -2h, 2h ago, 12:00 or yesterday"
_CLOCK = r"\d{1,2}:\d{2}(?::\d{2}(?:\.\d{1,6})?)?"
_DAY = re.compile(rf"(?:(today|yesterday)|(?=\d))(?:(?:^|[ T])({_CLOCK}))?", re.IGNORECASE)
_BROKER_TIME = re.compile(r"(\d{4}-\d{2}-\d{2})#(\d{2}:\d{2}:\d{2}):(\d{3})")
_AGO = re.compile(r"(?:\d+(?:ms|[smhdw]))+", re.IGNORECASE)
_AGO_PART = re.compile(r"(\d+)(ms|[smhdw])", re.IGNORECASE)
_AGO_MILLIS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 604_800_000}
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([kmgtp]?)(i?)(b?)", re.IGNORECASE)
_POWER = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4, "p": 5}


@contextmanager
def named(option: str) -> Iterator[None]:
    """Puts the option's name in front of the message of a `UsageError` raised inside."""
    try:
        yield
    except UsageError as error:
        raise UsageError(f"{option}: {error}") from error


def parse_int(text: str, *, minimum: int = INT64_MIN, maximum: int = INT64_MAX) -> int:
    """A whole number, decimal or 0x…, between `minimum` and `maximum`."""
    if not re.fullmatch(r"[+-]?(?:[0-9]+|0[xX][0-9a-fA-F]+)", text):
        raise UsageError(f"'{text}' is not a whole number")
    digits = text.lstrip("+-")
    if len(digits) > MAX_DIGITS:
        raise UsageError(f"a number of {len(digits)} digits is not between {minimum} and {maximum}")
    # Java's zero-padded file names are decimal: no octal here.
    value = int(digits, 16) if digits[:2].lower() == "0x" else int(digits)
    value = -value if text.startswith("-") else value
    if not minimum <= value <= maximum:
        raise UsageError(f"{text} is not between {minimum} and {maximum}")
    return value


def parse_time(text: str, zone: Zone, now_millis: int | None = None) -> int:
    """Epoch milliseconds of a time argument.

    Whole numbers are epoch milliseconds (any int64), except ten digits without a sign: epoch seconds.
    Otherwise ISO 8601 or mqadmin's `yyyy-MM-dd#HH:mm:ss:SSS` (both in `zone` unless they name one), `now`,
    an age such as `-2h`, `30m ago`, `1d12h`, a time of today `12:00`, or `today` and `yesterday`, which begin
    at midnight in `zone` unless a time follows. `now_millis` is what "now" means; default the clock.
    """
    if re.fullmatch(r"[0-9]{10}", text):
        return int(text) * 1000
    if re.fullmatch(r"[+-]?[0-9]+", text):
        return parse_int(text)
    if text == "now":
        return _now(now_millis)
    age_text = text.removeprefix("-").removesuffix("ago").rstrip()
    if _AGO.fullmatch(age_text):
        parts = _AGO_PART.findall(age_text)
        age = sum(parse_int(count) * _AGO_MILLIS[unit.lower()] for count, unit in parts)
        return parse_int(str(_now(now_millis) - age))
    if match := _DAY.fullmatch(text):
        return _of_day(match[1], match[2] or "0:00", text, zone, _now(now_millis))
    if match := _BROKER_TIME.fullmatch(text):
        return _moment("{}T{}.{}".format(*match.groups()), text, zone)
    return _moment(text, text, zone)


def _now(now_millis: int | None) -> int:
    return time.time_ns() // 1_000_000 if now_millis is None else now_millis


def _of_day(day: str | None, clock: str, text: str, zone: Zone, now: int) -> int:
    """A time of today or yesterday, by the calendar of `zone`."""
    date = zone.date(now) - timedelta(days=1 if day and day.lower() == "yesterday" else 0)
    hour, _, rest = clock.partition(":")
    return _moment(f"{date.isoformat()}T{hour:0>2}:{rest}", text, zone)


def _moment(iso: str, text: str, zone: Zone) -> int:
    try:
        return zone.millis(datetime.fromisoformat(iso))
    except (ValueError, OverflowError) as error:
        raise UsageError(f"'{text}' is not a valid time; give {_TIME_FORMS}") from error


def parse_offset(text: str, resolve: Callable[[int, int], int] | None = None) -> int:
    """A physical offset: decimal, `0x…`, or `SEGMENT:POSITION`.

    SEGMENT is a segment's base offset or file name, POSITION a byte in that file. `resolve(segment,
    position)` turns the pair into a physical offset and may refuse with a `UsageError`; without it they are
    added.
    """
    segment, colon, position = text.partition(":")
    if not colon:
        return parse_int(text, minimum=0)
    try:
        base = parse_int(segment, minimum=0)
        place = parse_int(position, minimum=0)
    except UsageError as error:
        raise UsageError(
            f"'{text}' is not a valid offset; give a decimal, 0x… or SEGMENT:POSITION"
        ) from error
    return resolve(base, place) if resolve else parse_int(str(base + place), minimum=0)


def parse_size(text: str) -> int:
    """A number of bytes: `4096`, `64KiB`, `1.5MB`, `1GiB`; `64K` is 64 KiB. A rate may end with `/s`."""
    match = _SIZE.fullmatch(text.strip().removesuffix("/s"))
    if not match or (match[3] and not match[2]):
        raise UsageError(f"'{text}' is not a valid size; give bytes, 64KiB, 1.5MB or 1GiB")
    number, unit, binary, byte = match.groups()
    base = 1000 if byte and not binary else 1024
    whole, _, fraction = number.partition(".")
    if len(number) > MAX_DIGITS:
        raise UsageError(f"a size of {len(number)} digits is out of range")
    scaled = int(whole + fraction) * base ** _POWER[unit.lower()]
    return parse_int(str(scaled // 10 ** len(fraction)))


def parse_range(text: str, parse_one: Callable[[str], T]) -> tuple[T | None, T | None]:
    """A half-open range `A:B`, each side read by `parse_one`; an empty side is None, no bound."""
    parts = text.split(":")
    if len(parts) != 2:
        raise UsageError(f"'{text}' is not a range; give A:B, A: or :B")
    return _ordered(text, *(parse_one(part) if part else None for part in parts))


def parse_offset_range(
    text: str, resolve: Callable[[int, int], int] | None = None
) -> tuple[int | None, int | None]:
    """A half-open range of physical offsets, each side in any form of `parse_offset`.

    With two colons the side whose first part is a 20-digit segment file name is `SEGMENT:POSITION`.
    """
    left, right = _offset_sides(text)
    return _ordered(text, *(parse_offset(side, resolve) if side else None for side in (left, right)))


def _offset_sides(text: str) -> tuple[str, str]:
    parts = text.split(":")
    if len(parts) == 2:
        return parts[0], parts[1]
    if len(parts) == 4:
        return ":".join(parts[:2]), ":".join(parts[2:])
    if len(parts) == 3:
        first, second = (len(part) == SEGMENT_NAME_DIGITS for part in parts[:2])
        if first != second:
            cut = 2 if first else 1
            return ":".join(parts[:cut]), ":".join(parts[cut:])
    hint = "with SEGMENT:POSITION on one side write SEGMENT as the 20-digit file name"
    raise UsageError(f"'{text}' is not a valid offset range; give A:B, A: or :B ({hint})")


def _ordered(text: str, low: T | None, high: T | None) -> tuple[T | None, T | None]:
    if low is not None and high is not None and low > high:  # type: ignore[operator]
        raise UsageError(f"'{text}' ends before it begins")
    return low, high


def parse_name_value(text: str) -> tuple[str, str]:
    """`NAME=VALUE`; VALUE may be empty and may hold further `=`."""
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise UsageError(f"'{text}' is not NAME=VALUE")
    return name, value


def parse_text(text: str) -> str:
    """Text to look for, as it was typed: not empty (an unset variable of a script), and UTF-8.

    Bytes that are not UTF-8 stand in an argument as lone surrogates and match nothing.
    """
    if not text:
        raise UsageError("is empty")
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise UsageError(f"'{text}' is not UTF-8 text") from error
    return text


def parse_names(text: str, allowed: tuple[str, ...]) -> frozenset[str]:
    """A comma-separated choice out of `allowed`."""
    names = frozenset(part.strip() for part in text.split(","))
    unknown = sorted(names - set(allowed))
    if unknown:
        near = get_close_matches(unknown[0], allowed, 1)
        meant = f" (did you mean {near[0]}?)" if near else ""
        raise UsageError(f"'{unknown[0]}' must be one of: {', '.join(allowed)}{meant}")
    return names
