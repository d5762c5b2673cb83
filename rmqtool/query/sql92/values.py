"""Java values in expressions: which there are, how strings become numbers, how two are compared.

A property is always a string. A string beside a number is read as that number's type, and what cannot be read
is an error, which makes the whole expression fail for the record (`ComparisonExpression#__compare`).
"""

from __future__ import annotations

import math
import re

from formats.java import java_parse_int

_DOUBLE = re.compile(r"[+-]?(?:NaN|Infinity|(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?[fFdD]?)")
_HEX_DOUBLE = re.compile(r"[+-]?0[xX](?:[0-9a-fA-F]+\.?[0-9a-fA-F]*|\.[0-9a-fA-F]+)[pP][+-]?[0-9]+[fFdD]?")
_TRIMMED = "".join(map(chr, range(33)))


class UnevaluableError(Exception):
    """Evaluation ended with a Java exception: the broker logs it and the record does not pass."""


class Int32(int):
    """`java.lang.Integer`."""


class Int64(int):
    """`java.lang.Long`."""


Value = str | bool | Int32 | Int64 | float | None


def negate(value: Value) -> Value:
    """`UnaryExpression#negate`: null for what is not a number."""
    if isinstance(value, Int32):
        return Int32(-value)
    if isinstance(value, Int64):
        return Int64(-value)
    return -value if isinstance(value, float) else None


def to_double(text: str) -> float:
    """`Double#valueOf`; raises `UnevaluableError`."""
    trimmed = text.strip(_TRIMMED)
    if _HEX_DOUBLE.fullmatch(trimmed):
        return float.fromhex(trimmed.rstrip("fFdD"))
    if not _DOUBLE.fullmatch(trimmed):
        raise UnevaluableError(f"'{text}' is not a number")
    if trimmed.endswith(("NaN", "Infinity")):
        return float(trimmed)
    return float(trimmed.rstrip("fFdD"))


def to_int(text: str, bits: int) -> int:
    """`Integer#valueOf`, `Long#valueOf`: digits of any script of the first plane. `UnevaluableError`."""
    value = java_parse_int(text, bits)
    if value is None:
        raise UnevaluableError(f"'{text}' is not a whole number of {bits} bits")
    return value


def compare(left: Value, right: Value) -> int:
    """`ComparisonExpression#__compare` of two values that are not null: below, at or above 0."""
    if isinstance(left, bool) or isinstance(right, bool):
        return _compare_boolean(left, right)
    if isinstance(left, str) and isinstance(right, str):
        return (left > right) - (left < right)
    if isinstance(left, str):
        left = _as_type_of(left, right)
    elif isinstance(right, str):
        right = _as_type_of(right, left)
    if isinstance(left, float) or isinstance(right, float):
        return _compare_double(float(left or 0), float(right or 0))
    return (int(left or 0) > int(right or 0)) - (int(left or 0) < int(right or 0))


def _as_type_of(text: str, number: Value) -> Value:
    if isinstance(number, float):
        return to_double(text)
    return to_int(text, 32 if isinstance(number, Int32) else 64)


def _compare_boolean(left: Value, right: Value) -> int:
    if isinstance(left, str):
        left = left.lower() == "true"
    elif isinstance(left, bool) and isinstance(right, str):
        # the broker casts the wrong side here, which fails at run time
        raise UnevaluableError("a boolean on the left cannot be compared with a property")
    if not (isinstance(left, bool) and isinstance(right, bool)):
        return -1
    return int(left) - int(right)


def _compare_double(left: float, right: float) -> int:
    """`Double#compare`: NaN is above everything and equal to itself, -0.0 is below 0.0."""
    if math.isnan(left) or math.isnan(right):
        return math.isnan(left) - math.isnan(right)
    if left == right == 0:
        return (math.copysign(1, left) > 0) - (math.copysign(1, right) > 0)
    return (left > right) - (left < right)
