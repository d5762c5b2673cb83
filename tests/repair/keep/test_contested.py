"""Records that two queues may have had, and one place that two queues miss: entries tell, or it is said."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING, Any

import pytest

from fixtures import strict
from fixtures.stores import HandmadeStore
from rmqtool.scan.fields import OFF_QUEUE_ID
from tests.helpers import rmq

if TYPE_CHECKING:
    from pathlib import Path

AT = 5
"""the queue offset that is missed"""


def queues(root: Path, count: int = 2, *, skips: int | None = None) -> HandmadeStore:
    """Queues with 24 records each, one of which skips a queue offset."""
    store = HandmadeStore()
    for number in range(24):
        for queue in range(count):
            store.log.queue_offsets["T", queue] += queue == skips and number == AT
            store.put("T", b"body %d of %d" % (number, queue), queue_id=queue, tags="TagA")
    store.write(root)
    return store


def lie(store: HandmadeStore, queue: int, stated: int) -> int:
    """Its record at the queue offset states another queue number; where it lies."""
    record = store.of("T", queue)[AT]
    path, position = store.segment(record.offset)
    store.patch(path, position + OFF_QUEUE_ID, stated.to_bytes(4, "big"))
    return record.offset


def lose(store: HandmadeStore, queue: int, noise: bytes) -> None:
    record = store.of("T", queue)[AT]
    store.patch(*store.segment(record.offset), noise * record.size)


def recovered(store: HandmadeStore, target: Path, *, entries: bool) -> tuple[int, dict[str, Any]]:
    """Exit code and plan; all records that are whole and state what they should stay."""
    if not entries:
        shutil.rmtree(store.root / "consumequeue")
    healthy = {one.offset: (one.topic, one.queue_id, one.queue_offset) for one in store.stored}
    before = {at for at, one in strict.carve(store.root).items() if one.slot == healthy.get(at)}
    done = rmq("recover", store.root, "--output", target, "--apply", "--json")
    reported: dict[str, Any] = json.loads(done.stdout)
    assert reported["summary"]["checked"]["proven"]
    after = strict.carve(target)
    assert all(after[at].slot == healthy[at] for at in before)
    return done.exit_code, reported


def tombstones(reported: dict[str, Any]) -> list[tuple[int, int, int]]:
    rows = [one for row in reported["rows"] for one in row.get("tombstones", ())]
    return [(one["queue_id"], one["queue_offset"], one["count"]) for one in rows]


@pytest.mark.share
@pytest.mark.parametrize("noise", [b"\0", b"\x77"])
@pytest.mark.parametrize("stated", [9, None])
@pytest.mark.parametrize("truth", [0, 1])
def test_entries_tell_whose_a_record_is_that_two_queues_miss(
    truth: int, stated: int | None, noise: bytes, tmp_path: Path
) -> None:
    """It states a queue that no one has, or the other one, which has lost its own record of that offset.

    That one kept it, and its lost record was given to the first one, with exit code 0.
    """
    store = queues(tmp_path / "store")
    at = lie(store, truth, 1 - truth if stated is None else stated)
    lose(store, 1 - truth, noise)
    code, reported = recovered(store, tmp_path / "out", entries=True)
    assert strict.carve(tmp_path / "out")[at].slot == ("T", truth, AT)
    assert (code, tombstones(reported)) == (0, [(1 - truth, AT, 1)])


@pytest.mark.share
@pytest.mark.parametrize("noise", [b"\0", b"\x77"])
@pytest.mark.parametrize("truth", [0, 1])
def test_it_is_said_where_nothing_tells(truth: int, noise: bytes, tmp_path: Path) -> None:
    store = queues(tmp_path / "store")
    at = lie(store, truth, 9)
    lose(store, 1 - truth, noise)
    code, reported = recovered(store, tmp_path / "out", entries=False)
    stays = {"topic": "T", "queue_id": 9, "queue_offset": AT, "physical_offsets": [at]}
    assert (code, reported["summary"]["undecided"]) == (1, [stays])
    assert strict.carve(tmp_path / "out")[at].slot == ("T", 9, AT)
    page = rmq("recover", store.root).stdout
    assert f"  T/9 {AT}: the one at physical offset {at} is believed, it may be another queue's" in page


@pytest.mark.parametrize("entries", [False, True])
def test_two_records_that_two_queues_miss(tmp_path: Path, *, entries: bool) -> None:
    store = queues(tmp_path / "store", 3)
    places = [lie(store, 0, 8), lie(store, 1, 9)]
    code, reported = recovered(store, tmp_path / "out", entries=entries)
    doubted = [at for one in reported["summary"]["undecided"] for at in one["physical_offsets"]]
    assert (code, doubted) == ((0, []) if entries else (1, places))
    there = strict.carve(tmp_path / "out")
    assert [there[at].slot[1] for at in places] == ([0, 1] if entries else [8, 9])


@pytest.mark.share
@pytest.mark.parametrize("entries", [False, True])
@pytest.mark.parametrize("skips", [0, 1])
def test_a_place_for_one_of_two_lost_records(skips: int, tmp_path: Path, *, entries: bool) -> None:
    """One queue gets it, the other one a blank entry, which a note tells: no message moves."""
    store = queues(tmp_path / "store", skips=skips)
    lose(store, 1 - skips, b"\0")
    _, reported = recovered(store, tmp_path / "out", entries=entries)
    ((queue, slot, count),) = tombstones(reported)
    assert (slot, count, reported["summary"]["lost"]["messages"]) == (AT, 1, 1)
    assert queue == 1 - skips or not entries
    without = (
        f"queue T/{1 - queue}: no room in the log for queue offsets {AT} to {AT}, blank entries keep them"
    )
    assert without in reported["summary"]["notes"]
    units = strict.units(tmp_path / "out")
    assert units["T", 1 - queue, AT] == strict.PRE_BLANK
    assert all(units[one.slot] == (at, one.size) for at, one in strict.carve(tmp_path / "out").items())
