"""Rows of the contract out of batches: keys that say nothing are left out, bodies as asked, redaction."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formats.batch import encode_batch
from formats.commitlog import encode_message
from rmqtool.output.inner import has_inner, with_inner
from rmqtool.output.messages import OMIT_NULL, MessageShape, body_keys, encode_body, one_body
from rmqtool.scan import kernels_python as kernels
from rmqtool.scan.table import COLUMNS
from tests.scan.test_table import BASE, records_of, table

if TYPE_CHECKING:
    import pyarrow as pa

FORMS = ["auto", "utf8", "gbk", "hex", "base64", "none"]
DATA = encode_message(
    "T",
    b"\xff body",
    b"TAGS\x01A\x02KEYS\x01k1 k2\x02UNIQ_KEY\x01U\x02own\x01x\x02junk\x02",
    physical_offset=BASE,
) + encode_message("T", b"text", physical_offset=7)


def batch(shape: MessageShape, data: bytes = DATA) -> pa.RecordBatch:
    return table(data, kernels, shape.columns)


def rows(shape: MessageShape, data: bytes = DATA) -> list[dict[str, Any]]:
    names, lists = shape.rows(batch(shape, data))
    return [
        {
            name: value
            for name, value in zip(names, values, strict=True)
            if value is not None or name not in OMIT_NULL
        }
        for values in zip(*lists, strict=False)
    ]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("digests", [False, True])
@pytest.mark.parametrize(
    "redacted", [(), ("body",), ("keys",), ("hosts",), ("properties",), ("body", "keys", "hosts")]
)
@pytest.mark.parametrize("single", [False, True])
def test_keys_are_those_that_rows_have(
    form: str, digests: bool, redacted: tuple[str, ...], single: bool
) -> None:
    shape = MessageShape(form, digests, frozenset(redacted), single)
    assert set(shape.columns) <= set(COLUMNS)
    found = rows(shape)
    seen = {key for row in found for key in row} - {"type"}
    assert seen <= set(shape.keys)
    assert set(shape.keys) - seen <= OMIT_NULL
    assert len(set(shape.keys)) == len(shape.keys)


def test_what_is_left_out_when_it_says_nothing() -> None:
    first, second = rows(MessageShape())
    assert "stored_physical_offset" not in first
    assert second["stored_physical_offset"] == 7
    assert "properties_raw_hex" in first
    assert "properties_raw_hex" not in second
    assert "topic_hex" not in first
    assert (second["tags"], second["keys"], second["compression"]) == (None, None, None)
    assert first["properties"] == {"TAGS": "A", "KEYS": "k1 k2", "UNIQ_KEY": "U", "own": "x"}


@given(st.binary(max_size=60), st.sampled_from(["utf8", "gbk", "hex", "base64"]))
def test_forms_lose_nothing(body: bytes, form: str) -> None:
    text = encode_body(body, form)
    if text is None:
        assert form in {"utf8", "gbk"}
        return
    back = {
        "utf8": text.encode,
        "gbk": lambda: text.encode("gbk"),
        "hex": lambda: bytes.fromhex(text),
        "base64": lambda: base64.b64decode(text),
    }
    assert back[form]() == body


@given(st.text(max_size=30))
def test_text_is_always_shown_as_text(text: str) -> None:
    if text.isprintable():
        assert encode_body(text.encode(), "utf8") == text


def test_bytes_that_gbk_reads_but_does_not_write() -> None:
    assert encode_body(b"\x80", "gbk") is None
    assert encode_body("报文".encode("gbk"), "gbk") == "报文"


def test_one_body_column() -> None:
    bodies = {
        "body_utf8": ["t", None, None],
        "body_base64": [None, "//4=", "eA=="],
        "body_error": [None, None, "bad"],
    }
    assert one_body(bodies) == ["t", "base64://4=", "base64:eA== (bad)"]
    bodies = {"body_base64": ["//4=", "eA=="], "body_error": [None, "bad"]}
    assert one_body(bodies) == ["//4=", "eA== (bad)"]
    assert body_keys("auto") == ("body_utf8", "body_base64", "body_error")
    assert body_keys("base64") == ("body_base64", "body_error")


def test_an_empty_batch() -> None:
    for form in FORMS:
        assert rows(MessageShape(form, body_sha256=True), b"") == []


def test_batches_of_batches() -> None:
    body = encode_batch([(b"one", b"TAGS\x01A\x02KEYS\x01k\x02", 3), (b"\xff", b"", 4)])
    data = encode_message("T", body, sys_flag=0xC0, queue_offset=10) + encode_message("T", b"plain")
    shape = MessageShape("auto", body_sha256=True)
    columns = batch(shape, data)
    assert has_inner(columns)
    found, bad = with_inner(columns, shape)
    assert bad == 0
    assert [row["type"] for row in found] == ["message", "inner_message", "inner_message", "message"]
    first, second = found[1:3]
    assert (first["queue_offset"], first["number"], first["flag"], first["tags"]) == (10, 0, 3, "A")
    assert (first["keys"], first["body_utf8"]) == (["k"], "one")
    assert (second["queue_offset"], second["body_base64"], second["keys"]) == (11, "/w==", None)
    assert "body_utf8" not in second
    assert len(records_of(data, kernels).rows) == 2
    assert not has_inner(batch(shape, encode_message("T", b"x")))


def test_inner_bodies_in_tables() -> None:
    body = encode_batch([(b"one", b"", 3), (b"\xff", b"", 4)])
    data = encode_message("T", body, sys_flag=0xC0)
    shape = MessageShape("auto", one_body=True)
    found, _ = with_inner(batch(shape, data), shape)
    assert [row["body"] for row in found[1:]] == ["one", "base64:/w=="]


@pytest.mark.parametrize("what", ["keys", "hosts", "properties"])
def test_hidden_columns_are_marked(what: str) -> None:
    """What is absent stays absent, what is hidden says so, and the row names it."""
    hidden = {
        "keys": {"keys", "uniq_key"},
        "hosts": {"born_host", "store_host", "offset_msg_id", "uniq_key"},
        "properties": {"tags", "keys", "uniq_key"},
    }[what]
    plain, redacted = rows(MessageShape()), rows(MessageShape(redacted=frozenset({what})))
    for row, other in zip(plain, redacted, strict=True):
        for key in hidden:
            mark = None if row[key] is None else ["(redacted)"] if key == "keys" else "(redacted)"
            assert other[key] == mark
        changed = {key for key in row if row[key] != other.get(key)}
        assert changed <= hidden | {"properties", "properties_raw_hex"}
        assert set(other["redacted"]) == changed


def test_hidden_properties_keep_known_names() -> None:
    shown = {
        what: rows(MessageShape(redacted=frozenset({what})))[0]["properties"]
        for what in ("keys", "properties")
    }
    assert shown["keys"] == {"TAGS": "A", "KEYS": "(redacted)", "UNIQ_KEY": "(redacted)", "own": "x"}
    assert shown["properties"] == dict.fromkeys(("TAGS", "KEYS", "UNIQ_KEY", "(redacted)"), "(redacted)")


def test_hidden_bodies_are_named() -> None:
    first, _ = rows(MessageShape("auto", body_sha256=True, redacted=frozenset({"body"})))
    assert (first["body_crc"], first["body_sha256"]) == (None, "(redacted)")
    assert first["redacted"] == ["body", "body_crc", "body_sha256", "plain_body_sha256", "properties_raw_hex"]
    assert not {"body_utf8", "body_base64"} & set(first)
    first, _ = rows(MessageShape("auto", redacted=frozenset({"body"}), one_body=True))
    assert first["body"] == "(redacted)"
