"""Found once by the generator, as smallest stores: `recover`: segments, fillers, holes."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING

import pytest

from fixtures import strict
from fixtures.compound import make
from fixtures.goldens import open_golden
from fixtures.handmade import plain_unit
from fixtures.stores import HandmadeStore
from formats.commitlog import BLANK_MAGIC_CODE
from rmqtool.scan.fields import OFF_BODY_LENGTH, OFF_PHYSICAL_OFFSET, OFF_QUEUE_ID, OFF_QUEUE_OFFSET
from tests.helpers import rmq
from tests.laws.stores import recovered

if TYPE_CHECKING:
    from pathlib import Path


def test_what_is_wrong_in_a_segment_with_another_name_is_no_new_error(tmp_path: Path) -> None:
    """590103: the plan gives the file its name back, and its error has another path then."""
    golden = open_golden("v533-props-crc", tmp_path)
    segment = min((golden.path / "commitlog").iterdir())
    raw = segment.read_bytes()
    at = raw.index(b"__CRC32#") + len(b"__CRC32#") + 1
    segment.write_bytes(raw[:at] + bytes([raw[at] ^ 1]) + raw[at + 1 :])
    segment.rename(segment.with_name(f"{20:020d}"))
    ask = ("--store-config", golden.config_path)
    done = rmq("recover", golden.path, *ask, "--output", tmp_path / "out", "--apply")
    assert done.exit_code == 0, done.stdout
    found = rmq("verify", tmp_path / "out", *ask, "--format", "ndjson").rows
    assert [one["code"] for one in found if one.get("severity") == "error"] == ["CL-CRC32"]


def test_a_filler_over_a_record_that_only_its_queue_misses(tmp_path: Path) -> None:
    """14944: as long as the rest of the segment; no unit tells of the record any more."""
    store = HandmadeStore()
    for number in range(60):
        store.put("Orders", b"body %d" % number * 4, queue_id=number % 2, tags="TagA")
    store.write(tmp_path / "store")
    gone = store.inside(1)[-1]
    path, position = store.segment(gone.offset)
    left = 4096 - position
    store.patch(path, position, left.to_bytes(4, "big") + BLANK_MAGIC_CODE.to_bytes(4, "big", signed=True))
    store.patch(path, position + OFF_PHYSICAL_OFFSET, bytes(8))  # else the rest of the record tells
    shutil.rmtree(store.root / "consumequeue")
    done = rmq("recover", store.root, "--output", tmp_path / "out", "--apply", "--json")
    assert done.exit_code == 0, done.stderr
    assert json.loads(done.stdout)["summary"]["lost"]["messages"] == 1
    made = strict.carve(tmp_path / "out")
    assert made[gone.offset].slot == ("Orders", gone.queue_id, gone.queue_offset)
    times = [one.store_timestamp for _, one in sorted(made.items())]
    assert times == sorted(times)
    assert rmq("doctor", tmp_path / "out", "--as-version", "5.3.3").exit_code == 0
    assert json.loads(rmq("recover", tmp_path / "out", "--json").stdout)["rows"] == []


@pytest.mark.parametrize("alone", [False, True])
def test_a_filler_over_a_record_of_which_only_the_header_is_gone(tmp_path: Path, *, alone: bool) -> None:
    """16470, 17265, 17480: as long as the rest of the segment, and the record was the last in it."""
    store = HandmadeStore()
    for number in range(60):
        store.put("Single" if alone and number == 30 else "Orders", b"body %d" % number * 4)
        if alone and number == 30:
            store.log.roll()
    store.write(tmp_path / "store")
    gone = store.stored[30] if alone else store.inside(1)[-1]
    path, position = store.segment(gone.offset)
    left = 4096 - position
    store.patch(path, position, left.to_bytes(4, "big") + BLANK_MAGIC_CODE.to_bytes(4, "big", signed=True))
    for name in ("consumequeue", "index"):
        shutil.rmtree(store.root / name)
    for command in (
        ("stats", store.root),
        ("dump", store.root),
        ("sql", store.root, "select count(*) from messages"),
        ("export", store.root, "--to", tmp_path / "out.ndjson"),
        ("verify", store.root),
    ):
        assert rmq(*command).exit_code in (1, 3), command
    done = rmq("recover", store.root, "--output", tmp_path / "out", "--apply", "--json")
    assert done.exit_code == 0, done.stderr
    assert json.loads(done.stdout)["summary"]["lost"]["messages"] == 0
    assert strict.carve(tmp_path / "out")[gone.offset].raw == gone.placed.data
    assert rmq("dump", tmp_path / "out").exit_code == 0
    assert rmq("doctor", tmp_path / "out", "--as-version", "5.3.3").exit_code == 0
    assert json.loads(rmq("recover", tmp_path / "out", "--json").stdout)["rows"] == []


def test_an_entry_of_a_moved_light_queue_file_gives_no_place_to_a_lost_record(tmp_path: Path) -> None:
    """16093: under a name that is 500 entries too high it told a queue offset of which all others are far."""
    golden = open_golden("v498-lmq", tmp_path)
    queue = golden.path / "consumequeue/%LMQ%beta/0"
    files = sorted(queue.iterdir())
    units = [one for one in strict.entries(golden.path).items() if one[0][1:3] == ("%LMQ%beta", 0)]
    last = max(entry.offset for _, entry in units)
    for one in files:
        one.rename(queue / f"{int(one.name) + 10_000:020d}")
    base = max(at for at, _ in strict.segments(golden.path) if at <= last)
    with (golden.path / f"commitlog/{base:020d}").open("r+b") as file:
        file.seek(last - base)
        file.write(bytes(100))
    conf = ("--store-config", golden.config_path)
    done = rmq("recover", golden.path, "--output", tmp_path / "out", "--apply", *conf)
    assert done.exit_code == 0, done.stderr
    for release in ("4.9.8", "5.3.3"):
        assert rmq("doctor", tmp_path / "out", "--as-version", release, *conf).exit_code == 0


def test_a_single_record_tells_no_base_that_all_others_of_its_file_do_not(tmp_path: Path) -> None:
    """17271, 17838: in a copied segment one record with a flipped bit made 131,075 segments of four."""
    store = HandmadeStore()
    for number in range(120):
        store.put("Orders", b"body %d" % number)
    store.write(tmp_path / "store")
    segments = sorted((store.root / "commitlog").iterdir())
    assert len(segments) > 3
    one = store.inside(2)[3]
    path, position = store.segment(one.offset)
    store.patch(path, position + OFF_PHYSICAL_OFFSET, (one.offset | 1 << 40).to_bytes(8, "big"))
    shutil.copy(segments[2], segments[1])
    done = rmq("recover", store.root, "--output", tmp_path / "out", "--apply")
    assert (tmp_path / "out").is_dir(), done.stderr
    assert len(list((tmp_path / "out/commitlog").iterdir())) == len(segments)


def test_a_filler_one_byte_too_long_over_the_last_record_of_a_segment(tmp_path: Path) -> None:
    """41944, 42102: a filler of the right length was planned over it, and that plan was not believed."""
    store = HandmadeStore()
    for number in range(60):
        store.put("Orders", b"body %d" % number)
    store.write(tmp_path / "store")
    segments = sorted((store.root / "commitlog").iterdir())
    place = max(
        (one for one in store.stored if one.offset < int(segments[1].name)), key=lambda one: one.offset
    )
    path, position = store.segment(place.offset)
    rest = len(store.read(path)) - position
    was = store.read(path)
    store.patch(
        path, position, (rest + 1).to_bytes(4, "big") + BLANK_MAGIC_CODE.to_bytes(4, "big", signed=True)
    )
    done = rmq("recover", store.root, "--output", tmp_path / "out", "--apply", "--json")
    assert done.exit_code == 0, done.stderr
    assert (tmp_path / "out" / path).read_bytes() == was


def test_a_record_under_a_blank_stays_in_a_queue_that_skips_offsets(tmp_path: Path) -> None:
    """40083: a filler took its place, and its entry, which stays with the queue, led to that."""
    store = HandmadeStore()
    for number in range(14):
        if number == 7:
            store.log.queue_offsets["Orders", 0] += 3
        store.put("Orders", b"body %d" % number)
    store.write(tmp_path / "store")
    path, position = store.segment(store.stored[6].offset)
    blank = (4096 - position).to_bytes(4, "big") + BLANK_MAGIC_CODE.to_bytes(4, "big", signed=True)
    whole = store.read(path)
    store.patch(path, position, blank)
    done = rmq("recover", store.root, "--json", "--output", tmp_path / "out", "--apply")
    assert json.loads(done.stdout)["summary"]["checked"]["problems"] == []
    assert (tmp_path / "out" / path).read_bytes() == whole


def test_a_hole_of_whole_records_has_room_for_no_other(tmp_path: Path) -> None:
    """60542: behind long records with damaged bodies lies one whose topic is damaged: it is their queue's."""
    store = HandmadeStore()
    for number in range(16):
        store.put("Orders", b"%02d" % number * 300)
    store.write(tmp_path / "store")
    shutil.rmtree(store.root / "consumequeue")
    store.remove(store.segment(0)[0])
    *_, one, other, last = store.inside(1)
    for damaged in (one, other):
        path, position = store.segment(damaged.offset)
        store.patch(path, position + OFF_BODY_LENGTH + 100, b"damaged")
    path, position = store.segment(last.offset)
    store.patch(path, position + last.placed.data.index(b"Orders"), b"Ordert")
    result = tmp_path / "out"
    assert rmq("recover", store.root, "--output", result, "--apply").exit_code == 0
    assert [one.name for one in (result / "consumequeue").iterdir()] == ["Orders"]
    assert rmq("doctor", result, "--as-version", "5.3.3").exit_code == 0


def test_a_record_under_a_filler_in_a_segment_of_other_records(tmp_path: Path) -> None:
    """66200: a filler was put over the filler, and hid the record again; the plan was refused."""
    store = HandmadeStore()
    for number in range(60):
        store.put("Orders", b"body %d" % number)
    store.write(tmp_path / "store")
    shutil.rmtree(store.root / "consumequeue")
    foreign, last = store.stored[0], store.inside(1)[-1]
    path, position = store.segment(last.offset)
    blank = BLANK_MAGIC_CODE.to_bytes(4, "big", signed=True)
    store.patch(path, 0, bytes(position))
    store.patch(path, 0, foreign.placed.data)
    store.patch(path, position, last.size.to_bytes(4, "big") + blank)
    done = rmq("recover", store.root, "--output", tmp_path / "out", "--apply", "--json")
    assert done.exit_code == 0, done.stderr
    assert strict.carve(tmp_path / "out")[last.offset].raw == last.placed.data


def test_an_entry_into_a_whole_record_with_a_wrong_queue_number(tmp_path: Path) -> None:
    """What it says was believed, and a byte was left in front of it into which no record fits."""
    store = HandmadeStore()
    for number in range(20):
        store.put("Orders", b"body %d" % number)
    store.write(tmp_path / "store")
    was = {one.offset: one.placed.data for one in store.stored}
    for one in store.stored[7:9]:
        path, position = store.segment(one.offset)
        store.patch(path, position + OFF_QUEUE_ID, (one.queue_offset + 9).to_bytes(4, "big"))
    one = store.stored[7]
    assert one.unit is not None
    store.patch(*one.unit, plain_unit(one.offset + 1, one.size, 0))
    assert recovered(store, tmp_path) == was


def test_a_record_alone_in_its_queue_with_more_in_front_than_any_log_had(tmp_path: Path) -> None:
    """81609: the queue was moved to the queue offset of a flipped bit, away from its entry."""
    store = HandmadeStore()
    for number in range(90):
        store.put("Orders", b"body %d" % number)
        if number == 70:
            store.put("Lone", b"body")
    store.write(tmp_path / "store")
    store.remove(store.segment(0)[0])
    one = store.of("Lone")[0]
    path, position = store.segment(one.offset)
    store.patch(path, position + OFF_QUEUE_OFFSET, (1 << 42).to_bytes(8, "big"))
    done = rmq("recover", store.root, "--output", tmp_path / "out", "--apply", "--json")
    assert done.exit_code == 0, done.stderr
    assert strict.carve(tmp_path / "out")[one.offset].raw == one.placed.data


def test_a_record_that_states_more_messages_than_the_log_had_room_for(tmp_path: Path) -> None:
    """270215: a flipped bit made 2^32 and 8 of its queue offset: it was to be lost, which was refused."""
    made = make(270215, tmp_path)
    (offset,) = (at for at, one in strict.carve(made.root).items() if one.queue_offset == (1 << 32) + 8)
    done = rmq("recover", made.root, "--output", tmp_path / "out", "--apply", "--store-config", made.conf)
    assert done.exit_code == 0, done.stderr
    assert strict.carve(tmp_path / "out")[offset].queue_offset == 8
