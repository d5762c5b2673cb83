"""Java's 64-bit arithmetic and number parsing, where recovery depends on it."""

from __future__ import annotations

from rmqtool.store.names import LONG_MAX, parse_base_offset

_WORD = 1 << 64


def wrap64(value: int) -> int:
    """`value` as a Java long."""
    return (value + (1 << 63)) % _WORD - (1 << 63)


def rem(value: int, divisor: int) -> int:
    """Java's `%`: the sign is that of `value`."""
    rest = abs(value) % divisor
    return -rest if value < 0 else rest


def div(value: int, divisor: int) -> int:
    """Java's `/`: towards zero."""
    quotient = abs(value) // divisor
    return -quotient if value < 0 else quotient


def parse_long(name: str) -> int | None:
    """`Long.parseLong` of a file name, None where it throws."""
    if name.startswith("-"):
        value = None if name[1:2] in ("+", "-") else parse_base_offset(name[1:])
        return None if value is None else -value
    value = parse_base_offset(name)
    return value if value is not None and value <= LONG_MAX else None


def file_name(base: int) -> str:
    """`UtilAll#offset2FileName`: at least 20 digits."""
    return f"-{-base:020d}" if base < 0 else f"{base:020d}"
