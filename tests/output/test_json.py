"""NDJSON and JSON: exact, streamed, closed by a summary."""

from __future__ import annotations

import io
import json
from itertools import repeat
from math import isfinite
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rmqtool.errors import UnreadableError
from rmqtool.output.jsonrows import JsonRows, NdjsonRows, encode
from rmqtool.output.stream import ByteOut

DONE = {"messages": 2, "complete": True}
VALUES = st.none() | st.booleans() | st.integers(-(1 << 63), (1 << 63) - 1) | st.text()
ROWS = st.lists(
    st.dictionaries(st.text(), VALUES | st.lists(st.text()) | st.dictionaries(st.text(), st.text()))
)


def test_ndjson_ends_with_the_summary(sink: io.BytesIO, out: ByteOut) -> None:
    with NdjsonRows(out, "rmqtool.dump/1") as rows:
        rows.write_rows([{"type": "gap", "length": 7}])
        rows.write_columns(["type", "queue_id"], [repeat("message"), [1, 2]])
        rows.finish(DONE)
    assert [json.loads(line) for line in sink.getvalue().splitlines()] == [
        {"type": "gap", "length": 7},
        {"type": "message", "queue_id": 1},
        {"type": "message", "queue_id": 2},
        {"type": "summary", "schema": "rmqtool.dump/1", "messages": 2, "complete": True},
    ]


def test_a_batch_in_which_every_column_repeats_itself_has_all_its_rows(
    sink: io.BytesIO, out: ByteOut
) -> None:
    with NdjsonRows(out, "rmqtool.dump/1") as rows:
        rows.write_columns(["type", "slot", "topic"], [repeat("unit"), [7], [None]], omit_null={"topic"})
        rows.write_columns(["type", "slot"], [repeat("unit"), [8, 8, 8]])
        rows.finish(DONE)
    assert [json.loads(line) for line in sink.getvalue().splitlines()][:-1] == [
        {"type": "unit", "slot": 7},
        *[{"type": "unit", "slot": 8}] * 3,
    ]


@given(ROWS)
def test_json_is_one_document_with_the_same_rows(rows: list[dict]) -> None:
    plain, lines = io.BytesIO(), io.BytesIO()
    for stream, form in ((plain, JsonRows), (lines, NdjsonRows)):
        with form(ByteOut(stream), "rmqtool.dump/1") as listing:
            listing.write_rows(rows)
            listing.finish(DONE)
    document = json.loads(plain.getvalue())
    assert document == {
        "schema": "rmqtool.dump/1",
        "rows": rows,
        "summary": {"schema": "rmqtool.dump/1", **DONE},
    }
    assert [json.loads(line) for line in lines.getvalue().split(b"\n")[:-2]] == rows


def test_nulls_are_left_out_where_asked(sink: io.BytesIO, out: ByteOut) -> None:
    with NdjsonRows(out, "x/1") as rows:
        rows.write_columns(["a", "b", "c"], [[1, None], [None, None], [None, 3]], omit_null={"b", "c"})
        rows.finish(DONE)
    assert [json.loads(line) for line in sink.getvalue().splitlines()[:2]] == [{"a": 1}, {"a": None, "c": 3}]


def test_int64_as_string_goes_by_name(sink: io.BytesIO, out: ByteOut) -> None:
    row = {
        "physical_offset": 5,
        "queue_id": 1,
        "window": [1, None],
        "flag": -1,
        "other": 1 << 60,
        "new_offset": 0,
    }
    with NdjsonRows(out, "x/1", int64_as_string=True) as rows:
        rows.write_rows([{**row, "nested": {"store_timestamp": 9, "ok": True}}])
        rows.write_columns(list(row), [[value] for value in row.values()])
        rows.finish({"end_offset": 10, "messages": 2, "complete": True})
    first, second, summary = map(json.loads, sink.getvalue().splitlines())
    wanted = {"physical_offset": "5", "queue_id": 1, "window": ["1", None], "flag": -1, "new_offset": "0"}
    wanted["other"] = str(1 << 60)
    assert first == {**wanted, "nested": {"store_timestamp": "9", "ok": True}}
    assert second == wanted
    assert summary["end_offset"] == "10"
    assert summary["messages"] == 2


def test_lone_surrogate_is_escaped_as_text(sink: io.BytesIO, out: ByteOut) -> None:
    with NdjsonRows(out, "x/1") as rows:
        rows.write_rows([{"path": "a\udcffb"}])
        rows.finish(DONE)
    assert orjson.loads(sink.getvalue().splitlines()[0]) == {"path": "a\\udcffb"}


_ANY = st.characters() | st.characters(categories=["Cs"])
_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(_ANY),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(_ANY), inner, max_size=4),
)


def _refuse(name: str) -> None:
    raise AssertionError(f"{name} is not JSON")


@given(_values)
def test_whatever_is_encoded_is_json(value: Any) -> None:
    raw = encode(value)
    raw.decode()
    json.loads(raw, parse_constant=_refuse)


@given(st.floats(allow_nan=True, allow_infinity=True), st.integers(min_value=1 << 64))
def test_no_number_is_none_beside_a_huge_one(number: float, huge: int) -> None:
    read = json.loads(encode({"a": number, "b": huge}), parse_constant=_refuse)
    assert read == {"a": number if isfinite(number) else None, "b": huge}


def test_bytes_are_a_defect_not_text(out: ByteOut) -> None:
    with pytest.raises(TypeError), NdjsonRows(out, "x/1") as rows:
        rows.write_rows([{"body": b"a"}])


@pytest.mark.parametrize(
    ("error", "reason"),
    [(KeyboardInterrupt(), "interrupted"), (UnreadableError("f", 0, 1, "EIO"), "unreadable")],
)
@pytest.mark.parametrize("form", [NdjsonRows, JsonRows])
def test_cut_short_says_why(form, error: BaseException, reason: str) -> None:
    sink = io.BytesIO()

    def work() -> None:
        with form(ByteOut(sink), "x/1") as rows:
            rows.covered = lambda: {"messages": 1}
            rows.write_rows([{"a": 1}])
            raise error

    with pytest.raises(type(error)):
        work()
    text = sink.getvalue()
    summary = json.loads(text)["summary"] if form is JsonRows else json.loads(text.splitlines()[-1])
    assert summary["messages"] == 1
    assert (summary["complete"], summary["incomplete_reason"]) == (False, reason)


def test_summary_that_is_not_complete_needs_a_reason(out: ByteOut) -> None:
    with pytest.raises(ValueError, match="says why"):
        NdjsonRows(out, "x/1").finish({"complete": False})
    with pytest.raises(KeyError):
        NdjsonRows(out, "x/1").finish({"messages": 1})


def test_blocks_reach_the_stream_before_the_end() -> None:
    sink = io.BytesIO()
    rows = NdjsonRows(ByteOut(sink), "x/1")
    rows.write_rows({"number": number} for number in range(200_000))
    assert len(sink.getvalue()) > 1_000_000
