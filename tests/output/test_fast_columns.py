"""Columns converted whole say the same as row by row."""

from __future__ import annotations

import gc
import io
import json
from itertools import repeat
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rmqtool.output.columns import batch_columns, values
from rmqtool.output.jsonrows import NdjsonRows
from rmqtool.output.stream import ByteOut

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

TEXT = st.none() | st.sampled_from(["", "a", "Ω", "\U0001f680"])
TYPES: dict[str, tuple[pa.DataType, st.SearchStrategy[Any]]] = {
    "int64": (pa.int64(), st.none() | st.integers(-(1 << 63), (1 << 63) - 1) | st.just(7)),
    "int32": (pa.int32(), st.sampled_from([0, 1])),
    "bool": (pa.bool_(), st.none() | st.booleans()),
    "string": (pa.string(), TEXT),
    "list": (pa.list_(pa.string()), st.none() | st.lists(TEXT, max_size=2)),
    "map": (
        pa.map_(pa.string(), pa.string()),
        st.none() | st.dictionaries(st.sampled_from("abc"), TEXT, max_size=3),
    ),
    "one map": (pa.map_(pa.string(), pa.string()), st.fixed_dictionaries({"a": TEXT, "b": TEXT})),
}


@pytest.mark.parametrize("kind", TYPES)
@given(data=st.data())
def test_values_are_those_of_the_rows(kind: str, data: st.DataObject) -> None:
    arrow, strategy = TYPES[kind]
    rows = data.draw(st.lists(strategy, max_size=6))
    array = pa.array([list(row.items()) if isinstance(row, dict) else row for row in rows], arrow)
    start, length = data.draw(st.integers(0, 6)), data.draw(st.integers(0, 6))
    assert values(array.slice(start, length)) == rows[start : start + length]


def test_garbage_collection_is_on_again() -> None:
    assert gc.isenabled()
    batch_columns(pa.record_batch({"a": [1, 2]}))
    assert gc.isenabled()


def written(names: Sequence[str], columns: Sequence[Iterable[Any]], omit: set[str]) -> list[dict[str, Any]]:
    sink = io.BytesIO()
    with NdjsonRows(ByteOut(sink), "x/1") as rows:
        rows.write_columns(names, columns, omit_null=omit)
        rows.finish({"complete": True})
    return [json.loads(line) for line in sink.getvalue().splitlines()[:-1]]


@given(
    st.integers(0, 4).flatmap(
        lambda n: st.lists(st.lists(TEXT, min_size=n, max_size=n), min_size=1, max_size=4)
    )
)
def test_rows_are_those_of_the_columns(columns: list[list[str | None]]) -> None:
    names = [str(number) for number in range(len(columns))]
    omit = {"1", "2"}
    wanted = [
        {"type": "t"}
        | {
            name: value
            for name, value in zip(names, row, strict=True)
            if value is not None or name not in omit
        }
        for row in zip(*columns, strict=True)
    ]
    for kind in (repeat("t"), repeat("t", len(columns[0])), ["t"] * len(columns[0])):
        assert written(["type", *names], [kind, *columns], omit) == wanted


def test_equal_rows_are_as_many_as_there_are() -> None:
    assert written(["a", "b"], [[1], [None]], {"b"}) == [{"a": 1}]
    assert written(["a", "b"], [["x"] * 3, [2] * 3], set()) == [{"a": "x", "b": 2}] * 3
    assert written(["a"], [repeat(1, 2)], set()) == [{"a": 1}] * 2
