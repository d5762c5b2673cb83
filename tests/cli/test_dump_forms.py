"""`dump` in every form: raw, hex, CSV, JSON, tables, and integers for JavaScript."""

from __future__ import annotations

import csv
import io
import json
from typing import TYPE_CHECKING, Any

import pytest

from fixtures.builder import FIRST_TIME, HandmadeLog, overwrite
from rmqtool.scan.table import COLUMNS
from tests.cli.dumping import NDJSON, assert_one_line, messages, raw_record, records
from tests.helpers import ROOT, rmq, rmq_process

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import fixtures


@pytest.fixture
def store(tmp_path: Path, store_unchanged: Callable[[Path], Path]) -> Path:
    log = HandmadeLog(segment_size=1024)
    log.put("TopicTest", b"hello", {"TAGS": "TagA", "KEYS": "k1 k2", "UNIQ_KEY": "ID1"}, queue_id=3)
    log.put("[/x]\x1b[2J", b"\x1b[31mred", {"TAGS": "标签"})
    log.put('a,"b"\n', b"x" * 500, {"TAGS": "T", "KEYS": "k"}, queue_offset=(1 << 53) + 1)
    log.roll()
    log.put("T" * 60, b"last", {"TAGS": "a very long tag that needs all the room there is"})
    log.write(tmp_path / "store" / "commitlog")
    return store_unchanged(tmp_path / "store")


def raw(*arguments: object) -> bytes:
    import subprocess
    import sys

    done = subprocess.run(
        [sys.executable, "-m", "rmqtool", "dump", *map(str, arguments)],
        cwd=ROOT,
        capture_output=True,
        check=True,
        timeout=60,
    )
    return done.stdout


def test_raw_is_the_records_byte_for_byte(golden: Callable[[str], fixtures.Golden], store: Path) -> None:
    log_bytes = [path.read_bytes() for path in sorted((store / "commitlog").iterdir())]
    placed = [(row["path"], row["position"], row["store_size"]) for row in messages(store)]
    names = sorted({path for path, _, _ in placed})
    expected = b"".join(log_bytes[names.index(path)][at : at + size] for path, at, size in placed)
    assert raw(store, "--format", "raw") == expected
    opened = golden("v533-v2")
    all_records = b"".join(raw_record(opened.path, record) for record in records(opened))
    assert raw(opened.path, "--format", "raw") == all_records


def test_raw_records_can_be_read_again(store: Path, tmp_path: Path) -> None:
    (tmp_path / "copy").mkdir()
    copy = tmp_path / "copy" / f"{0:020d}"
    copy.write_bytes(raw(store, "--format", "raw", "--topic", "TopicTest"))
    (row,) = messages(copy)
    assert (row["topic"], row["body_utf8"]) == ("TopicTest", "hello")


def test_raw_talks_on_the_other_stream(store: Path) -> None:
    result = rmq_process("dump", store, "--format", "raw", "--limit", "0")
    assert (result.exit_code, result.stdout) == (0, "")
    assert "No messages" in result.stderr
    assert rmq_process("dump", store, "--format", "raw", "--limit", "0", "--quiet").stderr == ""


def test_hex(store: Path) -> None:
    result = rmq("dump", store, "--format", "hex")
    assert result.exit_code == 0
    digits = ""
    offsets = []
    for line in result.stdout.splitlines():
        if line:
            fields = line.split("  ")
            offsets.append(int(fields[0].strip().rstrip(":"), 16))
            digits += "".join(part for part in fields[1:3]).replace(" ", "")[:32]
    whole = raw(store, "--format", "raw")
    assert digits.startswith(whole[:16].hex())
    assert offsets[0] == 0
    assert {row["physical_offset"] for row in messages(store)} <= set(offsets)
    assert "\x1b" not in result.stdout


def test_csv(store: Path) -> None:
    result = rmq("dump", store, "--format", "csv", "--body", "auto")
    assert result.exit_code == 0
    table = list(csv.DictReader(io.StringIO(result.stdout, newline="")))
    rows = messages(store, "--body", "auto")
    listed = [row for row in table if row["type"] == "message"]
    assert len(listed) == len(rows) == 4
    for line, row in zip(listed, rows, strict=True):
        for key in ("physical_offset", "store_size", "queue_id", "store_timestamp", "body_length"):
            assert int(line[key]) == row[key]
        assert json.loads(line["properties"]) == row["properties"]
        assert line["born_host"] == row["born_host"]
        assert line["body_utf8"] == row["body_utf8"].replace("\x1b", "\\x1b")
    own = {"body_utf8", "body_base64", "body_error", "properties_raw_hex"}
    of_events = {"length", "content", "reason", "expected", "found"}
    assert set(table[0]) - {"type"} <= set(COLUMNS) | own | of_events
    assert "plain_body" not in table[0]
    (tail,) = [row for row in table if row["type"] == "tail"]
    assert (tail["content"], int(tail["length"])) == ("zero", 2048 - int(tail["physical_offset"]))


def test_bodies_in_csv_and_tables(tmp_path: Path) -> None:
    """A body that the form cannot show is there all the same."""
    log = HandmadeLog(segment_size=1024)
    for body, flags in ((b"text", 0), (b"\xff\xfe", 0), (b"broken", 1), (b"", 0)):
        log.put("T", body, sys_flag=flags)
    log.write(tmp_path / "commitlog")
    text = rmq("dump", tmp_path, "--format", "csv", "--body", "auto").stdout
    rows = list(csv.DictReader(io.StringIO(text, newline="")))[:4]
    assert [row["body_utf8"] for row in rows] == ["text", "", "", ""]
    assert [row["body_base64"] for row in rows] == ["", "//4=", "YnJva2Vu", ""]
    assert ["decompress" in row["body_error"] for row in rows] == [False, False, True, False]
    for form, first in (("auto", "text"), ("hex", "74657874"), ("base64", "dGV4dA==")):
        lines = rmq("dump", tmp_path, "--body", form).stdout.splitlines()
        assert lines[1].endswith(f"  {first}")
        assert lines[2].endswith("fffe" if form == "hex" else "//4=")
        assert "YnJva2Vu" in lines[3]
        assert "decompress" in lines[3]
    assert "body" not in rmq("dump", tmp_path).stdout


def test_csv_says_what_is_no_record_on_the_other_stream_or_in_rows(store: Path) -> None:
    text = rmq("dump", store, "--format", "csv").stdout
    lines = list(csv.reader(io.StringIO(text, newline="")))
    assert len({len(line) for line in lines}) == 1
    assert {line[0] for line in lines[1:]} <= {"message", "blank", "tail", "gap"}


def test_integers_for_javascript(store: Path) -> None:
    usual = rmq("dump", store, *NDJSON).rows
    quoted = rmq("dump", store, *NDJSON, "--int64-as-string").rows
    wide = {name for name, column in COLUMNS.items() if str(column.type) == "int64"}
    for row, other in zip(usual, quoted, strict=True):
        for key, value in row.items():
            if key in wide and value is not None:
                assert other[key] == str(value), key
            elif row["type"] == "message":
                assert other[key] == value, key
    assert any(row.get("queue_offset") == str((1 << 53) + 1) for row in quoted)


@pytest.fixture
def small(tmp_path: Path) -> Path:
    log = HandmadeLog(segment_size=1024)
    log.put("TopicTest", b"hello", {"TAGS": "TagA", "KEYS": "k1"}, queue_id=3)
    log.put("[/x]\x1b[2J", b"red", {"TAGS": "标签"})
    log.put("AnUncommonlyLongTopicName", b"red", {"TAGS": "a long tag, too"})
    log.write(tmp_path / "commitlog")
    assert [record.end for record in log.records] == [123, 237, 377]
    assert FIRST_TIME == 1_700_000_000_000
    return tmp_path


AT_80 = """\
2023-11-14, UTC
left out at 80 columns: tags
  offset  stored        topic                      q  q.offset  crc  size  keys
       0  22:13:20.001  TopicTest                  3         0  ok    123  k1
     123  22:13:20.002  [/x]\\x1b[2J                0         0  ok    114  -
     237  22:13:20.003  AnUncommonlyLongTopicName  0         0  ok    140  -
-- tail at 377, 647 bytes of zero content
"""


def test_a_table_of_80_columns(small: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rmqtool.output.text_style.is_terminal", lambda _: True)
    result = rmq("dump", small, "--tz", "UTC")
    assert result.stdout == AT_80
    assert result.stderr.startswith("3 messages, 377 bytes")


@pytest.mark.parametrize("width", [80, 81, 99, 100, 132, 200])
def test_tables_fit_their_terminal(store: Path, monkeypatch: pytest.MonkeyPatch, width: int) -> None:
    from rich.cells import cell_len

    monkeypatch.setattr("rmqtool.output.text_style.is_terminal", lambda _: True)
    monkeypatch.setenv("COLUMNS", str(width))
    lines = rmq("dump", store, "--tz", "UTC").stdout.splitlines()
    assert max(map(cell_len, lines)) <= width
    header = next(number for number, line in enumerate(lines) if line.split()[:2] == ["offset", "stored"])
    for name in ("topic", "q.offset", "crc", "size", "tags", "keys"):
        assert name in lines[header].split() or name in "".join(lines[1:header])


def test_nothing_is_cut_in_a_pipe(small: Path) -> None:
    text = rmq("dump", small).stdout
    assert "AnUncommonlyLongTopicName" in text
    assert "a long tag, too" in text
    assert "…" not in text


def test_control_characters_are_escaped(store: Path) -> None:
    for form in ("table", "ndjson", "json", "csv"):
        text = rmq("dump", store, "--format", form, "--body", "auto").stdout
        assert "\x1b" not in text or form == "csv"
    assert "[/x]" in rmq("dump", store, "--quiet").stdout
    rows = messages(store)
    assert rows[1]["topic"] == "[/x]\x1b[2J"


def test_quiet_and_the_closing_summary(store: Path) -> None:
    result = rmq("dump", store)
    assert "4 messages" in result.stderr
    assert rmq("dump", store, "--quiet").stderr == ""
    assert rmq("dump", store, *NDJSON).stderr == ""


def summary_of(store: Path, *options: object) -> dict[str, Any]:
    return rmq("dump", store, *NDJSON, *options).rows[-1]


def test_the_summary(store: Path) -> None:
    rows = rmq("dump", store, *NDJSON).rows
    summary = rows[-1]
    listed = [row for row in rows if row["type"] == "message"]
    assert summary == {
        "type": "summary",
        "schema": "rmqtool.dump/1",
        "messages": 4,
        "bytes": sum(row["store_size"] for row in listed),
        "blanks": 1,
        "gaps": 0,
        "gap_bytes": 0,
        "bad_crc": 0,
        "first_offset": 0,
        "end_offset": listed[-1]["physical_offset"] + listed[-1]["store_size"],
        "tail": "zero",
        "complete": True,
    }
    assert [row["type"] for row in rows] == ["message"] * 3 + ["blank", "message", "tail", "summary"]


def test_all_ways_to_read_give_the_same(golden: Callable[[str], fixtures.Golden], store: Path) -> None:
    for path in (store, golden("v533-edge").path):
        expected = rmq("dump", path, *NDJSON)
        for options in (
            ["--jobs", "1"], ["--jobs", "4"], ["--safe-io"], ["--max-read-rate", "1GiB"],
            ["--safe-io", "--jobs", "3", "--max-read-rate", "64MiB"],
        ):  # fmt: skip
            assert rmq("dump", path, *NDJSON, *options) == expected


def test_a_slow_rate_is_slow_but_works(golden: Callable[[str], fixtures.Golden]) -> None:
    import time

    path = golden("v533-edge").path / "commitlog"
    size = sum(file.stat().st_size for file in path.iterdir())
    assert 200_000 < size < 1 << 20
    began = time.monotonic()
    result = rmq("dump", path, *NDJSON, "--max-read-rate", "1MiB")
    seconds = time.monotonic() - began
    assert result == rmq("dump", path, *NDJSON)
    assert size / (1 << 20) * 0.5 < seconds < 20


def test_config_and_roots(golden: Callable[[str], fixtures.Golden], tmp_path: Path, store: Path) -> None:
    opened = golden("v533-basic")
    usual = rmq("dump", opened.path, *NDJSON)
    assert rmq("dump", opened.path, *NDJSON, "--store-config", opened.config_path) == usual
    more = tmp_path / "more"
    log = HandmadeLog(segment_size=1024, first_offset=2048)
    log.put("Elsewhere", b"x")
    log.write(more)
    result = rmq("dump", store, *NDJSON, "--commitlog", more)
    assert [row["topic"] for row in result.of_type("message")][-1] == "Elsewhere"


def test_the_store_from_the_environment(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert_one_line(rmq("dump"), 2)
    monkeypatch.setenv("RMQTOOL_STORE", str(store))
    for arguments in ((), ("-",)):
        assert rmq("dump", *arguments, *NDJSON) == rmq("dump", store, *NDJSON)


def test_damage_in_a_table(tmp_path: Path) -> None:
    log = HandmadeLog(segment_size=1024)
    for number in range(3):
        log.put("TopicTest", b"x", {"TAGS": str(number)})
    (path,) = log.write(tmp_path / "commitlog")
    path.write_bytes(overwrite(path.read_bytes(), log.records[1].physical_offset + 4, b"XXXX").data)
    result = rmq("dump", tmp_path)
    assert result.exit_code == 1
    size = len(log.records[1].data)
    line = result.stdout.splitlines()[2]
    assert line == f"-- gap at {size}, {size} bytes: bad_magic, expected -626843481, found 1482184792"
