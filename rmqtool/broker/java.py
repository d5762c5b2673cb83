"""Java's 64-bit arithmetic and number parsing, where recovery depends on it."""

from __future__ import annotations

from formats.java import java_parse_int

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
    return java_parse_int(name, 64)
