"""What is said where a directory is seen by the driver only."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

import pytest

from rmqtool.build.spool import read_frames
from rmqtool.errors import StoreIOError, UsageError
from rmqtool.pipeline.runner import Lost
from rmqtool.pipeline.shared import NOT_SHARED, new_attempt, refuse_led, refuse_not_shared, refuse_unseen

if TYPE_CHECKING:
    from pathlib import Path


def test_an_attempt_has_a_directory_of_its_own(tmp_path: Path) -> None:
    made = set()
    for _ in range(3):
        with new_attempt(str(tmp_path)) as attempt:
            made.add(attempt.path)
    assert {str(one) for one in tmp_path.iterdir()} == made
    assert len(made) == 3


def test_a_task_that_does_not_see_the_directory_ends_the_job(tmp_path: Path) -> None:
    with (
        pytest.raises(StoreIOError, match=NOT_SHARED) as task,
        new_attempt(str(tmp_path / "elsewhere")),
    ):
        pass
    with pytest.raises(StoreIOError, match=str(tmp_path)):
        refuse_not_shared(Lost(str(task.value)))
    refuse_not_shared(Lost("/data/store: Permission denied"))


@pytest.mark.parametrize("name", ["7", "9.compact"])
def test_files_of_a_batch_that_are_not_here(tmp_path: Path, name: str) -> None:
    batch = int(name.partition(".")[0])
    log = tmp_path / "_spark_metadata"
    log.mkdir()
    file = tmp_path / "part of it.parquet"
    refuse_unseen(str(tmp_path), batch)
    (log / name).write_text("v1")
    refuse_unseen(str(tmp_path), batch)
    row = json.dumps({"path": file.as_uri(), "size": 9, "action": "add"})
    (log / name).write_text(f"v1\n{row}")
    with pytest.raises(StoreIOError, match="is not here"):
        refuse_unseen(str(tmp_path), batch)
    file.touch()
    refuse_unseen(str(tmp_path), batch)


@pytest.mark.skipif(os.geteuid() != 0, reason="gives a directory to another user, which only root may")
def test_root_believes_nothing_in_a_directory_of_another_user(tmp_path: Path) -> None:
    """Who puts his own in the place of the directory that the driver made could name any file in frames."""
    (tmp_path / "frames").write_bytes(b"frame")
    assert list(read_frames(str(tmp_path / "frames"), [(0, 5)])) == [b"frame"]
    os.chown(tmp_path, 1234, 1234)
    with pytest.raises(StoreIOError, match="another user may change"):
        list(read_frames(str(tmp_path / "frames"), [(0, 5)]))
    with pytest.raises(StoreIOError, match="another user may change"), new_attempt(str(tmp_path)):
        pass
    assert [one.name for one in tmp_path.iterdir()] == ["frames"]


@pytest.mark.skipif(os.geteuid() != 0, reason="gives a directory to another user, which only root may")
def test_root_lets_spark_write_in_nothing_of_another_user(tmp_path: Path) -> None:
    (tmp_path / "lake" / "topic=T").mkdir(parents=True)
    refuse_led(str(tmp_path / "lake"), "--to")
    os.chown(tmp_path / "lake" / "topic=T", 1234, 1234)
    with pytest.raises(UsageError, match="topic=T"):
        refuse_led(str(tmp_path / "lake"), "--to")
