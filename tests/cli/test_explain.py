"""`rmqtool explain` from the outside: forms, exit codes, the store's evidence."""

from __future__ import annotations

import gzip
import json
from typing import TYPE_CHECKING

from rmqtool.errors import ExitCode
from tests.helpers import rmq

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import fixtures

HALF = "found a half message at 405488, it will be truncated."
FINE = "2026-11-21 09:00:00 INFO main - last shutdown normally"


def test_a_pasted_line_for_people() -> None:
    result = rmq("explain", HALF)
    assert result.exit_code == ExitCode.DAMAGE
    assert result.stdout.startswith("PROBLEM  recovery.half-message\n")
    assert "rmqtool show STORE 405488" in result.stdout
    assert "1 explained" in result.stderr


def test_normal_lines_are_exit_0() -> None:
    assert rmq("explain", FINE, "found a illegal magic code 0x0").exit_code == ExitCode.OK


def test_an_unknown_warning_is_exit_1_and_unknown_talk_is_not() -> None:
    assert rmq("explain", "2026-11-21 09:00:00 WARN main - never heard of").exit_code == ExitCode.DAMAGE
    assert rmq("explain", "2026-11-21 09:00:00 INFO main - never heard of").exit_code == ExitCode.OK
    assert rmq("explain", "never heard of").exit_code == ExitCode.DAMAGE


def test_forms() -> None:
    result = rmq("explain", HALF, FINE, "--format", "ndjson")
    first, second, summary = result.rows
    assert (first["type"], first["id"], first["severity"]) == ("cause", "recovery.half-message", "problem")
    assert first["values"] == [{"physical_offset": "405488"}]
    assert (second["id"], second["first_timestamp"]) == ("start.normal", 1795222800000)
    assert summary["schema"] == "rmqtool.explain/1"
    assert (summary["lines"], summary["by_severity"]["problem"], summary["complete"]) == (2, 1, True)
    document = json.loads(rmq("explain", HALF, "--json").stdout)
    assert document["rows"][0]["incidents"] == ["F01"]
    assert document["summary"]["schema"] == "rmqtool.explain/1"
    csv = rmq("explain", HALF, "--format", "csv").stdout.splitlines()
    assert csv[0].startswith("type,severity,id,")
    assert csv[1].startswith("cause,problem,recovery.half-message,")


def test_files_directories_and_the_pipe(tmp_path: Path) -> None:
    (tmp_path / "store.log").write_text(f"{FINE}\n" * 3)
    (tmp_path / "store.1.log.gz").write_bytes(gzip.compress(f"{FINE}\n".encode() * 4))
    assert rmq("explain", tmp_path, "--format", "ndjson").rows[0]["count"] == 7
    assert rmq("explain", tmp_path / "store.log", "-", "--json", stdin=f"{FINE}\n").exit_code == ExitCode.OK
    (cause, _) = rmq("explain", "--format", "ndjson", stdin=f"{FINE}\n{FINE}\n").rows
    assert (cause["count"], cause["place"]) == (2, "-:1")


def test_log_times_are_gmt_8_unless_said() -> None:
    utc = rmq("explain", FINE, "--log-tz", "UTC", "--format", "ndjson").rows[0]["first_timestamp"]
    assert utc - rmq("explain", FINE, "--format", "ndjson").rows[0]["first_timestamp"] == 8 * 3_600_000
    assert rmq("explain", FINE, "--log-tz", "nowhere").exit_code == ExitCode.USAGE


def test_a_file_that_ends_early_is_incomplete(tmp_path: Path) -> None:
    whole = gzip.compress("".join(f"{FINE} {i * 7919 % 10007}\n" for i in range(1000)).encode())
    (tmp_path / "a.log.gz").write_bytes(whole[:-20])
    (tmp_path / "b.log").write_text(f"{FINE}\n")
    result = rmq("explain", tmp_path, "--format", "ndjson")
    assert result.exit_code == ExitCode.INCOMPLETE
    assert result.rows[-1]["incomplete_reason"] == "unreadable"
    assert result.rows[-1]["not_covered"][0]["path"].endswith("a.log.gz")
    assert result.rows[0]["count"] >= 1


def test_evidence_of_a_store(
    golden: Callable[[str], fixtures.Golden], store_unchanged: Callable[[Path], Path]
) -> None:
    opened = golden("v533-basic")
    record = opened.expected["records"][10]
    path = store_unchanged(opened.path)
    offset = record["physicalOffset"]
    wrong = (
        f"[BUG]logic queue order maybe wrong, expectLogicOffset: 40 currentLogicOffset: 20 "
        f"Topic: {record['topic']} QID: {record['queueId']} Diff: 20"
    )
    lines = (
        f"found a half message at {offset}, it will be truncated.",
        wrong,
        "recover physics file end, /data/store/commitlog/00000000000000000000 pos=12",
        "recover physics file end, /data/store/commitlog/00000000009999999999 pos=12",
    )
    result = rmq("explain", *lines, "--store", path, "--format", "ndjson")
    reported = {row["id"]: row for row in result.of_type("cause")}
    half = reported["recovery.half-message"]
    assert f"queue offset {record['queueOffset']}" in half["evidence"][0]
    assert half["next"][0] == f"rmqtool show {path} {offset}"
    (queue,) = reported["queue.order-wrong"]["evidence"]
    assert queue.startswith(f"queue {record['topic']}/{record['queueId']}: offsets 0 to ")
    assert reported["queue.order-wrong"]["remarks"] == [
        "20 bytes are 1 slots: so many messages of the queue have no consume queue entry"
    ]
    there, gone = reported["recovery.file-end"]["evidence"]
    assert there.startswith("commitlog/00000000000000000000 is there: commitlog, ")
    assert gone == "commitlog/00000000009999999999 is not in the store now"


def test_options_that_need_a_store() -> None:
    result = rmq("explain", HALF, "--store-config", "x.conf")
    assert (result.exit_code, result.stdout) == (ExitCode.USAGE, "")


def test_controls_in_a_log_are_shown_escaped() -> None:
    result = rmq("explain", "2026-11-21 09:00:00 WARN x - evil \x1b[2J [/x]")
    assert "\x1b" not in result.stdout
    assert "[/x]" in result.stdout
