"""Keys: through the index, by reading, and both, against what stores of real brokers hold."""

from __future__ import annotations

import struct
from dataclasses import replace
from itertools import product

import pytest

from fixtures.builder import FIRST_TIME, HandmadeLog
from fixtures.stores import HandmadeStore
from formats.index import Header, Item, key_hash, slot_of
from formats.primitives import offset_of, sizeof
from rmqtool import Message
from rmqtool.query import by_key, index_lookup
from rmqtool.query.by_key import KeySource, find_keys
from rmqtool.query.index_lookup import open_index
from rmqtool.query.wanted_keys import WantedKeys
from rmqtool.scan.options import ReadOptions
from rmqtool.store.layout import Store
from tests.helpers import rmq
from tests.messagestore.helpers import open_small
from tests.query.serving import NAMES
from tests.tiers import kind_of, sampled

HEADER, ITEM = sizeof(Header), sizeof(Item)
ROLLBACK = 12
EVERYWHERE = (None, None)


def find(store, keys, topic=None, *, source=KeySource.AUTO, window=EVERYWHERE):
    return find_keys(store, WantedKeys(keys, topic), window=window, source=source, reading=ReadOptions())


def having(found, topic, key, low, high, *, rolled_back):
    """Java's records with that topic and key in a window."""
    return sorted(
        one["physicalOffset"]
        for one in found.expected["records"]
        if one["topic"] == topic
        and (key in (one["keys"] or "").split(" ") or one["uniqKey"] == key)
        and low <= one["storeTimestamp"] < high
        and (rolled_back or one["sysFlag"] & ROLLBACK != ROLLBACK)
    )


@pytest.mark.share
@pytest.mark.parametrize(
    ("name", "source"), sampled(product(NAMES, KeySource), kind=lambda one: kind_of(one[0]), unpack=True)
)
def test_every_query_of_java_is_answered_by_what_the_log_holds(golden, name, source):
    found = golden(name)
    store = Store.open(found.path)
    for asked in found.expected["queryKey"]:
        window = asked["begin"], asked["end"]
        scanned = having(found, asked["topic"], asked["key"], *window, rolled_back=True)
        wanted = having(found, asked["topic"], asked["key"], *window, rolled_back=False)
        answer = find(store, [asked["key"]], asked["topic"], source=source, window=window)
        assert sorted(answer.matches) == (scanned if answer.source == "scan" else wanted), asked
        if len(asked["physicalOffsets"]) < 64:
            read = {one["physicalOffset"] for one in found.expected["records"]}
            assert set(asked["physicalOffsets"]) & set(wanted) <= set(answer.matches)
            assert set(answer.matches) <= read


@pytest.mark.parametrize("name", ["v498-basic", "v533-tx", "v533-lmq", "v470-basic", "v533-ipv6"])
def test_all_topics_at_once(golden, name):
    found = golden(name)
    store = Store.open(found.path)
    keys = sorted({asked["key"] for asked in found.expected["queryKey"]})
    topics = {one["topic"] for one in found.expected["records"]}
    wanted = {
        at
        for topic in topics
        for key in keys
        for at in having(found, topic, key, 0, 1 << 62, rolled_back=True)
    }
    assert set(find(store, keys, source=KeySource.SCAN).matches) == wanted
    rolled = {
        at
        for topic in topics
        for key in keys
        for at in having(found, topic, key, 0, 1 << 62, rolled_back=False)
    }
    assert set(find(store, keys).matches) in (rolled, wanted)


@pytest.fixture
def indexed(fresh_golden):
    """A store of this test's own, its index files, and a key that many records have."""
    found = fresh_golden("v533-basic")
    return found, sorted((found.path / "index").iterdir())


def order(found, key="order-7", topic="TopicB"):
    return having(found, topic, key, 0, 1 << 62, rolled_back=False)


def popular(found):
    """Topic and key with records in several index files."""
    counts = {}
    for one in found.expected["records"]:
        for key in filter(None, (one["keys"] or "").split(" ")):
            counts[one["topic"], key] = counts.get((one["topic"], key), 0) + 1
    return max(counts, key=counts.get)


def set_int(path, position, value, form=">i"):
    raw = bytearray(path.read_bytes())
    struct.pack_into(form, raw, position, value)
    path.write_bytes(raw)


DAMAGE = {
    "gone": lambda path: path.unlink(),
    "empty": lambda path: path.write_bytes(b""),
    "zeros": lambda path: path.write_bytes(bytes(path.stat().st_size)),
    "cut": lambda path: path.write_bytes(path.read_bytes()[:100]),
    "count": lambda path: set_int(path, offset_of(Header, "index_count"), 1 << 30),
    "range": lambda path: set_int(path, offset_of(Header, "end_physical_offset"), -5, ">q"),
    "beyond": lambda path: set_int(path, offset_of(Header, "end_physical_offset"), 1 << 40, ">q"),
}


@pytest.mark.share
@pytest.mark.parametrize("which", [0, 1, -1])
@pytest.mark.parametrize("kind", DAMAGE)
def test_what_a_damaged_index_file_does_not_answer_is_read(indexed, kind, which):
    found, files = indexed
    topic, key = popular(found)
    wanted = order(found, key, topic)
    DAMAGE[kind](files[which])
    store = Store.open(found.path)
    answer = find(store, [key], topic)
    assert sorted(answer.matches) == wanted
    assert answer.source in {"index+scan", "scan"}
    assert answer.not_covered == []
    alone = find(store, [key], topic, source=KeySource.INDEX)
    assert set(alone.matches) <= set(wanted)
    assert [row["reason"] for row in alone.not_covered]
    if kind in {"count", "range", "beyond"}:
        assert files[which].name in str(answer.setbacks)


def test_without_any_index_the_log_is_read(indexed):
    found, files = indexed
    topic, key = popular(found)
    for path in files:
        path.unlink()
    answer = find(Store.open(found.path), [key], topic)
    assert (sorted(answer.matches), answer.source) == (order(found, key, topic), "scan")


@pytest.mark.parametrize("length", [1, 2, 3])
def test_cycles_of_any_length_end_and_are_noticed(indexed, length):
    """The newest items of one slot point at each other, or at themselves."""
    found, files = indexed
    topic, key = popular(found)
    store = Store.open(found.path)
    path = next(file for file in files if _chain(store, file, topic, key)[length - 1 :])
    chain = _chain(store, path, topic, key)
    with open_index(store, store.file(f"index/{path.name}")) as reader:
        slots = reader._slots
    at = HEADER + slots * 4 + ITEM * chain[length - 1] + offset_of(Item, "prev")
    set_int(path, at, chain[0])
    answer = find(Store.open(found.path), [key], topic)
    assert sorted(answer.matches) == order(found, key, topic)
    assert "cannot be in it" in answer.setbacks[f"index/{path.name}"]


def _chain(store, path, topic, key):
    """Numbers of all items in the slot of a key, the newest first."""
    with open_index(store, store.file(f"index/{path.name}")) as reader:
        slot = slot_of(key_hash(topic, key), reader._slots)
        number = int.from_bytes(reader._source.window(HEADER + slot * 4, 4).tobytes(), "big")
        chain = []
        while number:
            chain.append(number)
            number = reader.item(number).prev
    return chain


def _lost_slot(path, chain, slot_at, item_at):
    set_int(path, slot_at, 0)


def _stale_slot(path, chain, slot_at, item_at):
    set_int(path, slot_at, chain[-1])


def _cut_chain(path, chain, slot_at, item_at):
    set_int(path, item_at(chain[0], "prev"), 0)


def _item_without_record(path, chain, slot_at, item_at):
    set_int(path, item_at(chain[0], "physical_offset"), 1, ">q")


def _item_to_another_record(path, chain, slot_at, item_at):
    set_int(path, item_at(chain[0], "physical_offset"), 0, ">q")


def _item_behind_the_log(path, chain, slot_at, item_at):
    set_int(path, item_at(chain[0], "physical_offset"), 1 << 40, ">q")


SILENT_DAMAGE = [
    _lost_slot,
    _stale_slot,
    _cut_chain,
    _item_without_record,
    _item_to_another_record,
    _item_behind_the_log,
]


@pytest.mark.parametrize("damage", SILENT_DAMAGE)
def test_a_chain_that_hides_items_is_noticed(indexed, damage):
    """Nothing on such a chain contradicts itself: what it hides looks like keys that are not there."""
    found, files = indexed
    topic, key = popular(found)
    store = Store.open(found.path)
    path, chain = _own_chain(store, files, topic, key)
    with open_index(store, store.file(f"index/{path.name}")) as reader:
        slots = reader._slots

    def item_at(number, field):
        return HEADER + slots * 4 + ITEM * number + offset_of(Item, field)

    damage(path, chain, HEADER + slot_of(key_hash(topic, key), slots) * 4, item_at)
    store = Store.open(found.path)
    answer = find(store, [key], topic)
    assert sorted(answer.matches) == order(found, key, topic)
    assert list(answer.setbacks) == [f"index/{path.name}"]
    alone = find(store, [key], topic, source=KeySource.INDEX)
    assert any(row.get("length", 0) > 1000 for row in alone.not_covered)


def _own_chain(store, files, topic, key):
    """An index file, and the numbers of all items of the key in it, several and not the file's last."""
    for path in files:
        with open_index(store, store.file(f"index/{path.name}")) as reader:
            own = [one.number for one in reader.find(key_hash(topic, key))]
            if len(own) > 2 and own[0] < reader.header.index_count - 1:
                return path, own
    raise AssertionError(key)


@pytest.mark.parametrize("damage", [_lost_slot])
def test_lost_slots_of_a_large_file_show_in_the_count_of_the_header(indexed, monkeypatch, damage):
    monkeypatch.setattr(index_lookup, "ALL_COMPARED", 0)
    test_a_chain_that_hides_items_is_noticed(indexed, damage)


@pytest.mark.parametrize("name", ["begin_timestamp", "end_timestamp"])
def test_a_header_with_a_false_time_hides_no_file(indexed, name):
    found, files = indexed
    topic, key = popular(found)
    times = [one["storeTimestamp"] for one in found.expected["records"]]
    window = min(times), max(times) + 1
    for path in files:
        set_int(path, offset_of(Header, name), max(times) + 10_000 if name.startswith("b") else 0, ">q")
    answer = find(Store.open(found.path), [key], topic, window=window)
    assert sorted(answer.matches) == order(found, key, topic)
    assert all(name in why for why in answer.setbacks.values())
    assert len(answer.setbacks) == len(files)


def test_an_item_without_its_record_is_counted(indexed):
    """The candidate is missing; nothing else is wrong."""
    found, files = indexed
    topic, key = popular(found)
    store = Store.open(found.path)
    path = files[0]
    number = _chain(store, path, topic, key)[-1]
    with open_index(store, store.file(f"index/{path.name}")) as reader:
        slots, value = reader._slots, reader.item(number)
    at = HEADER + slots * 4 + ITEM * number + offset_of(Item, "physical_offset")
    set_int(path, at, value.physical_offset + 1, ">q")
    answer = find(store, [key], topic, source=KeySource.INDEX)
    if value.key_hash == key_hash(topic, key):
        assert [one.physical_offset for one in answer.missing] == [value.physical_offset + 1]


COLLIDING = "Aa", "BB"
"""the same Java hash, so the same index hash in every topic"""


@pytest.fixture
def colliding(tmp_path):
    log = HandmadeLog()
    for number in range(20):
        log.put("T", b"", {"KEYS": COLLIDING[number % 2], "UNIQ_KEY": f"{number:032X}"})
    log.put("T", b"", {"KEYS": "x Aa y", "UNIQ_KEY": f"{99:032X}"})
    log.put("U", b"", {"KEYS": "Aa", "UNIQ_KEY": f"{98:032X}"})
    log.write(tmp_path / "commitlog")
    return Store.open(tmp_path), log


def test_keys_with_one_hash_are_told_apart(colliding):
    store, log = colliding
    answer = find(store, ["Aa"], "T")
    starts = [one.physical_offset for one in log.records]
    assert sorted(answer.matches) == [*starts[:20:2], starts[20]]
    assert answer.collisions == 10
    assert sorted(find(store, ["BB"]).matches) == starts[1:20:2]
    both = find(store, ["Aa", "BB"])
    assert set(both.matches.values()) == {frozenset({"Aa"}), frozenset({"BB"})}
    assert both.collisions == 0


def test_an_element_is_no_substring(colliding):
    store, _ = colliding
    assert not find(store, ["A"], "T").matches
    assert not find(store, ["x Aa y"], "T").matches
    assert len(find(store, ["y"], "T").matches) == 1


def test_a_unique_id_alone(colliding):
    store, log = colliding
    wanted = WantedKeys([f"{98:032X}", "Aa"], uniq_key_only=True)
    answer = find_keys(store, wanted, reading=ReadOptions())
    assert list(answer.matches) == [log.records[-1].physical_offset]


def test_many_keys_compare_the_whole_column_with_the_same_result(golden, monkeypatch):
    found = golden("v533-basic")
    store = Store.open(found.path)
    keys = [key for one in found.expected["records"] for key in filter(None, (one["keys"] or "").split(" "))]
    some = sorted(set(keys))[:50]
    few = find(store, some)
    monkeypatch.setattr(by_key, "FEW_HASHES", 0)
    many = find(store, some)
    assert few.matches == many.matches
    assert many.source == few.source
    assert len(few.matches) > 10


def test_a_hundred_thousand_keys_in_one_pass(golden):
    found = golden("v533-basic")
    store = Store.open(found.path)
    topic, key = popular(found)
    wanted = [f"none-{number}" for number in range(100_000)] + [key]
    for source in KeySource:
        answer = find(store, wanted, topic, source=source)
        assert set(order(found, key, topic)) == set(answer.matches), source


@pytest.mark.parametrize("source", sampled(KeySource, kind=lambda _: ""))
def test_windows_are_half_open(golden, source):
    found = golden("v533-basic")
    store = Store.open(found.path)
    topic, key = popular(found)
    times = {one["physicalOffset"]: one["storeTimestamp"] for one in found.expected["records"]}
    places = order(found, key, topic)
    for moment in {times[place] for place in places}:
        exact = find(store, [key], topic, source=source, window=(moment, moment + 1))
        assert sorted(exact.matches) == [place for place in places if times[place] == moment]
        assert not set(exact.matches) & set(
            find(store, [key], topic, source=source, window=(None, moment)).matches
        )


def test_an_interrupt_keeps_what_was_found(golden, monkeypatch):
    found = golden("v533-basic")
    store = Store.open(found.path)
    topic, key = popular(found)

    def interrupted(size):
        raise KeyboardInterrupt

    reading = replace(ReadOptions(), advance=interrupted)
    answer = find_keys(store, WantedKeys([key], topic), source=KeySource.SCAN, reading=reading)
    assert [row["reason"] for row in answer.not_covered] == ["interrupted"]
    assert set(answer.matches) < set(order(found, key, topic))


def test_a_torn_record_that_is_listed_is_said_once(damaged) -> None:
    """The scan says so, and whoever lists it."""
    root = damaged("v533-block-swap-512-last-clean")
    result = rmq("query-key", root, "PayTopic", "k1204", "--source", "scan", "--format", "ndjson")
    message, summary = result.rows
    found = [row for row in summary["not_covered"] if row["physical_offset"] == message["physical_offset"]]
    assert len(found) == 1


@pytest.mark.parametrize("source", [KeySource.AUTO, KeySource.SCAN])
def test_a_segment_that_begins_after_the_log_was_listed_is_not_a_lost_end(tmp_path, source):
    """Beside a writer queues are read later than the log is listed, and know of messages behind its end."""
    with open_small(tmp_path, mappedFileSizeConsumeQueue=20_000) as writer:
        writer.put_many([Message("T", b"body", queue_id=0, keys=[f"k{one}"]) for one in range(10)])
    store = Store.open(tmp_path)
    assert (len(store.segments), len(store.queues())) == (1, 1)
    with open_small(tmp_path, mappedFileSizeConsumeQueue=20_000) as writer:
        writer.put_many([Message("T", b"body", queue_id=0) for _ in range(200)])
    answer = find(store, ["k3"], "T", source=source)
    assert (len(answer.matches), answer.not_covered) == (1, [])
    for path in sorted((tmp_path / "commitlog").iterdir())[len(store.segments) :]:
        path.unlink()
    lost = find(store, ["k3"], "T", source=source).not_covered
    assert [row["error"].endswith("the end of the log is lost") for row in lost] == [True]


HOUR, YEAR = 3_600_000, 365 * 86_400_000
CLOCKS = {
    "idle": lambda number: FIRST_TIME + number * HOUR,
    "set back": lambda number: FIRST_TIME + number * 1000 - YEAR * (number >= 30),
    "stepped back": lambda number: FIRST_TIME + number * 1000 - 30_000 * (number % 20 == 0),
}


@pytest.mark.share
@pytest.mark.parametrize("clock", CLOCKS)
def test_a_window_holds_what_was_stored_in_it_whatever_the_clock_did(tmp_path, clock):
    """The first item of an index file counts its time from the end of the one before; clocks are set back."""
    made = HandmadeStore()
    times = [CLOCKS[clock](number) for number in range(60)]
    for number, time in enumerate(times):
        made.put("Orders", b"body", keys=f"k{number}", store_timestamp=time)
    made.write(tmp_path)
    store = Store.open(tmp_path)
    for number, time in enumerate(times):
        for key in (f"k{number}", f"0A000001{number:024X}"):
            found = find(store, [key], "Orders", window=(time - 300, time + 300))
            assert [*found.matches] == [made.stored[number].offset], key
