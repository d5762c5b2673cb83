"""Stores whose log is not there, or cannot be decoded: no answer is given as if it were the whole one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import fixtures
from tests.helpers import rmq

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import SparkSession

COMMANDS = [("stats",), ("sql", "select count(*) as n from messages")]


@pytest.mark.parametrize("command", COMMANDS)
def test_what_is_lacking_is_reported(
    spark: SparkSession, fresh_golden: Callable[[str], fixtures.Golden], command: tuple[str, ...]
) -> None:
    root = fresh_golden("v498-basic").path
    for path in (root / "commitlog").iterdir():
        path.unlink()
    name, *words = command
    done = rmq("pipeline", name, root, *words, "--format", "ndjson")
    local = rmq(name, root, *words, "--format", "ndjson")
    assert (done.exit_code, local.exit_code) == (3, 3), done.stderr
    reported = [{key: value for key, value in row.items() if key != "store"} for row in lacking(done.rows)]
    assert reported == lacking(local.rows)
    assert reported


def lacking(rows: list[dict[str, object]]) -> list[dict[str, object]]:
    found = rows[-1]["not_covered"]
    assert isinstance(found, list)
    return found


def test_a_log_in_dledger_files(spark: SparkSession, tmp_path: Path) -> None:
    root = fixtures.open_golden("b497-dledger", tmp_path).path
    done = rmq("pipeline", "stats", root)
    assert (done.exit_code, done.stdout) == (rmq("stats", root).exit_code, "") == (6, "")
    assert "DLedger" in done.stderr
