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


@pytest.mark.share
@pytest.mark.parametrize("zeroed", ["none", "own", "more", "parts of both"])
def test_of_two_files_of_one_name_in_two_roots_the_copy_has_what_is_intact(fresh_golden, tmp_path, zeroed):
    """A copy has one `commitlog`: removing one of the two took the other one out of it."""
    found = fresh_golden("v533-basic")
    own, more = found.path / "commitlog", tmp_path / "disk2"
    more.mkdir()
    pristine = {one.name: one.read_bytes() for one in own.iterdir()}
    first, second, third, _ = sorted(own.iterdir())
    for segment in (first, second):
        shutil.move(segment, more)
    twin = Path(shutil.copy(third, more))
    for place, begin in ((third, 0), (twin, 20_000)):
        if zeroed == "parts of both":
            place.write_bytes(place.read_bytes()[:begin] + bytes(400) + place.read_bytes()[begin + 400 :])
        elif zeroed == ("own" if place is third else "more"):
            place.write_bytes(bytes(32768))
    words = (found.path, "--commitlog", more, "--output", tmp_path / "out", "--apply")
    refused = rmq("checkpoint", "set", *words)
    assert (refused.exit_code, (tmp_path / "out").exists()) == (1, False)
    assert "have one place in a copy" in refused.stderr
    result = rmq("recover", *words)
    assert result.exit_code == 0, result.stderr
    assert {one.name: one.read_bytes() for one in (tmp_path / "out" / "commitlog").iterdir()} == pristine
    assert rmq("doctor", tmp_path / "out").exit_code == rmq("verify", tmp_path / "out").exit_code == 0
