"""`rmqtool tail`: forms, exit codes, and a process that follows until it is interrupted."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys

import pytest

from fixtures.builder import HandmadeLog, damage_file, overwrite
from tests.cli.dumping import assert_one_line
from tests.cli.test_interrupt import DRIVER
from tests.helpers import ROOT, rmq

NDJSON = ("--format", "ndjson")


@pytest.fixture
def log(tmp_path):
    made = HandmadeLog(segment_size=8192)
    for number in range(80):
        made.put("T", b"x" * 40, {"TAGS": "AB"[number % 2]})
    made.write(tmp_path / "commitlog")
    return made


def places(result):
    return [row["physical_offset"] for row in result.of_type("message")]


def test_ten_messages_unless_told_otherwise(log, tmp_path, store_unchanged):
    store_unchanged(tmp_path)
    starts = [one.physical_offset for one in log.records]
    result = rmq("tail", tmp_path, *NDJSON)
    assert (result.exit_code, places(result)) == (0, starts[-10:])
    summary = result.rows[-1]
    assert (summary["schema"], summary["incomplete_reason"]) == ("rmqtool.tail/1", "limit")
    assert summary["end_offset"] == log.end_offset
    assert places(rmq("tail", tmp_path, "-n", 2, "--filter", "A", *NDJSON)) == [starts[-4], starts[-2]]
    everything = rmq("tail", tmp_path, "-n", 1000, *NDJSON)
    assert (places(everything), everything.rows[-1]["complete"]) == (starts, True)


@pytest.mark.share
@pytest.mark.parametrize("form", ["table", "csv", "json", "raw", "hex"])
def test_forms(log, tmp_path, form):
    result = subprocess.run(
        [sys.executable, "-m", "rmqtool", "tail", tmp_path, "-n", "3", "--format", form],
        capture_output=True, cwd=ROOT, check=True,
    )  # fmt: skip
    if form == "raw":
        assert result.stdout == b"".join(one.data for one in log.records[-3:])
    elif form == "json":
        assert len(json.loads(result.stdout)["rows"]) == 3
    else:
        assert str(log.records[-1].physical_offset).encode() in result.stdout or form == "hex"


def test_damage_in_scope_is_exit_3(log, tmp_path):
    path = max((tmp_path / "commitlog").iterdir())
    damage_file(path, overwrite, log.records[-3].physical_offset - int(path.name), b"\xff" * 50)
    assert rmq("tail", tmp_path, "-n", 2, *NDJSON).exit_code == 0
    broken = rmq("tail", tmp_path, "-n", 3, *NDJSON)
    assert (broken.exit_code, broken.rows[-1]["incomplete_reason"]) == (3, "damage")


@pytest.mark.parametrize("arguments", [("-n", "-1"), ("-n", "x"), ("--sample", "3"), ("--limit", "-2")])
def test_what_cannot_be_meant_is_refused(log, tmp_path, arguments):
    assert_one_line(rmq("tail", tmp_path, *arguments), 2)


@pytest.mark.parametrize("form", ["ndjson", "table"])
def test_following_ends_with_ctrl_c_and_a_summary(log, tmp_path, form):
    """Each message comes out at once, before the process ends."""
    process = subprocess.Popen(
        [sys.executable, "-c", DRIVER, "tail", str(tmp_path), "-f", "-n", "1", "--format", form],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    try:
        if form == "table":
            process.stdout.readline()
        first = process.stdout.readline()
        log.put("T", b"later")
        log.write(tmp_path / "commitlog")
        second = process.stdout.readline()
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    finally:
        process.kill()
    assert str(log.records[-2].physical_offset).encode() in first
    assert str(log.records[-1].physical_offset).encode() in second
    assert process.returncode == 130, err
    if form == "ndjson":
        summary = json.loads(out.splitlines()[-1])
        assert (summary["messages"], summary["incomplete_reason"]) == (2, "interrupted")
    else:
        assert b"Incomplete (interrupted)" in err
