"""Many holes and many queues: the result is right, whatever their number."""

from __future__ import annotations

import gc
import shutil
import time
import tracemalloc
from typing import TYPE_CHECKING

import numpy as np
import pytest

from fixtures import strict
from fixtures.many import Many
from rmqtool.check.verify import ReadOptions, Verification
from rmqtool.errors import UsageError
from rmqtool.recovery.simulation import simulate
from rmqtool.store.config import config_of
from rmqtool.store.layout import Store
from tests.repair.keep.laws import NOBODY, kept, planned, repair

if TYPE_CHECKING:
    from pathlib import Path

RELEASE = "5.3.3"


def test_seven_hundred_bad_bodies_in_one_queue(tmp_path: Path) -> None:
    many = Many(1, 1, 1500, queue_file=40_000)
    root = many.write(tmp_path / "store")
    many.spoil(root, np.arange(700) * 2 + 1)
    target = tmp_path / "repaired"
    plan = repair(root, RELEASE, target, many.settings)
    assert (plan.lost.messages, plan.notes) == (700, ())
    store = Store.open(target, config=config_of(many.settings))
    assert list(Verification(store, ReadOptions.of(store)).findings()) == []
    assert kept(target, RELEASE, many.settings).changes == ()


def skipping(root: Path) -> Many:
    """A queue that misses one more queue offset than the hole in its log has room for."""
    many = Many(1, 1, 40, queue_file=4000, body=1)
    many.write(root)
    size, lost, first = many.record_size, 10, 24
    segment = root / "commitlog" / f"{0:020d}"
    data = bytearray(segment.read_bytes())
    data[lost * size : first * size] = bytes((first - lost) * size)
    for number in range(first, 40):
        data[number * size + 20 : number * size + 28] = (number + 1).to_bytes(8, "big")
    segment.write_bytes(data)
    queue = root / "consumequeue" / "T000000" / "0" / f"{0:020d}"
    units = queue.read_bytes()
    queue.write_bytes(units[: first * 20] + bytes(20) + units[first * 20 : -20])
    return many


@pytest.mark.parametrize("with_queue", [True, False])
def test_a_place_without_room_keeps_a_blank_unit(tmp_path: Path, with_queue: bool) -> None:
    root, target = tmp_path / "store", tmp_path / "repaired"
    many = skipping(root)
    if not with_queue:
        shutil.rmtree(root / "consumequeue")
    plan = repair(root, RELEASE, target, many.settings)
    assert plan.notes == (
        "queue T000000/0: no room in the log for queue offsets 24 to 24, blank entries keep them",
    )
    units = strict.units(target)
    assert units["T000000", 0, 24] == strict.PRE_BLANK
    for place, one in strict.walk(target)[0].items():
        assert units[one.slot] == (place, one.size)
    store = Store.open(target, config=config_of(many.settings))
    assert all(simulate(store, one, lock=NOBODY).safe_to_start for one in ("4.9.8", "5.3.3"))
    again = kept(target, RELEASE, many.settings)
    assert again.changes == ()
    assert again.notes == (
        "queue T000000/0: queue offsets are skipped that no hole has room for, its entries keep their places",
    )


@pytest.mark.parametrize("forged", [10**6, 10**12, (1 << 62) // 20])
def test_the_name_of_a_queue_file_does_not_decide_how_long_it_takes(tmp_path: Path, forged: int) -> None:
    many = Many(1, 1, 40, queue_file=4000)
    root = many.write(tmp_path / "store")
    segment = root / "commitlog" / f"{0:020d}"
    data = bytearray(segment.read_bytes())
    data[10 * many.record_size : 20 * many.record_size] = bytes(10 * many.record_size)
    segment.write_bytes(data)
    queue = root / "consumequeue" / "T000000" / "0"
    far = forged // 200 * 4000
    (queue / f"{far:020d}").write_bytes((queue / f"{0:020d}").read_bytes())
    began = time.process_time()
    plan = kept(root, RELEASE, many.settings)
    assert plan.lost.messages == 10
    assert time.process_time() - began < 5


def seconds(place: Path, many: Many, every: int) -> float:
    """Time of the processor for a plan; one record of so many has a bad body."""
    root = many.write(place)
    many.spoil(root, np.arange(1, many.messages - 1, every))
    work = place.with_suffix(".work")
    work.mkdir()
    began = time.process_time()
    planned(root, RELEASE, str(work), many.settings)
    return time.process_time() - began


@pytest.mark.parametrize("grows", ["rounds", "topics"])
def test_a_plan_takes_time_as_there_are_holes_and_queues(tmp_path: Path, grows: str) -> None:
    """`tests/bench/test_growth.py` has the same for a hundred times as many."""
    sizes = {"rounds": (Many(1, 1, 800), Many(1, 1, 3200)), "topics": (Many(200, 1, 4), Many(800, 1, 4))}
    small, large = (seconds(tmp_path / str(many.messages), many, 2) for many in sizes[grows])
    assert large < 8 * max(small, 0.1)


def peak(place: Path, rounds: int) -> int:
    """Bytes that a plan takes at most: the least of two, as windows may wait for the garbage collector."""
    found = []
    for number in range(2):
        gc.collect()
        tracemalloc.start()
        try:
            seconds(place / f"{rounds}-{number}", Many(1, 1, rounds), 2)
            found.append(tracemalloc.get_traced_memory()[1])
        finally:
            tracemalloc.stop()
    return min(found)


def test_a_plan_takes_memory_as_there_are_holes(tmp_path: Path) -> None:
    """Some kilobytes each, as docs/security.md says."""
    assert (peak(tmp_path, 240) - peak(tmp_path, 60)) / 90 < 12_000


@pytest.mark.parametrize("claimed", [1 << 40, 1 << 62])
def test_the_name_of_a_segment_does_not_decide_how_many_there_are(tmp_path: Path, claimed: int) -> None:
    many = Many(1, 1, 40, queue_file=4000)
    root = many.write(tmp_path / "store")
    base = claimed // many.segment_size * many.segment_size
    far = bytearray((root / "commitlog" / f"{0:020d}").read_bytes())
    for number in range(40):
        place = number * many.record_size
        far[place + 28 : place + 36] = (base + place).to_bytes(8, "big")
    (root / "commitlog" / f"{base:020d}").write_bytes(far)
    with pytest.raises(UsageError, match="of which 2 are there"):
        kept(root, RELEASE, many.settings)
