"""Entries of batch queues, held against the records that they should lead to."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from fixtures.handmade import BATCH_UNIT_SIZE
from fixtures.stores import HandmadeStore
from tests.helpers import rmq

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def store(tmp_path: Path) -> HandmadeStore:
    """Two batch queues whose files hold a few units each."""
    store = HandmadeStore()
    for number in range(120):
        store.put_batch("Batches", [b"first %d" % number, b"second"], queue_id=number % 2)
    attributes = {"queue.type": "BatchCQ"}
    topic = {"topicName": "Batches", "perm": 6, "readQueueNums": 2, "writeQueueNums": 2}
    store.config = {"topics": {"topicConfigTable": {"Batches": {**topic, "attributes": attributes}}}}
    return store.write(tmp_path / "store")


def doctor(store: HandmadeStore) -> tuple[str, dict[str, int], int]:
    reported = json.loads(rmq("doctor", store.root, "--as-version", "5.3.3", "--json").stdout)
    codes = {one["code"]: one.get("count") for one in reported["consequences"] if one["severity"] != "note"}
    return reported["verdict"], codes, reported["already_damaged"]["messages"]


def test_entries_that_lead_to_their_records(store: HandmadeStore) -> None:
    assert doctor(store)[0] == "safe"


def test_an_entry_that_leads_to_another_record(store: HandmadeStore) -> None:
    one, other = store.of("Batches")[3], store.of("Batches", 1)[3]
    assert one.unit is not None
    store.patch(*one.unit, other.offset.to_bytes(8, "big"))
    assert doctor(store) == ("damaged", {"DR-WRONG-ENTRIES": 1}, 1)


def test_an_entry_that_leads_to_no_record(store: HandmadeStore) -> None:
    one = store.of("Batches")[3]
    assert one.unit is not None
    path, position = one.unit
    store.patch(path, position + 26, (5000).to_bytes(8, "big"))  # base offset
    verdict, codes, _ = doctor(store)
    assert verdict != "safe"
    assert "DR-WRONG-ENTRIES" in codes


def test_a_middle_file_that_is_gone(store: HandmadeStore) -> None:
    files = sorted((store.root / "batchconsumequeue/Batches/0").iterdir())
    assert len(files) >= 3
    lost = 2 * (files[1].stat().st_size // BATCH_UNIT_SIZE)
    files[1].unlink()
    verdict, codes, _ = doctor(store)
    assert verdict == "unsafe"
    assert set(codes) == {"DR-NOT-REBUILT"}
    reported = json.loads(rmq("doctor", store.root, "--as-version", "5.3.3", "--json").stdout)
    assert f"{lost} messages" in str(reported["consequences"])


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("kinds", ["PB", "BPB", "PBB", "BPBP", "PQB"])
def test_a_batch_that_begins_where_the_plain_queues_end(tmp_path: Path, kinds: str, known: bool) -> None:
    """A batch queue says where its last record begins: only what no queue knows there is missed."""
    store = HandmadeStore()
    for kind in kinds:
        if kind == "B":
            store.put_batch("Batches", [b"first", b"second"])
        else:
            store.put({"P": "Plain", "Q": "Other"}[kind], b"body")
    topic = {"topicName": "Batches", "perm": 6, "attributes": {"queue.type": "BatchCQ"}}
    store.config = {"topics": {"topicConfigTable": {"Batches": topic}}}
    store.write(tmp_path / "store")
    *rest, last = store.stored
    assert last.unit is not None
    if not known:
        path, position = last.unit
        store.patch(path, position, bytes(BATCH_UNIT_SIZE if kinds[-1] == "B" else 20))
    known_until = max(one.offset + (one.topic != "Batches") * one.size for one in rest)
    missed = not known and known_until == last.offset
    verdict, codes, _ = doctor(store)
    assert verdict == ("unsafe" if missed else "safe")
    assert ("DR-BORDER-RECORD" in codes) is missed
