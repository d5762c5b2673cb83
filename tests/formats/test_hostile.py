"""Whatever bytes a parser gets: a value that builds the same bytes again, or a FormatError."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formats import batch, checkpoint, commitlog, crc_trailer, message_id, tags_code
from formats import properties as props
from formats.errors import FormatError
from tests.formats.catalogue import BIG, SCHEMAS, bytes_for, messages

if TYPE_CHECKING:
    from collections.abc import Callable

READERS: dict[str, Callable[[bytes], Any]] = {
    "inner_messages": lambda raw: list(batch.inner_messages(raw)),
    "decode": props.decode,
    "decode_by_split": props.decode_by_split,
    "is_lossless": props.is_lossless,
    "verify": lambda raw: crc_trailer.verify(raw, raw),
    "EpochFile": checkpoint.EpochFile.parse,
    "BrokerIdentity": checkpoint.BrokerIdentity.parse,
    "parse_checkpoint": checkpoint.parse_checkpoint,
}
TEXT_READERS: dict[str, Callable[[str], Any]] = {
    "OffsetMessageId": message_id.OffsetMessageId.decode,
    "UniqueClientId": message_id.UniqueClientId.decode,
    "delay_level": lambda text: tags_code.delay_level(text, 18),
    "parse_delay_levels": tags_code.parse_delay_levels,
    "value_of": crc_trailer.value_of,
    "split_keys": props.split_keys,
}


@pytest.mark.share
@pytest.mark.parametrize("name", SCHEMAS)
@given(data=st.data())
def test_valid_bytes_round_trip(name: str, data: st.DataObject) -> None:
    raw = data.draw(bytes_for(name))
    value = SCHEMAS[name].parse(raw)
    built = SCHEMAS[name].build(value)
    assert raw.startswith(built)
    assert SCHEMAS[name].build(SCHEMAS[name].parse_exact(built)) == built


@pytest.mark.share
@pytest.mark.parametrize("name", SCHEMAS)
@given(raw=st.binary(max_size=300) | st.integers(0, BIG).map(bytes))
def test_any_bytes(name: str, raw: bytes) -> None:
    try:
        value = SCHEMAS[name].parse(raw)
    except FormatError:
        return
    assert raw.startswith(SCHEMAS[name].build(value))


@pytest.mark.share
@pytest.mark.parametrize("name", SCHEMAS)
@given(data=st.data())
def test_damaged_bytes(name: str, data: st.DataObject) -> None:
    """One byte changed and the end cut off: near misses go deeper than noise."""
    raw = bytearray(data.draw(bytes_for(name)))
    if raw:
        raw[data.draw(st.integers(0, min(len(raw), 200) - 1))] = data.draw(st.integers(0, 255))
    cut = bytes(raw[: data.draw(st.integers(0, len(raw)))])
    for damaged in (bytes(raw), cut):
        try:
            value = SCHEMAS[name].parse(damaged)
        except FormatError:
            continue
        assert damaged.startswith(SCHEMAS[name].build(value))


@given(messages(), st.integers(0, 19), st.binary(min_size=4, max_size=4))
def test_damaged_lengths_of_a_record(raw: bytes, word: int, value: bytes) -> None:
    """Any 32-bit word of a record replaced: accepted only if the frame still adds up."""
    damaged = raw[: 4 * word] + value + raw[4 * word + 4 :]
    try:
        message = commitlog.Message.parse(damaged)
    except FormatError:
        return
    assert message.total_size == len(commitlog.Message.build(message)) <= len(damaged)


@pytest.mark.parametrize("name", READERS)
@given(raw=st.binary(max_size=200))
def test_readers_of_bytes(name: str, raw: bytes) -> None:
    with suppress(FormatError):
        READERS[name](raw)


@pytest.mark.parametrize("name", TEXT_READERS)
@given(
    text=st.text()
    | st.text("0123456789abcdefABCDEFg -", min_size=32, max_size=32)
    | st.text("-+0123456789smhd ")
)
def test_readers_of_text(name: str, text: str) -> None:
    with suppress(FormatError):
        TEXT_READERS[name](text)


@given(time=st.integers(0, (1 << 32) - 1), reference=st.integers(-(1 << 63), (1 << 63) - 1))
def test_id_times_with_any_reference(time: int, reference: int) -> None:
    made = message_id.UniqueClientId(bytes(4), 0, 0, time, 0)
    for answer in (made.created_near, made.nearly_time):
        with suppress(FormatError):
            assert abs(answer(reference) - reference) < 100 * 86_400_000
