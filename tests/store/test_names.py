from __future__ import annotations

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rmqtool.store.names import (
    INT_MAX,
    LONG_MAX,
    escape_name,
    parse_base_offset,
    parse_queue_id,
    unescape_name,
)


@pytest.mark.parametrize(
    ("name", "base"),
    [
        ("00000000000000000000", 0),
        ("00000000001073741824", 1073741824),
        ("32768", 32768),
        ("+5", 5),
        ("٠٠٠٠٠٠٠٠٠٠١٠٧٣٧٤١٨٢٤", 1073741824),
        ("۰۰۰۰۰۰۰۰۰۰۱۰۷۳۷۴۱۸۲۴", 1073741824),
        ("१२", 12),
        ("09223372036854775807", LONG_MAX),
    ],
)
def test_numbers_as_java_reads_them(name, base):
    assert parse_base_offset(name) == base


@pytest.mark.parametrize(
    "name",
    [
        "",
        "-1",
        "abc",
        "1.bak",
        "0x10",
        " 1",
        "1_000",
        "²",
        "½",
        "09223372036854775808",
        "\U0001d7ce\U0001d7cf",
        "+",
        "+-1",
        "9" * 300,
    ],
)
def test_no_numbers(name):
    assert parse_base_offset(name) is None


@pytest.mark.parametrize(
    ("name", "number"),
    [("0", 0), ("-1", -1), (str(INT_MAX), INT_MAX), (str(-INT_MAX - 1), -INT_MAX - 1)],
)
def test_queue_ids(name, number):
    assert parse_queue_id(name) == number


@pytest.mark.parametrize(
    "name", ["", "x", "2147483648", "-2147483649", "1.0", "--1", "00", "+1", "-0", "\u0667"]
)
def test_no_queue_ids(name):
    assert parse_queue_id(name) is None


def test_escaping():
    assert escape_name("commitlog/00000000000000000000") == "commitlog/00000000000000000000"
    assert escape_name("%RETRY%组") == "%RETRY%组"
    assert escape_name("[/x]\x1b[2J\n") == "[/x]\\u001b[2J\\u000a"
    assert escape_name(os.fsdecode(b"a\xff\\b")) == "a\\xff\\\\b"


@given(st.binary(max_size=40), st.binary(max_size=40))
def test_escaped_names_are_printable_and_distinct(one, two):
    first, second = os.fsdecode(one), os.fsdecode(two)
    escape_name(first).encode("utf-8")
    assert not any(ord(char) < 32 or char == "\x7f" for char in escape_name(first))
    assert (escape_name(first) == escape_name(second)) == (first == second)


@given(st.text(max_size=30))
def test_any_name_gives_an_answer(name):
    base = parse_base_offset(name)
    assert base is None or 0 <= base <= LONG_MAX
    number = parse_queue_id(name)
    assert number is None or -INT_MAX - 1 <= number <= INT_MAX


@pytest.mark.parametrize(
    "name", ["plain", "a\\b", "\x01\x7f", "\udcff\udc80", "\u2028", "\\x01", "\\\\u2028", "主题"]
)
def test_escaped_names_come_back(name: str) -> None:
    assert unescape_name(escape_name(name)) == name
