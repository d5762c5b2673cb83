"""CSV: one line a row, None and "" told apart."""

from __future__ import annotations

import csv
import io

from hypothesis import given
from hypothesis import strategies as st

from rmqtool.output.csvrows import CsvRows
from rmqtool.output.stream import ByteOut
from rmqtool.output.text import safe


def written(rows: list[dict], columns: list[str]) -> tuple[str, list[dict]]:
    sink, told = io.BytesIO(), []
    with CsvRows(ByteOut(sink), "x/1", columns, told.append) as listing:
        listing.write_rows(rows)
        listing.finish({"complete": True})
    return sink.getvalue().decode(), told


def test_cells() -> None:
    row = {
        "a": None,
        "b": "",
        "c": 'x,"y"',
        "d": True,
        "e": ["k", "ü"],
        "f": {"n": "v"},
        "g": -7,
        "h": "l\n\x1b",
    }
    text, told = written([row, {"unknown": 1}], list("abcdefgh"))
    assert text == (
        'a,b,c,d,e,f,g,h\r\n,"","x,""y""",true,"[""k"",""ü""]","{""n"":""v""}",-7,l\\n\\x1b\r\n,,,,,,,\r\n'
    )
    assert told == [{"schema": "x/1", "complete": True}]


def test_header_without_rows() -> None:
    assert written([], ["a", "b"])[0] == "a,b\r\n"


@given(st.lists(st.tuples(st.text(), st.text())))
def test_reads_back_as_safe_text(pairs: list[tuple[str, str]]) -> None:
    text, _ = written([{"a": a, "b": b} for a, b in pairs], ["a", "b"])
    read = list(csv.reader(io.StringIO(text, newline="")))
    assert read == [["a", "b"], *([safe(a), safe(b)] for a, b in pairs)]
