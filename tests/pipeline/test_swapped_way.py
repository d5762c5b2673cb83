"""Root runs jobs that write in a directory of another user, who swaps all that lies in it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from tests.cli.test_swapped_way import OTHER, swapping, victim
from tests.helpers import rmq
from tests.repair.smallstore import tree

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import SparkSession

    import fixtures

__all__ = ["victim"]

pytestmark = [
    pytest.mark.full,
    pytest.mark.timeout(900),
    pytest.mark.skipif(os.geteuid() != 0, reason="becomes another user, which only root may"),
]


@pytest.mark.parametrize("command", [("export", "--to"), ("rebuild", "--output"), ("stream", "--to")])
def test_nothing_is_written_where_another_user_leads(
    spark: SparkSession,
    fresh_golden: Callable[[str], fixtures.Golden],
    tmp_path: Path,
    victim: Path,
    command: tuple[str, str],
) -> None:
    golden, theirs = fresh_golden("v533-basic"), tmp_path / "theirs"
    theirs.mkdir()
    os.chown(theirs, OTHER, OTHER)
    tmp_path.chmod(0o711)
    (victim / "_attempts").mkdir()
    before = tree(victim)
    name, option = command
    more = ("--once",) if name == "stream" else ()
    with swapping(theirs, victim):
        for number in range(8):
            done = rmq("pipeline", name, golden.path, option, theirs / f"out{number}", *more)
            assert "internal" not in done.stderr, done.stderr
            assert "/proc/self" not in done.stderr
    assert tree(victim) == before
