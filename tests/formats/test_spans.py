"""Places of fields, as the schema itself reports them."""

from __future__ import annotations

import pytest
from construct import Int8ub

from formats.commitlog import HEADERS, MESSAGE_MAGIC_CODE_V2, Message, encode_message
from formats.errors import FormatError
from formats.primitives import offset_of
from formats.spans import spans

V4, V6 = (bytes([10, 0, 0, 1]), 10911), (bytes(15) + b"\1", 10911)


@pytest.mark.parametrize("born", [V4, V6])
@pytest.mark.parametrize("store", [V4, V6])
@pytest.mark.parametrize("topic", ["T", "T" * 128])
def test_spans_cover_a_record_without_gap_in_every_layout(born, store, topic):
    record = encode_message(topic, b"body", b"KEYS\x01a\x02", born_host=born, store_host=store)
    found, error = spans(Message, record)
    assert error is None
    assert [one.start for one in found] == [0, *(one.end for one in found[:-1])]
    assert found[-1].end == len(record)
    header = HEADERS[born == V6, store == V6]
    for one in found:
        if one.name in {field.name for field in header.subcon.subcons}:
            assert one.start == offset_of(header, one.name)
    values = {one.name: one.value for one in found}
    assert values["topic"] == topic.encode()
    assert values["body"] == b"body"
    assert (values["magic"] == MESSAGE_MAGIC_CODE_V2) == (len(topic) > 127)


def test_a_broken_value_keeps_what_was_read_before():
    record = bytearray(encode_message("T", b"body"))
    record[84:88] = (5000).to_bytes(4, "big")
    found, error = spans(Message, record)
    assert error is not None
    assert error.path == "body_length"
    assert found[-1].name == "body_length"
    assert found[-1].value == 5000


def test_a_cut_value_names_the_field_that_is_cut():
    record = encode_message("T", b"body")
    found, error = spans(Message, record[:90])
    assert error is not None
    assert error.path == "body"
    assert found[-1].name == "body_length"
    assert spans(Message, b"")[0] == []


def test_what_has_no_fields_is_refused():
    with pytest.raises(FormatError):
        spans(Int8ub, b"\0")
