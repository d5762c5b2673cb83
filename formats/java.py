"""Java arithmetic and text rules that decide bytes in a store.

Hashes of keys and tags, `String#split`, the order in which a `HashMap` hands out property names, and the
UTF-8 coder with its own way of replacing ill-formed input. See docs/format/properties.md and
docs/format/index.md.
"""

from __future__ import annotations

import codecs
from operator import mul
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

INT_MIN = -(1 << 31)
_REPLACEMENT = "\ufffd"
_REPLACE_LIKE_JAVA = "formats.java"
_POWERS = [pow(31, power, 1 << 32) for power in range(64)]
"""what each character of a short text counts in its hash, the last one first"""


def to_i32(value: int) -> int:
    """The low 32 bits as a signed number, as Java's `(int)` cast."""
    return ((value + (1 << 31)) & 0xFFFFFFFF) - (1 << 31)


def to_i64(value: int) -> int:
    """The low 64 bits as a signed number, as Java's overflowing `long` arithmetic."""
    return ((value + (1 << 63)) & 0xFFFFFFFFFFFFFFFF) - (1 << 63)


def utf16_units(text: str) -> list[int]:
    """The UTF-16 code units of `text`; what Java's `charAt` would give for 0 ... length()-1."""
    raw = text.encode("utf-16-be", "surrogatepass")
    return [(raw[i] << 8) | raw[i + 1] for i in range(0, len(raw), 2)]


def utf16_length(text: str) -> int:
    """Java's `String#length`: characters beyond the BMP count twice."""
    return len(text) + sum(1 for c in text if c > "\uffff")


def java_hash(text: str) -> int:
    """`String#hashCode` as a signed 32-bit number."""
    if len(text) <= len(_POWERS) and text.isascii():
        return to_i32(sum(map(mul, text.encode()[::-1], _POWERS)))
    h = 0
    for unit in utf16_units(text):
        h = (31 * h + unit) & 0xFFFFFFFF
    return to_i32(h)


def java_abs(value: int) -> int:
    """`Math#abs(int)`: the smallest int stays negative."""
    return value if value >= 0 or value == INT_MIN else -value


def java_split(text: str, separator: str) -> list[str]:
    """`String#split` by one literal separator: empty strings at the end are dropped, others stay."""
    parts = text.split(separator)
    if len(parts) == 1:
        return parts
    while parts and not parts[-1]:
        parts.pop()
    return parts


_SHORT = 40
"""digits that `int` reads at once; longer numbers end at the first digit that makes them too large"""


def java_parse_int(text: str, bits: int = 32) -> int | None:
    """`Integer#parseInt`, or `Long#parseLong` with 64 `bits`; None where Java throws.

    A sign and any number of decimal digits, also those of other scripts (of the BMP); no spaces.
    """
    limit = 1 << (bits - 1)
    if len(text) < _SHORT and text.isascii() and text.isdecimal():
        value = int(text)
        return value if value < limit else None
    digits = text[1:] if text[:1] in ("+", "-") else text
    value = 0
    for digit in digits:
        if digit > "\uffff" or not digit.isdecimal() or value >> bits:
            return None
        value = 10 * value + int(digit)
    value = -value if text[:1] == "-" else value
    return value if digits and -limit <= value < limit else None


def java_hashmap_order(keys: Iterable[str], initial_capacity: int = 16) -> list[str]:
    """The order in which a Java `HashMap` iterates over `keys` that were inserted one after another.

    `initial_capacity` is the argument of its constructor, 16 when it was made without. A repeated key keeps
    its first place. Growing a table splits buckets without reordering them, so only the final table size
    matters. Bins of eight and more colliding keys, which Java turns into trees, are not modelled.
    """
    distinct = list(dict.fromkeys(keys))
    buckets = 1
    while buckets < initial_capacity:
        buckets *= 2
    while 4 * len(distinct) > 3 * buckets:
        buckets *= 2

    def bucket(key: str) -> int:
        h = java_hash(key) & 0xFFFFFFFF
        return (h ^ (h >> 16)) & (buckets - 1)

    return sorted(distinct, key=bucket)


def java_utf8_decode(data: bytes) -> tuple[str, bool]:
    """`new String(data, UTF_8)` of Java 8 to 17, and whether anything was replaced by U+FFFD.

    Well-formed input decodes as everywhere. In ill-formed input Java groups bytes in another way than
    Python's "replace": an encoded surrogate such as ED A0 80 is one U+FFFD, not three.
    """
    try:
        return data.decode("utf-8"), False
    except UnicodeDecodeError:
        return data.decode("utf-8", _REPLACE_LIKE_JAVA), True


def java_utf8_encode(text: str) -> bytes:
    """`String#getBytes(UTF_8)`: a surrogate without its partner becomes `?`."""
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError:
        paired = text.encode("utf-16-be", "surrogatepass").decode("utf-16-be", "surrogatepass")
        return paired.encode("utf-8", "replace")


def _continues(data: bytes, position: int) -> bool:
    return position < len(data) and data[position] & 0xC0 == 0x80


def _malformed_length(data: bytes, start: int) -> int:
    """How many bytes one U+FFFD stands for where a sequence is ill-formed (JDK `sun.nio.cs.UTF_8`)."""
    lead = data[start]
    second = data[start + 1] if start + 1 < len(data) else 0
    if lead < 0xE0 or lead > 0xF4 or not _continues(data, start + 1):
        return 1
    if lead < 0xF0:
        if lead == 0xE0 and second < 0xA0:
            return 1
        return 3 if _continues(data, start + 2) else 2
    if (lead == 0xF0 and second < 0x90) or (lead == 0xF4 and second > 0x8F):
        return 1
    return 3 if _continues(data, start + 2) else 2


def _replace_like_java(error: UnicodeError) -> tuple[str | bytes, int]:
    if not isinstance(error, UnicodeDecodeError):
        raise error
    return _REPLACEMENT, error.start + _malformed_length(error.object, error.start)


codecs.register_error(_REPLACE_LIKE_JAVA, _replace_like_java)
