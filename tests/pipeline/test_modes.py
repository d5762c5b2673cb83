"""What jobs write is never more readable than the stores, whatever mask executors have."""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING

import pytest

from tests.helpers import rmq

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

    import fixtures


@pytest.fixture
def mask() -> Iterator[None]:
    before = os.umask(0o022)
    yield
    os.umask(before)


@pytest.mark.usefixtures("mask")
@pytest.mark.parametrize(
    ("command", "option"),
    [
        ("export", "--to"),
        pytest.param("rebuild", "--output", marks=pytest.mark.full),
        pytest.param("stream", "--to", marks=pytest.mark.full),
    ],
)
def test_a_store_for_its_owner_alone_gives_files_for_their_owner_alone(
    spark: SparkSession,
    fresh_golden: Callable[[str], fixtures.Golden],
    tmp_path: Path,
    command: str,
    option: str,
) -> None:
    root = fresh_golden("v533-basic").path
    for place in root.rglob("*"):
        if place.is_file():
            place.chmod(0o600)
    to = tmp_path / command
    more = ("--once",) if command == "stream" else ()
    done = rmq("pipeline", command, root, option, to, *more)
    assert done.exit_code == 0, done.stderr
    made = [to, *to.rglob("*")]
    assert len(made) > 1
    if command == "rebuild":  # directories are those of a store, as open as its root
        made = [one for one in made if one.is_file()]
    assert [one for one in made if stat.S_IMODE(one.stat().st_mode) & 0o077] == []


@pytest.mark.skipif(os.geteuid() != 0, reason="gives a directory to another user, which only root may")
def test_root_lets_spark_write_nowhere_that_another_user_may_change(
    fresh_golden: Callable[[str], fixtures.Golden], tmp_path: Path
) -> None:
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    os.chown(theirs, 1234, 1234)
    store, mine = fresh_golden("v533-basic").path, tmp_path / "mine"
    for words in (["--to", theirs / "lake"], ["--to", mine, "--checkpoint", theirs / "state"]):
        done = rmq("pipeline", "stream", store, *words, "--once")
        assert (done.exit_code, "another user may change" in done.stderr) == (2, True), done.stderr
    assert list(theirs.iterdir()) == []
