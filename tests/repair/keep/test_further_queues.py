"""Queues beside the plain ones: batch queues, extension files, queues that records of other topics feed."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from fixtures import strict
from fixtures.builder import HandmadeLog
from fixtures.handmade import HandmadeQueue, plain_unit
from formats.crc_trailer import TRAILER_SIZE
from rmqtool.repair.filler import SMALLEST_FILLER
from rmqtool.scan.units import BATCH_UNIT, UNIT
from tests.repair.keep.laws import kept, repair

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from fixtures import Golden

    Open = Callable[[str], Golden]

NAMES, SLOTS = "INNER_MULTI_DISPATCH", "INNER_MULTI_QUEUE_OFFSET"


class Case:
    """A copy of a store that a real broker wrote, to be damaged."""

    def __init__(self, golden: Golden, place: Path) -> None:
        self.whole, self.place = golden.path, place
        self.root, self.repaired = place / "store", place / "repaired"
        self.release = golden.release
        self.settings: dict[str, object] = dict(golden.expected["storeConfig"])
        shutil.copytree(golden.path, self.root)
        self.log = strict.walk(self.root)[0]

    def overwrite(self, at: int, data: bytes) -> None:
        """Bytes at a physical offset."""
        size = int(self.settings["mappedFileSizeCommitLog"])  # type: ignore[call-overload]
        with (self.root / f"commitlog/{at // size * size:020d}").open("r+b") as file:
            file.seek(at % size)
            file.write(data)

    def repair(self) -> None:
        """Repaired once, everything intact is there; a second time changes nothing."""
        intact = strict.carve(self.root)
        repair(self.root, self.release, self.repaired, self.settings)
        assert intact.items() <= strict.walk(self.repaired)[0].items()
        assert kept(self.repaired, self.release, self.settings).changes == ()

    def files(self, kind: str) -> Iterator[tuple[Path, Path]]:
        """Queue files of the undamaged store, and where they are in the repaired one."""
        for path in sorted((self.whole / kind).glob("*/*/*")):
            yield path, self.repaired / path.relative_to(self.whole)

    def places_stay(self, kind: str, dtype: Any) -> None:
        """All units but the tags codes of what was lost are those that the broker wrote."""
        for path, now in self.files(kind):
            was, made = np.fromfile(path, dtype), np.fromfile(now, dtype)
            names = [name for name in dtype.names if name not in {"tags_code", "store_timestamp"}]
            for name in names:
                assert was[name].tolist() == made[name].tolist(), (path, name)


@pytest.fixture
def case(golden: Open, tmp_path: Path) -> Callable[[str], Case]:
    return lambda name: Case(golden(name), tmp_path)


@pytest.mark.parametrize("with_queues", [True, False])
def test_a_tombstone_keeps_the_positions_in_light_queues(
    case: Callable[[str], Case], with_queues: bool
) -> None:
    one = case("v498-lmq")
    at, lost = next((at, r) for at, r in one.log.items() if at > 9000 and "," in r.properties.get(NAMES, ""))
    one.overwrite(at, bytes(lost.size))
    if not with_queues:
        shutil.rmtree(one.root / "consumequeue")
    one.repair()
    now = strict.walk(one.repaired)[0][at].properties
    was = lost.properties
    pairs = [set(zip(p[NAMES].split(","), p[SLOTS].split(","), strict=True)) for p in (was, now)]
    assert pairs[0] == pairs[1]
    one.places_stay("consumequeue", UNIT)


def test_positions_lost_behind_the_last_intact_record_of_a_light_queue(case: Callable[[str], Case]) -> None:
    """620332: a broken record behind them states its own, and stood at the first of theirs."""
    one = case("v498-lmq")
    fed = [at for at, r in sorted(one.log.items()) if "%LMQ%beta" in r.properties.get(NAMES, "").split(",")]
    last = fed[-1]
    one.overwrite(fed[-5], bytes(last - fed[-5]))
    one.overwrite(last + 88, bytes([one.log[last].raw[88] ^ 1]))
    shutil.rmtree(one.root / "consumequeue/%LMQ%beta")
    one.repair()
    for path, now in one.files("consumequeue"):
        if "%LMQ%beta" in str(path):
            was, made = (np.fromfile(file, UNIT)["physical_offset"].tolist() for file in (path, now))
            assert (last in was) == (last in made)
            assert last not in was or was.index(last) == made.index(last)


def test_a_flipped_bit_in_a_further_position_does_not_go_through(case: Callable[[str], Case]) -> None:
    one = case("v498-lmq")
    at, lost = next(
        (at, r)
        for at, r in one.log.items()
        if at > 9000 and r.properties.get(NAMES, "").count(",") == 0 and NAMES in r.properties
    )
    slot = lost.properties[SLOTS]
    place = lost.raw.index(f"{SLOTS}\x01{slot}".encode()) + len(SLOTS) + 1
    one.overwrite(at + place, bytes([lost.raw[place] ^ 1]))
    one.overwrite(at + 88, bytes([lost.raw[88] ^ 1]))
    one.repair()
    assert strict.walk(one.repaired)[0][at].properties[SLOTS] == slot
    one.places_stay("consumequeue", UNIT)


@pytest.mark.parametrize(
    ("was", "now"),
    [
        (NAMES, NAMES.replace("P", "X")),
        (SLOTS, SLOTS.replace("E", "e", 1)),
        (f"{SLOTS}\x01", f"{SLOTS}\x01="),
    ],
)
def test_a_message_that_stays_names_its_places_again(case: Callable[[str], Case], was: str, now: str) -> None:
    """60963, 66676: with its place put right it was in no further queue, or stopped dispatching."""
    one = case("v498-lmq")
    at, lied = next(
        (at, r) for at, r in one.log.items() if at > 9000 and "plainq" in r.properties.get(NAMES, "")
    )
    one.overwrite(at + 28, (at + 4096).to_bytes(8, "big"))
    one.overwrite(at + lied.raw.index(was.encode()), now.encode())
    one.repair()
    made = strict.walk(one.repaired)[0][at]
    assert (made.body, made.properties) == (lied.body, lied.properties)
    one.places_stay("consumequeue", UNIT)


def test_a_queue_is_still_named_where_its_position_is_torn_and_no_entry_tells_it(
    case: Callable[[str], Case],
) -> None:
    """390018: only queues with an entry were named again, and the others lost a message that is there."""
    one = case("v498-lmq")
    at, lied = next(
        (at, r) for at, r in one.log.items() if at > 9000 and r.properties.get(SLOTS, "").count(",")
    )
    end = lied.raw.index(f"{SLOTS}\x01{lied.properties[SLOTS]}".encode()) + len(SLOTS) + 1
    one.overwrite(at + end + lied.properties[SLOTS].index(","), b"\xa5" * 2)
    names = lied.properties[NAMES].split(",")
    shutil.rmtree(one.root / "consumequeue" / names[-1])
    repair(one.root, one.release, one.repaired, one.settings)
    assert strict.walk(one.repaired)[0][at].properties == lied.properties
    one.places_stay("consumequeue", UNIT)


@pytest.mark.parametrize("with_queues", [True, False])
def test_a_lost_batch_keeps_its_queue_offsets(case: Callable[[str], Case], with_queues: bool) -> None:
    one = case("v533-batchcq")
    at, lost = next(
        (at, r) for at, r in one.log.items() if at > 9000 and r.properties.get("INNER_NUM") == "30"
    )
    one.overwrite(at, bytes(lost.size))
    if not with_queues:
        for path in (one.root / "batchconsumequeue").glob("*/*/*"):
            path.unlink()
    one.repair()
    assert strict.walk(one.repaired)[0][at].properties["INNER_NUM"] == "30"
    one.places_stay("batchconsumequeue", BATCH_UNIT)


@pytest.mark.share
@pytest.mark.parametrize("with_queues", [True, False])
@pytest.mark.parametrize(
    ("which", "wrong"), [("30", 1), ("30", 1 << 31), ("single", 1), ("single", 1 << 31), ("last", 1 << 31)]
)
def test_a_batch_with_a_wrong_queue_number(
    case: Callable[[str], Case], which: str, wrong: int, with_queues: bool
) -> None:
    """The last segment is gone, too: offsets were given twice, or a filler took its place."""
    one = case("v533-batchcq")
    max((one.root / "commitlog").iterdir()).unlink()
    log = [record for at, record in sorted(one.log.items()) if at < 65536 and record.topic == "TopicBCQ"]
    inner = [record for record in log if record.properties.get("INNER_NUM", "single") == which]
    lied = log[-1] if which == "last" else inner[5]
    one.overwrite(lied.offset + 12, (lied.queue_id ^ wrong).to_bytes(4, "big"))
    if not with_queues:
        shutil.rmtree(one.root / "batchconsumequeue")
    repair(one.root, one.release, one.repaired, one.settings)
    now = strict.walk(one.repaired)[0][lied.offset]
    assert now.raw == lied.raw
    assert kept(one.repaired, one.release, one.settings).changes == ()


def test_a_tombstone_among_records_with_a_crc_property_has_one(case: Callable[[str], Case]) -> None:
    one = case("v533-props-crc")
    at, lost = sorted(one.log.items())[20]
    one.overwrite(at, bytes(lost.size))
    one.repair()
    now = strict.walk(one.repaired)[0][at]
    assert now.properties["__CRC32#"] != lost.properties["__CRC32#"]
    assert now.raw[-20:].startswith(b"__CRC32#")


@pytest.mark.share
@pytest.mark.parametrize("number", [0, 1, 2])
@pytest.mark.parametrize("damage", ["gone", "short", "noise"])
def test_batch_queue_files_become_what_they_were(
    case: Callable[[str], Case], number: int, damage: str
) -> None:
    one = case("v533-batchcq")
    path = sorted((one.root / "batchconsumequeue/TopicBCQ/0").iterdir())[number]
    spoil(path, damage)
    one.repair()
    for was, now in one.files("batchconsumequeue"):
        assert was.read_bytes() == now.read_bytes()


@pytest.mark.share
@pytest.mark.parametrize("number", [0, 1, 2])
@pytest.mark.parametrize("damage", ["gone", "short", "noise"])
@pytest.mark.parametrize("name", ["v498-cqext", "v533-cqext"])
def test_units_point_at_extension_units_that_are_there(
    case: Callable[[str], Case], name: str, number: int, damage: str
) -> None:
    one = case(name)
    files = sorted((one.root / "consumequeue_ext/TopicExt/0").iterdir())
    spoil(files[number], damage)
    one.repair()
    for path in sorted((one.repaired / "consumequeue_ext/TopicExt/0").iterdir()):
        assert path.stat().st_size == 1024
    codes = {
        int.from_bytes(data[at + 2 : at + 10], "big", signed=True)
        for path, _ in one.files("consumequeue_ext")
        for data in [path.read_bytes()]
        for at in range(0, 1000, 20)
    }
    base = -(1 << 63)
    for path in (one.repaired / "consumequeue/TopicExt/0").iterdir():
        for unit in np.fromfile(path, UNIT):
            code = int(unit["tags_code"])
            if unit["size"] and code < -(1 << 31):
                file = one.repaired / f"consumequeue_ext/TopicExt/0/{(code - base) // 1024 * 1024:020d}"
                place = (code - base) % 1024
                assert int.from_bytes(file.read_bytes()[place : place + 2], "big") >= 20
            elif unit["size"]:
                assert code in codes


def spoil(path: Path, how: str) -> None:
    """A file that is gone, cut short, or has other bytes in the middle."""
    if how == "gone":
        path.unlink()
    elif how == "short":
        with path.open("r+b") as file:
            file.truncate(310)
    else:
        data = bytearray(path.read_bytes())
        data[300:420] = bytes(byte ^ 0x55 for byte in data[300:420])
        path.write_bytes(data)


def test_a_place_that_a_plain_further_queue_tells_is_for_a_queue_of_its_number(
    case: Callable[[str], Case],
) -> None:
    """Law seed 13590: such a queue has the queue id of its records."""
    one = case("v498-lmq")
    at, lost = next(
        (at, r) for at, r in one.log.items() if at > 9000 and "plainq" in r.properties.get(NAMES, "")
    )
    before = max(start for start in one.log if start < at)
    assert (one.log[before].topic, one.log[before].queue_id) < (lost.topic, lost.queue_id)
    one.overwrite(before, bytes(one.log[before].size + lost.size))
    for path in (one.root / "consumequeue").glob("[!p]*/*/*"):
        path.write_bytes(bytes(path.stat().st_size))
    one.repair()
    now = strict.walk(one.repaired)[0][at]
    assert (now.topic, now.queue_id, now.queue_offset) == (lost.topic, lost.queue_id, lost.queue_offset)
    one.places_stay("consumequeue/plainq", UNIT)


LIGHT, ROOM = "%LMQ%a-light-queue", 40
SMALL = {"mappedFileSizeCommitLog": 4096, "mappedFileSizeConsumeQueue": ROOM * 20}


def light_store(root: Path, trailers: range, rounds: int) -> HandmadeLog:
    """Every record is in `LIGHT` too; those in `trailers` end in `__CRC32#`, as with other settings."""
    log = HandmadeLog()
    queues = {name: HandmadeQueue(f"consumequeue/{name}/0", units=ROOM) for name in ("T", LIGHT)}
    for number in range(rounds):
        own = f"{NAMES}\x01{LIGHT}\x02{SLOTS}\x01{number}"
        trailer = number in trailers
        placed = log.put("T", b"x", f"{own}\x02".encode() if trailer else own.encode(), crc_trailer=trailer)
        for queue in queues.values():
            queue.append(plain_unit(placed.physical_offset, len(placed.data), 0))
    log.write(root / "commitlog")
    for queue in queues.values():
        for path, data in queue.items():
            (root / path).parent.mkdir(parents=True)
            (root / path).write_bytes(data)
    return log


@pytest.mark.parametrize("release", ["4.9.8", "5.3.3"])
def test_a_crc_property_takes_no_room_from_the_positions_in_light_queues(
    tmp_path: Path, release: str
) -> None:
    """The record in front has a `__CRC32#`, the lost one had none, and its place has no room for both."""
    root, repaired = tmp_path / "store", tmp_path / "repaired"
    log = light_store(root, range(3), 8)
    lost = log.records[3]
    segment = root / "commitlog" / f"{0:020d}"
    data = bytearray(segment.read_bytes())
    data[lost.physical_offset : lost.end] = bytes(len(lost.data))
    segment.write_bytes(data)
    was = strict.units(root)
    plan = repair(root, release, repaired, SMALL | {"enableMultiDispatch": True, "enableLmq": True})
    assert plan.lost.messages == 1
    now = strict.walk(repaired)[0][lost.physical_offset]
    assert (now.slot, now.properties) == (("T", 0, 3), {NAMES: LIGHT, SLOTS: "3"})
    assert strict.units(repaired) == was


@pytest.mark.parametrize("short", [(4,), (4, 5), (4, 7)])
def test_a_size_that_no_record_of_the_queue_can_have_costs_no_position(
    tmp_path: Path, short: tuple[int, ...]
) -> None:
    """The entry tells where the lost record began, not that a filler has to go there."""
    root, repaired = tmp_path / "store", tmp_path / "repaired"
    log, topic = HandmadeLog(), "a-rather-long-topic-name"
    queue = HandmadeQueue(f"consumequeue/{topic}/0", units=ROOM)
    for number in range(9):
        placed = log.put(topic, bytes(250))
        queue.append(plain_unit(placed.physical_offset, 95 if number in short else len(placed.data), 0))
    log.write(root / "commitlog")
    for path, data in queue.items():
        (root / path).parent.mkdir(parents=True)
        (root / path).write_bytes(data)
    segment = root / "commitlog" / f"{0:020d}"
    bytes_of = bytearray(segment.read_bytes())
    for number in short:
        one = log.records[number]
        bytes_of[one.physical_offset : one.end] = bytes(len(one.data))
    segment.write_bytes(bytes_of)
    plan = repair(root, "5.3.3", repaired, SMALL)
    assert plan.lost.messages == len(short)
    assert not any("no room" in note for note in plan.notes)
    units = strict.units(repaired)
    for number, one in enumerate(log.records):
        assert units[topic, 0, number][0] == one.physical_offset


def test_a_filler_at_the_begin_of_a_segment_has_no_crc_property_without_room_for_one(tmp_path: Path) -> None:
    """No record in front of it can take the bytes, and there was no plan at all."""
    log = HandmadeLog()
    for _ in range(5):
        log.put("T", bytes(300), b"KEYS\x01k\x02", crc_trailer=True)
    log.roll()
    lost = log.put("T", b"x")
    for _ in range(5):
        log.put("Other", bytes(300), b"KEYS\x01k\x02", crc_trailer=True)
    segment = log.write(tmp_path / "store/commitlog")[1]
    assert len(lost.data) < SMALLEST_FILLER + TRAILER_SIZE
    segment.write_bytes(bytes(len(lost.data)) + segment.read_bytes()[len(lost.data) :])
    intact = strict.carve(tmp_path / "store")
    plan = repair(tmp_path / "store", "5.3.3", tmp_path / "repaired", SMALL)
    there = strict.walk(tmp_path / "repaired")[0]
    assert intact.items() <= there.items()
    assert (there[4096].size, len(plan.notes)) == (len(lost.data), 1)
