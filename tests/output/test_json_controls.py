"""JSON shows nothing that a terminal obeys: what it need not hold raw is escaped, and reads back the same."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rmqtool.output.jsonrows import encode

MOVING = "\x7f\x80\x85\x9b\x9f\u061c\u200e\u200f\u2028\u2029\u202a\u202e\u2066\u2069"


@pytest.mark.parametrize("character", MOVING)
def test_escaped(character: str) -> None:
    made = encode({"a" + character: ["x" + character + "中文", {"y": character}]})
    assert character not in made.decode()
    assert made.decode().count(f"\\u{ord(character):04x}") == 3
    assert "中文" in made.decode()


@given(st.recursive(st.text() | st.integers() | st.none(), lambda inner: st.dictionaries(st.text(), inner)))
def test_reads_back(value: object) -> None:
    made = encode(value)
    assert json.loads(made) == value
    assert not set(MOVING) & set(made.decode())
    assert len(made.decode().splitlines()) <= 1


def test_numbers_and_names_that_orjson_refuses() -> None:
    assert encode({"\udcff\x9b": 1 << 70}) == b'{"\\\\udcff\\u009b":1180591620717411303424}'
