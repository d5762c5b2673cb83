"""What was built begins to be written: the bytes stay, and nothing depends on it."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from rmqtool.repair.content import FromFile, Inline
from rmqtool.repair.plan import Action, Change, Edit
from rmqtool.repair.writeback import begin_writeback

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def test_files_that_were_built_begin_to_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    built = tmp_path / "0"
    built.write_bytes(b"a" * 10_000)
    failed: list[threading.ExceptHookArgs] = []
    monkeypatch.setattr(threading, "excepthook", failed.append)
    contents = [
        Inline(b"x"),
        FromFile(str(built), 0, 10_000, movable=True),
        FromFile(str(tmp_path / "gone"), 0, 1, movable=True),
    ]
    change = Change(action=Action.PUT, path="p", why="index", message="m")
    before = set(threading.enumerate())
    begin_writeback([Edit(change, one) for one in contents])
    for one in set(threading.enumerate()) - before:
        one.join()
    assert not failed
    assert built.read_bytes() == b"a" * 10_000
