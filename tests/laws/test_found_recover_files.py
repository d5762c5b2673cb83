"""Found once by the generator, as smallest stores: `recover`: tables, indexes, timers, directories."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from fixtures import strict
from fixtures.compound import make
from fixtures.goldens import open_golden
from fixtures.handmade import plain_unit
from fixtures.stores import HandmadeStore, healthy_store
from fixtures.timers import timers_moved
from rmqtool.repair.keep.strays import stray_edits
from rmqtool.store.kinds import CONFIG_NAMES
from rmqtool.store.layout import Store
from tests.helpers import rmq
from tests.laws.stores import orders

if TYPE_CHECKING:
    from pathlib import Path


_LISTED = 33994
"""a record of seed 230025 of which damage took a part of the list of queue offsets"""


def test_a_queue_directory_whose_name_only_parses_as_a_number_is_none(tmp_path: Path) -> None:
    """Brokers parse `00` as 0 and then open `0`: a copy under that name adds nothing to queue 0."""
    store = orders(tmp_path / "store")
    shutil.copytree(store.root / "consumequeue/Orders/1", store.root / "consumequeue/Orders/00")
    reported = rmq("query-offset", store.root, "Orders", 0, 3, "--json")
    assert f'"physical_offset":{store.of("Orders")[3].offset},' in reported.stdout
    assert "consumequeue/Orders/00" in rmq("verify", store.root).stdout
    assert rmq("recover", store.root, "--json").exit_code == 0
    assert rmq("doctor", store.root, "--json", "--as-version", "4.9.8").exit_code == 0


@pytest.mark.parametrize(("seed", "release"), [(60, "5.3.3"), (115, "4.9.8")])
def test_what_a_second_start_finds_otherwise_speaks_against_no_plan(
    seed: int, release: str, tmp_path: Path
) -> None:
    """60: an index file that each start makes again as it was. 115: a queue that grows by one."""
    made = make(seed, tmp_path / "case")
    policy = ("--policy", "broker", "--as-version", release, "--store-config", made.conf)
    reported = rmq("recover", made.root, *policy, "--output", tmp_path / "out", "--apply")
    assert "Not proven" not in reported.stdout
    assert (tmp_path / "out").is_dir()


def test_a_table_that_only_its_backup_gives_is_made_whole(tmp_path: Path) -> None:
    store = orders(tmp_path / "store")
    table = b'{"offsetTable":{"Orders@audit":{0:3,1:4}}}'
    store.add("config/consumerOffset.json", table[:20])
    store.add("config/consumerOffset.json.bak", table)
    store.add("config/delayOffset.json")
    reported = rmq("recover", store.root, "--output", tmp_path / "out", "--apply", "--json")
    assert '"why":"config-from-backup"' in reported.stdout
    assert (tmp_path / "out/config/consumerOffset.json").read_bytes() == table
    assert not (tmp_path / "out/config/delayOffset.json").exists()
    for release in ("4.9.8", "5.3.3"):
        assert '"verdict":"safe"' in rmq("doctor", tmp_path / "out", "--json", "--as-version", release).stdout
    assert rmq("recover", tmp_path / "out", "--json").exit_code == 0


def test_a_directory_in_the_place_of_the_checkpoint_leaves_one_plan(tmp_path: Path) -> None:
    store = orders(tmp_path / "store")
    store.remove("checkpoint")
    (store.root / "checkpoint").mkdir()
    assert rmq("recover", store.root, "--output", tmp_path / "out", "--apply").exit_code == 0
    assert (tmp_path / "out").is_dir()
    assert not (tmp_path / "out/checkpoint").exists()
    assert rmq("recover", tmp_path / "out", "--json").exit_code == 0
    assert '"changes":0' in rmq("recover", tmp_path / "out", "--json").stdout


def test_a_directory_in_a_queue_goes_where_traces_of_several_releases_are(tmp_path: Path) -> None:
    store = orders(tmp_path / "store")
    (store.root / "consumequeue/Orders/1/old").mkdir()
    four = b'{"offsetTable":{"Orders@audit":{0:3,1:4}}}'
    five = b'{"dataVersion":{"counter":1,"stateVersion":0,"timestamp":1700000000000},"topicConfigTable":{}}'
    store.add("config/consumerOffset.json", four)
    store.add("config/topics.json", five)
    assert "stray-directory" not in rmq("recover", store.root, "--as-version", "5.3.3", "--json").stdout
    rmq("recover", store.root, "--output", tmp_path / "out", "--apply")
    assert rmq("doctor", tmp_path / "out", "--as-version", "4.9.8").exit_code == 0


@pytest.mark.share
@pytest.mark.parametrize("table", ["[]", "null", '"x"'])
def test_a_topic_table_of_another_shape_ends_no_recovery(tmp_path: Path, table: str) -> None:
    store = healthy_store().write(tmp_path / "store")
    store.add("config/topics.json", f'{{"topicConfigTable":{table}}}'.encode())
    assert rmq("recover", store.root, "--output", tmp_path / "out", "--apply").exit_code == 0


def test_queues_that_are_written_to_rocksdb_too_are_repaired_in_their_files(tmp_path: Path) -> None:
    """`rocksdbCQDoubleWriteEnable`: the broker serves the files."""
    store = orders(tmp_path / "store")
    store.add("consumequeue/CURRENT", b"MANIFEST-000005\n")
    path, at = store.of("Orders")[7].unit or ("", 0)
    unit = store.read(path, at, 20)
    store.patch(path, at, bytes(20))
    conf = tmp_path / "broker.conf"
    conf.write_text("rocksdbCQDoubleWriteEnable=true\n")
    rmq("recover", store.root, "--store-config", conf, "--output", tmp_path / "out", "--apply")
    assert (tmp_path / "out" / path).read_bytes()[at : at + 20] == unit


def test_an_end_of_the_log_that_only_the_index_knows(tmp_path: Path) -> None:
    """The queues went with it: a start loses nothing more, and new messages take the lost queue offsets."""
    store = orders(tmp_path / "store")
    last = store.stored[-1]
    store.patch(*store.segment(last.offset), bytes(last.size))
    store.patch(*(last.unit or ("", 0)), bytes(20))
    for release in ("4.9.8", "5.3.3"):
        reported = rmq("doctor", store.root, "--json", "--as-version", release)
        assert reported.exit_code == 1
        assert '"verdict":"damaged"' in reported.stdout
        assert "DR-END-LOST" in reported.stdout
    rmq("recover", store.root, "--output", tmp_path / "out", "--apply")
    assert rmq("doctor", tmp_path / "out", "--as-version", "5.3.3").exit_code == 0


def test_a_log_that_was_sent_alone_becomes_a_store_with_an_index(tmp_path: Path) -> None:
    """Seed 10910: a second `recover` built the index that the first one had left out."""
    store = HandmadeStore()
    for number in range(3):
        store.put("Orders", b"body", keys=f"order-{number}")
    store.write(tmp_path / "whole")
    sent = tmp_path / "sent"
    sent.mkdir()
    shutil.copytree(tmp_path / "whole/commitlog", sent / "commitlog")
    out = tmp_path / "out"
    assert rmq("recover", sent, "--output", out, "--apply").exit_code == 0
    assert len(list((out / "index").iterdir())) == 1
    again = json.loads(rmq("recover", out, "--json").stdout)
    assert again["rows"] == []


@pytest.mark.parametrize("path", ["commitlog/{:020}", "consumequeue/Orders/0/{:020}"])
def test_a_directory_where_log_or_queue_will_grow_goes(tmp_path: Path, path: str) -> None:
    root = orders(tmp_path / "store").root
    place = root / path.format(0)
    last = max(place.parent.iterdir())
    place.with_name(f"{int(last.name) + last.stat().st_size:020}").mkdir()
    asked = ("--as-version", "5.3.3")
    assert rmq("doctor", root, *asked).exit_code == 1
    assert rmq("recover", root, *asked, "--output", tmp_path / "out", "--apply").exit_code == 0
    assert rmq("doctor", tmp_path / "out", *asked).exit_code == 0


@pytest.mark.parametrize(("releases", "goes"), [({"5.1.0", "5.3.3"}, False), ({"4.9.0", "5.3.3"}, True)])
def test_a_directory_among_segments_goes_where_an_older_release_may_have_written_the_store(
    tmp_path: Path, releases: set[str], goes: bool
) -> None:
    """What had told of a newer release was put right with the rest, and the next plan took it away."""
    (orders(tmp_path / "store").root / "commitlog/sub").mkdir()
    store = Store.open(tmp_path / "store")
    vars(store)["release"] = replace(store.release, releases=frozenset(releases), mixed=False)
    assert [*stray_edits(store, "5.3.3", [])] == []
    assert bool([*stray_edits(store, "5.3.3", [store.release])]) is goes


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
    timers_moved(golden.path)
    files = sorted((golden.path / "timerlog").iterdir())
    assert len(files) > 1
    files[-2].write_bytes(b"")
    (golden.path / "commitlog/more").write_bytes(b"x")
    conf = ("--store-config", golden.config_path)
    rmq("recover", golden.path, "--output", tmp_path / "out", "--apply", *conf)
    assert rmq("doctor", tmp_path / "out", *conf).exit_code == 0


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


def test_a_timer_wheel_with_bytes_behind_its_last_slot(tmp_path: Path) -> None:
    """13484: it was moved out, and timers in front of the end of the timer log were lost with it."""
    golden = open_golden("b533-timer", tmp_path)
    timers_moved(golden.path)
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


@pytest.mark.parametrize("damage", ["missing", "empty"])
def test_timers_that_are_lost_anyway_speak_against_no_plan(damage: str, tmp_path: Path) -> None:
    """61009, 61319: a start of the store takes their messages away, or is refused, and says no more."""
    golden = open_golden("b533-timer", tmp_path)
    timers_moved(golden.path)
    path = golden.path / "timerlog" / f"{0:020d}"
    if damage == "empty":
        path.write_bytes(b"")
    else:
        shutil.rmtree(path.parent)
    (golden.path / "config/timercheck").unlink()  # with it `recover` makes a new timer log
    with (golden.path / "commitlog" / f"{0:020d}").open("r+b") as file:
        file.write(bytes(400))
    done = rmq("recover", golden.path, "--store-config", golden.config_path, "--json")
    checked = json.loads(done.stdout)["summary"]["checked"]
    assert checked["proven"], checked
    assert any("DR-TIMERS-" in one for one in checked["remains"])


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


@pytest.mark.parametrize("damage", ["cut", "missing"])
def test_a_new_timer_wheel_is_made_from_all_of_the_timer_log(damage: str, tmp_path: Path) -> None:
    """110622: it reached the last files only, and the plan was refused over the timers of the others."""
    golden = open_golden("b533-timer", tmp_path)
    timers_moved(golden.path, undelivered=60_000)
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


def test_a_timer_log_that_a_broker_stops_in_is_made_of_the_topic(tmp_path: Path) -> None:
    """Read from its begin, what lies behind the place would be put into the log, and delivered, once more."""
    golden = open_golden("b533-timer", tmp_path)
    timers_moved(golden.path, undelivered=60_000)
    (golden.path / "timerwheel").unlink()
    with (golden.path / f"timerlog/{0:020d}").open("r+b") as file:
        file.seek(52)
        file.write(bytes(4))
    conf = ("--store-config", golden.config_path)
    done = rmq("recover", golden.path, "--output", tmp_path / "out", "--apply", *conf)
    assert done.exit_code == 0, done.stdout
    assert rmq("doctor", tmp_path / "out", *conf).exit_code == 0


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
