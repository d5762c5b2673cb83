"""Found once by the generator, as smallest stores: `recover`: queues and their entries."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING

import pytest

from fixtures import open_golden, strict
from fixtures.compound import make
from fixtures.handmade import plain_unit
from fixtures.stores import HandmadeStore, healthy_store
from formats.tags_code import SCHEDULE_TOPIC, tags_hash
from rmqtool.scan.fields import (
    OFF_PHYSICAL_OFFSET,
    OFF_QUEUE_ID,
    OFF_QUEUE_OFFSET,
    OFF_STORE_TIMESTAMP,
    OFF_SYS_FLAG,
)
from tests.helpers import rmq
from tests.laws.stores import orders, recovered, without_entries

if TYPE_CHECKING:
    from pathlib import Path


_LISTED = 33994
"""a record of seed 230025 of which damage took a part of the list of queue offsets"""


def test_units_of_expired_messages_stay_where_they_are_in_order(tmp_path: Path) -> None:
    """A flipped bit in one of them: it becomes a blank unit, the others stay."""
    store = orders(tmp_path / "store", 90)
    store.remove("commitlog/00000000000000000000")
    path = "consumequeue/Orders/0/00000000000000000000"
    before = store.read(path)
    store.patch(path, 3 * 20, (5).to_bytes(8, "big"))
    done = rmq("recover", store.root, "--output", tmp_path / "out", "--apply", "--json")
    assert done.exit_code in (0, 1), done.stderr
    after = (tmp_path / "out" / path).read_bytes()
    assert after[:60] + before[60:80] + after[80:] == before
    assert '"severity":"error"' not in rmq("verify", tmp_path / "out", "--json").stdout


def test_a_queue_that_begins_late_gets_no_tombstone_where_others_leave_room_for_one(tmp_path: Path) -> None:
    """The hole has room for what is in front of that queue, until the messages that lay there are placed."""
    store = healthy_store().write(tmp_path / "store")
    store.resize("commitlog/00000000000000000000", 1865)
    rmq("recover", store.root, "--output", tmp_path / "out", "--apply")
    again = rmq("recover", tmp_path / "out", "--json")
    assert again.exit_code == 0, again.stdout
    assert '"changes":0' in again.stdout


@pytest.mark.parametrize(("release", "delayed"), [("4.9.0", True), ("4.9.8", False), ("5.3.3", True)])
def test_delayed_messages_that_recovery_dispatches(tmp_path: Path, release: str, delayed: bool) -> None:
    """Seed 10633: from 4.9.2 on delay levels are parsed behind recovery, before and since 5.0.0 in front."""
    store = HandmadeStore()
    for _ in range(3):
        store.put("SCHEDULE_TOPIC_XXXX", b"body", tags="TagA", properties={"DELAY": "1"})
    store.write(tmp_path / "store")
    was = strict.entries(store.root)
    shutil.rmtree(store.root / "consumequeue")
    (store.root / "abort").touch()
    out, conf = tmp_path / "out", tmp_path / "broker.conf"
    conf.write_text("messageDelayLevel=7s 9s\n")
    given = ("--policy", "broker", "--as-version", release, "--output", out, "--store-config", conf)
    assert rmq("recover", store.root, *given, "--apply").exit_code == 0
    records, _ = strict.walk(out)
    now = strict.entries(out)
    assert {key: (one.offset, one.size) for key, one in now.items()} == {
        key: (one.offset, one.size) for key, one in was.items()
    }
    for one in now.values():
        time = records[one.offset].store_timestamp + 7000
        assert one.tags == (time if delayed else tags_hash("TagA"))


def test_an_expired_unit_with_a_senseless_size_does_not_stay(tmp_path: Path) -> None:
    """Seed 11181: a broker takes its end for the end of what it has dispatched."""
    store = HandmadeStore()
    for number in range(3):
        store.put("Old", b"body %d" % number)
    for number in range(60):
        store.put("Orders", b"body %d" % number * 4)
    store.write(tmp_path / "store")
    store.remove(f"commitlog/{0:020d}")
    store.patch(f"consumequeue/Old/0/{0:020d}", 2 * 20 + 8, (2**25).to_bytes(4, "big"))
    out = tmp_path / "out"
    assert rmq("recover", store.root, "--output", out, "--apply").exit_code == 0
    assert rmq("doctor", out).exit_code == 0


def test_batch_queues_of_which_only_the_log_tells(tmp_path: Path) -> None:
    """17876: only topics with batch queues take inner batches; without a table a broker refuses them."""
    store = HandmadeStore()
    for number in range(30):
        store.put_batch("Batches", [b"one", b"two"])
        store.put("Orders", b"body %d" % number)
    store.write(tmp_path / "store")
    path = store.of("Batches")[0].unit[0]  # type: ignore[index]
    units = store.read(path)
    for name in ("consumequeue", "batchconsumequeue", "index", "config"):
        shutil.rmtree(store.root / name, ignore_errors=True)
    done = rmq("recover", store.root, "--output", tmp_path / "out", "--apply")
    assert done.exit_code == 0, done.stderr
    assert (tmp_path / "out" / path).read_bytes()[: len(units)].rstrip(b"\0") == units.rstrip(b"\0")
    table = json.loads((tmp_path / "out/config/topics.json").read_text())["topicConfigTable"]
    assert {topic: one["attributes"] for topic, one in table.items()} == {
        "Batches": {"queue.type": "BatchCQ"},
        "Orders": {},
    }
    assert rmq("doctor", tmp_path / "out", "--as-version", "5.3.3").exit_code == 0
    assert rmq("recover", tmp_path / "out", "--json").stdout.count('"why"') == 0


def test_what_a_start_appends_behind_an_uneven_name_lies_between_two_entries(tmp_path: Path) -> None:
    """16419, 16133: 4.9.8 and 5.3.3 leave one out and write the others one byte too far."""
    store = HandmadeStore()
    for number in range(15):
        store.put("Orders", b"body %d" % number)
    store.write(tmp_path / "store")
    for one in store.of("Orders")[10:]:
        store.patch(*(one.unit or ("", 0)), bytes(20))
    queue = store.root / "consumequeue/Orders/0"
    (path,) = queue.iterdir()
    path.rename(queue / f"{1:020d}")
    (store.root / "abort").write_bytes(b"")
    for release in ("4.9.8", "5.3.3"):
        reported = json.loads(rmq("doctor", store.root, "--json", "--as-version", release).stdout)
        assert reported["safe_to_start"] is False
        assert "DR-MISPLACED" in {one["code"] for one in reported["consequences"]}
    planned = rmq("recover", store.root, "--policy", "broker", "--as-version", "5.3.3")
    assert (planned.exit_code, "uneven name" in planned.stderr) == (2, True)
    rmq("recover", store.root, "--output", tmp_path / "out", "--apply")
    assert [one.name for one in (tmp_path / "out/consumequeue/Orders/0").iterdir()] == ["0" * 20]
    assert rmq("doctor", tmp_path / "out", "--as-version", "5.3.3").exit_code == 0


def test_a_queue_offset_for_which_no_queue_has_a_place(tmp_path: Path) -> None:
    """16073: with another queue number, too, nothing else spoke against the record."""
    store = HandmadeStore()
    for number in range(30):
        store.put("Orders", b"body %d" % number)
    store.write(tmp_path / "store")
    one = store.stored[12]
    path, position = store.segment(one.offset)
    store.patch(path, position + OFF_QUEUE_ID, (1 << 21).to_bytes(4, "big"))
    store.patch(path, position + OFF_QUEUE_OFFSET, ((1 << 60) + one.queue_offset).to_bytes(8, "big"))
    done = rmq("recover", store.root, "--output", tmp_path / "out", "--apply")
    assert done.exit_code == 0, done.stderr
    assert strict.carve(tmp_path / "out")[one.offset].slot == ("Orders", 0, one.queue_offset)
    for release in ("4.9.8", "5.3.3"):
        assert rmq("doctor", tmp_path / "out", "--as-version", release).exit_code == 0


def test_a_wrong_time_and_a_wrong_queue_offset_make_no_earlier_life(tmp_path: Path) -> None:
    """17135: what was behind was older than a record in front, and a queue went back."""
    store = HandmadeStore()
    for number in range(40):
        store.put("Orders", b"body %d" % number, queue_id=number % 2)
    store.write(tmp_path / "store")
    field = {"offset": OFF_QUEUE_OFFSET, "time": OFF_STORE_TIMESTAMP}
    for number, name, bit in ((33, "offset", 1 << 30), (34, "time", 1 << 20)):
        one = store.stored[number]
        path, position = store.segment(one.offset)
        value = {"offset": one.queue_offset, "time": one.time}[name]
        store.patch(path, position + field[name], (value ^ bit).to_bytes(8, "big"))
    path, position = store.segment(store.stored[35].offset)
    store.patch(path, position, b"garbage!")
    done = rmq("recover", store.root, "--output", tmp_path / "out", "--apply", "--json")
    assert done.exit_code == 0, done.stderr
    made = strict.carve(tmp_path / "out")
    assert {one.offset for one in store.stored} == made.keys()
    for one in store.stored[36:]:
        assert made[one.offset].raw == one.placed.data


def test_queues_that_begin_late_keep_what_they_have_in_front_of_a_hole(tmp_path: Path) -> None:
    """51147: nothing accounts for what their first records miss, and the hole had room for all of it."""
    store = HandmadeStore()
    queues = 6
    for queue in range(queues):
        store.begin_queue_at("Orders", queue, 20 + queue)
    for number in range(60):
        store.put("Orders", b"body %d" % number, queue_id=number % queues)
    store.write(tmp_path / "store")
    lost = store.stored[21:55]
    for one in lost:
        store.patch(*store.segment(one.offset), bytes(one.size))
    done = rmq("recover", store.root, "--output", tmp_path / "out", "--apply", "--json")
    assert done.exit_code == 0, done.stderr
    made = strict.carve(tmp_path / "out")
    for one in [*store.stored[:21], *store.stored[55:]]:
        assert made[one.offset].raw == one.placed.data


@pytest.mark.parametrize("entry", [None, {"perm": 6, "readQueueNums": 1, "writeQueueNums": 1}])
def test_a_table_that_lacks_the_kind_of_a_topic(entry: dict[str, int] | None, tmp_path: Path) -> None:
    """An older table, or one that 4.x wrote, and no queues: inner batches tell, their records stay."""
    store = HandmadeStore()
    for number in range(12):
        store.put_batch("Batches", [b"%d" % number] * (1 + number % 4), queue_id=1)
        store.put("Orders", b"%d" % number)
    store.write(tmp_path / "store")
    table = {"topicConfigTable": {"Orders": {"perm": 6}, **({"Batches": entry} if entry else {})}}
    (store.root / "config").mkdir(exist_ok=True)
    (store.root / "config/topics.json").write_text(json.dumps({"dataVersion": {}, **table}))
    (store.root / "config/topics.json.bak").unlink(missing_ok=True)
    for name in ("consumequeue", "batchconsumequeue"):
        shutil.rmtree(store.root / name)
    before = {at: one.raw for at, one in strict.carve(store.root).items()}
    out = tmp_path / "out"
    done = rmq("recover", store.root, "--as-version", "5.3.3", "--output", out, "--apply", "--json")
    assert done.exit_code == 0, done.stdout[-500:] + done.stderr
    assert {at: one.raw for at, one in strict.carve(out).items()} == before
    made = json.loads((out / "config/topics.json").read_text())["topicConfigTable"]
    assert made["Batches"]["attributes"] == {"queue.type": "BatchCQ"}
    assert made["Batches"]["readQueueNums"] == (1 if entry else 2)
    assert (out / "batchconsumequeue/Batches/1").is_dir()
    assert rmq("verify", out).exit_code == 0
    assert json.loads(rmq("doctor", out, "--as-version", "5.3.3", "--json").stdout)["verdict"] == "safe"
    again = rmq("recover", out, "--as-version", "5.3.3", "--json")
    assert (again.exit_code, json.loads(again.stdout)["rows"]) == (0, [])


def test_a_wrong_bit_of_the_flags_makes_no_batch(tmp_path: Path) -> None:
    store = orders(tmp_path / "store")
    for name in ("consumequeue", "config"):
        shutil.rmtree(store.root / name, ignore_errors=True)
    path, position = store.segment(store.stored[7].offset)
    store.patch(path, position + OFF_SYS_FLAG, (0x80).to_bytes(4, "big"))
    out = tmp_path / "out"
    rmq("recover", store.root, "--as-version", "5.3.3", "--output", out, "--apply")
    assert (out / "consumequeue/Orders/0").is_dir()
    assert not (out / "batchconsumequeue").exists()
    rmq("salvage", store.root / "commitlog", "--output", tmp_path / "new")
    assert "BatchCQ" not in (tmp_path / "new/config/topics.json").read_text()


def test_a_batch_with_a_wrong_queue_offset(tmp_path: Path) -> None:
    """Clients count from it: `verify` said nothing, `doctor` saw offsets given twice, `recover` left it."""
    store = HandmadeStore()
    for number in range(12):
        store.put_batch("Batches", [b"one %d" % number, b"two"])
    attributes = {"queue.type": "BatchCQ"}
    table = {"topicName": "Batches", "attributes": attributes, "readQueueNums": 1, "writeQueueNums": 1}
    store.config["topics"] = {"topicConfigTable": {"Batches": table}, "dataVersion": {"counter": 1}}
    store.write(tmp_path / "store")
    one = store.stored[5]
    path, position = store.segment(one.offset)
    whole = store.read(path)
    store.patch(path, position + OFF_QUEUE_OFFSET, (one.queue_offset + 1024).to_bytes(8, "big"))
    reported = rmq("verify", store.root, "--json")
    assert reported.exit_code == 1
    assert "BCQ-OFFSET" in reported.stdout
    found = json.loads(rmq("doctor", store.root, "--json", "--as-version", "5.3.3").stdout)
    assert (found["verdict"], found["already_damaged"]["messages"]) == ("damaged", 1)
    assert "DR-OFFSETS-TWICE" not in {one["code"] for one in found["consequences"]}
    done = rmq("recover", store.root, "--output", tmp_path / "out", "--apply", "--json")
    assert done.exit_code == 0, done.stderr
    assert (tmp_path / "out" / path).read_bytes() == whole


@pytest.mark.parametrize("kind", ["consumequeue", "batchconsumequeue"])
def test_a_queue_file_named_after_no_whole_entry(kind: str, tmp_path: Path) -> None:
    """61808: dispatching never ended at a file that has less room left than an entry takes."""
    store = HandmadeStore()
    for number in range(30):
        if kind == "consumequeue":
            store.put("Orders", b"body %d" % number)
        else:
            store.put_batch("Orders", [b"body %d" % number])
    store.write(tmp_path / "store")
    first, *others = sorted((store.root / kind / "Orders/0").iterdir())
    for one in others:
        one.unlink()
    renamed = first.rename(first.with_name(f"{1:020d}"))
    size, unit = renamed.stat().st_size, 20 if kind == "consumequeue" else 46
    with renamed.open("r+b") as file:
        file.seek(size - unit)
        file.write(bytes(unit))
    (store.root / "abort").touch()
    (store.root / "checkpoint").unlink()
    found = json.loads(rmq("doctor", store.root, "--json", "--as-version", "5.3.3").stdout)
    assert not found["safe_to_start"]
    assert rmq("recover", store.root, "--output", tmp_path / "out", "--apply").exit_code == 0
    assert json.loads(rmq("doctor", tmp_path / "out", "--json").stdout)["safe_to_start"]


@pytest.mark.parametrize("lying", [(20, 50, 59), (50, 59), (1, 59)])
def test_records_with_the_same_wrong_queue_number(lying: tuple[int, ...], tmp_path: Path) -> None:
    """The first of them was left as a queue of its own, and the last might have been the next one of that."""
    store = HandmadeStore()
    for number in range(60):
        store.put("Orders", b"body %d" % number)
    store.write(tmp_path / "store")
    was = {one.offset: one.placed.data for one in store.stored}
    shutil.rmtree(store.root / "consumequeue")
    for number in lying:
        path, position = store.segment(store.stored[number].offset)
        store.patch(path, position + OFF_QUEUE_ID, (1).to_bytes(4, "big"))
    assert recovered(store, tmp_path) == was


@pytest.mark.parametrize("displaced", [False, True])
def test_a_delayed_message_whose_level_is_no_number(displaced: bool, tmp_path: Path) -> None:
    """81609: brokers end their log at it, and a record that lacked nothing else was put right or left."""
    store = HandmadeStore()
    for number in range(30):
        store.put("Orders", b"body %d" % number)
        if number in (9, 19):
            store.put(SCHEDULE_TOPIC, b"late", queue_id=2, tags="TagS", properties={"DELAY": "3", "X": "y"})
    store.write(tmp_path / "store")
    one = store.of(SCHEDULE_TOPIC, 2)[0]
    path, position = store.segment(one.offset)
    store.patch(path, position + one.placed.data.index(b"DELAY\x013") + 7, b"\x06")
    if displaced:
        store.patch(path, position + OFF_PHYSICAL_OFFSET, b"\x08")
    done = rmq("recover", store.root, "--output", tmp_path / "out", "--apply", "--json")
    assert done.exit_code == 0, done.stderr
    lost = [one for row in json.loads(done.stdout)["rows"] for one in row.get("tombstones", ())]
    assert [(one["topic"], one["queue_offset"], one["physical_offset"]) for one in lost] == [
        (SCHEDULE_TOPIC, 0, one.offset)
    ]
    for release in ("4.9.8", "5.3.3"):
        assert rmq("doctor", tmp_path / "out", "--as-version", release).exit_code == 0


@pytest.mark.share
@pytest.mark.parametrize(
    ("queue_id", "lying", "number"), [(0, 10, 7), (0, 19, 7), (0, 20, 7), (0, 10, 1), (0, 30, 1), (1, 20, 0)]
)
def test_a_wrong_queue_number_in_a_queue_that_skips_queue_offsets(
    queue_id: int, lying: int, number: int, tmp_path: Path
) -> None:
    """Nothing was put into that queue: its entry led to another queue's record, or into a filler."""
    store = HandmadeStore()
    for at in range(40):
        if at == 20:
            store.log.queue_offsets["Orders", 0] += 1000
            for _ in range(1000):
                store.queues["Orders", 0].append(plain_unit(*strict.PRE_BLANK, 0))
        for each in (0, 1):
            store.put("Orders", b"body %d" % at, queue_id=each)
    store.write(tmp_path / "store")
    was = {one.offset: one.placed.data for one in store.stored}
    path, position = store.segment(store.of("Orders", queue_id)[lying].offset)
    store.patch(path, position + OFF_QUEUE_ID, number.to_bytes(4, "big"))
    assert recovered(store, tmp_path) == was
    assert strict.units(tmp_path / "out") == strict.units(store.root)


@pytest.mark.share
@pytest.mark.parametrize("lying", [10, 19, 20, 39])
def test_a_broken_body_in_a_queue_that_skips_queue_offsets(lying: int, tmp_path: Path) -> None:
    """A filler took its place, to which the entry led."""
    store = HandmadeStore()
    for at in range(40):
        if at == 20:
            store.log.queue_offsets["Orders", 0] += 1000
            for _ in range(1000):
                store.queues["Orders", 0].append(plain_unit(*strict.PRE_BLANK, 0))
        store.put("Orders", b"body %d" % at)
    store.write(tmp_path / "store")
    one = store.of("Orders")[lying]
    path, position = store.segment(one.offset)
    store.patch(path, position + one.placed.data.index(b"body"), b"B")
    done = rmq("recover", store.root, "--output", tmp_path / "out", "--apply", "--json")
    assert done.exit_code == 0, done.stderr
    lost = [one for row in json.loads(done.stdout)["rows"] for one in row.get("tombstones", ())]
    assert [row["queue_offset"] for row in lost] == [one.queue_offset]


@pytest.mark.parametrize(
    ("queues", "wrong"),
    [
        # the last record of queue 0 states queue 1, which cannot have it, and what is the next one of its own
        ([1, 1, 1, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 1, 1, 0, 0, 1, 0, 1, 1, 0], {6: 2, 16: 0, 24: 1}),
        # two that seem to go on in queue 0 exclude two that do; with these less is missing
        ([1, 0, 0, 0, 2, 1, 2, 1, 1, 2, 1, 1, 1, 1, 1, 1, 1, 2, 0, 0, 2], {2: 2, 11: 0, 13: 0}),
    ],
)
def test_three_wrong_queue_numbers_where_no_entries_are_left(
    queues: list[int], wrong: dict[int, int], tmp_path: Path
) -> None:
    """A whole record was left without a queue, or taken for the wrong one: the plan was refused."""
    store = without_entries(tmp_path, queues, wrong)
    done = rmq("recover", store.root, "--output", tmp_path / "out", "--apply", "--json")
    assert done.exit_code == 0, done.stderr
    was = {one.offset: one.placed.data for one in store.stored}
    assert {at: one.raw for at, one in strict.carve(tmp_path / "out").items()} == was


def test_a_whole_message_that_no_queue_takes_is_said_to_be_lost(tmp_path: Path) -> None:
    """Two queues might go on with it; it became zeros behind the end of the log, and counted nowhere."""
    store = without_entries(tmp_path, [0, 1, 2] * 8, {21: 2, 22: 3})
    summary = json.loads(rmq("recover", store.root, "--json").stdout)["summary"]
    at = store.stored[23].offset
    assert summary["lost"]["messages"] == 1
    assert any(one.startswith("1 whole message") and f"offset {at}," in one for one in summary["notes"])
    assert any(f"and {at} state the same" in one and one.endswith("is lost") for one in summary["notes"])


def test_entries_of_a_queue_that_skips_stay_beside_a_hole_that_could_explain_it(tmp_path: Path) -> None:
    """110409: with blank entries behind expired ones no broker would have found the first messages."""
    made = make(110409, tmp_path)
    conf = ("--store-config", made.conf)
    done = rmq("recover", made.root, "--output", tmp_path / "out", "--apply", "--json", *conf)
    assert done.exit_code == 1
    (left,) = json.loads(done.stdout)["summary"]["checked"]["remains"]
    assert "queue offsets from 12 on, though messages in the log have 3 of them, up to 14" in left

    def entries(root: Path) -> dict[int, tuple[int, int]]:
        there = strict.entries(root).items()
        return {at[3]: (one.offset, one.size) for at, one in there if at[1:3] == ("Payments", 1)}

    assert entries(tmp_path / "out") == entries(made.root)
    after = strict.carve(tmp_path / "out")
    assert [after[at].queue_offset for at in (16585, 18923, 22119, 24103, 27207)] == [4, 8, 9, 10, 11]


def test_blank_entries_are_held_against_all_records(
    tmp_path: Path,
) -> None:
    """110409 without entries that tell that a queue skips queue offsets, so that they are put in.

    The minimum was searched through them; what they hid lay in segments that no start reads.
    """
    made = make(110409, tmp_path)
    for queue in ("1", "43"):
        shutil.rmtree(made.root / "consumequeue/Payments" / queue)
    conf = ("--store-config", made.conf)
    done = rmq("recover", made.root, "--output", tmp_path / "out", "--apply", "--json", *conf)
    assert done.exit_code == 1
    checked = json.loads(done.stdout)["summary"]["checked"]
    assert [one for one in checked["problems"] if "DR-NOT-REBUILT" in one], checked


def test_entries_of_a_copied_queue_do_not_keep_a_broken_list_of_further_queues(tmp_path: Path) -> None:
    """671321: the copy goes, and so its entry that led to the record, which was taken for an intact one."""
    golden = open_golden("v533-lmq", tmp_path)
    shutil.copytree(golden.path / "consumequeue/TopicLmq/0", golden.path / "consumequeue/TopicLmq/10")
    file = golden.path / f"commitlog/{0:020d}"
    data = file.read_bytes()
    at = data.index(b"INNER_MULTI_DISPATCH", 1650)
    file.write_bytes(data[: at + 11] + b"[" + data[at + 12 :])
    conf = ("--store-config", golden.config_path)
    done = rmq("recover", golden.path, "--output", tmp_path / "out", "--apply", *conf)
    assert done.exit_code == 0, done.stderr
    assert strict.carve(tmp_path / "out")[1650].properties["INNER_MULTI_DISPATCH"] == "%LMQ%alpha,%LMQ%beta"


def test_a_broken_list_of_further_queues_is_made_again_from_their_entries(tmp_path: Path) -> None:
    """230025: its entry became a blank one, behind which a start of 5.3.3 did not find the first messages."""
    made = make(230025, tmp_path)
    conf = ("--store-config", made.conf)
    before = strict.carve(made.root)[_LISTED]
    assert "INNER_MULTI_QUEUE_OFFSET" not in before.properties
    done = rmq("recover", made.root, "--output", tmp_path / "out", "--apply", "--json", *conf)
    assert done.exit_code == 0, done.stderr
    after = strict.carve(tmp_path / "out")[_LISTED]
    assert after.properties == before.properties | {"INNER_MULTI_QUEUE_OFFSET": "52"}
    assert (after.size, after.body) == (before.size, before.body)
    entries_after = strict.entries(tmp_path / "out")
    assert entries_after["consumequeue", "%LMQ%alpha", 0, 52].offset == _LISTED
    for release in ("4.9.8", "5.3.3"):
        asked = rmq("doctor", tmp_path / "out", "--as-version", release, *conf)
        assert asked.exit_code == 0, asked.stdout
