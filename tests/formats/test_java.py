"""Java's arithmetic and text rules. The JVM itself is asked in tests/interop/test_java_utf8.py."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formats import java

PUT_ORDER = ["UNIQ_KEY", "WAIT", "TAGS", "KEYS", "MSG_REGION", "TRACE_ON", "CLUSTER"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", 0),
        ("TagA", 2598919),
        ("payment", -786681338),
        ("TopicTest", -1902610879),
        ("inventory", -2020599460),
        ("T#jllgvmc", -2147483648),
        ("😀", 0xD83D * 31 + 0xDE00),
        ("\ud83d", 0xD83D),
        ("a" * 64, 1926890496),
        ("a" * 65, -395936671),
    ],
)
def test_hash(text: str, expected: int) -> None:
    assert java.java_hash(text) == expected


@pytest.mark.parametrize(("value", "expected"), [(5, 5), (-5, 5), (0, 0), (-2147483648, -2147483648)])
def test_abs(value: int, expected: int) -> None:
    assert java.java_abs(value) == expected


@pytest.mark.parametrize(
    ("value", "i32", "i64"),
    [(0x80000000, -0x80000000, 0x80000000), (-1, -1, -1), ((1 << 63) + 5, 5, -(1 << 63) + 5)],
)
def test_casts_keep_the_low_bits(value: int, i32: int, i64: int) -> None:
    assert (java.to_i32(value), java.to_i64(value)) == (i32, i64)


@pytest.mark.parametrize(
    ("text", "separator", "expected"),
    [
        (" a  b ", " ", ["", "a", "", "b"]),
        ("a,,b,", ",", ["a", "", "b"]),
        ("", ",", [""]),
        (",,", ",", []),
        ("4,", ",", ["4"]),
        (",4", ",", ["", "4"]),
    ],
)
def test_split(text: str, separator: str, expected: list[str]) -> None:
    assert java.java_split(text, separator) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0", 0),
        ("-7", -7),
        ("+7", 7),
        ("0" * 5000 + "3", 3),
        ("2147483647", 2147483647),
        ("-2147483648", -2147483648),
        ("٣", 3),
        ("2147483648", None),
        ("9" * 5000, None),
        ("", None),
        ("-", None),
        ("+-1", None),
        (" 1", None),
        ("1_0", None),
        ("²", None),
        ("\U0001d7d7", None),
    ],
)
def test_parse_int(text: str, expected: int | None) -> None:
    assert java.java_parse_int(text) == expected


def test_parse_long() -> None:
    assert java.java_parse_int("-9223372036854775808", 64) == -(1 << 63)
    assert java.java_parse_int("9223372036854775808", 64) is None


def test_hashmap_order_of_the_default_constructor() -> None:
    expected = ["TRACE_ON", "KEYS", "MSG_REGION", "UNIQ_KEY", "CLUSTER", "WAIT", "TAGS"]
    assert java.java_hashmap_order(PUT_ORDER) == expected


def test_hashmap_order_with_capacity_128() -> None:
    expected = ["MSG_REGION", "UNIQ_KEY", "CLUSTER", "TAGS", "KEYS", "WAIT", "TRACE_ON"]
    assert java.java_hashmap_order(PUT_ORDER, 128) == expected


def test_hashmap_grows_beyond_three_quarters() -> None:
    """A table of 16 takes 12 keys; the 13th doubles it, and "0" (hash 0x30) moves from bucket 0 to 16."""
    keys = ["0", *(chr(32 + i) for i in range(11))]
    assert java.java_hashmap_order(keys)[0] == "0"
    assert java.java_hashmap_order([*keys, "A"])[-1] == "0"


def test_hashmap_keeps_the_first_place_of_a_repeated_key() -> None:
    assert java.java_hashmap_order(["Aa", "BB", "Aa"]) == ["Aa", "BB"]
    assert java.java_hashmap_order(["BB", "Aa", "BB"]) == ["BB", "Aa"]


@pytest.mark.parametrize(
    ("raw", "replacements"),
    [
        ("EDA080", 1),  # a surrogate
        ("EDA0", 1),
        ("C080", 2),  # overlong
        ("E08080", 3),
        ("F0808080", 4),
        ("F4908080", 4),  # beyond U+10FFFF
        ("F5808080", 4),
        ("80", 1),
        ("E4B8", 1),  # cut off
        ("F09F98", 1),
        ("F09F", 1),
        ("F0", 1),
        ("E4", 1),
        ("C3", 1),
        ("FF", 1),
    ],
)
def test_ill_formed_utf8(raw: str, replacements: int) -> None:
    assert java.java_utf8_decode(bytes.fromhex(raw)) == ("\ufffd" * replacements, True)
    text, lossy = java.java_utf8_decode(b"a" + bytes.fromhex(raw) + b"b")
    assert (text, lossy) == ("a" + "\ufffd" * replacements + "b", True)


@given(st.text())
def test_well_formed_utf8_round_trips(text: str) -> None:
    assert java.java_utf8_decode(java.java_utf8_encode(text)) == (text, False)


def test_surrogates_when_encoding() -> None:
    assert java.java_utf8_encode("a\ud83db") == b"a?b"
    assert java.java_utf8_encode("\ud83d\ude00\ud83d") == "😀?".encode()


@given(st.binary(max_size=40))
def test_ascii_is_never_swallowed(raw: bytes) -> None:
    """What lets properties be split before they are decoded."""
    text = java.java_utf8_decode(raw)[0]
    assert [c for c in text if c < "\x80"] == [chr(b) for b in raw if b < 0x80]


@given(st.binary(max_size=40))
def test_utf16_length(raw: bytes) -> None:
    text = java.java_utf8_decode(raw)[0]
    assert java.utf16_length(text) == len(java.utf16_units(text))
