"""`rmqtool map`: rows that account for every byte, a drawing for terminals, exit codes."""

from __future__ import annotations

import json
import string
from pathlib import Path

import pytest

import fixtures
from fixtures.builder import HandmadeLog, damage_file, overwrite
from rmqtool.report import segment_map
from rmqtool.report.cells import State
from tests.helpers import held, rmq, rmq_process

NDJSON = ("--format", "ndjson")
SIZE = 4096
NAMES = ("</script><b>", "a'\"&c", "\x1b[2Jx", "\u202etxt", "مرحبا", "主题")
GOLDEN = ("b533-full", "v498-unclean", "v533-lmq", "v533-batch", "b497-dledger", "v498-expired-head")


def write(root: Path, records: int = 120, names=NAMES) -> HandmadeLog:
    log = HandmadeLog(segment_size=SIZE)
    for number in range(records):
        log.put(names[number % len(names)], b"x" * 40)
    log.write(root / "commitlog")
    return log


@pytest.fixture
def store(tmp_path: Path) -> Path:
    write(tmp_path / "store")
    return tmp_path / "store"


def damaged(root: Path) -> Path:
    log = write(root)
    paths = sorted((root / "commitlog").iterdir())
    damage_file(paths[0], overwrite, log.records[2].physical_offset, b"\xff" * 60)
    body = log.records[7].physical_offset + 100
    damage_file(paths[0], overwrite, body, b"?")
    return root


def assert_accounted(row) -> None:
    """Every byte of every cell is in exactly one state, and the cells add up to the row."""
    parts = [*row["states"].values(), *row["topics"].values(), row["other_topics"] or 0]
    assert sum(parts) == row["size"]
    cells = row["cells"]
    columns = [*cells["states"].values(), *cells["topics"].values(), cells["other_topics"]]
    by_cell = [sum(counts) for counts in zip(*(one for one in columns if one), strict=True)]
    assert sum(by_cell) == row["size"]
    assert by_cell[:-1] == [row["cell_bytes"]] * (len(by_cell) - 1)
    for kind in ("states", "topics"):
        assert {name: sum(counts) for name, counts in cells[kind].items()} == row[kind]


@pytest.mark.share
@pytest.mark.parametrize("name", GOLDEN)
def test_every_byte_is_in_one_state(golden, store_unchanged, name):
    found = golden(name)
    store_unchanged(found.path)
    result = rmq("map", found.path, *NDJSON)
    if name.endswith("dledger"):
        assert result.exit_code == 6
        return
    rows = result.of_type("segment")
    assert result.exit_code == 0
    for row in rows:
        assert_accounted(row)
        assert row["size"] == (found.path / row["path"]).stat().st_size
    summary = result.rows[-1]
    assert summary["schema"] == "rmqtool.map/1"
    assert summary["complete"] is True
    verified = rmq("verify", found.path, *NDJSON).rows[-1]
    assert summary["records"] == sum(row["records"] for row in rows) == verified["records"]
    topics = {row["topic"]: row["bytes"] for row in rmq("stats", found.path, *NDJSON).of_type("group")}
    assert summary["topics"] == topics


def test_damage_is_drawn_and_is_exit_1(tmp_path):
    store = damaged(tmp_path / "store")
    (store / "commitlog" / f"{SIZE:020}").unlink()
    result = rmq("map", store, *NDJSON)
    assert result.exit_code == 1
    first = result.of_type("segment")[0]
    assert_accounted(first)
    gaps = [row for row in rmq("dump", store, *NDJSON).of_type("gap") if row["reason"] != "missing"]
    assert first["states"]["gap"] == sum(row["length"] for row in gaps)
    bad = [row for row in rmq("dump", store, *NDJSON).of_type("message") if row["crc"] == "bad"]
    assert first["states"]["bad_crc"] == sum(row["store_size"] for row in bad) > 0
    assert first["damaged_bytes"] == first["states"]["gap"] + first["states"]["bad_crc"]
    assert [(row["physical_offset"], row["length"]) for row in result.of_type("missing")] == [(SIZE, SIZE)]
    text = rmq("map", store).stdout
    assert "X" in text.splitlines()[0]
    assert "!" in text.splitlines()[0]
    assert "missing: 4.0 KiB" in text


@pytest.mark.parametrize("content", [b"\xff" * 32, None])
def test_what_lies_behind_the_end(tmp_path, content):
    log = write(tmp_path / "store", 20)
    last = max((tmp_path / "store" / "commitlog").iterdir())
    if content is not None:
        with last.open("r+b") as file:
            file.seek(SIZE - 64)
            file.write(content)
    row = rmq("map", tmp_path / "store", *NDJSON).of_type("segment")[-1]
    assert_accounted(row)
    tail = "zero" if content is None else "garbage"
    assert row["states"][tail] == SIZE - (log.end_offset - row["segment"])


def _as_terminal(monkeypatch, width: int) -> None:
    monkeypatch.setattr("rmqtool.output.text_style.is_terminal", lambda _: True)
    monkeypatch.setenv("COLUMNS", str(width))


@pytest.mark.parametrize("color", ["always", "never"])
@pytest.mark.parametrize("width", [40, 80, 120, 200])
def test_it_fits_the_terminal_in_both_forms(store, monkeypatch, width, color):
    import re

    from rich.cells import cell_len

    _as_terminal(monkeypatch, width)
    text = rmq("map", store, "--color", color).stdout
    plain = re.sub(r"\x1b\[[0-9;]*m", "", text)
    lines = plain.splitlines()
    assert max(map(cell_len, lines)) <= max(width, 50)
    drawn = [line.split("|")[1] for line in lines if line.count("|") == 2]
    assert len(drawn) == len(rmq("map", store, *NDJSON).of_type("segment"))
    marks = {line.split()[0] for line in lines[lines.index("Legend") + 1 :]}
    assert set("".join(drawn)) <= marks
    assert ("\x1b[" in text) is (color == "always")


def test_a_screen_of_80_columns(store, monkeypatch):
    _as_terminal(monkeypatch, 80)
    text = rmq("map", store, "--color", "never").stdout
    lines = text.splitlines()
    assert {len(line) for line in lines if line.count("|") == 2} == {5 + 2 + 61 + 1 + 9}
    legend = lines[lines.index("Legend") + 1 :]
    assert [line.split()[0] for line in legend] == [*"abcdef", "_", "."]
    assert "</script><b>" in text
    assert "\\x1b[2Jx" in text
    assert "\\u202etxt" in text
    assert "\x1b" not in text


def test_more_topics_than_are_told_apart(tmp_path, monkeypatch):
    monkeypatch.setattr(segment_map, "MOST_TOPICS", 9)
    monkeypatch.setattr(segment_map, "OTHERS", segment_map.TOPICS_FROM + 8)
    names = tuple(f"Topic{letter}" for letter in string.ascii_uppercase)
    write(tmp_path / "store", 200, names)
    result = rmq("map", tmp_path / "store", *NDJSON)
    for row in result.of_type("segment"):
        assert_accounted(row)
    summary = result.rows[-1]
    assert len(summary["topics"]) == 8
    assert summary["other_topics"] > 0
    assert "all other topics" in rmq("map", tmp_path / "store").stdout


def test_a_log_of_more_segments_than_are_drawn(tmp_path, monkeypatch):
    monkeypatch.setattr(segment_map, "MOST_SEGMENTS", 6)
    monkeypatch.setattr(segment_map, "EDGE_SEGMENTS", 1)
    store = tmp_path / "store"
    write(store, 400)
    paths = sorted((store / "commitlog").iterdir())
    assert len(paths) > 8
    damage_file(paths[4], overwrite, 200, b"\xff" * 60)
    result = rmq("map", store, *NDJSON)
    rows = result.of_type("segment")
    assert [bool(row["cells"]) for row in rows] == [at in {0, 4, len(rows) - 1} for at in range(len(rows))]
    assert all(sum((*row["states"].values(), *row["topics"].values())) == SIZE for row in rows)
    assert result.rows[-1]["collapsed_segments"] == len(rows) - 3
    assert f"{len(rows) - 3} more segments are not drawn" in rmq("map", store).stdout


def test_forms(store):
    document = json.loads(rmq("map", store, "--json").stdout)
    assert document["summary"]["segments"] == len(document["rows"])
    assert rmq("map", store, "--format", "csv").stdout.count("\n") == len(document["rows"]) + 1
    assert {name for row in document["rows"] for name in row["states"]} <= {one.name.lower() for one in State}


def test_a_live_store_is_drawn(tmp_path, golden):
    path = fixtures.open_golden("v533-basic", tmp_path).path
    (path / "lock").touch()
    with held(path):
        result = rmq_process("map", path, *NDJSON)
    assert result.exit_code == 0
    for row in result.of_type("segment"):
        assert_accounted(row)
