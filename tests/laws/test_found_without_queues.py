"""Found once by the generator, as smallest stores: `recover` where queue files and tables are gone."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING

import pytest

from fixtures import strict
from fixtures.stores import HandmadeStore
from rmqtool.scan.fields import OFF_QUEUE_OFFSET
from tests.helpers import rmq

if TYPE_CHECKING:
    from pathlib import Path


def _with_batches(root: Path) -> HandmadeStore:
    store = HandmadeStore()
    for number in range(30):
        store.put_batch("Batches", [b"one", b"two"])
        store.put("Orders", b"body %d" % number, queue_id=number % 2)
    return store.write(root)


def _recovered(store: HandmadeStore, out: Path) -> None:
    """Recovered in one step, safe for 5.x, and nothing is to change then."""
    done = rmq("recover", store.root, "--output", out, "--apply")
    assert done.exit_code == 0, done.stderr
    assert rmq("doctor", out, "--as-version", "5.3.3").exit_code == 0
    again = rmq("recover", out, "--json")
    assert (again.exit_code, json.loads(again.stdout)["rows"]) == (0, [])


@pytest.mark.parametrize("name", ["topics.json", "topics.json.bak"])
@pytest.mark.parametrize("gone", ["", "consumequeue/Orders/0", "consumequeue/Orders", "consumequeue"])
def test_a_topic_table_that_cannot_be_read_is_none(name: str, gone: str, tmp_path: Path) -> None:
    """Batch queues were refused, and plain ones that had no directory were those of deleted topics."""
    store = _with_batches(tmp_path / "store")
    was = strict.entries(store.root)
    store.add(f"config/{name}", b"{")
    if gone:
        shutil.rmtree(store.root / gone)
    _recovered(store, tmp_path / "out")
    assert strict.entries(tmp_path / "out") == was


def test_batch_queues_of_which_an_unreadable_table_tells_nothing(tmp_path: Path) -> None:
    store = _with_batches(tmp_path / "store")
    was = strict.entries(store.root)
    store.add("config/topics.json", b"{")
    for name in ("consumequeue", "batchconsumequeue"):
        shutil.rmtree(store.root / name)
    _recovered(store, tmp_path / "out")
    assert strict.entries(tmp_path / "out") == was


@pytest.mark.parametrize("number", [0, 10, 29])
def test_a_wrong_queue_offset_in_a_batch_queue_of_which_only_the_log_tells(
    number: int, tmp_path: Path
) -> None:
    """Which records are inner batches is known when all of them were read."""
    store = _with_batches(tmp_path / "store")
    was = strict.entries(store.root)
    one = store.of("Batches")[number]
    path, position = store.segment(one.offset)
    store.patch(path, position + OFF_QUEUE_OFFSET, (one.queue_offset + 1024).to_bytes(8, "big"))
    for name in ("consumequeue", "batchconsumequeue"):
        shutil.rmtree(store.root / name)
    _recovered(store, tmp_path / "out")
    assert strict.entries(tmp_path / "out") == was
    assert strict.carve(tmp_path / "out")[one.offset].raw == one.placed.data
