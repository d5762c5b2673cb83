"""`StoreFiles`: what it writes, where it does not, and what is on the medium after a sync."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from rmqtool.broker.files import StoreFiles
from rmqtool.errors import StoreIOError
from tests.disks import synced

QUEUE = "consumequeue/T/0/00000000000000000000"


def inodes(root: Path, *paths: str) -> set[int]:
    return {(root / path).stat().st_ino for path in paths}


def test_a_sync_takes_new_names_and_those_that_went(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "consumequeue").mkdir()
    (tmp_path / "abort").touch()
    with StoreFiles(str(tmp_path)) as files:
        done = synced(monkeypatch)
        files.write(QUEUE, 40, 20, b"unit")
        files.write(QUEUE, 40, 0, b"first")
        assert not done
        files.sync()
        made = ("consumequeue", "consumequeue/T", "consumequeue/T/0")
        assert done == inodes(tmp_path, QUEUE, *made)
        done.clear()
        files.write(QUEUE, 40, 0, b"again")
        files.sync()
        assert done == inodes(tmp_path, QUEUE)
        done.clear()
        files.remove("abort")
        files.remove("abort")
        files.remove("index/1")
        files.sync()
        assert done == inodes(tmp_path, ".")
        done.clear()
        files.sync()
        assert not done
    assert (tmp_path / QUEUE).read_bytes() == b"again".ljust(20, b"\0") + b"unit".ljust(20, b"\0")
    assert not (tmp_path / "abort").exists()


def test_more_files_than_stay_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = [f"index/{number}" for number in range(5)]
    with StoreFiles(str(tmp_path), most_open=2) as files:
        for turn in (b"a", b"b"):
            for number, name in enumerate(names):
                files.write(name, 8, number, turn)
        done = synced(monkeypatch)
        files.sync()
        assert done == inodes(tmp_path, "index", ".", *names)
    assert [(tmp_path / name).read_bytes().strip(b"\0") for name in names] == [b"b"] * 5


@pytest.mark.parametrize("what", ["file", "directory", "root"])
def test_no_link_is_followed(tmp_path: Path, what: str) -> None:
    root, other = tmp_path / "store", tmp_path / "other"
    (root / "index").mkdir(parents=True)
    other.mkdir()
    (other / "1").write_bytes(b"mine")
    if what == "file":
        (root / "index/1").symlink_to(other / "1")
    elif what == "directory":
        (root / "index").rmdir()
        (root / "index").symlink_to(other)
    else:
        root = tmp_path / "link"
        root.symlink_to(tmp_path / "store")
    with pytest.raises(StoreIOError), StoreFiles(str(root)) as files:
        files.write("index/1", 8, 0, b"theirs")
    if what == "directory":
        with pytest.raises(StoreIOError), StoreFiles(str(root)) as files:
            files.remove("index/1")
    assert (other / "1").read_bytes() == b"mine"


@pytest.mark.parametrize("kind", ["fifo", "directory"])
def test_what_is_no_regular_file_is_refused(tmp_path: Path, kind: str) -> None:
    (tmp_path / "abort").mkdir() if kind == "directory" else os.mkfifo(tmp_path / "abort")
    with StoreFiles(str(tmp_path)) as files, pytest.raises(StoreIOError, match=r"^abort: "):
        files.write("abort", 0, 0, b"")
