"""`rmqtool verify` from the outside: forms, exit codes, several stores."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from rmqtool.errors import ExitCode
from tests.helpers import rmq

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import fixtures


def test_a_right_store(
    golden: Callable[[str], fixtures.Golden], store_unchanged: Callable[[Path], Path]
) -> None:
    path = store_unchanged(golden("b533-full").path)
    result = rmq("verify", path, "--format", "ndjson")
    assert result.exit_code == ExitCode.OK
    summary = result.rows[-1]
    assert (summary["schema"], summary["complete"], summary["records"]) == ("rmqtool.verify/1", True, 133)
    assert {row["severity"] for row in result.of_type("finding")} == {"note"}


def test_a_flipped_byte_is_named(fresh_golden: Callable[[str], fixtures.Golden]) -> None:
    opened = fresh_golden("v533-basic")
    record = opened.expected["records"][10]
    segment = opened.path / "commitlog/00000000000000000000"
    data = bytearray(segment.read_bytes())
    data[record["physicalOffset"] + 88] ^= 1
    segment.write_bytes(data)
    result = rmq("verify", opened.path, "--json")
    assert result.exit_code == ExitCode.DAMAGE
    document = json.loads(result.stdout)
    rows = [row for row in document["rows"] if row["severity"] == "error"]
    assert [(row["code"], row["physical_offset"], row["length"]) for row in rows] == [
        ("CL-CRC", record["physicalOffset"], record["storeSize"])
    ]
    assert document["summary"]["by_code"]["CL-CRC"] == 1


def test_fail_on(golden: Callable[[str], fixtures.Golden]) -> None:
    right, shifted = golden("b533-full").path, golden("v533-lmq").path
    assert rmq("verify", right, "--fail-on", "note").exit_code == ExitCode.DAMAGE
    assert rmq("verify", right).exit_code == ExitCode.OK
    assert rmq("verify", shifted, "--fail-on", "error").exit_code == ExitCode.DAMAGE
    assert rmq("verify", shifted, "--fail-on", "never").exit_code == ExitCode.OK


def test_several_stores_in_one_call(golden: Callable[[str], fixtures.Golden]) -> None:
    paths = [golden(name).path for name in ("v533-basic", "v533-lmq")]
    result = rmq("verify", *paths, "--format", "ndjson")
    assert result.exit_code == ExitCode.DAMAGE
    summary = result.rows[-1]
    assert [part["records"] for part in summary["stores"]] == [413, 120]
    assert summary["by_severity"]["error"] == len(
        [row for row in result.of_type("finding") if row["store"] == str(paths[1])]
    )


def test_a_wrong_path_among_several_ends_the_run_before_it_begins(
    golden: Callable[[str], fixtures.Golden], tmp_path: Path
) -> None:
    result = rmq("verify", golden("v533-lmq").path, tmp_path / "no", "--format", "ndjson")
    assert (result.exit_code, result.stdout) == (ExitCode.USAGE, "")


def test_the_closing_line_tells_how_bad_it_is(golden: Callable[[str], fixtures.Golden]) -> None:
    assert "15 findings (15 errors), " in rmq("verify", golden("v533-lmq").path).stderr
    assert "37 findings (37 notes), " in rmq("verify", golden("v533-basic").path).stderr


def test_a_file_is_what_it_is_said_to_be(golden: Callable[[str], fixtures.Golden], tmp_path: Path) -> None:
    copied = tmp_path / "unknown"
    copied.write_bytes(bytes(40))
    assert rmq("verify", copied).exit_code == ExitCode.USAGE
    result = rmq("verify", copied, "--as", "checkpoint", "--format", "ndjson")
    assert "CP-SIZE" in [row["code"] for row in result.of_type("finding")]


def test_a_path_that_does_not_exist(tmp_path: Path) -> None:
    result = rmq("verify", tmp_path / "nothing")
    assert (result.exit_code, result.stdout) == (ExitCode.USAGE, "")
    assert len(result.stderr.splitlines()) == 1


def _as_terminal(monkeypatch: pytest.MonkeyPatch, width: int) -> None:
    monkeypatch.setattr("rmqtool.output.text_style.is_terminal", lambda _: True)
    monkeypatch.setenv("COLUMNS", str(width))


@pytest.mark.parametrize("width", [80, 120])
def test_a_terminal_has_a_block_for_each_finding(
    golden: Callable[[str], fixtures.Golden], monkeypatch: pytest.MonkeyPatch, width: int
) -> None:
    path = golden("v533-lmq").path
    found = rmq("verify", path, "--format", "ndjson").of_type("finding")
    _as_terminal(monkeypatch, width)
    shown = rmq("verify", path)
    blocks = shown.stdout.strip("\n").split("\n\n")
    assert [block.split()[:2] for block in blocks] == [[row["severity"], row["code"]] for row in found]
    for block, row in zip(blocks, found, strict=True):
        words = " ".join(block.split())
        assert " ".join(row["message"].split()) in words
        assert row["path"] in words
        assert "→" in words
        assert "STORE" not in words
    assert str(path) in blocks[0]  # the next command can be copied
    overlong = [line for line in shown.stdout.splitlines() if len(line) > width]
    assert not any(" " in line.strip().removeprefix("→ ") for line in overlong)
    assert f"  rmqtool doctor {path}\n" in shown.stderr
    assert f"  rmqtool recover {path}\n" in shown.stderr


def test_in_a_pipe_a_finding_is_one_line_with_its_hint(golden: Callable[[str], fixtures.Golden]) -> None:
    path = golden("v533-lmq").path
    found = rmq("verify", path, "--format", "ndjson").of_type("finding")
    header, *lines = rmq("verify", path).stdout.splitlines()
    assert header.split()[-1] == "hint"
    assert all(row["hint"] in line for row, line in zip(found, lines, strict=True))


def test_a_right_store_asks_for_nothing(golden: Callable[[str], fixtures.Golden]) -> None:
    assert "Do next" not in rmq("verify", golden("b533-full").path).stderr


def test_progress_counts_queues_and_index_too(golden: Callable[[str], fixtures.Golden]) -> None:
    from rmqtool.check.verify import Verification
    from rmqtool.scan.options import ReadOptions
    from rmqtool.store.layout import Store

    opened = Store.open(golden("v533-basic").path)
    done: list[int] = []
    run = Verification(opened, ReadOptions.of(opened, advance=done.append))
    list(run.findings())
    assert sum(done) == run.bytes_to_read
    log = sum(one.size for one in opened.segments)
    assert run.bytes_to_read > log
    assert sum(done[:-2]) == log
