"""Data on a terminal: drawn, never obeyed."""

from __future__ import annotations

import io
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rmqtool.output.console import Console
from rmqtool.output.hexview import HexField, hex_lines, plain_hex_lines
from rmqtool.output.page import Page
from rmqtool.output.sentences import describe
from rmqtool.output.stream import ByteOut
from rmqtool.output.tablerows import Column, TableRows
from rmqtool.output.text import color_enabled, safe
from rmqtool.output.text_style import TextStyle, cells, fit, shrink, wrap
from rmqtool.output.times import zone_of

HOSTILE = "[/x]\x1b[2J[bold]"
DONE = {"messages": 3, "end_offset": 9, "complete": True}


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (HOSTILE, r"[/x]\x1b[2J[bold]"),
        ("a\tb\r\n", r"a\tb\r\n"),
        ("\x00\x7f\x9b", r"\x00\x7f\x9b"),
        ("\u202eabc\u2066", r"\u202eabc\u2066"),
        ("a\u200bb\ufeff", r"a\u200bb\ufeff"),
        ("\u2028", r"\u2028"),
        ("\udcff", r"\udcff"),
        ("\U000e0041", r"\U000e0041"),
        ("订单\u3000ключ😀 é", "订单\u3000ключ😀 é"),
    ],
)
def test_safe(text: str, shown: str) -> None:
    assert safe(text) == shown


@given(st.text())
def test_safe_text_has_nothing_to_obey(text: str) -> None:
    shown = safe(text)
    assert not {unicodedata.category(char) for char in shown} & {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}
    assert safe(shown) == shown


def table(
    rows: list[dict], columns: list[Column], text_style: TextStyle | None = None, **options
) -> list[str]:
    sink = io.BytesIO()
    with TableRows(
        ByteOut(sink), "x/1", columns, text_style or TextStyle(), lambda _: None, **options
    ) as listing:
        listing.write_rows(rows)
        listing.finish(DONE)
    return sink.getvalue().decode().splitlines()


def test_table_is_aligned_and_safe() -> None:
    rows = [{"n": 5, "topic": "订单"}, {"n": 12345, "topic": HOSTILE}, {"n": None, "topic": "T", "more": 1}]
    assert table(rows, [Column("n", right=True), Column("topic", "TOPIC"), Column("more")]) == [
        "    n  TOPIC              more",
        "    5  订单               -",
        r"12345  [/x]\x1b[2J[bold]  -",
        "    -  T                  1",
    ]


def test_pipe_cuts_nothing_terminal_fits() -> None:
    rows = [{"n": 1, "text": "x" * 200}]
    columns = [Column("n"), Column("text", shrinks=True)]
    assert "x" * 200 in table(rows, columns)[1]
    cut = table(rows, columns, TextStyle(width=40))
    assert [cells(line) for line in cut] == [7, 40]
    assert "x…x" in cut[1]


def test_terminal_line_fits_whatever_comes_after_the_sample() -> None:
    rows = [{"text": "x"}] * 500 + [{"text": "订" * 100}]
    assert max(map(cells, table(rows, [Column("text", shrinks=True)], TextStyle(width=20)))) <= 20


def test_banner_rows_cross_the_table() -> None:
    def banner(row: dict) -> str | None:
        return f"gap of {row['length']} bytes \x1b" if row.get("type") == "gap" else None

    lines = table([{"n": 1}, {"type": "gap", "length": 7}, {"n": 2}], [Column("n")], banner=banner)
    assert lines == ["n", "1", r"gap of 7 bytes \x1b", "2"]


def test_table_streams_with_bounded_memory() -> None:
    sink = io.BytesIO()
    rows = TableRows(ByteOut(sink), "x/1", [Column("n")], TextStyle(), lambda _: None)
    rows.write_rows({"n": number} for number in range(300_000))
    assert len(sink.getvalue()) > 1_000_000


def test_columns_that_are_not_shown_are_not_touched() -> None:
    def explode():
        raise AssertionError("touched")
        yield

    sink = io.BytesIO()
    rows = TableRows(ByteOut(sink), "x/1", [Column("n")], TextStyle(), lambda _: None)
    rows.write_columns(["n", "body"], [[1, 2], explode()])
    rows.finish(DONE)
    assert sink.getvalue() == b"n\n1\n2\n"


def test_values_have_a_text() -> None:
    column = Column("x")
    assert column.text(["a", "b\x1b"]) == r"a b\x1b"
    assert column.text({"k": "v", "n": 1}) == "k=v n=1"
    assert column.text(None) == "-"
    assert Column("x", show=hex).text(255) == "0xff"


def test_colour_only_when_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    for name in ("NO_COLOR", "TERM"):
        monkeypatch.delenv(name, raising=False)
    assert color_enabled("auto", Terminal())
    assert not color_enabled("auto", io.StringIO())
    assert color_enabled("always", io.StringIO())
    assert not color_enabled("never", Terminal())
    monkeypatch.setenv("NO_COLOR", "1")
    assert not color_enabled("auto", Terminal())
    assert color_enabled("always", Terminal())
    assert TextStyle(color=True).paint("x", "bold") == "\x1b[1mx\x1b[0m"
    assert TextStyle().paint("x", "bold") == "x"


def test_look_shows_what_an_encoding_lacks() -> None:
    assert TextStyle(encoding="ascii").encode("é订") == b"\\xe9\\u8ba2"


def test_fit_and_shrink_count_cells() -> None:
    assert fit("订", 4) == "订  "
    assert fit("订", 4, right=True) == "  订"
    assert cells(shrink("订订订", 4)) <= 4
    assert shrink("RMQ_SYS_TRANS_HALF_TOPIC", 12) == "RMQ_SY…TOPIC"
    assert shrink("short", 5) == "short"


@given(st.text(st.characters(exclude_categories=["Cs"])), st.integers(1, 40))
def test_shrunk_text_fits(text: str, width: int) -> None:
    assert cells(shrink(safe(text), width)) <= width


@given(st.lists(st.text("ab订-", min_size=1)), st.integers(4, 40))
def test_lines_are_broken_between_words_only(words: list[str], width: int) -> None:
    lines = wrap(" ".join(words), width, "- ")
    assert [word for line in lines for word in line[2:].split(" ")] == (words or [""])
    assert all(cells(line) <= width or " " not in line[2:] for line in lines)
    assert [line[:2] for line in lines] == ["- "] + ["  "] * (len(lines) - 1)


WIDE = [
    Column("at", zone=zone_of("+08:00")),
    Column("topic", shrinks=True),
    Column("size", right=True, gives=2),
    Column("keys", gives=1),
]


def wide(days: int = 1) -> list[dict]:
    return [{"at": 86_400_000 * day, "topic": "T" * 30, "size": 7, "keys": "k" * 9} for day in range(days)]


def test_a_narrow_table_says_what_it_leaves_out() -> None:
    lines = table(wide(), WIDE, TextStyle(width=40))
    assert lines[1] == "left out at 40 columns: keys"
    assert table(wide(), WIDE, TextStyle(width=30))[1:3] == ["left out at 30 columns: size,", "keys"]
    assert "left out" not in "".join(table(wide(), WIDE, TextStyle(width=80)))


@pytest.mark.parametrize("width", range(20, 100))
def test_every_column_is_there_or_said(width: int) -> None:
    lines = table(wide(), WIDE, TextStyle(width=width))
    header = next(line for line in lines if line.startswith("at "))
    said = " ".join(lines[: lines.index(header)])
    assert all(name in header.split() or name in said for name in ("at", "topic", "size", "keys"))
    assert width < 24 or max(map(cells, lines)) <= width


def test_a_day_stands_once_above_its_rows() -> None:
    lines = table([*wide(2), *wide(2)[1:]], WIDE, TextStyle(width=80))
    assert [line for line in lines if "-01-0" in line] == ["1970-01-01, +08:00", "1970-01-02, +08:00"]
    assert "1970-01-01T08:00:00.000+08:00" in table(wide(), WIDE)[1]  # in a pipe every line has its own


def test_a_column_that_grows_behind_the_sample_is_no_longer_line() -> None:
    rows = [{**row, "size": 10**number} for number, row in enumerate(wide(1) * 18)]
    lines = table([*wide() * 200, *rows], WIDE, TextStyle(width=50))
    assert max(map(cells, lines)) <= 50
    assert "left out at 50 columns: size" in lines


def test_what_may_be_long_stands_below_its_row() -> None:
    columns = [Column("n"), Column("body", below=True)]
    rows = [{"n": 1, "body": "some words of a body"}, {"n": 2, "body": None}]
    assert table(rows, columns, TextStyle(width=24)) == [
        "n",
        "1",
        "    body  some words of",
        "          a body",
        "2",
    ]
    assert table(rows, columns) == ["n  body", "1  some words of a body", "2  -"]


def test_page() -> None:
    sink = io.BytesIO()
    page = Page(ByteOut(sink), TextStyle())
    page.heading("Store")
    page.facts([("path", HOSTILE), ("lock holder", None), ("segments", 3)])
    page.heading("Queues")
    page.table([Column("topic"), Column("max", right=True)], [{"topic": "T", "max": 1000}])
    page.close()
    assert sink.getvalue().decode().splitlines() == [
        "Store",
        r"  path      [/x]\x1b[2J[bold]",
        "  segments  3",
        "",
        "Queues",
        "topic   max",
        "T      1000",
    ]


def test_hex_view_names_every_byte() -> None:
    data = bytes(range(40))
    fields = [
        HexField(0, 4, "total_size", "4"),
        HexField(8, 20, "body", "text"),
        HexField(28, 8, "tail\x1b", HOSTILE),
    ]
    lines = list(hex_lines(data, fields, TextStyle(), base=0x1000))
    assert lines == [
        "0x00001000  00 01 02 03              total_size          4",
        "0x00001004  04 05 06 07              unclaimed",
        "0x00001008  20 bytes                 body                text",
        "0x00001008  08 09 0a 0b 0c 0d 0e 0f 10 11 12 13 14 15 16 17  ................",
        "0x00001018  18 19 1a 1b                                      ....",
        r"0x0000101c  1c 1d 1e 1f 20 21 22 23  tail\x1b            [/x]\x1b[2J[bold]",
        "0x00001024  24 25 26 27              unclaimed",
    ]
    assert max(map(len, lines)) <= 80


def test_hex_view_counts_what_it_leaves_out() -> None:
    lines = list(hex_lines(bytes(1000), [HexField(0, 1000, "body")], TextStyle(), most=32))
    assert len(lines) == 4
    assert lines[-1].strip() == "… 968 more bytes"
    assert len(list(hex_lines(bytes(1000), [HexField(0, 1000, "body")], TextStyle(), most=None))) == 64


def test_plain_hex() -> None:
    (line,) = plain_hex_lines(b"RocketMQ\x00\xff", TextStyle())
    assert line == "0x00000000  52 6f 63 6b 65 74 4d 51 00 ff                    RocketMQ.."


def test_talk_is_on_stderr_and_quiet_keeps_warnings(capsys: pytest.CaptureFixture[str]) -> None:
    Console().note(f"a {HOSTILE}")
    Console().closing(DONE)
    silent = Console(quiet=True)
    silent.note("b")
    silent.closing(DONE)
    silent.warn("c")
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.splitlines() == [
        r"a [/x]\x1b[2J[bold]",
        "3 messages. End offset 9. Complete.",
        "warning: c",
    ]


def test_describe_incomplete() -> None:
    summary = {"schema": "x/1", "messages": 12345, "complete": False, "incomplete_reason": "limit", "x": None}
    assert describe(summary) == "12,345 messages. Incomplete (limit)."


def test_describe_spans_of_time() -> None:
    assert describe({"complete": True, "halves": 2, "oldest_ms": 215_190_717}) == (
        "2 half messages. Oldest 2d11h. Complete."
    )


def test_describe_counts() -> None:
    summary = {
        "topic": "T", "queue_id": 0, "messages": 0, "keys_not_found": 1, "bytes": 1, "entries": 1, "gaps": 0,
        "missing": 1, "end_offset": 0, "complete": True,
    }  # fmt: skip
    reported = (
        "No messages, 1 key not found, 1 byte, 1 entry, 1 missing. Topic T, queue 0, end offset 0. Complete."
    )
    assert describe(summary) == reported


def test_what_is_not_covered_is_said_once(capsys: pytest.CaptureFixture[str]) -> None:
    console = Console()
    console.warn("a: gone")
    rows = [{"path": "a", "error": "gone"}, *({"path": f"b{n}", "error": "bad"} for n in range(10))]
    console.closing({"rows": 1, "complete": False, "incomplete_reason": "damage", "not_covered": rows})
    lines = capsys.readouterr().err.splitlines()
    assert lines[:2] == ["warning: a: gone", "warning: not covered: b0: bad"]
    assert lines[-2:] == [
        "warning: not covered: 2 more places, all of them with --json",
        "1 row. Incomplete (damage).",
    ]


def test_describe_what_an_interrupt_left() -> None:
    left = [
        {"path": "commitlog/0", "position": 5, "length": 1000},
        {"path": "index", "reason": "interrupted"},
    ]
    summary = {"complete": False, "incomplete_reason": "interrupted", "not_covered": left}
    reported = "Incomplete (interrupted), left: commitlog/0 from 5 on, 1,000 bytes; index."
    assert describe(summary) == reported


def test_describe_severities() -> None:
    counts = {"error": 2, "warning": 0, "note": 1234}
    assert describe({"by_severity": counts, "complete": True}) == "2 errors, 1,234 notes. Complete."
    found = {"findings": 1, "by_severity": {"error": 1, "note": 0}, "complete": True}
    assert describe(found) == "1 finding (1 error). Complete."
    assert (
        describe({"findings": 0, "by_severity": {"error": 0}, "complete": True}) == "No findings. Complete."
    )


def test_describe_ranges_and_times() -> None:
    times = {"first_timestamp": 0, "last_timestamp": 1000, "complete": True}
    stored = "1970-01-01T08:00:00.000+08:00 to 1970-01-01T08:00:01.000+08:00"
    assert describe(times, zone_of("+08:00")) == f"Stored {stored}. Complete."
    rest = {
        "first_offset": 7,
        "end_offset": 9,
        "version": "5.3.3",
        "version_source": "inferred",
        "seconds": 0.5,
    }
    reported = "Physical offsets 7 to 9, release 5.3.3 (inferred), in 0.5 s. Complete."
    assert describe({**rest, "followed": False, "complete": True}) == reported


def test_times_outside_the_calendar_are_plain_numbers() -> None:
    assert zone_of("+08:00").iso(0) == "1970-01-01T08:00:00.000+08:00"
    assert zone_of("UTC").iso(-(1 << 63)) == f"{-(1 << 63)}ms"
