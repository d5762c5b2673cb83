"""`rmqtool stats`: forms, exit codes, what is refused."""

from __future__ import annotations

import importlib.util
import json
from xml.etree import ElementTree as ET

import pytest

from fixtures.builder import HandmadeLog, damage_file, overwrite
from tests.cli.dumping import assert_one_line
from tests.helpers import rmq

NDJSON = ("--format", "ndjson")


def test_rows_and_summary(golden, store_unchanged):
    found = golden("v533-basic")
    store_unchanged(found.path)
    result = rmq("stats", found.path, *NDJSON)
    assert result.exit_code == 0
    counts = {row["topic"]: row["messages"] for row in result.of_type("group")}
    assert sum(counts.values()) == len(found.expected["records"]) == result.rows[-1]["messages"]
    assert result.rows[-1]["schema"] == "rmqtool.stats/1"
    assert abs(sum(row["share"] for row in result.of_type("group")) - 1) < 0.001


@pytest.mark.share
@pytest.mark.parametrize("form", ["table", "csv", "json"])
@pytest.mark.parametrize(
    "more", [(), ("--by", "tag,hour"), ("--retention",), ("--duplicates",), ("--by", "group")]
)
def test_forms(golden, form, more):
    result = rmq("stats", golden("b533-full").path, "--format", form, *more)
    assert result.exit_code == 0
    if form == "json":
        document = json.loads(result.stdout)
        assert document["rows"]
        assert document["summary"]["complete"] is True
    else:
        assert result.stdout.count("\n") > 1


def test_filters_and_limit(golden):
    found = golden("v533-basic")
    result = rmq("stats", found.path, "--topic", "TopicA", *NDJSON)
    assert [row["topic"] for row in result.of_type("group")] == ["TopicA"]
    short = rmq("stats", found.path, "--limit", 5, *NDJSON)
    assert (short.exit_code, short.rows[-1]["incomplete_reason"], short.rows[-1]["messages"]) == (
        0,
        "limit",
        5,
    )


def test_damage_in_scope_is_exit_3(tmp_path):
    log = HandmadeLog(segment_size=4096)
    for _ in range(60):
        log.put("T", b"x" * 40)
    paths = log.write(tmp_path / "commitlog")
    damage_file(paths[0], overwrite, log.records[2].physical_offset, b"\xff" * 60)
    result = rmq("stats", tmp_path, *NDJSON)
    assert (result.exit_code, result.rows[-1]["incomplete_reason"]) == (3, "damage")
    assert result.rows[-1]["messages"] == 59


def test_an_empty_store(tmp_path):
    (tmp_path / "commitlog").mkdir()
    result = rmq("stats", tmp_path, *NDJSON)
    assert (result.exit_code, result.rows[-1]["messages"], result.rows[-1]["largest"]) == (0, 0, None)
    assert rmq("stats", tmp_path).exit_code == 0


@pytest.mark.parametrize(
    "arguments",
    [("--by", "colour"), ("--by", "group,topic"), ("--by-key",), ("--sample", "3"), ("--plot", "--json")],
)
def test_what_cannot_be_meant_is_refused(golden, arguments):
    assert_one_line(rmq("stats", golden("v533-basic").path, *arguments), 2)


def test_bars_have_a_line_for_each_row(golden):
    store = golden("v533-basic").path
    rows = rmq("stats", store, "--format", "ndjson").of_type("group")
    table, _, drawn = rmq("stats", store, "--plot").stdout.partition("\nmessages\n")
    assert table.startswith("topic")
    lines = drawn.splitlines()
    assert [(line.split()[0], line.split()[-1]) for line in lines] == [
        (row["topic"], f"{row['messages']:,}") for row in rows
    ]
    assert max(line.count("█") for line in lines) > 50


def test_bars_over_time_say_their_hours(golden):
    store = golden("v533-basic").path
    shown = rmq("stats", store, "--by", "hour", "--plot", "--tz", "UTC").stdout
    rows = rmq("stats", store, "--by", "hour", "--format", "ndjson").of_type("group")
    assert "messages per hour, times in UTC" in shown
    assert f" {max(row['messages'] for row in rows):,} |" in shown


def test_a_picture_is_a_new_file_outside_of_the_store(fresh_golden, tmp_path):
    store = fresh_golden("v533-basic").path
    picture = tmp_path / "bars.svg"
    assert rmq("stats", store, "--plot", picture, "--json").exit_code == 0
    root = ET.fromstring(picture.read_text())
    texts = [one.text for one in root.iter("{http://www.w3.org/2000/svg}text")]
    rows = rmq("stats", store, "--format", "ndjson").of_type("group")
    assert [f"{row['messages']:,}" for row in rows] == texts[2::2]
    assert_one_line(rmq("stats", store, "--plot", picture), 2)  # it is there already
    assert_one_line(rmq("stats", store, "--plot", store / "bars.svg"), 2)
    nowhere = rmq("stats", store, "--plot", picture.parent / "none" / "bars.svg")
    assert_one_line(nowhere, 2)
    assert "there is no such directory" in nowhere.stderr
    assert not (store / "bars.svg").exists()


@pytest.mark.skipif(
    importlib.util.find_spec("matplotlib") is None, reason="the extra 'plot' is not installed"
)
def test_a_picture_as_png(golden, tmp_path):
    for by in ("topic", "hour"):
        picture = tmp_path / f"{by}.png"
        assert rmq("stats", golden("v533-basic").path, "--by", by, "--plot", picture).exit_code == 0
        assert picture.read_bytes().startswith(b"\x89PNG")


@pytest.mark.skipif(importlib.util.find_spec("matplotlib") is not None, reason="the extra 'plot' is there")
def test_without_the_extra_the_way_to_get_it_is_reported(golden, tmp_path):
    result = rmq("stats", golden("v533-basic").path, "--plot", tmp_path / "x.png")
    assert_one_line(result, 2)
    assert "rmqtool[plot]" in result.stderr
