"""What `recover` must leave alone: intact records beside one that lies about its queue."""

from __future__ import annotations

import shutil
import struct
from pathlib import Path

import pytest

from fixtures.stores import HandmadeStore, healthy_store
from tests.helpers import rmq

QUEUE_ID = 12


def recovered(tmp_path: Path, store: HandmadeStore) -> dict[str, bytes]:
    """The log that `recover` makes where queues and index are deleted."""
    for name in ("consumequeue", "batchconsumequeue", "index"):
        shutil.rmtree(store.root / name, ignore_errors=True)
    result = rmq("recover", store.root, "--policy", "keep", "--apply", "--output", tmp_path / "out")
    assert result.exit_code in (0, 1), result.stderr
    return {one.name: one.read_bytes() for one in (tmp_path / "out" / "commitlog").iterdir()}


@pytest.mark.share
@pytest.mark.parametrize(("number", "queue_id"), [(0, 1), (0, 7), (0, -1), (0, 1 << 30), (20, 7)])
def test_a_wrong_queue_id_costs_no_other_record(tmp_path: Path, number: int, queue_id: int) -> None:
    store = healthy_store().write(tmp_path / "store")
    record = store.of("Orders")[number]
    path, position = store.segment(record.offset)
    pristine = {one.name: one.read_bytes() for one in (store.root / "commitlog").iterdir()}
    store.patch(path, position + QUEUE_ID, struct.pack(">i", queue_id))
    found = recovered(tmp_path, store)
    if queue_id == 1:
        # the record of Orders/1 with this queue offset lies right behind: either may be the one that lies
        for one in (record, store.of("Orders", 1)[number]):
            path, position = store.segment(one.offset)
            for log in (found, pristine):
                data = bytearray(log[Path(path).name])
                data[position + QUEUE_ID : position + QUEUE_ID + 4] = bytes(4)
                log[Path(path).name] = bytes(data)
    assert found == pristine


def test_a_queue_that_begins_later_takes_no_record_of_others(tmp_path: Path) -> None:
    store = HandmadeStore()
    store.begin_queue_at("Late", 0, 1)
    store.put("Alone", b"the only message of its topic")
    for _ in range(5):
        store.put("Late", b"a message")
    store.write(tmp_path / "store")
    pristine = {one.name: one.read_bytes() for one in (store.root / "commitlog").iterdir()}
    assert recovered(tmp_path, store) == pristine
