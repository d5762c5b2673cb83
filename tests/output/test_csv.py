"""CSV: one line a row, None and "" distinguished."""

from __future__ import annotations

import csv
import io

from hypothesis import given
from hypothesis import strategies as st

from rmqtool.output.csvrows import CsvRows
from rmqtool.output.stream import ByteOut
from rmqtool.output.text import safe


def written(rows: list[dict], columns: list[str], **how: bool) -> tuple[str, list[dict]]:
    sink, reported = io.BytesIO(), []
    with CsvRows(ByteOut(sink), "x/1", columns, reported.append, **how) as listing:
        listing.write_rows(rows)
        listing.finish({"complete": True})
    return sink.getvalue().decode(), reported


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
    text, reported = written([row, {"unknown": 1}], list("abcdefgh"))
    assert text == (
        'a,b,c,d,e,f,g,h\r\n,"","x,""y""",true,"[""k"",""ü""]","{""n"":""v""}",-7,l\\n\\x1b\r\n,,,,,,,\r\n'
    )
    assert reported == [{"schema": "x/1", "complete": True}]


def test_header_without_rows() -> None:
    assert written([], ["a", "b"])[0] == "a,b\r\n"


FORMULAS = ("=1+1", "+1", "-7", "-x", "@SUM(A1)", "\t=1", "\r=1", " =1", "\uff1d1", '=a,"b"')


def test_no_text_is_a_formula_to_a_spreadsheet() -> None:
    row = dict(enumerate(FORMULAS)) | {"n": -7, "f": -0.5, "l": ["=1"], "t": "a=1", "e": "", "z": None}
    keys = [*row, "=head"]
    text, _ = written([row], keys, spreadsheet=True)
    head, cells = csv.reader(io.StringIO(text, newline=""))
    assert head[-1] == "'=head"
    assert cells[: len(FORMULAS)] == ["'" + safe(one) for one in FORMULAS]
    assert cells[len(FORMULAS) :] == ["-7", "-0.5", '["=1"]', "a=1", "", "", ""]


def test_scripts_read_what_is_stored() -> None:
    text, _ = written([dict(enumerate(FORMULAS))], list(range(len(FORMULAS))))
    assert list(csv.reader(io.StringIO(text, newline="")))[1] == [safe(one) for one in FORMULAS]


@given(st.lists(st.tuples(st.text(), st.text())))
def test_reads_back_as_safe_text(pairs: list[tuple[str, str]]) -> None:
    text, _ = written([{"a": a, "b": b} for a, b in pairs], ["a", "b"])
    read = list(csv.reader(io.StringIO(text, newline="")))
    assert read == [["a", "b"], *([safe(a), safe(b)] for a, b in pairs)]
