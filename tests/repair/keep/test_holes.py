"""Holes of odd sizes, queues without a witness, and the small tools that fill them."""

from __future__ import annotations

import shutil
import time
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from fixtures import strict
from fixtures.stores import HandmadeStore
from formats.commitlog import encode_message
from formats.properties import decode
from rmqtool.repair.content import Inline, Zeros
from rmqtool.repair.filler import SMALLEST_FILLER, filler
from rmqtool.repair.keep.headers import read_header
from rmqtool.repair.keep.model import Frame, Hole, Run, Survey
from rmqtool.repair.keep.order import order_of
from rmqtool.repair.keep.overlay import OverlaySource, Patch
from rmqtool.repair.keep.placing import PlacedSegment
from rmqtool.repair.keep.restore import padded, restored
from rmqtool.repair.keep.tiles import Tiles
from rmqtool.store.bytes import MemorySource
from tests.helpers import rmq
from tests.repair.keep.laws import kept
from tests.repair.keep.seven import RELEASE, SEGMENT, SETTINGS, repaired
from tests.scan.conftest import compiled_choice
from tests.tiers import sampled

if TYPE_CHECKING:
    from pathlib import Path


def test_a_patch_lies_over_what_is_below() -> None:
    source = MemorySource(bytes(range(10)))
    patches = (Patch(2, Inline(b"ab")), Patch(3, Zeros(4)), Patch(12, Inline(b"z")))
    whole = OverlaySource(source, 14, patches, "x")
    wanted = b"\0\x01a\0\0\0\0\x07\x08\x09\0\0z\0"
    assert whole.window(0, 99).tobytes() == wanted
    assert whole.window(3, 5).tobytes() == wanted[3:8]
    assert [whole.next_data(at) for at in (0, 10, 12, 13)] == [0, 12, 12, None]


def test_a_patch_over_all_others_makes_no_product_of_windows_and_patches() -> None:
    def seconds(count: int) -> float:
        wide, small = Patch(0, Zeros(count * 10)), (Patch(at * 10, Inline(b"ab")) for at in range(count))
        whole = OverlaySource(None, count * 10, (wide, *small), "x")
        began = time.process_time()
        for number in range(200):
            at = number * count // 200 * 10
            assert whole.window(at, 20).tobytes() == b"ab".ljust(10, b"\0") * 2
        return time.process_time() - began

    assert seconds(40_000) < 2 * seconds(10_000) + 0.05


def test_tiles_are_read_in_any_parts() -> None:
    tiles = Tiles()
    for start, data in ((100, b"abc"), (103, b"de"), (105, b"fghi")):
        tiles.add(start, len(data), partial(bytes, data))
    whole = b"abcdefghi"
    for start in range(9):
        for length in range(1, 10 - start):
            assert tiles.read(start, length) == whole[start : start + length]
    assert b"".join(tiles.chunks()) == whole


@pytest.mark.parametrize("trailer", [False, True])
@pytest.mark.parametrize("properties", [b"", b"TAGS\x01a", b"TAGS\x01a\x02KEYS\x01k\x02"])
def test_a_longer_record_is_the_same_message(properties: bytes, trailer: bool) -> None:
    record = encode_message("T", b"body", properties, physical_offset=7, crc_trailer=trailer)
    for count in (1, 20, 90):
        made = padded(record, count)
        assert made is not None
        was, now = strict.parse(record, 0, 7), strict.parse(made, 0, 7)
        assert was is not None
        assert now is not None
        assert (now.size, now.slot, now.body) == (was.size + count, was.slot, was.body)
        without = {name: value for name, value in now.properties.items() if name != "__CRC32#"}
        assert without == decode(properties)


COMMIT, PREPARED, ROLLBACK = 8, 4, 12


@pytest.mark.parametrize("trailer", [False, True])
@pytest.mark.parametrize(
    "wrong",
    [
        {"topic": "U"},
        {"queue_id": 9},
        {"queue_offset": 99},
        {"physical_offset": 99},
        {"sys_flag": PREPARED},
        {"sys_flag": ROLLBACK},
    ],
    ids=str,
)
@pytest.mark.parametrize("committed", [False, True])
def test_one_wrong_part_of_a_record_comes_right(
    wrong: dict[str, Any], committed: bool, trailer: bool
) -> None:
    fields: dict[str, Any] = {
        "topic": "T",
        "body": b"body",
        "properties": b"TAGS\x01a",
        "crc_trailer": trailer,
    }
    fields |= {"queue_id": 3, "queue_offset": 5, "physical_offset": 700}
    if committed:
        fields |= {"sys_flag": COMMIT, "prepared_transaction_offset": 300}
    whole, damaged = encode_message(**fields), encode_message(**fields | wrong)
    frame = Frame(700, 700 + len(whole), read_header(damaged, 700, len(whole)), ("T", 3), 5)
    assert restored(frame, damaged, correct_crc=False) == whole
    two = encode_message(**fields | wrong | {"queue_id": 8, "queue_offset": 88})
    frame.header = read_header(two, 700, len(two))
    assert restored(frame, two, correct_crc=False) is None


def run(first: int, last: int, start: int, key: tuple[str, int] = ("T", 0)) -> Run:
    """Records of 100 bytes."""
    last_start = start + (last - first) * 100
    return Run(key, first, last, start, last_start, last_start + 100, start + 100)


def survey(*runs: Run, holes: tuple[tuple[int, int], ...] = ()) -> Survey:
    placed = PlacedSegment(0, 1 << 20, "x", None)
    found = Survey([placed], holes=[Hole(placed, start, end) for start, end in holes])
    for one in runs:
        found.runs.setdefault(one.key, []).append(one)
    return found


def test_one_record_that_lies_is_told_from_its_queue() -> None:
    order = order_of(survey(run(0, 9, 0), run(500, 500, 1000), run(11, 20, 1100)))
    assert [(one.first, one.last) for one in order.outliers] == [(500, 500)]
    assert [(one.first, one.last) for one in order.missing] == [(10, 10)]
    assert order.twice == set()


def test_a_record_far_ahead_of_its_queue_lies_where_the_log_has_no_room_for_those_between() -> None:
    order = order_of(survey(run(0, 9, 0), run(500, 500, 1000)))
    assert [(one.first, one.last) for one in order.outliers] == [(500, 500)]
    order = order_of(survey(run(0, 9, 0), run(12, 12, 50_000), holes=((1000, 50_000),)))
    assert order.outliers == []
    assert [(one.first, one.last) for one in order.missing] == [(10, 11)]


def test_a_queue_that_was_numbered_twice_is_left_alone() -> None:
    order = order_of(survey(run(0, 9, 0), run(0, 9, 1000)))
    assert order.twice == {("T", 0)}
    assert (order.outliers, order.missing) == ([], [])


def test_what_is_missing_needs_a_hole() -> None:
    order = order_of(survey(run(0, 9, 0), run(13, 20, 1400), holes=((1000, 1400),)))
    assert [(one.first, one.last, one.low, one.high) for one in order.missing] == [(10, 12, 1000, 1400)]


def test_a_record_alone_in_its_queue_is_what_another_queue_misses() -> None:
    alone = run(10, 10, 1000, ("T", 99))
    order = order_of(survey(run(0, 9, 0), alone, run(11, 20, 1100)))
    assert order.outliers == [alone]


def overwritten(root: Path, start: int, data: bytes) -> None:
    path = root / f"commitlog/{start // SEGMENT * SEGMENT:020d}"
    raw = bytearray(path.read_bytes())
    raw[start % SEGMENT : start % SEGMENT + len(data)] = data
    path.write_bytes(raw)


@pytest.mark.share
@pytest.mark.parametrize("with_queues", [True, False])
@pytest.mark.parametrize(("start", "length"), [(0, 300), (3000, 20_000), (65_536, 65_536), (130_000, 3000)])
def test_zeros_anywhere(base: Path, tmp_path: Path, start: int, length: int, with_queues: bool) -> None:
    for at in range(start, start + length, 8192):
        overwritten(base, at, bytes(min(8192, start + length - at, SEGMENT - at % SEGMENT)))
    if not with_queues:
        shutil.rmtree(base / "consumequeue")
    assert repaired(base, tmp_path) == []


@pytest.mark.parametrize("seed", sampled(range(6), kind=lambda _: 0, each=2))
def test_noise_at_many_places(base: Path, tmp_path: Path, seed: int) -> None:
    chance = np.random.default_rng(seed)
    for _ in range(8):
        length = int(chance.integers(1, 600))
        at = int(chance.integers(0, 420_000))
        length = min(length, SEGMENT - at % SEGMENT)
        overwritten(base, at, chance.bytes(length))
    if seed % 2:
        shutil.rmtree(base / "consumequeue")
    assert repaired(base, tmp_path) == []


@pytest.mark.parametrize("with_queues", [True, False])
def test_missing_segments_are_bridged(base: Path, tmp_path: Path, with_queues: bool) -> None:
    for segment in (2, 3):
        (base / f"commitlog/{segment * SEGMENT:020d}").unlink()
    if not with_queues:
        shutil.rmtree(base / "consumequeue")
    assert repaired(base, tmp_path) == []
    names = sorted(path.name for path in (tmp_path / "repaired/commitlog").iterdir())
    assert names == [f"{number * SEGMENT:020d}" for number in range(7)]


@pytest.mark.share
@pytest.mark.parametrize("gap", [1, 50, 90])
def test_a_hole_too_small_for_a_record(base: Path, tmp_path: Path, gap: int) -> None:
    """The last bytes of a record are lost because it was written again shorter."""
    at, victim = next(
        (at, one)
        for at, one in sorted(strict.carve(base).items())
        if len(one.body) > 200 and 70_000 < at < 120_000
    )
    shorter = encode_message(
        victim.topic,
        victim.body[:-gap],
        victim.raw[-len(victim.raw) + 91 + len(victim.topic) + len(victim.body) :],
        queue_id=victim.queue_id,
        queue_offset=victim.queue_offset,
        physical_offset=at,
        born_timestamp=victim.store_timestamp,
        store_timestamp=victim.store_timestamp,
    )
    assert len(shorter) == victim.size - gap
    overwritten(base, at, shorter + b"\xee" * gap)
    assert repaired(base, tmp_path) == []
    again = strict.walk(tmp_path / "repaired")[0][at]
    assert (again.size, again.body) == (victim.size, victim.body[:-gap])


def test_the_plain_twin_and_the_compiled_kernels_agree(base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    overwritten(base, 70_000, b"\xff" * 900)
    plans = []
    for kernels in ("python", compiled_choice()):
        monkeypatch.setenv("RMQTOOL_KERNELS", kernels)
        plans.append([one.model_dump() for one in kept(base, RELEASE, SETTINGS).changes])
    assert plans[0] == plans[1]


def test_an_empty_directory_among_segments_goes_where_brokers_refuse_it(
    base: Path,
) -> None:
    (base / "commitlog/lost+found").mkdir()
    assert kept(base, RELEASE, SETTINGS).changes == ()
    assert {one.path for one in kept(base, "4.9.8", SETTINGS).changes} == {"commitlog/lost+found"}


def test_hosts_that_a_broken_header_states_take_no_room(fresh_golden: Any, tmp_path: Path) -> None:
    """430088: noise said that a small record had an IPv6 host; no tombstone fitted, and the queue shifted."""
    root = fresh_golden("v498-tx").path
    log = strict.carve(root)
    small = [one for one in log.values() if one.slot[0] == "RMQ_SYS_TRANS_OP_HALF_TOPIC"][2]
    with (root / f"commitlog/{0:020d}").open("r+b") as file:
        file.seek(small.offset + 36)
        file.write(bytes([0, 0, 0, 0x20]) + b"\x7f" * (small.size - 40))
    out = tmp_path / "out"
    done = rmq("recover", root, "--output", out, "--apply", "--json")
    assert done.exit_code == 0, done.stderr
    found = strict.carve(out)
    assert found[small.offset].slot == small.slot
    assert {at: one.raw for at, one in log.items() if at != small.offset}.items() <= {
        at: one.raw for at, one in found.items()
    }.items()


@pytest.mark.parametrize("entry", [True, False])
def test_bytes_that_nothing_identifies_are_reported(tmp_path: Path, *, entry: bool) -> None:
    """A plan put fillers there, lost nothing by its own account, and said nothing."""
    made = HandmadeStore()
    for _ in range(10):
        made.put("Orders", b"body")
    lone = made.put("Late", b"the only one")
    for _ in range(10):
        made.put("Orders", b"body")
    made.write(tmp_path / "store")
    made.patch(*made.segment(lone.offset), bytes(lone.size))
    if not entry:
        shutil.rmtree(made.root / "consumequeue/Late")
    plan = kept(made.root, "4.9.0", {})
    words = f"{lone.size} bytes of the log, in 1 range, could not be identified"
    assert [one.startswith(words) for one in plan.notes] == [True] * (not entry)
    assert plan.lost.messages == entry


def test_a_hole_of_the_size_of_the_smallest_filler(tmp_path: Path) -> None:
    """It has no room for a topic, and `verify` of the result says nothing against that."""
    store = HandmadeStore()
    for number in range(20):
        store.put("Orders", b"a body of some length %d" % number * 3)
    store.write(tmp_path / "store")
    one = store.stored[8]
    path, at = store.segment(one.offset)
    made = filler(one.size - SMALLEST_FILLER, one.offset, one.time)
    assert made is not None
    store.patch(path, at, made + b"\xff" * SMALLEST_FILLER)
    store.remove("consumequeue/Orders/0/00000000000000000000")
    done = rmq("recover", store.root, "--output", tmp_path / "out", "--apply")
    assert done.exit_code == 0, done.stderr
    found = [row["code"] for row in rmq("verify", tmp_path / "out", "--format", "ndjson").rows[:-1]]
    assert found == ["CQ-PRE-BLANK"]


def test_a_batch_queue_that_misses_more_than_holes_have_room_for(tmp_path: Path) -> None:
    """Its units say their queue offsets themselves: what became a tombstone gets one, others keep theirs."""
    store = HandmadeStore()
    for number in range(24):
        store.put_batch("Batches", [b"one", b"body %d" % number])
    store.write(tmp_path / "store")
    first, last, hit = store.stored[8], store.stored[10], store.stored[16]
    path, at = store.segment(first.offset)
    made = filler(last.offset + last.size - first.offset, first.offset, first.time)
    assert made is not None
    store.patch(path, at, made)
    path, at = store.segment(hit.offset)
    store.patch(path, at, b"\xff" * hit.size)
    was = strict.entries(store.root)
    done = rmq("recover", store.root, "--output", tmp_path / "out", "--apply")
    assert done.exit_code == 0, done.stderr
    assert "its messages keep theirs" in done.stdout
    lost = {one.offset for one in store.stored[8:11]}
    now = strict.entries(tmp_path / "out")
    assert {key: one.offset for key, one in now.items()} == {
        key: one.offset for key, one in was.items() if one.offset not in lost
    }
    assert rmq("verify", tmp_path / "out").exit_code == 0
