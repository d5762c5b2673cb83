"""Found once by the generator, as smallest stores: queries by key, id, offset and time."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING

import pytest

from fixtures.goldens import Golden, open_golden
from fixtures.stores import HandmadeStore
from formats.commitlog import BLANK_MAGIC_CODE
from tests.helpers import rmq
from tests.laws.stores import message_id, orders

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def test_a_pull_where_the_last_queue_file_begins_with_zeros(tmp_path: Path) -> None:
    """Release 5 reads in front of the file's first unit, throws, and goes on with 0 as the minimum."""
    store = orders(tmp_path / "store")
    store.patch("consumequeue/Orders/0/00000000000000000400", 0, bytes(400))
    reported = rmq("query-offset", store.root, "Orders", 0, 3, "--json", "--as-version", "5.3.3")
    assert reported.exit_code == 0
    assert '"min_offset":0,' in reported.stdout


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


def test_a_pull_that_gives_messages_of_another_queue_is_reported(tmp_path: Path) -> None:
    store = orders(tmp_path / "store")
    path = store.queues["Orders", 0].place(0)[0]
    store.patch(path, 0, store.read(store.queues["Orders", 1].place(0)[0]))
    reported = rmq("query-offset", store.root, "Orders", 0, 3, "--json")
    assert reported.exit_code == 3
    assert "lead to messages of other queues" in reported.stdout
    assert rmq("query-offset", store.root, "Orders", 0, 25, "--json").exit_code == 0


def test_a_first_queue_file_without_bytes_is_damage_to_a_search_by_time(tmp_path: Path) -> None:
    store = orders(tmp_path / "store")
    store.resize(store.queues["Orders", 0].place(0)[0], 0)
    reported = rmq("query-time", store.root, "Orders", 0, store.of("Orders")[3].time, "--json")
    assert reported.exit_code == 3
    assert "the file has 0 of 400 bytes" in reported.stdout


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
