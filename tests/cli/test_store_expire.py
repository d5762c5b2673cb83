"""`rmqtool store expire`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from tests.helpers import rmq
from tests.messagestore.helpers import open_small, traffic
from tests.messagestore.test_expiry import age

if TYPE_CHECKING:
    from pathlib import Path


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
