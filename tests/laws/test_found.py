"""What the generator found once, each as the smallest store that shows it."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from fixtures import strict
from fixtures.compound import make
from fixtures.goldens import open_golden
from fixtures.stores import PREPARED, ROLLBACK, HandmadeStore, healthy_store
from formats.tags_code import tags_hash
from rmqtool.repair.keep.strays import stray_edits
from rmqtool.store.layout import Store
from tests.helpers import rmq

if TYPE_CHECKING:
    from pathlib import Path


def orders(root: Path, count: int = 60) -> HandmadeStore:
    """Messages of two queues in segments of 4 KiB and queue files of 20 units."""
    store = HandmadeStore()
    for number in range(count):
        store.put("Orders", b"body %d" % number * 4, queue_id=number % 2, tags="TagA", keys=f"k{number}")
    return store.write(root)


def test_a_pull_where_the_last_queue_file_begins_with_zeros(tmp_path: Path) -> None:
    """Release 5 reads in front of the file's first unit, throws, and goes on with 0 as the minimum."""
    store = orders(tmp_path / "store")
    store.patch("consumequeue/Orders/0/00000000000000000400", 0, bytes(400))
    reported = rmq("query-offset", store.root, "Orders", 0, 3, "--json", "--as-version", "5.3.3")
    assert reported.exit_code == 0
    assert '"min_offset":0,' in reported.stdout


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


def test_a_message_whose_keys_lie_in_two_index_files_one_of_them_lost(tmp_path: Path) -> None:
    """The last record of a full file and the first of the next are one: the scan has to look at it, too."""
    store = HandmadeStore()
    store.put("Orders", b"", keys="first")
    for number in range(40):
        store.put("Orders", b"body", keys=f"k{number}a k{number}b")
    store.write(tmp_path / "store")
    shared = [one for one in store.stored if len({path for path, _ in one.items}) > 1]
    assert shared
    for one in shared:
        for lost in {path for path, _ in one.items}:
            kept = store.read(lost)
            store.resize(lost, 900)
            for key in (
                f"0A000001{store.stored.index(one):024X}",
                *(f"k{store.stored.index(one) - 1}{s}" for s in "ab"),
            ):
                reported = rmq("query-key", store.root, "Orders", key, "--json")
                assert reported.exit_code == 0, (key, lost)
                assert reported.stdout.count('"type":"message"') == 1
            store.add(lost, kept)


def test_queues_that_lead_behind_the_end_of_the_log(tmp_path: Path) -> None:
    """A power cut that spared the queues: what is there is listed, and that more was there is said."""
    store = orders(tmp_path / "store")
    last = store.stored[-2:]
    path, position = store.segment(last[0].offset)
    store.patch(path, position, bytes(last[0].size + last[1].size))
    for command in (("stats",), ("sql", "select count(*) from messages")):
        reported = rmq(command[0], store.root, *command[1:], "--json")
        assert reported.exit_code == 3
        assert f'"physical_offset":{last[0].offset},"length":{last[0].size + last[1].size}' in reported.stdout
        assert "the end of the log is lost" in reported.stdout
    assert rmq("export", store.root, "--to", tmp_path / "all.ndjson").exit_code == 3
    key = f"0A000001{store.stored.index(last[0]):024X}"
    assert rmq("query-key", store.root, "Orders", key, "--json").exit_code == 3
    until = ("--offset-range", f"0:{last[0].offset}")
    assert rmq("export", store.root, "--to", tmp_path / "part.ndjson", *until).exit_code == 0


def with_false_blank(root: Path) -> HandmadeStore:
    """An end-of-file blank whose length is right over the head of a record in the middle of a segment."""
    store = orders(root, 90)
    one = store.inside(1)[4]
    path, position = store.segment(one.offset)
    store.patch(path, position, (4096 - position).to_bytes(4, "big") + bytes.fromhex("CBD43194"))
    return store


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


def test_a_queue_directory_whose_name_only_parses_as_a_number_is_none(tmp_path: Path) -> None:
    """Brokers parse `00` as 0 and then open `0`: a copy under that name adds nothing to queue 0."""
    store = orders(tmp_path / "store")
    shutil.copytree(store.root / "consumequeue/Orders/1", store.root / "consumequeue/Orders/00")
    reported = rmq("query-offset", store.root, "Orders", 0, 3, "--json")
    assert f'"physical_offset":{store.of("Orders")[3].offset},' in reported.stdout
    assert "consumequeue/Orders/00" in rmq("verify", store.root).stdout
    assert rmq("recover", store.root, "--json").exit_code == 0
    assert rmq("doctor", store.root, "--json", "--as-version", "4.9.8").exit_code == 0


def test_what_lay_in_a_missing_segment_or_behind_the_lost_end_is_not_just_not_found(tmp_path: Path) -> None:
    store = orders(tmp_path / "store", 90)
    gone, last = store.inside(1)[3], store.stored[-1]
    store.remove("commitlog/00000000000000004096")
    for path in store.root.glob("index/*"):
        path.unlink()
    store.patch(*store.segment(last.offset), bytes(last.size))
    for one in (gone, last):
        reported = rmq("query-id", store.root, f"0A00000200002A9F{one.offset:016X}", "--json")
        assert reported.exit_code == 3
        assert '"incomplete_reason":"damage"' in reported.stdout
    key = f"0A000001{store.stored.index(gone):024X}"
    assert rmq("query-key", store.root, "Orders", key, "--json").exit_code == 3


def test_a_query_that_meets_a_lost_message_or_a_bad_body_is_not_complete(tmp_path: Path) -> None:
    """Also where a pull skips the message, or the end of its queue would be cut at the next start."""
    store = orders(tmp_path / "store", 90)
    gone, bad, last = store.inside(1)[3], store.inside(2)[3], store.stored[-1]
    store.remove("commitlog/00000000000000004096")
    path, position = store.segment(bad.offset)
    store.patch(path, position + 90, b"?")
    store.patch(*store.segment(last.offset), bytes(last.size))
    for one in (gone, bad, last):
        reported = rmq("query-offset", store.root, "Orders", one.queue_id, one.queue_offset, "--json")
        assert reported.exit_code == 3, one
        assert '"reason":"damage"' in reported.stdout
    number = f"{store.stored.index(bad):024X}"
    assert rmq("query-key", store.root, "Orders", f"0A000001{number}", "--json").exit_code == 3
    assert rmq("query-id", store.root, f"0A00000200002A9F{bad.offset:016X}", "--json").exit_code == 3


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


def test_a_pull_that_gives_messages_of_another_queue_is_reported(tmp_path: Path) -> None:
    store = orders(tmp_path / "store")
    path = store.queues["Orders", 0].place(0)[0]
    store.patch(path, 0, store.read(store.queues["Orders", 1].place(0)[0]))
    reported = rmq("query-offset", store.root, "Orders", 0, 3, "--json")
    assert reported.exit_code == 3
    assert "lead to messages of other queues" in reported.stdout
    assert rmq("query-offset", store.root, "Orders", 0, 25, "--json").exit_code == 0


def test_a_log_of_which_only_zeros_are_left(tmp_path: Path) -> None:
    store = orders(tmp_path / "store", 90)
    for name, data in store.log.files().items():
        store.patch(f"commitlog/{name:020d}", 0, bytes(len(data)))
    assert rmq("stats", store.root, "--json").exit_code == 3


def test_a_first_queue_file_without_bytes_is_damage_to_a_search_by_time(tmp_path: Path) -> None:
    store = orders(tmp_path / "store")
    store.resize(store.queues["Orders", 0].place(0)[0], 0)
    reported = rmq("query-time", store.root, "Orders", 0, store.of("Orders")[3].time, "--json")
    assert reported.exit_code == 3
    assert "the file has 0 of 400 bytes" in reported.stdout


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


def test_a_search_by_time_in_units_of_another_queue_or_without_the_first_file(tmp_path: Path) -> None:
    store = orders(tmp_path / "store")
    path = store.queues["Orders", 0].place(0)[0]
    kept, time = store.read(path), store.of("Orders")[3].time
    store.patch(path, 0, store.read(store.queues["Orders", 1].place(0)[0]))
    reported = rmq("query-time", store.root, "Orders", 0, time, "--json")
    assert reported.exit_code == 3
    assert "lead to messages of other queues" in reported.stdout
    store.patch(path, 0, kept)
    assert rmq("query-time", store.root, "Orders", 0, time, "--json").exit_code == 0
    store.remove(path)
    reported = rmq("query-time", store.root, "Orders", 0, time, "--json")
    assert reported.exit_code == 3
    assert "without a consume queue entry, in front of its first" in reported.stdout


def test_an_id_that_names_the_first_byte_of_a_filler(tmp_path: Path) -> None:
    store = orders(tmp_path / "store", 90)
    one = store.inside(1)[-1]
    path, position = store.segment(one.offset)
    rest = 4096 - position
    store.patch(path, position, rest.to_bytes(4, "big") + bytes.fromhex("CBD43194") + bytes(rest - 8))
    assert rmq("query-id", store.root, f"0A00000200002A9F{one.offset:016X}", "--json").exit_code == 3


@pytest.mark.parametrize("damage", ["filler", "end"])
def test_a_key_that_the_index_knew_where_nothing_shows_damage(tmp_path: Path, damage: str) -> None:
    """A filler over the last record of a segment, or zeros over the last one of the log without queues."""
    store = orders(tmp_path / "store", 90)
    one = store.inside(1)[-1] if damage == "filler" else store.stored[-1]
    path, position = store.segment(one.offset)
    rest = 4096 - position
    if damage == "filler":
        store.patch(path, position, rest.to_bytes(4, "big") + bytes.fromhex("CBD43194") + bytes(rest - 8))
    else:
        store.patch(path, position, bytes(rest))
        shutil.rmtree(store.root / "consumequeue")
    key = f"0A000001{store.stored.index(one):024X}"
    for asked in (("query-key", "Orders", key), ("query-id", key)):
        reported = rmq(asked[0], store.root, *asked[1:], "--json")
        assert reported.exit_code == 3
        words = "the index knew a message" if damage == "filler" else "the end of the log is lost"
        assert words in reported.stdout


def test_an_item_that_leads_into_a_record_is_only_a_wrong_item(tmp_path: Path) -> None:
    """The log has been read instead, and answers."""
    store = orders(tmp_path / "store")
    one = store.stored[7]
    for path, number in one.items:
        store.patch(path, store.index.position(number) + 4, (one.offset + 3).to_bytes(8, "big"))
    reported = rmq("query-key", store.root, "Orders", f"0A000001{7:024X}", "--json")
    assert reported.exit_code == 0
    assert reported.stdout.count('"type":"message"') == 1


def test_a_queue_that_begins_with_a_file_of_its_own_has_lost_none_in_front(tmp_path: Path) -> None:
    """The log says whether messages were in front: a queue may begin late."""
    store = HandmadeStore()
    store.begin_queue_at("Late", 0, 20)
    for _ in range(9):
        store.put("Late", b"body")
    store.write(tmp_path / "store")
    reported = rmq("query-offset", store.root, "Late", 0, 20, "-n", 9, "--json")
    assert reported.exit_code == 0, reported.stdout
    assert rmq("query-time", store.root, "Late", 0, store.of("Late")[3].time, "--json").exit_code == 0


@pytest.mark.parametrize("release", ["4.9.8", "5.3.3"])
def test_a_start_that_cuts_a_light_queue_gives_its_offsets_again(tmp_path: Path, release: str) -> None:
    """Only records say how far it reached: none of them has its queue offset as its own."""
    golden = open_golden("v498-lmq", tmp_path)
    ask = (golden.path, "--json", "--as-version", release, "--store-config", golden.config_path)
    assert '"verdict":"safe"' in rmq("doctor", *ask).stdout
    queue = sorted((golden.path / "consumequeue/%LMQ%alpha/0").iterdir())
    assert len(queue) > 1
    with queue[0].open("r+b") as file:
        file.write(b"\xff" * 20)
    reported = rmq("doctor", *ask)
    assert '"verdict":"unsafe"' in reported.stdout
    assert "DR-OFFSETS-TWICE" in reported.stdout


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


@pytest.mark.parametrize("table", ["[]", "null", '"x"'])
def test_a_topic_table_of_another_shape_ends_no_recovery(tmp_path: Path, table: str) -> None:
    store = healthy_store().write(tmp_path / "store")
    store.add("config/topics.json", f'{{"topicConfigTable":{table}}}'.encode())
    assert rmq("recover", store.root, "--output", tmp_path / "out", "--apply").exit_code == 0


@pytest.mark.parametrize(
    "command",
    [
        "query-offset STORE Orders 0 10",
        "query-key STORE Orders k20",
        "query-id STORE ID",
        "tail STORE -n 50",
        "stats STORE",
        "sql STORE QUERY",
    ],
)
def test_a_record_with_zeros_among_its_properties_is_damage_to_who_lists_it(
    tmp_path: Path, command: str
) -> None:
    store = orders(tmp_path / "store")
    one = store.of("Orders")[10]
    path, position = store.segment(one.offset)
    store.patch(path, position + one.size - 6, b"\0")
    words = {
        "STORE": store.root,
        "ID": f"0A00000200002A9F{one.offset:016X}",
        "QUERY": "select topic from messages",
    }
    reported = rmq(*(words.get(word, word) for word in command.split()), "--json")
    assert reported.exit_code == 3, reported.stdout
    assert "a zero byte in topic or properties" in reported.stdout
    done = rmq("export", store.root, "--to", tmp_path / "out.ndjson", "--json")
    assert done.exit_code == 3
    assert "a zero byte in topic or properties" in done.stdout


def test_a_log_that_ends_in_a_record_without_a_unit_misses_none(tmp_path: Path) -> None:
    """Since 5.3.2 the record at which the queues end is passed over; a rolled back one needs no unit."""
    store = HandmadeStore()
    for number in range(20):
        store.put("Orders", b"body %d" % number)
    store.put("Orders", b"rolled back", sys_flag=ROLLBACK, queue_offset=0)
    store.write(tmp_path / "store")
    reported = rmq("doctor", store.root, "--json", "--as-version", "5.3.3")
    assert reported.exit_code == 0
    assert '"verdict":"safe"' in reported.stdout


def test_salvage_goes_where_links_lead_and_comes_back(tmp_path: Path) -> None:
    store = orders(tmp_path / "store")
    shutil.move(store.root / "commitlog", tmp_path / "disk2")
    (store.root / "commitlog").symlink_to(tmp_path / "disk2")
    (tmp_path / "disk2/again").symlink_to(store.root)
    reported = rmq("salvage", store.root, "--output", tmp_path / "out", "--json")
    assert reported.exit_code == 0, reported.stderr
    assert strict.carve(tmp_path / "out").keys() == {one.offset for one in store.stored}


@pytest.mark.parametrize("text", [b"null", b"[]"])
def test_what_no_broker_writes_is_no_empty_table(text: bytes, tmp_path: Path) -> None:
    store = orders(tmp_path / "store")
    store.add("config/consumerOffset.json", text)
    for release in ("4.9.8", "5.3.3"):
        reported = rmq("doctor", store.root, "--json", "--as-version", release)
        assert reported.exit_code == 1
        assert '"safe_to_start":false' in reported.stdout
    store.add("config/consumerOffset.json", b"{}")
    assert rmq("doctor", store.root, "--as-version", "4.9.8").exit_code == 0


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


def test_a_file_in_the_place_of_a_topic_that_only_the_log_knows(tmp_path: Path) -> None:
    """`doctor` predicts lost queues there, so `verify` must not take it for any foreign file."""
    store = orders(tmp_path / "store")
    shutil.rmtree(store.root / "consumequeue/Orders")
    (store.root / "consumequeue/Orders").write_bytes(b"x")
    for path in (store.root / "config").glob("topics.json*"):
        path.unlink()
    assert rmq("doctor", store.root).exit_code == 1
    found = rmq("verify", store.root, "--format", "ndjson")
    assert found.exit_code == 1
    assert [one["path"] for one in found.rows if one.get("code") == "DIR-BLOCKED"] == ["consumequeue/Orders"]


def test_a_record_whose_topic_is_no_utf8_is_counted_once(tmp_path: Path) -> None:
    """It is damaged, and the entry of its queue leads to a record of another topic: one message."""
    store = orders(tmp_path / "store")
    path, at = store.segment(store.stored[5].offset)
    record = store.read(path, at, store.stored[5].size)
    store.patch(path, at + record.index(b"Orders"), b"\xff\xfe")
    for release in ("4.9.8", "5.3.3"):
        reported = json.loads(rmq("doctor", store.root, "--json", "--as-version", release).stdout)
        assert reported["already_damaged"]["messages"] == 1


def test_a_key_that_an_index_file_knows_whose_last_record_is_lost_too(tmp_path: Path) -> None:
    """The file is not used then, and still knows where the message was."""
    store = orders(tmp_path / "store")
    end = int.from_bytes((store.root / store.index.files[0].name).read_bytes()[24:32], "big")
    path, _ = store.segment(end)
    lost = next(one for one in store.stored if store.segment(one.offset)[0] == path)
    (store.root / path).unlink()
    unique = f"0A000001{store.stored.index(lost):024X}"
    reported = rmq("query-key", store.root, "Orders", unique, "--json")
    assert reported.exit_code == 3
    summary = json.loads(reported.stdout)["summary"]
    assert [one["physical_offset"] for one in summary["index_knew"]] == [lost.offset]
    assert f"not found, but the index knew it: offset {lost.offset}" in reported.stderr


def test_a_queue_file_whose_name_is_no_place_of_one_is_damage_to_a_query(tmp_path: Path) -> None:
    store = orders(tmp_path / "store")
    path = store.root / store.queues["Orders", 0].place(0)[0]
    path.rename(path.with_name(f"{1:020d}"))
    reported = rmq("query-offset", store.root, "Orders", 0, 6, "--json")
    assert reported.exit_code == 3
    assert "not a multiple of the 400 bytes" in reported.stdout
    assert '"messages":0' not in reported.stdout or "delivers messages" not in reported.stdout


@pytest.mark.parametrize("release", ["4.9.8", "5.3.3"])
def test_messages_of_a_light_queue_behind_units_of_another_queue_are_counted(
    tmp_path: Path, release: str
) -> None:
    """Nothing builds their units, and no record tells how far such a queue reached."""
    golden = open_golden("v533-lmq", tmp_path)
    queues = golden.path / "consumequeue"
    other = max((queues / "TopicLmq/0").iterdir())
    (mine,) = (queues / "%LMQ%beta/0").iterdir()
    count = sum(one[0] == "consumequeue" and one[1] == "%LMQ%beta" for one in strict.entries(golden.path))
    shutil.copyfile(other, mine)
    ask = ("--json", "--as-version", release, "--store-config", golden.config_path)
    reported = json.loads(rmq("doctor", golden.path, *ask).stdout)
    assert reported["verdict"] == "damaged"
    assert reported["already_damaged"]["messages"] == count


def test_a_record_whose_topic_is_no_utf8_is_damage_to_who_asks_for_it(tmp_path: Path) -> None:
    store = orders(tmp_path / "store")
    one = store.of("Orders")[10]
    path, position = store.segment(one.offset)
    store.patch(path, position + store.read(path, position, one.size).index(b"Orders") + 2, b"\xe5")
    for command in (
        f"query-id STORE 0A00000200002A9F{one.offset:016X}",
        "tail STORE -n 50",
        "stats STORE",
        f"export STORE --to {tmp_path / 'out.ndjson'}",
    ):
        reported = rmq(*command.replace("STORE", str(store.root)).split(), "--json")
        assert reported.exit_code == 3, command
        assert "1 record torn" in reported.stdout, command
        assert "a topic that is not UTF-8" in reported.stdout, command
    for command in (
        "query-key STORE Orders k20",
        "query-offset STORE Orders 0 10",
        f"query-time STORE Orders 0 {one.time}",
    ):
        reported = rmq(*command.replace("STORE", str(store.root)).split(), "--json")
        assert reported.exit_code == 3, command
        assert f'"physical_offset":{one.offset}' in reported.stdout, command


def test_a_search_by_time_in_a_queue_file_with_the_name_of_a_later_one(tmp_path: Path) -> None:
    """Every message is at another queue offset than its own, though in its queue and in order."""
    store = orders(tmp_path / "store", 40)
    path = store.root / store.queues["Orders", 0].place(0)[0]
    time = store.of("Orders")[3].time
    assert rmq("query-time", store.root, "Orders", 0, time, "--json").exit_code == 0
    path.rename(path.with_name(f"{4000:020d}"))
    reported = rmq("query-time", store.root, "Orders", 0, time, "--json")
    assert reported.exit_code == 3
    assert "lead to messages of other queue offsets" in reported.stdout


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


@pytest.mark.parametrize("expired", [False, True])
@pytest.mark.parametrize("release", ["4.9.8", "5.3.3"])
def test_a_queue_file_that_does_not_reach_its_first_entry(
    tmp_path: Path, release: str, expired: bool
) -> None:
    """Seeds 10630, 10807: a broker looks for an entry where the file's name says, and finds none."""
    store = orders(tmp_path / "store")
    if expired:
        store.remove(f"commitlog/{0:020d}")
    path = store.root / "consumequeue/Orders/0"
    (path / f"{0:020d}").rename(path / f"{1:020d}")
    reported = json.loads(rmq("doctor", store.root, "--json", "--as-version", release).stdout)
    assert reported["verdict"] == "damaged"
    assert reported["already_damaged"]["messages"] == 1


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


def test_a_queue_file_whose_name_is_a_little_too_low_serves_what_it_did(tmp_path: Path) -> None:
    """42375: the laws' own reader moved its units by one, which the real stores do not."""
    store = orders(tmp_path / "store")
    before = strict.entries(store.root)
    path = store.root / "consumequeue/Orders/0/00000000000000000400"
    path.rename(path.with_name("00000000000000000399"))
    assert strict.entries(store.root) == before
    reported = json.loads(rmq("doctor", store.root, "--json").stdout)
    assert reported["already_damaged"]["messages"] == 0


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
    assert [*stray_edits(store, "5.3.3", named=True)] == []
    assert bool([*stray_edits(store, "5.3.3", named=False)]) is goes


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
