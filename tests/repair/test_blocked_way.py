"""A pipe, socket or link where a plan needs a directory: refused before anything is written."""

from __future__ import annotations

import json
from typing import Any

import pytest

from rmqtool.store.growing import segments_now
from rmqtool.store.layout import Store
from tests.fuzz.commands import tree
from tests.fuzz.stores import put_other, remove
from tests.helpers import rmq


@pytest.mark.parametrize(
    ("folder", "what"), [("index", "fifo"), ("consumequeue", "socket"), ("index", "dangling")]
)
def test_what_is_in_the_way_is_named(fresh_golden: Any, folder: str, what: str) -> None:
    root = fresh_golden("v533-preblank").path
    remove(root / folder)
    put_other(root / folder, what)
    before = tree(root, times=False)
    for words in (["--output", root.parent / "out"], ["--in-place", "--backup", root.parent / "backup"]):
        result = rmq("recover", root, *words, "--apply")
        assert result.exit_code == 1, result.stderr
        assert f"{folder} is not a directory" in result.stderr
    assert tree(root, times=False) == before
    assert not (root.parent / "out").exists()
    assert not (root.parent / "backup" / "journal.json").exists()


def test_a_directory_in_the_place_of_a_file_is_named(fresh_golden: Any) -> None:
    root = fresh_golden("v533-preblank").path
    queue_file = max((root / "consumequeue/TopicP/1").iterdir())
    queue_file.unlink()
    (queue_file / "kept").mkdir(parents=True)
    before = tree(root, times=False)
    words = ("--in-place", "--backup", root.parent / "backup", "--apply", "--apply-unproven")
    result = rmq("rebuild", root, *words)
    assert result.exit_code == 1, result.stderr
    assert f"{queue_file.name} is a directory" in result.stderr
    assert tree(root, times=False) == before


def test_a_fifo_in_the_place_of_the_checkpoint_is_named_and_stays(fresh_golden: Any) -> None:
    root = fresh_golden("v533-preblank").path
    remove(root / "checkpoint")
    put_other(root / "checkpoint", "fifo")
    (root.parent / "there").mkdir()
    for backup in ("backup", "new/deep/backup", "there"):
        before = sorted(root.parent.rglob("*"))
        result = rmq("recover", root, "--in-place", "--backup", root.parent / backup, "--apply")
        assert result.exit_code == 1
        assert "checkpoint is a FIFO" in result.stderr
        assert "move it away first, or write to --output; the store was not changed" in result.stderr
        assert sorted(root.parent.rglob("*")) == before  # no empty backup, nor what is in front of it
    assert (root / "checkpoint").is_fifo()


@pytest.mark.parametrize("command", ["recover", "rebuild"])
def test_a_commitlog_that_leads_to_itself(fresh_golden: Any, command: str) -> None:
    root = fresh_golden("v533-preblank").path
    remove(root / "commitlog")
    put_other(root / "commitlog", "loop")
    result = rmq(command, root, "--output", root.parent / "out", "--apply")
    assert result.exit_code in (1, 2), result.stderr
    assert not (root.parent / "out").exists()


def test_a_segment_that_leads_to_itself_is_named(fresh_golden: Any) -> None:
    """Nor does it stop who waits for more segments."""
    root, backup = fresh_golden("v498-edge").path, "backup"
    segment = min((root / "commitlog").iterdir())
    segment.unlink()
    segment.symlink_to(segment.name)
    assert len(segments_now(Store.open(root))) == len(list((root / "commitlog").iterdir())) - 1
    before = tree(root, times=False)
    result = rmq("rebuild", root, "--in-place", "--backup", root.parent / backup, "--apply")
    assert result.exit_code == 1
    assert f"commitlog/{segment.name}: symbolic link" in result.stderr
    assert tree(root, times=False) == before


@pytest.mark.parametrize("which", [1, -1])
@pytest.mark.parametrize("command", ["recover", "rebuild"])
def test_a_segment_on_a_disk_that_is_not_mounted(fresh_golden: Any, command: str, which: int) -> None:
    """Queues were cut to what was left of the log, without a word."""
    root = fresh_golden("v533-basic").path
    segment = sorted((root / "commitlog").iterdir())[which]
    remove(segment)
    put_other(segment, "dangling")
    result = rmq(command, root, "--output", root.parent / "out", "--apply")
    assert result.exit_code == 1, result.stderr
    assert f"commitlog/{segment.name}: symbolic link that leads nowhere" in result.stderr
    assert not (root.parent / "out").exists()


@pytest.mark.parametrize("release", ["4.9.8", "5.3.3"])
def test_an_empty_directory_in_the_place_of_a_queue_file(fresh_golden: Any, release: str) -> None:
    """The plan removed it and put the file: two changes of one path, an internal error."""
    root = fresh_golden("v533-basic").path
    file = min((root / "consumequeue/TopicA/0").iterdir())
    file.unlink()
    file.mkdir()
    result = rmq("recover", root, "--as-version", release, "--output", root.parent / "out", "--apply")
    assert result.exit_code == 1, result.stderr
    assert f"{file.name} is a directory, where a file has to lie" in result.stderr


@pytest.mark.parametrize(
    "name", ["consumequeue/TopicA/0/00000000000000000000", "commitlog/00000000000000098304"]
)
def test_a_dead_link_is_nothing_that_doctor_has_read(fresh_golden: Any, name: str) -> None:
    root = fresh_golden("v533-basic").path
    remove(root / name)
    put_other(root / name, "dangling")
    result = rmq("doctor", root, "--json")
    assert result.exit_code in (1, 3)
    assert name in json.loads(result.stdout)["not_looked_at"]
