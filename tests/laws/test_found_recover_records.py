"""Found once by the generator, as smallest stores: `recover`: records whose fields lie."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING

import pytest

from fixtures import strict
from fixtures.compound import make
from fixtures.goldens import open_golden
from fixtures.stores import PREPARED, ROLLBACK, HandmadeStore
from formats.commitlog import BLANK_MAGIC_CODE
from rmqtool.scan.fields import OFF_BODY_LENGTH, OFF_QUEUE_ID, OFF_QUEUE_OFFSET
from tests.helpers import rmq
from tests.laws.stores import recovered, without_entries

if TYPE_CHECKING:
    from pathlib import Path


def test_a_record_alone_in_its_queue_is_of_no_queue_whose_topic_has_another_length(tmp_path: Path) -> None:
    """A queue that begins at 1 misses offset 0, and no unit is left for the one record of the other queue."""
    store = HandmadeStore()
    store.put("Moved", b"body")
    store.put("ATopicWithALongName", b"the only one")
    store.begin_queue_at("Late", 0, 1)
    for number in range(30):
        store.put("Late" if number % 2 else "Orders", b"body %d" % number)
    store.write(tmp_path / "store")
    lost = store.of("Orders")[5]
    store.patch(*store.segment(lost.offset), bytes(lost.size))
    files = [f"consumequeue/{topic}/0/{0:020d}" for topic in ("Orders", "ATopicWithALongName")]
    store.patch(files[1], 0, store.read(files[0]))
    reported = rmq("recover", store.root, "--output", tmp_path / "out", "--apply", "--json")
    assert (tmp_path / "out").is_dir(), reported.stderr
    shown = rmq("query-offset", tmp_path / "out", "ATopicWithALongName", 0, 0, "--json").stdout
    assert '"body_utf8":"the only one"' in shown


@pytest.mark.share
@pytest.mark.parametrize("spoiled", [b"\xff", b"\0"])
@pytest.mark.parametrize("kind", ["prepared", "alone", "known"])
def test_a_topic_that_is_no_text_is_damage_to_everybody(tmp_path: Path, kind: str, spoiled: bytes) -> None:
    """A broker takes no such topic and builds a queue for what Java makes of it, which nobody reads.

    Where that holds a zero byte, it cannot make the queue, and writes no other from there on.
    """
    store = HandmadeStore()
    topics = ["Lonely" if (kind, number) == ("alone", 5) else "Orders" for number in range(12)]
    for number, topic in enumerate(topics):
        half = {"sys_flag": PREPARED, "queue_offset": 0} if (kind, number) == ("prepared", 5) else {}
        store.put(topic, b"body", queue_id=number % 2, **half)
    store.write(tmp_path / "store")
    one = store.stored[5]
    path, position = store.segment(one.offset)
    store.patch(path, store.read(path).index(topics[5].encode(), position) + 2, spoiled)
    if kind == "alone":
        shutil.rmtree(store.root / "consumequeue")
    for release in ("4.9.8", "5.3.3"):
        assert rmq("doctor", store.root, "--as-version", release).exit_code == 1
    assert rmq("verify", store.root).exit_code == 1
    assert rmq("stats", store.root).exit_code == 3
    out = tmp_path / "out"
    reported = rmq("recover", store.root, "--output", out, "--apply", "--json")
    assert reported.exit_code == 0
    assert f'"lost":{{"messages":{int(kind != "known")},' in reported.stdout
    assert rmq("verify", out).exit_code == 0
    assert rmq("doctor", out).exit_code == 0


def test_a_light_queue_under_a_number_of_no_record_is_foreign(tmp_path: Path) -> None:
    """11462: `recover` removes it; `verify` had nothing against it, so that the plan was refused."""
    golden = open_golden("b533-lmq", tmp_path)
    light = golden.path / "consumequeue/%LMQ%one"
    shutil.copytree(light / "0", light / "44")
    conf = ("--store-config", golden.config_path)
    reported = rmq("verify", golden.path, "--json", *conf)
    assert reported.exit_code == 1
    assert "CQ-FOREIGN" in reported.stdout
    done = rmq("recover", golden.path, "--output", tmp_path / "out", "--apply", *conf)
    assert (tmp_path / "out").is_dir(), done.stderr
    assert not list((tmp_path / "out/consumequeue/%LMQ%one/44").glob("*"))
    assert list((tmp_path / "out/consumequeue/%LMQ%one/0").glob("*"))


@pytest.mark.parametrize("lost", [b"dead", None])
def test_a_record_that_is_alone_in_its_queue_stays_where_another_queue_lost_one(
    tmp_path: Path, lost: bytes | None
) -> None:
    """13399: another queue of its topic misses that queue offset, too, and the log has a hole for it."""
    store = HandmadeStore()
    for queue_id in (0, 1, 1):
        store.put("Deleted", b"body %d" % queue_id, queue_id=queue_id)
    store.write(tmp_path / "store")
    alone, broken, _ = store.stored
    path, position = store.segment(broken.offset)
    if lost is None:
        store.patch(path, position, bytes(broken.size))
    else:
        store.patch(path, store.read(path).index(b"body", position), lost)
    shutil.rmtree(store.root / "consumequeue")
    was = store.read(path, position=alone.offset, length=alone.size)
    done = rmq("recover", store.root, "--output", tmp_path / "out", "--apply")
    assert done.exit_code == 0, done.stdout
    assert (tmp_path / "out" / path).read_bytes()[alone.offset :][: alone.size] == was


@pytest.mark.parametrize("number", [12, 13])
def test_of_two_records_with_one_queue_offset_the_one_with_a_unit_is_right(
    tmp_path: Path, number: int
) -> None:
    """16422: a flipped bit gives a record the queue offset of the next one, or of the one in front."""
    store = HandmadeStore()
    for count in range(60):
        store.put("Orders", b"body %d" % count, queue_id=count % 2)
    store.write(tmp_path / "store")
    one = store.of("Orders")[number]
    path, position = store.segment(one.offset)
    store.patch(path, position + OFF_QUEUE_OFFSET, (number ^ 1).to_bytes(8, "big"))
    others = store.of("Orders", 1)  # room for what is missing
    for damaged in others[number - 1 : number + 1]:
        store.patch(*store.segment(damaged.offset), b"garbage!")
    done = rmq("recover", store.root, "--output", tmp_path / "out", "--apply", "--json")
    assert done.exit_code == 0, done.stderr
    made = strict.carve(tmp_path / "out")
    assert [made[one.offset].raw for one in store.of("Orders")] == [
        one.placed.data for one in store.of("Orders")
    ]


def test_a_record_with_a_unit_does_not_give_way_to_one_out_of_the_order_of_the_log(tmp_path: Path) -> None:
    """66790: another queue misses its queue offset there, and a record far behind states that, too."""
    store = HandmadeStore()
    for count in range(60):
        store.put("Orders", b"body %d" % count, queue_id=count % 2)
    store.write(tmp_path / "store")
    ours, others = store.of("Orders"), store.of("Orders", 1)
    for damaged in (ours[16], others[15]):
        store.patch(*store.segment(damaged.offset), b"garbage!")
    path, position = store.segment(ours[25].offset)
    store.patch(path, position + OFF_QUEUE_OFFSET, (15).to_bytes(8, "big"))
    done = rmq("recover", store.root, "--output", tmp_path / "out", "--apply", "--json")
    assert done.exit_code == 0, done.stderr
    made = strict.carve(tmp_path / "out")
    assert [made[one.offset].raw for one in ours if one is not ours[16]] == [
        one.placed.data for one in ours if one is not ours[16]
    ]


def test_two_records_whose_topic_got_the_same_wrong_letter(tmp_path: Path) -> None:
    """41807: where the log has room between them they were a queue, and units of their own queue blank."""
    store = HandmadeStore()
    for number in range(60):
        store.put("Orders", b"body %d" % number)
    store.write(tmp_path / "store")
    for one in (store.stored[20], store.stored[50]):
        path, position = store.segment(one.offset)
        store.patch(path, store.read(path).index(b"Orders", position), b"Orderz")
    for one in store.stored[22:48]:
        store.patch(*store.segment(one.offset), bytes(one.size))
    done = rmq("recover", store.root, "--output", tmp_path / "out", "--apply", "--json")
    assert done.exit_code == 0, done.stderr
    restored = [one for row in json.loads(done.stdout)["rows"] for one in row.get("restored", ())]
    assert [(one["topic"], one["queue_offset"]) for one in restored] == [("Orders", 20), ("Orders", 50)]
    assert rmq("recover", tmp_path / "out", "--output", tmp_path / "again").exit_code == 0


def test_nobody_misses_what_lay_in_front_of_a_record_with_a_wrong_letter(tmp_path: Path) -> None:
    """41780: a tombstone of that topic took the room of a record whose own queue is gone."""
    store = HandmadeStore()
    store.put("Gone", b"body of a queue that is gone")
    for number in range(20):
        store.put("Orders", b"body %d" % number)
    store.write(tmp_path / "store")
    shutil.rmtree(store.root / "consumequeue" / "Gone")
    store.patch(*store.segment(0), bytes(store.stored[0].size))
    path, position = store.segment(store.stored[2].offset)
    store.patch(path, store.read(path).index(b"Orders", position), b"Orde`s")
    done = rmq("recover", store.root, "--output", tmp_path / "out", "--apply", "--json")
    assert done.exit_code == 0, done.stderr
    made = strict.carve(tmp_path / "out")
    assert made[store.stored[2].offset].slot == ("Orders", 0, 1)
    assert {one.topic for one in made.values() if not one.sys_flag} == {"Orders"}


@pytest.mark.parametrize("sys_flag", [PREPARED, ROLLBACK])
def test_a_record_without_an_entry_that_states_a_queue_offset_lies(sys_flag: int, tmp_path: Path) -> None:
    """48518: no release gives it one; the plan that puts a filler there was refused."""
    store = HandmadeStore()
    for number in range(20):
        store.put("Orders", b"body %d" % number)
        if number == 9:
            store.put("Orders", b"half", sys_flag=sys_flag, queue_offset=2048)
    store.write(tmp_path / "store")
    lost = store.stored[4]
    store.patch(*store.segment(lost.offset), bytes(lost.size))
    done = rmq("recover", store.root, "--output", tmp_path / "out", "--apply", "--json")
    assert done.exit_code == 0, done.stderr
    made = strict.carve(tmp_path / "out")
    assert all(made[one.offset].raw == one.placed.data for one in store.of("Orders") if one is not lost)


def test_two_records_and_their_units_against_one_with_another_number(tmp_path: Path) -> None:
    """They were put into the queue of the one that states a wrong number, which misses what they have."""
    store = HandmadeStore()
    for number in range(3):
        store.put("Few", b"body %d" % number)
    for number in range(20):
        store.put("Orders", b"body %d" % number)
    store.write(tmp_path / "store")
    path, position = store.segment(store.stored[2].offset)
    whole = store.read(path)
    store.patch(path, position + OFF_QUEUE_ID, (1).to_bytes(4, "big"))
    done = rmq("recover", store.root, "--output", tmp_path / "out", "--apply", "--json")
    assert done.exit_code == 0, done.stderr
    assert (tmp_path / "out" / path).read_bytes() == whole


def test_a_record_with_a_wrong_queue_number_takes_no_two(tmp_path: Path) -> None:
    """It misses what a queue of two records has; these were put into its queue, which it is not in."""
    store = HandmadeStore()
    for queue_id in (1, 0, 0, 1, 1):
        store.put("Orders", b"body", queue_id=queue_id)
    store.write(tmp_path / "store")
    was = {one.offset: one.placed.data for one in store.stored}
    shutil.rmtree(store.root / "consumequeue")
    path, position = store.segment(store.of("Orders", 1)[1].offset)
    store.patch(path, position + OFF_QUEUE_ID, (9).to_bytes(4, "big"))
    assert recovered(store, tmp_path) == was


def test_a_record_alone_in_its_queue_whose_topic_and_queue_offset_lie(tmp_path: Path) -> None:
    """80408: it was the last one; its entry proves both, as the one in front leads to the record in front."""
    store = HandmadeStore()
    for number in range(20):
        store.put("Orders", b"body %d" % number)
    store.write(tmp_path / "store")
    was = {one.offset: one.placed.data for one in store.stored}
    path, position = store.segment(store.stored[-1].offset)
    at = store.read(path, position).index(b"Orders")
    store.patch(path, position + at, b"Ordevs")
    store.patch(path, position + OFF_QUEUE_OFFSET, (18).to_bytes(8, "big"))
    assert recovered(store, tmp_path) == was


@pytest.mark.share
@pytest.mark.parametrize("wrong", [10, 11, 23])
def test_of_two_records_with_one_queue_offset_nothing_tells_the_wrong_one(wrong: int, tmp_path: Path) -> None:
    """An intact one was moved, or lost behind the end of the other queue, and the plan did not say so."""
    store = without_entries(tmp_path, [0, 1] * 12, {wrong: 1 - wrong % 2})
    done = rmq("recover", store.root, "--json")
    first, second = store.stored[wrong // 2 * 2 : wrong // 2 * 2 + 2]
    summary = json.loads(done.stdout)["summary"]
    row = {"topic": "Orders", "queue_id": 1 - wrong % 2, "queue_offset": wrong // 2}
    assert summary["undecided"] == [{**row, "physical_offsets": [first.offset, second.offset]}]
    both = f"physical offsets {first.offset} and {second.offset} state the same offset of the same queue"
    where = f"the other one becomes queue offset {wrong // 2} of Orders/{wrong % 2}"
    assert summary["notes"][0].startswith(f"the records at {both}, and nothing tells which of them is wrong")
    assert summary["notes"][0].endswith(where)
    assert (summary["checked"]["proven"], summary["lost"]["messages"]) == (True, 0)
    applied = rmq("recover", store.root, "--output", tmp_path / "out", "--apply")
    assert applied.exit_code == 1  # the wrong one may have stayed
    assert (
        f"Orders/{1 - wrong % 2} {wrong // 2}: the one at physical offset {first.offset} " in applied.stdout
    )
    assert rmq("recover", tmp_path / "out").exit_code == 0


def test_few_large_records_copied_over_many_small_ones(tmp_path: Path) -> None:
    """82200: more was missing than lies there now, so the queue counted as one that skips queue offsets."""
    store = HandmadeStore()
    while not store.inside(2):
        store.put("Orders", b"small")
    while not store.inside(4):
        store.put("Orders", bytes(1839))
    store.write(tmp_path / "store")
    few, many = store.inside(3), store.inside(1)
    assert len(few) < len(many)
    path, _ = store.segment(few[0].offset)
    store.patch(*store.segment(many[0].offset), store.read(path))
    done = rmq("recover", store.root, "--output", tmp_path / "out", "--apply", "--json")
    assert done.exit_code == 0, done.stderr
    assert json.loads(done.stdout)["summary"]["lost"]["messages"] == len(many)
    assert {one.offset for one in store.stored if one not in many} <= strict.carve(tmp_path / "out").keys()


def test_an_entry_in_front_of_all_records_of_a_light_queue_is_no_later_one(tmp_path: Path) -> None:
    """110248: a foreign file at a later place of the queue moved all of it behind the lost record's entry."""
    golden = open_golden("b533-lmq", tmp_path)
    queues = golden.path / "consumequeue"
    light = queues / "%LMQ%two/0"

    def entries(root: Path) -> dict[int, int]:
        return {at[3]: one.offset for at, one in strict.entries(root).items() if at[1] == "%LMQ%two"}

    before = entries(golden.path)
    (light / f"{0:020d}").unlink()
    shutil.copy(queues / f"TopicParent/1/{0:020d}", light / f"{200:020d}")
    segment = golden.path / f"commitlog/{0:020d}"
    size = segment.stat().st_size
    head = (size - 8).to_bytes(4, "big") + BLANK_MAGIC_CODE.to_bytes(4, "big", signed=True)
    with segment.open("r+b") as file:
        file.write(head)
    conf = ("--store-config", golden.config_path)
    done = rmq("recover", golden.path, "--output", tmp_path / "out", "--apply", *conf)
    assert done.exit_code == 0, done.stderr
    assert entries(tmp_path / "out") == before


def test_a_record_that_states_positions_gets_them_before_one_that_states_nothing(tmp_path: Path) -> None:
    """120340: without entries the first broken records got the positions that later ones state."""
    golden = open_golden("v498-lmq", tmp_path)
    stating, silent = (34317, 34618), (33307, 33625)
    first = min(silent)
    base, segment = next(
        (base, data) for base, data in strict.segments(golden.path) if base <= first < base + len(data)
    )
    broken = bytearray(segment)
    for at in (*silent, *stating):
        broken[at - base + OFF_BODY_LENGTH + 4] ^= 1
    (golden.path / f"commitlog/{base:020d}").write_bytes(broken)
    for path in golden.path.glob("consumequeue/*/*/*"):
        data = bytearray(path.read_bytes())
        for at in range(0, len(data), 20):
            if int.from_bytes(data[at : at + 8], "big") >= first:
                data[at : at + 20] = bytes(20)
        path.write_bytes(data)
    assert not strict.carve(golden.path).keys() & {*stating, *silent}
    conf = ("--store-config", golden.config_path)
    done = rmq("recover", golden.path, "--output", tmp_path / "out", "--apply", *conf)
    assert done.exit_code == 0, done.stderr
    after = strict.carve(tmp_path / "out")
    assert all(b"INNER_MULTI_QUEUE_OFFSET" in after[at].raw for at in stating)
    assert not any(b"INNER_MULTI_QUEUE_OFFSET" in after[at].raw for at in silent)


def test_a_record_with_a_queue_below_zero_is_not_kept_as_it_states(tmp_path: Path) -> None:
    """240457: its queues are in RocksDB; the plan put it into its queue, and the proof held it for intact."""
    made = make(240457, tmp_path)
    damaged = [one for one in strict.carve(made.root).values() if one.queue_id < 0]
    assert damaged
    done = rmq("recover", made.root, "--output", tmp_path / "out", "--apply", "--store-config", made.conf)
    assert done.exit_code == 0, done.stderr
    after = strict.carve(tmp_path / "out")
    assert all(after[one.offset].queue_id >= 0 for one in damaged if one.offset in after)


def test_a_lone_record_whose_queue_has_its_entry_a_bit_away(tmp_path: Path) -> None:
    """240549: 4 had become 0; it was kept there, and the next plan was to take it out."""
    store = HandmadeStore()
    for number in range(20):
        store.put("Late" if number % 3 == 0 else "Orders", b"body %d" % number)
    store.write(tmp_path / "store")
    late = store.of("Late")
    for one in late:
        path, position = store.segment(one.offset)
        if one is late[4]:
            store.patch(path, position + OFF_QUEUE_OFFSET, (0).to_bytes(8, "big"))
        else:
            store.patch(path, position, bytes(one.size))
    after = recovered(store, tmp_path)
    raw = after[late[4].offset]
    assert int.from_bytes(raw[OFF_QUEUE_OFFSET : OFF_QUEUE_OFFSET + 8], "big") == 4
    again = rmq("recover", tmp_path / "out", "--json")
    assert again.exit_code == 0, again.stderr
    assert not json.loads(again.stdout)["rows"]


def test_a_lonely_record_is_of_the_queue_that_finds_no_room_for_it(tmp_path: Path) -> None:
    """500272: each queue alone had room for all that it misses there, both of them had not."""
    store = HandmadeStore()
    for number in range(120):
        store.put("Orders", b"body %03d" % number, queue_id=number % 2)
    store.write(tmp_path / "store")
    for file in (store.root / "commitlog").iterdir():
        if int(file.name) < 2 * store.log.segment_size:
            file.unlink()
    shutil.rmtree(store.root / "consumequeue")
    middle = next(number for number, one in enumerate(store.stored) if one.offset > 14000)
    lonely = store.stored[middle]
    for number in range(middle - 2, middle + 4):
        path, position = store.segment(store.stored[number].offset)
        lies = b"Orders" if number == middle else b"body"
        at = store.read(path).index(lies, position)
        store.patch(path, at, bytes([lies[0] + 1]) + lies[1:])
    assert recovered(store, tmp_path)[lonely.offset] == lonely.placed.data
    again = json.loads(rmq("recover", tmp_path / "out", "--json").stdout)
    assert again["summary"]["changes"] == 0


@pytest.mark.parametrize("others", [10, 11])
def test_a_last_record_that_skips_what_other_records_leave_no_room_for(others: int, tmp_path: Path) -> None:
    """660071: 9 had become 11, and broken records of the other queue had room for 9 and 10, so it was kept.

    The next plan was to take it out. Where the other queue goes on with 11, its queue number may as well lie.
    """
    store = HandmadeStore()
    for number in range(others):
        if number < 9:
            store.put("Orders", b"body %d" % number, queue_id=2)
        store.put("Orders", b"another %d" % number, queue_id=3)
    last = store.put("Orders", b"the last", queue_id=2)
    store.write(tmp_path / "store")
    shutil.rmtree(store.root / "consumequeue")
    path, position = store.segment(last.offset)
    store.patch(path, position + OFF_QUEUE_OFFSET, (11).to_bytes(8, "big"))
    for one in store.of("Orders", 3)[8:]:
        path, position = store.segment(one.offset)
        store.patch(path, store.read(path).index(b"another", position), b"?")
    done = rmq("recover", store.root, "--output", tmp_path / "out", "--apply", "--json")
    said = [one["physical_offsets"] for one in json.loads(done.stdout)["summary"]["undecided"]]
    assert (done.exit_code, said) == ((1, [[last.offset]]) if others == 11 else (0, []))
    assert strict.carve(tmp_path / "out")[last.offset].slot == ("Orders", 2, 9)
    again = rmq("recover", tmp_path / "out", "--json")
    assert (again.exit_code, json.loads(again.stdout)["rows"]) == (0, [])


def test_a_rolled_back_record_with_a_bad_body_has_no_queue_offset(tmp_path: Path) -> None:
    """730398: it was given offset 0, and those that its queue had lost in front of it found no room."""
    store = HandmadeStore()
    for number in range(12):
        store.put("Orders", b"body %d" % number)
        store.put("Payments", b"body %d" % number)
    store.put("Orders", b"rolled back", sys_flag=ROLLBACK, queue_offset=0)
    for number in range(2):
        store.put("Orders", b"later %d" % number)
    store.write(tmp_path / "store")
    shutil.rmtree(store.root / "consumequeue")
    rolled_back = next(one for one in store.stored if b"rolled back" in one.placed.data)
    path, position = store.segment(rolled_back.offset)
    store.patch(path, store.read(path).index(b"rolled back", position), b"R")
    store.patch(path, 0, bytes(store.of("Payments")[-1].offset))
    after = recovered(store, tmp_path)
    slots = [one for one in strict.carve(tmp_path / "out").values() if one.topic == "Orders"]
    assert sorted(one.queue_offset for one in slots if one.placed) == list(range(14))
    assert all(after[one.offset] == one.placed.data for one in store.of("Orders")[-2:])
