"""The encoding of client batches and of inner batch bodies."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formats import batch
from formats.errors import FormatError
from tests.formats.catalogue import I32

ONE = bytes.fromhex("0000001E 00000000 00000000 00000000 00000001 61 0007 54414753014102")


def test_the_worked_message() -> None:
    assert batch.encode_client_message(b"a", b"TAGS\x01A\x02") == ONE
    message = batch.ClientMessage.parse_exact(ONE)
    assert (message.total_size, message.flag, message.body, message.properties) == (
        30,
        0,
        b"a",
        b"TAGS\x01A\x02",
    )
    assert batch.ClientMessage.build(message) == ONE


@given(st.lists(st.tuples(st.binary(max_size=30), st.binary(max_size=30), I32), max_size=6))
def test_a_row_of_messages(rows: list[tuple[bytes, bytes, int]]) -> None:
    body = batch.encode_batch(rows)
    found = list(batch.inner_messages(body, 100))
    assert [(m.message.body, m.message.properties, m.message.flag) for m in found] == rows
    assert [m.queue_offset for m in found] == list(range(100, 100 + len(rows)))
    assert [
        batch.ClientMessage.build(m.message) == body[m.position :][: m.message.total_size] for m in found
    ] == [True] * len(rows)
    assert batch.ClientMessages.build(batch.ClientMessages.parse_exact(body)) == body
    assert len(batch.ClientMessages.parse(body)) == len(rows)


def test_sizes_and_magic_are_not_looked_at() -> None:
    raw = struct.pack(">iii", -5, 7, 9) + ONE[12:]
    assert batch.ClientMessage.parse(raw).body == b"a"
    assert len(list(batch.inner_messages(raw + ONE))) == 2


@pytest.mark.parametrize(
    ("raw", "path"),
    [
        (ONE[:-1], "messages.1.properties"),
        (ONE[:3], "messages.1.total_size"),
        (ONE[:16] + b"\xff\xff\xff\xff" + ONE[20:], "messages.1.body"),
        (ONE[:21] + b"\xff\xff", "messages.1.properties"),
        (ONE[:16] + b"\x7f\xff\xff\xff" + ONE[20:], "messages.1.body"),
    ],
)
def test_a_broken_message_is_named(raw: bytes, path: str) -> None:
    messages = batch.inner_messages(ONE + raw)
    assert next(messages).message.body == b"a"
    with pytest.raises(FormatError) as caught:
        next(messages)
    assert caught.value.path == path
    with pytest.raises(FormatError):
        batch.ClientMessages.parse(ONE + raw)


@pytest.mark.parametrize(
    ("own", "shared", "expected"),
    [
        (b"", b"", b""),
        (b"A\x01b", b"", b"A\x01b"),
        (b"", b"C\x01d\x02", b"C\x01d\x02"),
        (b"A\x01b", b"C\x01d", b"A\x01b\x02C\x01d"),
        (b"A\x01b\x02", b"C\x01d", b"A\x01b\x02C\x01d"),
    ],
)
def test_properties_of_a_classic_batch(own: bytes, shared: bytes, expected: bytes) -> None:
    assert batch.join_properties(own, shared) == expected
