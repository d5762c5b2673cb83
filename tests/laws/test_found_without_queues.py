"""Found once by the generator, as smallest stores: `recover` where queue files and tables are gone."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING

import pytest

from fixtures import open_golden, strict
from fixtures.mutators.timers import timer_check_missing
from fixtures.stores import HandmadeStore, healthy_store
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


def test_queue_offsets_that_a_start_gives_out_again_far_behind_the_last_record_of_their_queue(
    tmp_path: Path,
) -> None:
    """The start of the last segment alone was simulated, in which no record of that queue lies."""
    store = HandmadeStore()
    for number in range(20):
        if number == 5:
            store.log.queue_offsets["Payments", 1] += 3
        store.put("Payments", b"body %d" % number, queue_id=1)
    for number in range(200):
        store.put("Orders", b"body %d" % number)
    store.write(tmp_path / "store")
    shutil.rmtree(store.root / "consumequeue")
    store.remove("checkpoint")
    done = rmq("recover", store.root, "--output", tmp_path / "out", "--apply", "--json")
    assert done.exit_code == 1, done.stderr
    twice = "a start: Payments/1: new messages get queue offsets from 20 on, though messages in the log have"
    again = rmq("recover", tmp_path / "out", "--json")
    assert (again.exit_code, json.loads(again.stdout)["rows"]) == (1, [])
    for one in done, again:
        remains = json.loads(one.stdout)["summary"]["checked"]["remains"]
        assert any(words.startswith(twice) for words in remains), remains


def test_a_directory_among_segments_goes_where_the_result_may_be_of_an_older_release(tmp_path: Path) -> None:
    """The checkpoint that was put there speaks for 4.x, and there was none."""
    store = _with_batches(tmp_path / "store")
    (store.root / "commitlog/sub").mkdir()
    shutil.rmtree(store.root / "consumequeue")
    store.remove("checkpoint")
    _recovered(store, tmp_path / "out")
    assert not (tmp_path / "out/commitlog/sub").exists()


def test_a_database_of_queues_without_its_directory(tmp_path: Path) -> None:
    """Its name was put where no directory was."""
    golden = open_golden("v533-rocksdb", tmp_path)
    shutil.rmtree(golden.path / "consumequeue")
    segment = golden.path / f"commitlog/{0:020d}"
    data = segment.read_bytes()
    segment.write_bytes(data[:4000] + bytes(100) + data[4100:])
    conf = ("--store-config", golden.config_path)
    done = rmq("recover", golden.path, "--output", tmp_path / "out", "--apply", *conf)
    assert done.exit_code == 0, done.stderr
    assert (tmp_path / "out/consumequeue/IDENTITY").is_file()
    again = rmq("recover", tmp_path / "out", "--json", *conf)
    assert (again.exit_code, json.loads(again.stdout)["rows"]) == (0, [])


def test_timers_of_which_nothing_tells_in_a_store_without_queues(tmp_path: Path) -> None:
    """`verify` misses their check only where their queue is: a new error, and the plan was refused."""
    store = healthy_store().write(tmp_path / "store")
    timer_check_missing(store)
    for name in ("consumequeue", "config"):
        shutil.rmtree(store.root / name)
    done = rmq("recover", store.root, "--output", tmp_path / "out", "--apply", "--json")
    assert done.exit_code == 1, done.stderr
    remains = json.loads(done.stdout)["summary"]["checked"]["remains"]
    assert [one.rpartition("(")[2] for one in remains] == ["CP-TIMERS-UNKNOWN)", "DR-TIMERS-AGAIN)"]
    assert json.loads(rmq("recover", tmp_path / "out", "--json").stdout)["rows"] == []


def test_what_a_queue_misses_between_its_last_record_and_a_broken_one(tmp_path: Path) -> None:
    """The record that it misses there states a queue offset with a flipped bit, and became a tombstone."""
    store = HandmadeStore()
    for number in range(40):
        store.put("Orders", b"body %d" % number, queue_id=number % 2)
    for number in range(20):
        store.put("Payments", b"body %d" % number)
    store.write(tmp_path / "store")
    shutil.rmtree(store.root / "consumequeue")
    lying, broken = store.of("Orders")[18:20]
    path, position = store.segment(broken.offset)
    store.patch(path, position + broken.placed.data.index(b"body"), b"B")
    path, position = store.segment(lying.offset)
    store.patch(path, position + OFF_QUEUE_OFFSET, (lying.queue_offset + (1 << 44)).to_bytes(8, "big"))
    done = rmq("recover", store.root, "--output", tmp_path / "out", "--apply", "--json")
    assert done.exit_code == 0, done.stderr
    assert strict.carve(tmp_path / "out")[lying.offset].raw == lying.placed.data
    assert json.loads(done.stdout)["summary"]["lost"]["messages"] == 1


def test_a_queue_that_begins_later_where_a_hole_has_room_for_a_part_of_its_front(tmp_path: Path) -> None:
    """800016: a tombstone took its first queue offset, and none the next ones: the next plan moved it."""
    store = HandmadeStore()
    store.begin_queue_at("Late", 0, 3)
    lost = [
        store.put("Moved", b"lost"),
        *(store.put("Orders", b"lost", queue_id=number) for number in (0, 1)),
    ]
    for number in range(40):
        store.put("Late", b"body %d" % number)
        store.put("Orders", b"body %d" % number, queue_id=number % 2)
    store.write(tmp_path / "store")
    for one in lost:
        path, position = store.segment(one.offset)
        store.patch(path, position + 84, b"\xff" * 4)
    shutil.rmtree(store.root / "consumequeue/Moved")
    was = {at: one for at, one in strict.entries(store.root).items() if at[1] == "Late"}
    _recovered(store, tmp_path / "out")
    now = strict.entries(tmp_path / "out")
    assert {at: one for at, one in now.items() if at[1] == "Late"} == was
