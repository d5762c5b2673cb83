"""`dump` of a replayable file: the rows of the log, in every form, and no damage goes unnoticed."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from fixtures.builder import FIRST_TIME, HandmadeLog
from formats import replay
from tests.cli.dumping import assert_one_line
from tests.helpers import rmq

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import fixtures

PLACE = {"path", "segment", "position"}


def export(store: Path, to: Path) -> Path:
    result = rmq("export", store, "--to", to)
    assert result.exit_code == 0, result.stderr
    return to


def messages(path: Path, *options: object) -> list[dict[str, Any]]:
    rows = rmq("dump", path, "--format", "ndjson", *options).of_type("message")
    return [{name: value for name, value in row.items() if name not in PLACE} for row in rows]


@pytest.fixture
def log(tmp_path: Path) -> HandmadeLog:
    log = HandmadeLog(segment_size=4096)
    for number in range(60):
        log.put(f"T{number % 2}", b"x" * 100, {"KEYS": f"k{number}"}, store_timestamp=FIRST_TIME + number)
    log.write(tmp_path / "store/commitlog")
    return log


@pytest.fixture
def file(tmp_path: Path, log: HandmadeLog) -> Path:
    assert len(log.records) == 60
    return export(tmp_path / "store", tmp_path / "all.replay")


@pytest.mark.share
@pytest.mark.parametrize("name", ["v498-basic", "v533-compressed", "v533-v2"])
def test_rows_are_those_of_the_store(
    golden: Callable[[str], fixtures.Golden], tmp_path: Path, name: str
) -> None:
    store = golden(name).path
    file = export(store, tmp_path / "all.replay")
    assert messages(file) == messages(store)
    result = rmq("dump", file, "--format", "ndjson")
    assert (result.exit_code, result.rows[-1]["complete"]) == (0, True)


@pytest.mark.parametrize(
    "options",
    [
        ("--topic", "T1"), ("--key", "k7"), ("--from", FIRST_TIME + 20, "--to", FIRST_TIME + 30),
        ("--offset-range", "1000:3000"), ("--redact", "body,keys"), ("--body", "hex", "--body-sha256"),
        ("--limit", 7), ("--sample", 9), ("--sample", 9, "--limit", 3),
    ],
)  # fmt: skip
def test_options_mean_what_they_mean_for_a_log(
    file: Path, tmp_path: Path, options: tuple[object, ...]
) -> None:
    assert messages(file, *options) == messages(tmp_path / "store", *options)


def test_a_limit_says_what_is_left(file: Path) -> None:
    result = rmq("dump", file, "--format", "ndjson", "--limit", 7)
    reported = result.rows[-1]
    assert (result.exit_code, reported["incomplete_reason"], reported["messages"]) == (0, "limit", 7)
    (left,) = reported["not_covered"]
    assert left["position"] + left["length"] == file.stat().st_size


@pytest.mark.parametrize("form", ["table", "json", "csv", "hex"])
def test_forms(file: Path, form: str) -> None:
    result = rmq("dump", file, "--format", form)
    assert result.exit_code == 0
    if form == "json":
        assert len(json.loads(result.stdout)["rows"]) == 60


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda raw: raw[:-1], "cut"), (lambda raw: raw + b"x", "trailing"),
        (lambda raw: raw[:5000] + bytes([raw[5000] ^ 1]) + raw[5001:], "bad_crc"),
        (lambda raw: raw[:-24] + replay.entry(b"strange") + replay.end(61), "no_record"),
        (lambda raw: raw[:-24] + replay.end(61), "bad_count"),
        (lambda raw: raw[:-24] + b"\xff" * 24, "bad_length"),
    ],
)  # fmt: skip
def test_damage(file: Path, change: Callable[[bytes], bytes], reason: str) -> None:
    raw = change(file.read_bytes())
    file.write_bytes(raw)
    result = rmq("dump", file, "--format", "ndjson")
    assert (result.exit_code, result.rows[-1]["gaps"]) == (1, 1)
    (gap,) = result.of_type("gap")
    assert gap["reason"] == reason
    assert gap["position"] + gap["length"] <= len(raw)
    assert f"-- gap at byte {gap['position']}" in rmq("dump", file).stdout


def test_a_newer_version_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "new.replay"
    file.write_bytes(replay.MAGIC + b"\0\0\0\2" + bytes(100))
    assert_one_line(rmq("dump", file), 6)


def test_other_commands_say_what_it_is(file: Path) -> None:
    for command in ("verify", "stats", "export"):
        result = rmq(command, file, *(("--to", file.parent / "x.csv") if command == "export" else ()))
        assert result.exit_code == 2, command
        assert "replay" in result.stderr, command
