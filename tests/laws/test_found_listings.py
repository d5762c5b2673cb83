"""Found once by the generator, as smallest stores: listings, sums and exports."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING

from fixtures import strict
from fixtures.stores import HandmadeStore, healthy_store
from formats.commitlog import BLANK_MAGIC_CODE
from rmqtool.repair.prove.evidence import Evidence
from rmqtool.repair.prove.records import record_at
from rmqtool.scan.engine import choose_kernels
from rmqtool.scan.fields import OFF_BODY_LENGTH, OFF_PHYSICAL_OFFSET, OFF_QUEUE_OFFSET, OFF_STORE_TIMESTAMP
from rmqtool.store.access import Access
from rmqtool.store.layout import Store
from tests.helpers import rmq
from tests.laws.stores import orders, with_false_blank

if TYPE_CHECKING:
    from pathlib import Path


def test_a_segment_that_is_a_copy_of_another_is_not_complete(tmp_path: Path) -> None:
    """Its records are listed where they lie, and everybody who asks is reported that others are missing."""
    store = orders(tmp_path / "store", 90)
    store.patch("commitlog/00000000000000004096", 0, store.read("commitlog/00000000000000000000"))
    assert rmq("export", store.root, "--to", tmp_path / "out.ndjson").exit_code == 3
    assert rmq("stats", store.root, "--json").exit_code == 3
    reported = rmq("sql", store.root, "select topic from messages", "--json")
    assert reported.exit_code == 3
    assert '"incomplete_reason":"damage"' in reported.stdout
    assert "other physical offsets" in reported.stdout
    assert rmq("dump", store.root, "--format", "ndjson").exit_code == 1


def test_sql_tells_of_bodies_that_fail_their_crc(tmp_path: Path) -> None:
    store = orders(tmp_path / "store")
    path, position = store.segment(store.stored[7].offset)
    store.patch(path, position + 90, b"?")
    reported = rmq("sql", store.root, "select count(*) from messages", "--json")
    assert reported.exit_code == 3
    assert "1 body fails its CRC" in reported.stdout
    assert '"not_looked_at":["bodies"]' in rmq("stats", store.root, "--json").stdout


def test_a_blank_over_a_record_hides_nothing(tmp_path: Path) -> None:
    store = with_false_blank(tmp_path / "store")
    reported = rmq("stats", store.root, "--json")
    assert reported.exit_code == 3
    assert '"messages":89,' in reported.stdout
    assert rmq("export", store.root, "--to", tmp_path / "out.ndjson").exit_code == 3
    assert (tmp_path / "out.ndjson").read_text().count('"type":"message"') == 89
    assert "CL-BLANK " in rmq("verify", store.root).stdout


def test_a_blank_with_older_records_behind_it_is_one(tmp_path: Path) -> None:
    """A log that was cut in the middle of a segment and went on: what it had before lies behind its blank."""
    store = orders(tmp_path / "store", 90)
    one = store.inside(1)[-1]
    path, position = store.segment(one.offset)
    old = bytearray(one.placed.data)
    old[56:64] = (one.time - 3_600_000).to_bytes(8, "big")
    blank = (4096 - position).to_bytes(4, "big") + bytes.fromhex("CBD43194")
    front = store.inside(1)[-2]
    at = store.segment(front.offset)[1]
    lies = front.offset + 8 + 60
    old[28:36] = lies.to_bytes(8, "big")
    room = 4096 - at - 68
    assert len(old) <= room
    store.patch(
        path, at, (4096 - at).to_bytes(4, "big") + blank[4:] + bytes(60) + bytes(old) + bytes(room - len(old))
    )
    reported = rmq("dump", path := store.root / path, "--format", "ndjson")
    assert '"type":"gap"' not in reported.stdout
    assert reported.stdout.count('"type":"blank"') == 1


def test_a_log_of_which_only_zeros_are_left(tmp_path: Path) -> None:
    store = orders(tmp_path / "store", 90)
    for name, data in store.log.files().items():
        store.patch(f"commitlog/{name:020d}", 0, bytes(len(data)))
    assert rmq("stats", store.root, "--json").exit_code == 3


def test_salvage_goes_where_links_lead_and_comes_back(tmp_path: Path) -> None:
    store = orders(tmp_path / "store")
    shutil.move(store.root / "commitlog", tmp_path / "disk2")
    (store.root / "commitlog").symlink_to(tmp_path / "disk2")
    (tmp_path / "disk2/again").symlink_to(store.root)
    reported = rmq("salvage", store.root, "--output", tmp_path / "out", "--json")
    assert reported.exit_code == 0, reported.stderr
    assert strict.carve(tmp_path / "out").keys() == {one.offset for one in store.stored}


def test_a_dump_of_a_record_whose_topic_is_no_text_is_one_of_damage(tmp_path: Path) -> None:
    """11641: the record is listed, and nothing said that it is not what was written."""
    store = healthy_store().write(tmp_path / "store")
    path, position = store.segment(store.stored[9].offset)
    raw = store.read(path)
    store.patch(path, raw.index(store.stored[9].topic.encode(), position), b"\xff")
    reported = rmq("dump", store.root, "--format", "ndjson")
    assert reported.exit_code == 1
    assert '"torn":1' in reported.stdout.splitlines()[-1]


def test_a_committed_offset_that_is_a_truth_value(tmp_path: Path) -> None:
    """17703: from 5.0 on fastjson takes it for 1 or 0."""
    store = healthy_store().write(tmp_path / "store")
    table = {"offsetTable": {"Orders@G": {"0": True, "1": False, "2": 7}}}
    store.add("config/consumerOffset.json", json.dumps(table).encode())
    asked = rmq("sql", store.root, "select committed_offset from consumer_offsets", "--format", "ndjson")
    assert [row["committed_offset"] for row in asked.rows[:-1]] == [1, 0, 7]


def test_what_an_earlier_life_left_under_a_filler_is_no_message(tmp_path: Path) -> None:
    """The log was cut there and went on: what lies under the header is older than what is in front."""
    store = HandmadeStore()
    for number in range(60):
        store.put("Orders", b"body %d" % number * 4)
    store.write(tmp_path / "store")
    gone = store.inside(1)[-1]
    path, position = store.segment(gone.offset)
    record = bytearray(gone.placed.data)
    assert int.from_bytes(record[56:64], "big") > 1_000_000
    record[56:64] = (1_000_000).to_bytes(8, "big")
    head = (4096 - position).to_bytes(4, "big") + BLANK_MAGIC_CODE.to_bytes(4, "big", signed=True)
    store.patch(path, position, head + bytes(record[8:]))
    assert rmq("dump", store.root).exit_code == 0


def test_the_time_of_a_damaged_record_does_not_end_the_log(tmp_path: Path) -> None:
    """41208: it lay in the future, so that all behind the next damage seemed left of an older life."""
    store = HandmadeStore()
    for number in range(12):
        store.put("Orders", b"body %d" % number)
    store.write(tmp_path / "store")
    liar, broken = store.stored[5], store.stored[6]
    path, position = store.segment(liar.offset)
    store.patch(path, position + OFF_STORE_TIMESTAMP, (1 << 42).to_bytes(8, "big"))
    store.patch(path, position + OFF_PHYSICAL_OFFSET, (1 << 28).to_bytes(8, "big"))
    store.patch(path, store.read(path).index(b"body 5"), b"dead")
    store.patch(*store.segment(broken.offset), bytes(12))
    rows = rmq("dump", store.root, "--format", "ndjson").of_type("message")
    assert [row["physical_offset"] for row in rows][-5:] == [one.offset for one in store.stored[7:]]


def test_a_queue_offset_far_ahead_where_no_entry_tells(tmp_path: Path) -> None:
    """50383: that its queue goes on behind the record with lower offsets did not speak against it."""
    store = HandmadeStore()
    for number in range(60):
        store.put("Orders" if number % 3 else "Payments", b"body %d" % number)
    store.write(tmp_path / "store")
    one = store.of("Orders")[9]
    path, position = store.segment(one.offset)
    store.patch(path, position + OFF_QUEUE_OFFSET, (one.queue_offset + (1 << 45)).to_bytes(8, "big"))
    shutil.copytree(store.root, tmp_path / "result")
    with (tmp_path / "result" / path).open("r+b") as file:
        file.seek(position)
        file.write(bytes(one.size))
    shutil.rmtree(store.root / "consumequeue")
    source, result = Store.open(store.root), Store.open(tmp_path / "result")
    kernels, access = choose_kernels(1 << 20), Access("pread")
    far = record_at(source, one.offset, kernels, access)
    assert far is not None
    assert [*Evidence(source, result, [far], kernels, access).intact()] == []


def test_a_length_below_zero_of_an_empty_body(tmp_path: Path) -> None:
    """60465: every reader takes it for zero; no finding, and `stats` summed it up."""
    store = HandmadeStore()
    for body in (b"", b"body"):
        store.put("Orders", body)
    store.write(tmp_path / "store")
    store.patch(*store.segment(0)[:1], OFF_BODY_LENGTH, b"\x80")
    assert json.loads(rmq("stats", store.root, "--json").stdout)["summary"]["body_bytes"] == 4
    reported = rmq("verify", store.root, "--format", "ndjson")
    assert reported.exit_code == 1
    assert '"CL-NEGATIVE"' in reported.stdout
