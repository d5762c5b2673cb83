"""`rmqtool store expire`."""

from __future__ import annotations

import errno
import json
import shutil
from typing import TYPE_CHECKING

from tests.cli.dumping import assert_one_line
from tests.disks import refuse
from tests.helpers import rmq
from tests.messagestore.helpers import copy_of_open, open_small, traffic
from tests.messagestore.test_expiry import age

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def test_what_is_old_goes_and_is_counted(tmp_path: Path) -> None:
    root = tmp_path / "store"
    with open_small(root) as store:
        acks = store.put_many(traffic(0, 90))
    names = age(root, 2)
    done = rmq("store", "expire", root, "--json")
    assert done.exit_code == 0, done.stderr
    summary = json.loads(done.stdout)["summary"]
    gone = sum(ack.physical_offset < 2 * 4096 for ack in acks)
    assert (summary["segments"], summary["bytes"], summary["messages"]) == (2, 8192, gone)
    assert min(path.name for path in (root / "commitlog").iterdir()) == names[2]
    assert not (root / "abort").exists()
    assert rmq("verify", root).exit_code == 0
    again = rmq("store", "expire", root)
    assert again.exit_code == 0
    assert again.stdout.split()[-5:] == ["0"] * 5


def test_a_store_in_use_is_left_alone(tmp_path: Path) -> None:
    with open_small(tmp_path / "store") as store:
        store.put_many(traffic(0, 90))
        age(tmp_path / "store", 2)
        assert rmq("store", "expire", tmp_path / "store").exit_code == 5


def test_without_room_to_open_the_store_it_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a crash left undone is written before anything expires."""
    with open_small(tmp_path / "open") as store:
        store.put_many(traffic(0, 90))
        copy_of_open(tmp_path / "open", tmp_path / "store")
    # the copy may have been made before anything was dispatched
    shutil.rmtree(tmp_path / "store" / "index", ignore_errors=True)
    refuse(monkeypatch, "pwrite", errno.ENOSPC)
    refuse(monkeypatch, "ftruncate", errno.ENOSPC)
    refused = rmq("store", "expire", tmp_path / "store", "--recovery", "broker")
    assert_one_line(refused, 4)
    assert "No space left on device: a store writes files" in refused.stderr
