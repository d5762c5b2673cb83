"""Properties: Java's decoding rule, what it loses, and both ways of writing them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formats import properties as props
from tests.formats.catalogue import TEXT

RULES = [
    ("", {}),
    ("KEYS\x01k1\x02TAGS\x01TagA\x02", {"KEYS": "k1", "TAGS": "TagA"}),
    ("KEYS\x01k1\x02TAGS\x01TagA", {"KEYS": "k1", "TAGS": "TagA"}),
    ("\x01value\x02A\x01b\x02", {"A": "b"}),
    ("A\x01\x02B\x01c\x02", {"B": "c"}),
    ("A\x01b\x01c\x02", {"A": "b\x01c"}),
    ("A\x01\x01\x02", {"A": "\x01"}),
    ("A\x01b\x02A\x01c\x02", {"A": "c"}),
    ("A\x01b\x02B\x01c\x02A\x01d\x02", {"A": "d", "B": "c"}),
    ("garbage\x02A\x01b\x02more", {"A": "b"}),
    ("ab\x02\x02\x02c\x01d\x02", {"c": "d"}),
    ("\x02\x02", {}),
    ("\x01\x02\x01\x02", {}),
    ("nothing\x02x\x02A\x01b", {"A": "b"}),
    ("TAGS\x01TagA__CRC32#\x018702374690\x02", {"TAGS": "TagA__CRC32#\x018702374690"}),
    ("😀\x01😀\x02", {"😀": "😀"}),
]


@pytest.mark.parametrize(("text", "expected"), RULES)
def test_decode(text: str, expected: dict[str, str]) -> None:
    decoded = props.decode(text.encode())
    assert decoded == expected
    assert list(decoded) == list(expected)


def decode_as_java_is_written(text: str) -> dict[str, str]:
    """The rule step by step: positions in the decoded string, and a search for 0x01 that may run too far."""
    found: dict[str, str] = {}
    i = 0
    while i < len(text):
        j = text.find("\x02", i)
        j = len(text) if j < 0 else j
        if j - i >= 3:
            k = text.find("\x01", i)
            if i < k < j - 1:
                found[text[i:k]] = text[k + 1 : j]
        i = j + 1
    return found


@given(st.text("ab\x01\x02é😀", max_size=30))
def test_decode_follows_the_rule(text: str) -> None:
    assert props.decode(text.encode()) == decode_as_java_is_written(text)


@given(
    st.lists(st.sampled_from([b"a", b"\x01", b"\x02", b"\xe4", b"\xb8", b"\xed\xa0", b"\xf0\x9f"])).map(
        b"".join
    )
)
def test_decoding_after_splitting_is_decoding_before(raw: bytes) -> None:
    assert props.decode(raw) == decode_as_java_is_written(props.java_utf8_decode(raw)[0])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("A\x01b\x02B\x01c", {"A": "b", "B": "c"}),
        ("A\x01b\x01c\x02", {}),
        ("A\x01b\x01\x02", {"A": "b"}),
        ("\x01b\x02", {"": "b"}),
        ("A\x01\x02", {}),
        ("\x01\x02\x02", {}),
    ],
)
def test_decode_up_to_490(text: str, expected: dict[str, str]) -> None:
    assert props.decode_by_split(text.encode()) == expected


@given(st.dictionaries(TEXT.filter(bool), TEXT.filter(bool)), st.booleans())
def test_encode_and_decode(pairs: dict[str, str], trailing: bool) -> None:
    raw = props.encode(pairs, trailing_separator=trailing)
    assert props.decode(raw) == pairs == props.decode_by_split(raw)
    assert list(props.decode(raw)) == list(pairs)
    assert raw.endswith(b"\x02") == (trailing and bool(pairs))
    assert props.is_lossless(raw)


def test_encode_skips_none_and_takes_repeated_names() -> None:
    assert (
        props.encode([("A", "b"), ("B", None), ("A", "c")], trailing_separator=False) == b"A\x01b\x02A\x01c"
    )
    assert props.encode({}, trailing_separator=True) == props.encode({}, trailing_separator=False) == b""


@given(st.binary(max_size=60) | st.text("ab\x01\x02", max_size=30).map(str.encode))
def test_segments_lose_nothing(raw: bytes) -> None:
    segments = props.decode_pairs(raw)
    assert props.encode_segments(segments) == raw
    assert props.Properties.build(props.Properties.parse_exact(raw)) == raw
    assert {s.name: s.value for s in segments if s.is_pair} == props.decode(raw)
    assert all(s.name is None and s.value is None for s in segments if not s.is_pair)


def test_segments_say_what_they_are() -> None:
    segments = props.decode_pairs(b"A\x01b\x01c\x02junk\x02\x02B\x01d")
    assert [(s.raw, s.terminated, s.is_pair) for s in segments] == [
        (b"A\x01b\x01c", True, True),
        (b"junk", True, False),
        (b"", True, False),
        (b"B\x01d", False, True),
    ]
    assert (segments[0].name, segments[0].value) == ("A", "b\x01c")


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (b"", True),
        (b"A\x01b", True),
        (b"A\x01b\x02", True),
        (b"A\x01b\x01c\x02", True),
        (b"A\x01b\x02\x02", False),
        (b"A\x01b\x02A\x01b\x02", False),
        (b"A\x01\x02", False),
        (b"junk", False),
        (b"A\x01\xff\x02", False),
        (b"\x02", False),
    ],
)
def test_is_lossless(raw: bytes, expected: bool) -> None:
    assert props.is_lossless(raw) is expected


@given(st.binary(max_size=30) | st.text("ab\x01\x02", max_size=12).map(str.encode))
def test_is_lossless_means_one_of_both_forms(raw: bytes) -> None:
    forms = [props.encode(props.decode(raw), trailing_separator=t) for t in (True, False)]
    assert props.is_lossless(raw) == (raw in forms)


def test_without() -> None:
    raw = b"A\x01b\x02__CRC32#\x01123\x02__CRC32\x01x\x02__CRC32#\x01"
    assert props.without(raw, props.CRC32) == b"A\x01b\x02__CRC32\x01x\x02"
    assert props.without(raw, "B") == raw


@pytest.mark.parametrize(
    ("keys", "expected"), [("k1", ["k1"]), (" a  b ", ["a", "b"]), ("a a", ["a", "a"]), ("", []), ("  ", [])]
)
def test_split_keys(keys: str, expected: list[str]) -> None:
    assert props.split_keys(keys) == expected
