"""Stores that several tests of what the generator found begin with, and what is asked of them."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

from fixtures import strict
from fixtures.stores import HandmadeStore
from rmqtool.scan.fields import OFF_QUEUE_ID
from tests.helpers import rmq

if TYPE_CHECKING:
    from pathlib import Path


def orders(root: Path, count: int = 60) -> HandmadeStore:
    """Messages of two queues in segments of 4 KiB and queue files of 20 units."""
    store = HandmadeStore()
    for number in range(count):
        store.put("Orders", b"body %d" % number * 4, queue_id=number % 2, tags="TagA", keys=f"k{number}")
    return store.write(root)


def with_false_blank(root: Path) -> HandmadeStore:
    """An end-of-file blank whose length is right over the head of a record in the middle of a segment."""
    store = orders(root, 90)
    one = store.inside(1)[4]
    path, position = store.segment(one.offset)
    store.patch(path, position, (4096 - position).to_bytes(4, "big") + bytes.fromhex("CBD43194"))
    return store


def recovered(store: HandmadeStore, tmp_path: Path) -> dict[int, bytes]:
    """The records that `recover` leaves, by physical offset."""
    done = rmq("recover", store.root, "--output", tmp_path / "out", "--apply", "--json")
    assert done.exit_code == 0, done.stderr
    return {at: one.raw for at, one in strict.carve(tmp_path / "out").items()}


def message_id(record: bytes, offset: int) -> str:
    """The id by store host and physical offset."""
    return (record[64:72] + offset.to_bytes(8, "big")).hex().upper()


def without_entries(tmp_path: Path, queues: list[int], wrong: dict[int, int]) -> HandmadeStore:
    """Records of these queues; of some, by number, the queue number is another one."""
    store = HandmadeStore()
    for number, queue_id in enumerate(queues):
        store.put("Orders", b"body %d" % number, queue_id=queue_id)
    store.write(tmp_path / "store")
    shutil.rmtree(store.root / "consumequeue")
    for number, queue_id in wrong.items():
        path, position = store.segment(store.stored[number].offset)
        store.patch(path, position + OFF_QUEUE_ID, queue_id.to_bytes(4, "big"))
    return store
