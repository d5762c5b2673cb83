"""What the generator found from seed 11400 on, each as the smallest store that shows it."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING

import pytest

from fixtures import strict
from fixtures.compound import Compound, make
from fixtures.goldens import Golden, open_golden
from fixtures.handmade import plain_unit
from fixtures.stores import PREPARED, ROLLBACK, HandmadeStore, healthy_store
from formats.commitlog import BLANK_MAGIC_CODE
from formats.tags_code import SCHEDULE_TOPIC
from rmqtool.repair.prove.evidence import Evidence
from rmqtool.repair.prove.records import record_at
from rmqtool.scan.engine import choose_kernels
from rmqtool.scan.fields import (
    OFF_BODY_LENGTH,
    OFF_PHYSICAL_OFFSET,
    OFF_QUEUE_ID,
    OFF_QUEUE_OFFSET,
    OFF_STORE_TIMESTAMP,
)
from rmqtool.store.access import Access
from rmqtool.store.kinds import CONFIG_NAMES
from rmqtool.store.layout import Store
from tests.helpers import rmq
from tests.laws.truth import kept

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def recovered(store: HandmadeStore, tmp_path: Path) -> dict[int, bytes]:
    """The records that `recover` leaves, by physical offset."""
    done = rmq("recover", store.root, "--output", tmp_path / "out", "--apply", "--json")
    assert done.exit_code == 0, done.stderr
    return {at: one.raw for at, one in strict.carve(tmp_path / "out").items()}


def test_an_index_file_cut_inside_of_its_items_by_the_settings(tmp_path: Path) -> None:
    """11436: with the sizes of a broker.conf its geometry is known although its length says nothing."""
    store = HandmadeStore()
    for number in range(20):
        store.put("Orders", b"body", keys=f"k{number}")
    store.write(tmp_path / "store")
    path = next(iter(store.root.glob("index/*"))).relative_to(store.root)
    store.resize(str(path), store.index.position(7) + 3)
    conf = tmp_path / "broker.conf"
    conf.write_text(f"maxHashSlotNum={store.index.slots}\nmaxIndexNum={store.index.capacity}\n")
    reported = rmq("query-key", store.root, "Orders", "k1", "--json", "--store-config", conf)
    assert reported.exit_code in (0, 3), reported.stderr
    assert reported.stdout.count('"type":"message"') == 1


def test_a_directory_whose_name_is_no_topic_speaks_for_no_lost_message(tmp_path: Path) -> None:
    """11443: a copy that sorts in front of the queue whose messages are all lost."""
    store = HandmadeStore()
    for number in range(20):
        store.put("Late" if number in (5, 6) else "Orders", b"body %d" % number)
    store.write(tmp_path / "store")
    for one in store.of("Late"):
        store.patch(*store.segment(one.offset), bytes(one.size))
    shutil.copytree(store.root / "consumequeue/Late", store.root / "consumequeue/0Late~")
    done = rmq("recover", store.root, "--output", tmp_path / "out", "--apply", "--json")
    assert (tmp_path / "out").is_dir(), done.stderr
    lost = [one for row in json.loads(done.stdout)["rows"] for one in row.get("tombstones", ())]
    assert {one["topic"] for one in lost} == {"Late"}


def test_a_dump_of_a_record_whose_topic_is_no_text_is_one_of_damage(tmp_path: Path) -> None:
    """11641: the record is listed, and nothing said that it is not what was written."""
    store = healthy_store().write(tmp_path / "store")
    path, position = store.segment(store.stored[9].offset)
    raw = store.read(path)
    store.patch(path, raw.index(store.stored[9].topic.encode(), position), b"\xff")
    reported = rmq("dump", store.root, "--format", "ndjson")
    assert reported.exit_code == 1
    assert '"torn":1' in reported.stdout.splitlines()[-1]


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


def test_a_place_that_a_used_and_an_unused_index_file_know_counts_once(tmp_path: Path) -> None:
    store = HandmadeStore()
    store.put("Orders", b"first", keys="first")
    for number in range(40):
        store.put("Orders", b"body", keys=f"k{number}a k{number}b")
    store.write(tmp_path / "store")
    number, shared = next(
        (number, one) for number, one in enumerate(store.stored) if len({path for path, _ in one.items}) > 1
    )
    store.patch(*store.segment(shared.offset), bytes(shared.size))
    unused = shared.items[0][0]
    store.resize(unused, len(store.read(unused)) - 7)
    keys = tmp_path / "keys"
    keys.write_text(
        "".join(f"{key}\n" for key in (f"0A000001{number:024X}", f"k{number - 1}a", f"k{number - 1}b"))
    )
    conf = tmp_path / "broker.conf"
    conf.write_text(f"maxHashSlotNum={store.index.slots}\nmaxIndexNum={store.index.capacity}\n")
    asked = ("--keys-file", keys, "--json", "--store-config", conf)
    reported = json.loads(rmq("query-key", store.root, "Orders", *asked).stdout)["summary"]
    assert unused in reported["index_files_not_used"]
    assert reported["index_items_without_record"] == 1


def test_a_topic_table_that_nobody_can_read_beside_batch_queues(tmp_path: Path) -> None:
    """11958: without a table 5.x takes them for queues of the other kind, and does not start."""
    store = healthy_store().write(tmp_path / "store")
    store.add("config/topics.json", b"[" * 60)
    rmq("recover", store.root, "--output", tmp_path / "out", "--apply", "--as-version", "5.3.3")
    reported = json.loads(rmq("doctor", tmp_path / "out", "--json", "--as-version", "5.3.3").stdout)
    assert reported["verdict"] == "safe"
    assert "Batches" in (tmp_path / "out/config/topics.json").read_text()


def test_an_empty_file_of_the_timer_log_that_is_not_its_last(tmp_path: Path) -> None:
    """11995: behind another refusal `recover` had left this one."""
    golden = open_golden("b533-timer", tmp_path)
    files = sorted((golden.path / "timerlog").iterdir())
    assert len(files) > 1
    files[-2].write_bytes(b"")
    (golden.path / "commitlog/more").write_bytes(b"x")
    conf = ("--store-config", golden.config_path)
    rmq("recover", golden.path, "--output", tmp_path / "out", "--apply", *conf)
    assert files[-1].stat().st_size == (tmp_path / "out/timerlog" / files[-2].name).stat().st_size


@pytest.mark.parametrize("entries", ["", "3:5"])
def test_a_table_that_one_release_loads_and_another_refuses(tmp_path: Path, entries: str) -> None:
    """12088: 4.9.8 skips `dataVersion`, where 5.x refuses a number."""
    store = HandmadeStore()
    store.put("Orders", b"body")
    store.write(tmp_path / "store")
    store.add("config/delayOffset.json", b'{"offsetTable":{%s},"dataVersion":7}' % entries.encode())
    store.add("config/delayOffset.json.bak", store.read("config/delayOffset.json"))
    rmq("recover", store.root, "--output", tmp_path / "out", "--apply", "--as-version", "4.9.8")
    for release in ("4.9.8", "5.3.3"):
        reported = json.loads(rmq("doctor", tmp_path / "out", "--json", "--as-version", release).stdout)
        assert reported["verdict"] == "safe", reported["consequences"]
    table = tmp_path / "out/config/delayOffset.json"
    assert not entries or json.loads(table.read_text())["offsetTable"] == {"3": 5}


@pytest.mark.parametrize("said", [False, True])
def test_a_database_that_is_moved_out_leaves_queue_files(tmp_path: Path, said: bool) -> None:
    """12167: unless `storeType` says that the broker reads its queues from RocksDB, it may read files."""
    store = HandmadeStore()
    for number in range(20):
        store.put("Orders", b"body %d" % number)
    store.write(tmp_path / "store")
    for name in store.files():
        if name.startswith("consumequeue"):
            store.remove(name)
    store.add("consumequeue/CURRENT", b"MANIFEST-000005\n")
    one = store.stored[7]
    store.patch(*store.segment(one.offset), bytes(one.size))
    conf = tmp_path / "broker.conf"
    conf.write_text("storeType=defaultRocksDB\n" if said else "")
    given = ("--store-config", conf, "--json")
    rmq("recover", store.root, "--output", tmp_path / "out", "--apply", *given)
    assert (tmp_path / "out/abort").exists()
    assert any((tmp_path / "out/consumequeue/Orders").glob("*/*")) != said
    assert json.loads(rmq("recover", tmp_path / "out", *given).stdout)["summary"]["changes"] == 0
    for release in () if said else ("4.9.8", "5.3.3"):
        reported = json.loads(rmq("doctor", tmp_path / "out", *given, "--as-version", release).stdout)
        assert reported["verdict"] == "safe"


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


def test_a_timer_wheel_with_bytes_behind_its_last_slot(tmp_path: Path) -> None:
    """13484: it was moved out, and timers in front of the end of the timer log were lost with it."""
    golden = open_golden("b533-timer", tmp_path)
    wheel = golden.path / "timerwheel"
    was = wheel.read_bytes()
    with wheel.open("ab") as file:
        file.write(b"\x01" * 4096)
    given = ("--output", tmp_path / "out", "--apply", "--store-config", golden.config_path)
    done = rmq("recover", golden.path, *given)
    assert done.exit_code == 0, done.stderr
    assert (tmp_path / "out/timerwheel").read_bytes() == was


def test_a_table_of_which_only_a_spoiled_backup_is_left(tmp_path: Path) -> None:
    """13694: one release and then another asked for its removal, which ended in exit 4."""
    store = HandmadeStore()
    store.put("Orders", b"body")
    store.write(tmp_path / "store")
    if "config/topics.json" in store.files():
        store.remove("config/topics.json")
    store.add("config/topics.json.bak", bytes(range(128, 228)))
    done = rmq("recover", store.root, "--output", tmp_path / "out", "--apply")
    assert done.exit_code == 0, done.stderr
    assert not (tmp_path / "out/config/topics.json.bak").exists()


def test_a_light_queue_over_a_plain_one_gives_no_message_of_it(tmp_path: Path) -> None:
    """13761: its messages feed further queues, but not this one, and not at these queue offsets."""
    golden = open_golden("b533-lmq", tmp_path)
    queues = golden.path / "consumequeue"
    file = "0/00000000000000000000"
    asked = ("--json", "--store-config", golden.config_path)
    for topic, last in (("TopicParent", 1), ("%LMQ%one", 0)):
        for slot in range(3):
            assert rmq("query-offset", golden.path, topic, last, slot, *asked).exit_code == 0
        assert rmq("query-time", golden.path, topic, last, 0, *asked).exit_code == 0
    shutil.copy(queues / "%LMQ%three" / file, queues / "TopicParent/1/00000000000000000000")
    shutil.copy(queues / "%LMQ%three" / file, queues / "%LMQ%one" / file)
    for topic, number in (("TopicParent", 1), ("%LMQ%one", 0)):
        done = rmq("query-offset", golden.path, topic, number, 0, "-n", "9", *asked)
        assert done.exit_code == 3, topic
        assert "lead to messages of other queue" in done.stdout
        assert rmq("query-time", golden.path, topic, number, 0, *asked).exit_code == 3


def test_a_record_that_lost_its_key_and_its_body_is_damage_where_the_index_leads_to_it(
    tmp_path: Path,
) -> None:
    """16169: the index knew the key there, and the answer was "not found", complete."""
    store = HandmadeStore()
    for number in range(20):
        store.put("Orders", b"body", keys=f"k{number}")
    store.write(tmp_path / "store")
    one = store.stored[7]
    path, position = store.segment(one.offset)
    at = store.read(path).index(b"k7", position)
    store.patch(path, at, b"q7")
    store.patch(path, position + 8, b"\x7f")
    for source in ("index", "auto"):
        reported = rmq("query-key", store.root, "Orders", "k7", "--json", "--source", source)
        assert reported.exit_code == 3, source
        assert f'"physical_offset":{one.offset}' in reported.stdout


def test_segments_that_lost_their_first_pages_are_read_by_key(tmp_path: Path) -> None:
    """16283: a power cut. The log was taken for empty, and every key for one that nobody has."""
    store = HandmadeStore()
    for number in range(60):
        store.put("Orders", b"body" * 30, keys=f"k{number}")
    store.write(tmp_path / "store")
    shutil.rmtree(store.root / "index")
    segments = sorted((store.root / "commitlog").iterdir())
    for path in segments:
        store.patch(f"commitlog/{path.name}", 0, bytes(512))
    assert len(segments) > 1
    for key in ("k4", "k59"):
        reported = rmq("query-key", store.root, "Orders", key, "--json")
        assert reported.exit_code == 3
        assert '"type":"message"' in reported.stdout, key


@pytest.mark.parametrize("name", sorted(CONFIG_NAMES))
def test_a_table_that_gives_way_to_its_backup_is_said_with_what_that_means(tmp_path: Path, name: str) -> None:
    store = HandmadeStore()
    store.put("Orders", b"body")
    store.write(tmp_path / "store")
    store.add(f"config/{name}", b"[" * 60)
    reported = json.loads(rmq("recover", store.root, "--json").stdout)
    messages = [row["message"] for row in reported["rows"] if row["path"] == f"config/{name}"]
    assert messages
    assert not any(one.rstrip().endswith(":") for one in messages)


def test_a_message_whose_slot_a_zero_entry_takes_is_never_built(tmp_path: Path) -> None:
    """14531: 4.9.8 takes the first zero entry of an empty last file for a message."""
    store = HandmadeStore()
    last = store.put("Orders", b"body")
    while last.queue_offset == 0 or store.queues["Orders", 0].place(last.queue_offset)[1]:
        last = store.put("Orders", b"body")
    store.put("Payments", b"body")
    store.write(tmp_path / "store")
    path = store.queues["Orders", 0].place(last.queue_offset)[0]
    store.patch(path, 0, bytes(len(store.read(path))))
    (store.root / "abort").unlink(missing_ok=True)
    reported = json.loads(rmq("doctor", store.root, "--json", "--as-version", "4.9.8").stdout)
    codes = {one["code"] for one in reported["consequences"]}
    assert "DR-PHANTOM-UNIT" in codes
    assert "DR-NOT-REBUILT" in codes
    assert reported["verdict"] == "unsafe"


def test_an_entry_that_is_cut_is_a_lost_message_wherever_the_log_ends(tmp_path: Path) -> None:
    """17293: a copy of an older segment in place of the last has records, but none that recovery takes."""
    store = HandmadeStore()
    while len(store.log.files()) < 4 or store.stored[-1].offset % 4096 < 900:
        store.put("Orders", b"body" * 20)
    store.write(tmp_path / "store")
    segments = sorted((store.root / "commitlog").iterdir())
    shutil.copy(segments[1], segments[-1])
    last = store.queues["Orders", 0].place(store.stored[-1].queue_offset)[0]
    store.resize(last, len(store.read(last)) + 20)
    lost = [one for one in store.stored if one.offset >= int(segments[-1].name)]
    for one in (lost[0], lost[-1]):
        reported = rmq("query-offset", store.root, "Orders", 0, one.queue_offset, "--json")
        assert reported.exit_code == 3, reported.stdout


@pytest.mark.parametrize("cut", [4096, 8192])
def test_an_end_that_only_the_index_knows_in_front_of_stale_records_or_of_none(
    cut: int, tmp_path: Path
) -> None:
    """17663, 20015: nobody but the index tells of messages behind the end that a start gives the log."""
    store = HandmadeStore()
    for number in range(60):
        store.put("Orders", b"body %d" % number * 4, keys=f"k{number}")
    store.write(tmp_path / "store")
    behind = [one for one in store.stored if one.offset >= cut]
    for one in behind:
        store.patch(*(one.unit or ("", 0)), bytes(20))
    for path in sorted((store.root / "commitlog").iterdir()):
        if int(path.name) < cut and cut == 8192:  # as retention leaves it
            path.unlink()
        elif int(path.name) >= cut and cut == 8192:
            path.write_bytes(bytes(4096))
        elif int(path.name) == cut:
            raw = store.read("commitlog/00000000000000000000")
            path.write_bytes(bytes(1024) + raw[1024:])
        elif int(path.name) > cut:
            path.unlink()
    (store.root / "abort").write_bytes(b"")
    for release in ("4.9.8", "5.3.3"):
        reported = rmq("doctor", store.root, "--json", "--as-version", release)
        assert reported.exit_code == 1
        assert "DR-END-LOST" in reported.stdout


def test_a_committed_offset_that_is_a_truth_value(tmp_path: Path) -> None:
    """17703: from 5.0 on fastjson takes it for 1 or 0."""
    store = healthy_store().write(tmp_path / "store")
    table = {"offsetTable": {"Orders@G": {"0": True, "1": False, "2": 7}}}
    store.add("config/consumerOffset.json", json.dumps(table).encode())
    asked = rmq("sql", store.root, "select committed_offset from consumer_offsets", "--format", "ndjson")
    assert [row["committed_offset"] for row in asked.rows[:-1]] == [1, 0, 7]


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


@pytest.mark.parametrize(
    ("release", "table", "text", "kept"),
    [
        ("4.9.8", "delayOffset", '{"topicConfigTable":[],"dataVersion":7}', None),
        ("5.3.3", "consumerOffset", '{"offsetTable":{"Orders@G":{"0":7,"1":true}}}', {"0": 7, "1": 1}),
        ("4.9.8", "consumerOffset", '{"offsetTable":{"A@G":{"0":7}},"groupTopicMap":7}', {"0": 7}),
    ],
)
def test_a_table_without_backup_that_another_release_forgets(
    tmp_path: Path, release: str, table: str, text: str, kept: dict[str, int] | None
) -> None:
    """17286, 17703, 17809: where the store's release reads nothing more of it, both get what they read."""
    store = HandmadeStore()
    store.put("Orders", b"body")
    store.write(tmp_path / "store")
    for name in (f"config/{table}.json", f"config/{table}.json.bak"):
        (store.root / name).unlink(missing_ok=True)
    store.add(f"config/{table}.json", text.encode())
    done = rmq("recover", store.root, "--output", tmp_path / "out", "--apply", "--as-version", release)
    assert done.exit_code == 0, done.stderr
    for other in ("4.9.8", "5.3.3"):
        reported = json.loads(rmq("doctor", tmp_path / "out", "--json", "--as-version", other).stdout)
        assert reported["verdict"] == "safe", reported["consequences"]
    path = tmp_path / f"out/config/{table}.json"
    assert path.exists() == (kept is not None)
    assert kept is None or next(iter(json.loads(path.read_text())["offsetTable"].values())) == kept
    assert rmq("recover", tmp_path / "out", "--as-version", release, "--json").stdout.count('"why"') == 0


@pytest.mark.parametrize("release", ["4.9.8", "5.3.3"])
def test_entries_of_a_light_queue_that_go_with_its_recovery_are_a_loss(tmp_path: Path, release: str) -> None:
    """17373: in front of them lies a copy of their file, so that the start sees no more than that."""
    golden = open_golden("v533-lmq", tmp_path)
    light = golden.path / "consumequeue/%LMQ%alpha/0"
    shutil.copyfile(max(light.iterdir()), min(light.iterdir()))
    conf = ("--store-config", golden.config_path)
    reported = json.loads(rmq("doctor", golden.path, "--json", "--as-version", release, *conf).stdout)
    assert reported["safe_to_start"] is False
    assert "DR-OFFSETS-TWICE" in {one["code"] for one in reported["consequences"]}


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


def test_an_index_file_that_is_cut_in_its_header_keeps_what_is_left_of_it(tmp_path: Path) -> None:
    """16236: a broker maps it at its full length, and its first item counts from the time in the header."""
    store = HandmadeStore()
    for number in range(12):
        store.put("Orders", b"body", keys=f"k{number}")
    store.write(tmp_path / "store")
    path, *rest = (one.relative_to(store.root) for one in sorted((store.root / "index").iterdir()))
    for one in rest:
        (store.root / one).unlink()
    store.resize(str(path), 3)
    store.patch(str(path), 0, b"\0\0\1")
    (store.root / "abort").write_bytes(b"")
    conf = tmp_path / "broker.conf"
    conf.write_text(f"maxHashSlotNum={store.index.slots}\nmaxIndexNum={store.index.capacity}\n")
    given = ("--policy", "broker", "--as-version", "5.3.3", "--output", tmp_path / "out", "--apply")
    done = rmq("recover", store.root, *given, "--store-config", conf)
    assert done.exit_code == 0, done.stderr
    raw = (tmp_path / "out" / path).read_bytes()
    at = store.index.position(1) + 12
    seconds = (store.stored[0].time - (1 << 40)) // 1000
    assert int.from_bytes(raw[at : at + 4], "big", signed=True) == seconds


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


def test_a_record_in_front_of_which_an_overlapping_file_lies(tmp_path: Path) -> None:
    """17558: a file of zeros that begins inside of another one; brokers count files, and find the record."""
    store = HandmadeStore()
    for number in range(60):
        store.put("Orders", b"body %d" % number)
    store.write(tmp_path / "store")
    store.add(f"commitlog/{4096 + 1000:020d}", bytes(4096))
    one = next(one for one in store.inside(1) if one.offset > 4096 + 1500)
    reported = rmq("query-id", store.root, message_id(one.placed.data, one.offset), "--json")
    assert [row["physical_offset"] for row in json.loads(reported.stdout)["rows"]] == [one.offset]
    reported = rmq("show", store.root, one.offset)
    assert reported.exit_code == 0, reported.stdout


def message_id(record: bytes, offset: int) -> str:
    """The id by store host and physical offset."""
    return (record[64:72] + offset.to_bytes(8, "big")).hex().upper()


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


def test_what_a_start_would_do_is_no_new_harm_because_a_table_kept_it_from_starting(tmp_path: Path) -> None:
    """17179: a queue that skips offsets is numbered again by a start, with the table or without."""
    store = HandmadeStore()
    for number in range(30):
        store.put("Orders", b"body %d" % number)
        if number == 20:
            store.log.queue_offsets["Orders", 0] += 3
    store.write(tmp_path / "store")
    rmq("rebuild", store.root, "--what", "cq", "--in-place", "--backup", tmp_path / "backup", "--apply")
    for name in ("consumerOffset.json", "consumerOffset.json.bak"):
        store.add(f"config/{name}", b'{"offsetTable":{"Orders@G":null}')
    given = ("--apply", "--as-version", "5.3.3", "--json")
    done = rmq("recover", store.root, "--output", tmp_path / "out", *given)
    assert (tmp_path / "out").is_dir(), done.stderr
    # which is left, and both real stores give 30 to 32 again: no exit 0, now or the second time
    (left,) = json.loads(done.stdout)["summary"]["checked"]["remains"]
    assert (
        done.exit_code,
        "queue offsets from 30 on, though messages in the log have 3 of them, up to 32" in left,
    ) == (1, True), left
    again = rmq("recover", tmp_path / "out", "--as-version", "5.3.3", "--json")
    reported = json.loads(again.stdout)
    assert (again.exit_code, reported["rows"]) == (1, [])
    assert reported["summary"]["checked"]["remains"] == [left]
    assert "Left as it is" in rmq("recover", tmp_path / "out", "--as-version", "5.3.3").stdout


def test_an_entry_behind_the_log_in_front_of_others_cuts_them_off_with_the_next_start(tmp_path: Path) -> None:
    """17588: a start that dispatches something looks for none; the next one, after a clean stop, does."""
    store = HandmadeStore()
    for number in range(16):
        store.put("Orders", b"body %d" % number)
    store.put("Late", b"which 4.9.8 dispatches behind")
    store.write(tmp_path / "store")
    units = [one.unit or ("", 0) for one in store.of("Orders")]
    for unit in (*units[12:], store.stored[-1].unit or ("", 0)):
        store.patch(*unit, bytes(20))
    store.patch(*units[5], (1 << 40).to_bytes(8, "big"))
    (store.root / "abort").write_bytes(b"")
    for release in ("4.9.8", "5.3.3"):
        reported = json.loads(rmq("doctor", store.root, "--json", "--as-version", release).stdout)
        assert reported["safe_to_start"] is False
        (cut,) = [one for one in reported["consequences"] if one["code"] == "DR-QUEUE-CUT"]
        assert (cut["count"], cut["before"], cut["end"]) == (11, 16, 5)


def test_a_topic_table_that_is_an_empty_object_beside_batch_queues(tmp_path: Path) -> None:
    """30132: 5.x loads it and refuses the queues; the plan had nothing to change."""
    store = healthy_store().write(tmp_path / "store")
    store.add("config/topics.json", b"{}")
    (store.root / "config/topics.json.bak").unlink(missing_ok=True)
    rmq("recover", store.root, "--output", tmp_path / "out", "--apply", "--as-version", "5.3.3")
    reported = json.loads(rmq("doctor", tmp_path / "out", "--json", "--as-version", "5.3.3").stdout)
    assert reported["refusal"] is None
    table = json.loads((tmp_path / "out/config/topics.json").read_text())["topicConfigTable"]
    assert table["Batches"]["attributes"]["queue.type"] == "BatchCQ"


def test_a_store_that_nobody_finds_fault_with_is_left_alone(tmp_path: Path) -> None:
    """17838, 40125, 40340: results of `recover` with blank entries, whose records another plan moved."""
    store = HandmadeStore()
    for number in range(40):
        if number == 38:
            for _ in range(4):
                store._queue("Orders", 0).append(plain_unit(0, 2**31 - 1, 0))
                store.log.queue_offsets["Orders", 0] += 1
        store.put("Orders", b"body %d" % number)
    store.write(tmp_path / "store")
    for release in ("4.9.8", "5.3.3"):
        assert rmq("doctor", store.root, "--as-version", release).exit_code == 0
        done = rmq("recover", store.root, "--json", "--as-version", release)
        assert (done.exit_code, json.loads(done.stdout)["rows"]) == (0, [])
    store.patch(*store.segment(store.stored[20].offset), bytes(8))
    done = rmq("recover", store.root, "--json", "--output", tmp_path / "out", "--apply")
    assert {row["path"] for row in json.loads(done.stdout)["rows"]} >= {"commitlog/" + "0" * 20}


def test_a_copied_directory_does_not_take_the_only_record_of_a_queue(tmp_path: Path) -> None:
    """40033: where the queue's own file is overwritten, the copy alone leads to its record."""
    store = HandmadeStore()
    for number in range(20):
        store.put("Orders", b"body %d" % number)
    store.put("Lonely", b"the only one")
    store.write(tmp_path / "store")
    queues = store.root / "consumequeue"
    shutil.copytree(queues / "Lonely/0", queues / "Lonely/21")
    shutil.copy(queues / "Orders/0" / ("0" * 20), queues / "Lonely/0")
    was = strict.walk(store.root)[0]
    done = rmq("recover", store.root, "--output", tmp_path / "out", "--apply")
    assert done.exit_code == 0, done.stderr
    now, units = strict.walk(tmp_path / "out")[0], strict.units(tmp_path / "out")
    assert {at: one.raw for at, one in now.items()} == {at: one.raw for at, one in was.items()}
    assert units["Lonely", 0, 0][0] == store.stored[-1].offset


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


def test_a_file_of_a_queue_that_was_copied_over_the_next_one(tmp_path: Path) -> None:
    """41132: where the head has expired its entries look expired, and what they hide was nowhere said."""
    store = HandmadeStore()
    for number in range(60):
        store.put("Orders", b"body %d" % number)
    store.write(tmp_path / "store")
    begin = sorted((store.root / "commitlog").iterdir())[1]
    min((store.root / "commitlog").iterdir()).unlink()
    files = sorted((store.root / "consumequeue/Orders/0").iterdir())
    assert int(begin.name) > store.stored[int(files[1].name) // 20 - 1].offset
    shutil.copy(files[0], files[1])
    one = store.stored[int(files[1].name) // 20 + 1]
    for command, asked in (("query-time", one.time), ("query-offset", int(files[2].name) // 20)):
        assert rmq(command, store.root, "Orders", 0, asked).exit_code == 3


@pytest.mark.parametrize("less", [0, 8])
def test_a_filler_over_undispatched_records(tmp_path: Path, less: int) -> None:
    """41940: one that is 8 bytes too short, or that lies on the last record, hid them from `doctor`."""
    store = HandmadeStore()
    for number in range(30):
        store.put("Orders", b"body %d" % number)
    store.write(tmp_path / "store")
    place = store.stored[-4 if less else -1]
    path, position = store.segment(place.offset)
    rest = len(store.read(path)) - position
    blank = BLANK_MAGIC_CODE.to_bytes(4, "big", signed=True)
    store.patch(path, position, (rest - less).to_bytes(4, "big") + blank)
    for one in store.stored[-4:]:
        store.patch(*(one.unit or ("", 0)), bytes(20))
    (store.root / "abort").write_bytes(b"")
    for release in ("4.9.8", "5.3.3"):
        assert rmq("doctor", store.root, "--as-version", release).exit_code == 1


def test_a_batch_that_ends_in_front_of_what_was_asked_for(
    golden: Callable[[str], Golden], tmp_path: Path
) -> None:
    """41976: where an entry's offset is damaged, a search finds the one before it."""
    root = tmp_path / "store"
    shutil.copytree(golden("v533-batchcq").path, root)
    queue = next((root / "batchconsumequeue/TopicBCQ/0").iterdir())
    data = bytearray(queue.read_bytes())
    unit = data[46 * 3 : 46 * 4]
    asked = int.from_bytes(unit[28:36], "big")
    assert rmq("query-offset", root, "TopicBCQ", 0, asked).exit_code == 0
    data[46 * 3 + 28] |= 0x20
    queue.write_bytes(data)
    assert rmq("query-offset", root, "TopicBCQ", 0, asked).exit_code == 3


def test_an_index_file_that_is_too_short_and_goes_on_behind_the_log(tmp_path: Path) -> None:
    """40662: nobody checks its items, and a broker would index nothing until the log is as long again."""
    store = healthy_store().write(tmp_path / "store")
    for path in sorted((store.root / "index").iterdir())[:-1]:
        path.unlink()
    (path,) = (store.root / "index").iterdir()
    path.write_bytes(path.read_bytes()[:-20])
    for segment in sorted((store.root / "commitlog").iterdir())[-3:]:
        segment.unlink()
    conf = tmp_path / "broker.conf"
    conf.write_text("maxHashSlotNum=100\nmaxIndexNum=60\n")
    given = ("--store-config", conf, "--output", tmp_path / "out", "--apply")
    assert rmq("recover", store.root, *given).exit_code == 0
    for release in ("4.9.8", "5.3.3"):
        document = json.loads(rmq("doctor", tmp_path / "out", "--json", "--as-version", release).stdout)
        assert "DR-NOT-INDEXED" not in {one["code"] for one in document["consequences"]}


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


@pytest.mark.parametrize("field", ["topic", "queue offset"])
def test_a_record_that_lies_where_queues_are_in_a_database(field: str, tmp_path: Path) -> None:
    """42502: no entry tells, but the records around it do; the plan was not believed, or none was made."""
    store = HandmadeStore()
    for number in range(30):
        store.put("Orders", b"body %d" % number)
    store.write(tmp_path / "store")
    shutil.rmtree(store.root / "consumequeue")
    store.add("consumequeue/IDENTITY", b"6f1c58d8-1f0d-4c77-a7a5-d5f0b2d1a6a0")
    store.add("consumequeue/CURRENT", b"MANIFEST-000005\n")
    conf = tmp_path / "broker.conf"
    conf.write_text("mappedFileSizeCommitLog=4096\nstoreType=defaultRocksDB\n")
    one = store.stored[12]
    path, position = store.segment(one.offset)
    record = store.read(path, position, one.size)
    if field == "topic":
        store.patch(path, position + record.index(b"Orders"), b"OrdeRs")
    else:
        store.patch(path, position + 20, (one.queue_offset + (1 << 56)).to_bytes(8, "big"))
    given = ("--store-config", conf, "--json")
    done = rmq("recover", store.root, "--output", tmp_path / "out", "--apply", *given)
    assert done.exit_code == 0, done.stderr
    assert strict.carve(tmp_path / "out")[one.offset].raw == record
    again = json.loads(rmq("recover", tmp_path / "out", *given).stdout)
    assert again["rows"] == []


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


def test_a_backup_that_brokers_of_another_release_refuse_is_no_help(tmp_path: Path) -> None:
    """50319: 4.9.8 takes it for an empty table; the result was one of 5.x, which do not start over it."""
    store = HandmadeStore()
    for number in range(20):
        store.put("Orders", b"body %d" % number)
    store.config["delayOffset"] = {"topicConfigTable": [], "dataVersion": 7}
    store.write(tmp_path / "store")
    (store.root / "config/delayOffset.json").write_bytes(b'{"topicConfigTable"')
    asked = ("--as-version", "4.9.8", "--json")
    done = rmq("recover", store.root, "--output", tmp_path / "out", "--apply", *asked)
    assert done.exit_code == 0, done.stderr
    for release in ("4.9.8", "5.3.3"):
        assert json.loads(rmq("doctor", tmp_path / "out", "--as-version", release, "--json").stdout)[
            "safe_to_start"
        ]
    assert json.loads(rmq("recover", tmp_path / "out", "--json").stdout)["rows"] == []


def test_a_table_that_would_load_empty_has_a_way_out(tmp_path: Path) -> None:
    """`doctor` said not to start, and named nothing but `verify`."""
    store = HandmadeStore()
    store.put("Orders", b"body")
    store.config["consumerOffset"] = {"offsetTable": {"Orders@group": {"0": 1}}}
    store.write(tmp_path / "store")
    (store.root / "config/consumerOffset.json").write_bytes(b"")
    (store.root / "config/consumerOffset.json.bak").unlink()
    found = json.loads(rmq("doctor", store.root, "--json").stdout)
    assert not found["safe_to_start"]
    assert any(one["command"].startswith("rmqtool recover ") for one in found["advice"])
    rmq("recover", store.root, "--output", tmp_path / "out", "--apply")
    assert json.loads(rmq("doctor", tmp_path / "out", "--json").stdout)["safe_to_start"]


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


@pytest.mark.parametrize("damage", ["missing", "empty"])
def test_timers_that_are_lost_anyway_speak_against_no_plan(damage: str, tmp_path: Path) -> None:
    """61009, 61319: a start of the store takes their messages away, or is refused, and says no more."""
    golden = open_golden("b533-timer", tmp_path)
    path = golden.path / "timerlog" / f"{0:020d}"
    if damage == "empty":
        path.write_bytes(b"")
    else:
        shutil.rmtree(path.parent)
    with (golden.path / "commitlog" / f"{0:020d}").open("r+b") as file:
        file.write(bytes(400))
    done = rmq("recover", golden.path, "--store-config", golden.config_path, "--json")
    checked = json.loads(done.stdout)["summary"]["checked"]
    assert checked["proven"], checked
    assert any("DR-TIMERS-LOST" in one for one in checked["remains"])


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


@pytest.mark.parametrize("behind", [1, 0])
def test_a_key_under_a_filler_at_the_end_of_the_log(behind: int, tmp_path: Path) -> None:
    """64278: the log was taken to end at the filler, and a key of what it hides was not there, complete."""
    store = HandmadeStore()
    for number in range(50):
        store.put("Orders", b"%02d" % number * 300, keys=f"k{number}")
    store.write(tmp_path / "store")
    max((store.root / "index").iterdir()).unlink()
    shutil.rmtree(store.root / "consumequeue")
    whole = store.inside(store.stored[-1].offset // store.log.segment_size - 1)
    hidden = whole[-1 - behind]
    store.remove(store.segment(store.stored[-1].offset)[0])
    path, position = store.segment(hidden.offset)
    length = store.log.segment_size - position
    store.patch(path, position, length.to_bytes(4, "big") + BLANK_MAGIC_CODE.to_bytes(4, "big", signed=True))
    key = f"k{store.stored.index(hidden)}"
    found = rmq("query-key", store.root, "Orders", key, "--json")
    assert (found.exit_code, json.loads(found.stdout)["summary"]["incomplete_reason"]) == (3, "damage")


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


@pytest.mark.parametrize("all_gone", [True, False])
def test_queues_of_a_topic_that_the_table_does_not_have(all_gone: bool, tmp_path: Path) -> None:
    """60426: it was taken for a deleted one although all queues were gone, and nobody served its messages."""
    store = HandmadeStore()
    for number in range(20):
        store.put("Orders" if number % 2 else "Payments", b"body %d" % number)
    store.config["topics"] = {"topicConfigTable": {"Orders": {"topicName": "Orders"}}, "dataVersion": {}}
    store.write(tmp_path / "store")
    shutil.rmtree(store.root / "consumequeue" if all_gone else store.root / "consumequeue/Payments")
    assert rmq("recover", store.root, "--output", tmp_path / "out", "--apply").exit_code == 0
    there = {one.name for one in (tmp_path / "out/consumequeue").iterdir()}
    assert there == ({"Orders", "Payments"} if all_gone else {"Orders"})


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


def without_entries(tmp_path: Path, queues: list[int], wrong: dict[int, int]) -> HandmadeStore:
    """Records of these queues; of some, by number, the queue number is another one."""
    store = HandmadeStore()
    for number, queue_id in enumerate(queues):
        store.put("Orders", b"body %d" % number, queue_id=queue_id)
    store.write(tmp_path / "store")
    shutil.rmtree(store.root / "consumequeue")
    for number, queue_id in wrong.items():
        path, position = store.segment(store.stored[number].offset)
        store.patch(path, position + OFF_QUEUE_ID, queue_id.to_bytes(4, "big"))
    return store


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


def test_a_whole_message_that_no_queue_takes_is_said_to_be_lost(tmp_path: Path) -> None:
    """Two queues might go on with it; it became zeros behind the end of the log, and counted nowhere."""
    store = without_entries(tmp_path, [0, 1, 2] * 8, {21: 2, 22: 3})
    summary = json.loads(rmq("recover", store.root, "--json").stdout)["summary"]
    at = store.stored[23].offset
    assert summary["lost"]["messages"] == 1
    assert any(one.startswith("1 whole message") and f"offset {at}," in one for one in summary["notes"])
    assert any(f"and {at} state the same" in one and one.endswith("is lost") for one in summary["notes"])


@pytest.mark.parametrize(
    ("noise", "counted"),
    [
        (plain_unit(-602196180742341134, -115875126, 1), 0),  # recovery of the queue ends in front of it
        (plain_unit(-1, 115, 1), 0),
        (plain_unit(1 << 40, 115, 1), 3),  # taken for an entry behind the end of the log, and what it hides
    ],
    ids=["negative", "negative-offset", "behind-the-log"],
)
def test_what_dispatching_writes_over_is_no_entry(noise: bytes, counted: int, tmp_path: Path) -> None:
    """82253: noise where a start appends units counted as messages that nobody is given."""
    store = HandmadeStore()
    for number in range(20):
        store.put("Orders", b"body %d" % number)
    store.write(tmp_path / "pristine")
    store.write(tmp_path / "store")
    path = "consumequeue/Orders/0/00000000000000000000"
    store.patch(path, 17 * 20, noise * 5)
    whole = strict.carve(store.root)
    conf = tmp_path / "broker.conf"
    made = Compound(0, "", store.root, tmp_path / "pristine", "4.9.8", {}, conf, (), (), whole, whole)
    assert len(kept(store.root, made, dispatched=False)) == counted
    assert len(kept(store.root, made)) == 3
    reported = json.loads(rmq("doctor", store.root, "--json", "--as-version", "4.9.8").stdout)
    appended = sum(one["messages"] for one in reported["dispatch_lag"])
    assert (reported["already_damaged"]["messages"], appended) == (counted, 3 - counted)


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


def test_the_last_entry_of_a_queue_file_with_an_uneven_name(tmp_path: Path) -> None:
    """120501: it was taken for the one behind it, whose message no start of the light queue reaches."""
    golden = open_golden("v498-lmq", tmp_path)
    light = golden.path / "consumequeue/%LMQ%alpha/0"
    (light / f"{1000:020d}").rename(light / f"{999:020d}")
    done = rmq("doctor", golden.path, "--store-config", golden.config_path, "--json")
    assert done.exit_code == 1
    (queue,) = (one for one in json.loads(done.stdout)["queues"] if one["topic"] == "%LMQ%alpha")
    assert queue["repeated"] == 1


@pytest.mark.parametrize("damage", ["cut", "missing"])
def test_a_new_timer_wheel_is_made_from_all_of_the_timer_log(damage: str, tmp_path: Path) -> None:
    """110622: it reached the last files only, and the plan was refused over the timers of the others."""
    golden = open_golden("b533-timer", tmp_path)
    wheel, check = golden.path / "timerwheel", golden.path / "config/timercheck"
    wheel.write_bytes(wheel.read_bytes()[:1000]) if damage == "cut" else wheel.unlink()
    conf = ("--store-config", golden.config_path)
    before = rmq("doctor", golden.path, "--json", *conf)
    assert before.exit_code == 1
    done = rmq("recover", golden.path, "--output", tmp_path / "out", "--apply", *conf)
    assert done.exit_code == 0, done.stderr
    assert rmq("doctor", tmp_path / "out", *conf).exit_code == 0
    old, new = check.read_bytes(), (tmp_path / "out/config/timercheck").read_bytes()
    size = next((golden.path / "timerlog").iterdir()).stat().st_size
    assert int.from_bytes(new[8:16], "big") == size
    assert (new[:8], new[16:]) == (old[:8], old[16:])


def test_a_timer_log_that_a_broker_stops_in_is_not_read_from_its_begin(tmp_path: Path) -> None:
    """What lies behind the place would be put into the log, and delivered, once more."""
    golden = open_golden("b533-timer", tmp_path)
    (golden.path / "timerwheel").unlink()
    with (golden.path / f"timerlog/{0:020d}").open("r+b") as file:
        file.seek(52)
        file.write(bytes(4))
    done = rmq("recover", golden.path, "--json", "--store-config", golden.config_path)
    paths = [one["path"] for one in json.loads(done.stdout)["rows"] if one["type"] == "change"]
    assert "config/timercheck" not in paths
    assert done.exit_code == 1


_LISTED = 33994
"""a record of seed 230025 of which damage took a part of the list of queue offsets"""


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


def test_a_plan_is_held_against_a_release_that_refuses_the_store_as_it_is(tmp_path: Path) -> None:
    """230025 with nothing left of the list: 5.3.3 does not start over an empty segment, and was not asked."""
    made = make(230025, tmp_path)
    segment = made.root / f"commitlog/{32768:020d}"
    data = bytearray(segment.read_bytes())
    at = data.index(b"INNER_MULTI_DISPATCH", _LISTED - 32768)
    data[at : at + 20] = b"ANOTHER_PROPERTY_NAM"
    segment.write_bytes(data)
    conf = ("--store-config", made.conf)
    done = rmq("recover", made.root, "--output", tmp_path / "out", "--apply", "--json", *conf)
    assert done.exit_code == 1
    problems = json.loads(done.stdout)["summary"]["checked"]["problems"]
    assert any(one.startswith("5.3.3") and "DR-NOT-REBUILT" in one for one in problems), problems


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


def test_a_record_that_states_more_messages_than_the_log_had_room_for(tmp_path: Path) -> None:
    """270215: a flipped bit made 2^32 and 8 of its queue offset: it was to be lost, which was refused."""
    made = make(270215, tmp_path)
    (offset,) = (at for at, one in strict.carve(made.root).items() if one.queue_offset == (1 << 32) + 8)
    done = rmq("recover", made.root, "--output", tmp_path / "out", "--apply", "--store-config", made.conf)
    assert done.exit_code == 0, done.stderr
    assert strict.carve(tmp_path / "out")[offset].queue_offset == 8


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
