"""Units and index items of single records, against stores of real brokers."""

from __future__ import annotations

import shutil

import pytest

from rmqtool.query import offset_query, wrong_units
from rmqtool.query.by_id import find_uniq_key
from rmqtool.query.index_lookup import items_of_record
from rmqtool.query.target import at_offset, by_id, is_id
from rmqtool.query.units import units_of
from rmqtool.scan.options import ReadOptions
from rmqtool.store.layout import Store
from tests.helpers import rmq

CLEAN = [
    "v470-basic",
    "v490-basic",
    "v498-basic",
    "v498-cqext",
    "v498-lmq",
    "v498-preblank",
    "v498-ipv6",
    "v533-basic",
    "v533-batch",
    "v533-batchcq",
    "v533-compressed",
    "v533-cqext",
    "v533-ipv6",
    "v533-preblank",
    "v533-props-crc",
    "v533-v2",
]


@pytest.mark.share
@pytest.mark.parametrize("name", CLEAN)
def test_every_unit_and_index_item_of_a_clean_store_agrees(golden, name):
    found = golden(name)
    store = Store.open(found.path)
    for expected in found.expected["records"][::5]:
        offset = expected["physicalOffset"]
        record = at_offset(store, str(offset), offset).record()
        own, others = units_of(store, record)
        assert own.agrees, (offset, own)
        assert own.differences == []
        assert all(other.agrees for other in others), (offset, others)
        keys = [key for _, key in record.indexed_keys]
        items, skipped = items_of_record(store, record.topic, keys, offset)
        assert not skipped
        assert all(items.values()), (offset, items)


def test_transactions_that_never_enter_a_queue_have_no_unit(golden):
    found = golden("v533-tx")
    store = Store.open(found.path)
    kinds = {}
    for expected in found.expected["records"]:
        record = at_offset(store, "", expected["physicalOffset"]).record()
        own, _ = units_of(store, record)
        kinds.setdefault(expected["sysFlag"] & 0xC, set()).add(own.absent)
    assert kinds[0x0] == kinds[0x8] == {None}
    assert kinds[0x4] == {"a prepared record has no consume queue entry"}
    assert kinds[0xC] == {"a rollback record has no consume queue entry"}


def test_multi_dispatch_gone_wrong_is_seen(golden):
    """A name without the LMQ prefix makes 5.3.3 skip units: %LMQ%beta holds later ones in their places."""
    found = golden("v533-lmq")
    store = Store.open(found.path)
    wrong = set()
    for expected in found.expected["records"]:
        record = at_offset(store, "", expected["physicalOffset"]).record()
        own, others = units_of(store, record)
        assert own.agrees
        wrong |= {other.topic for other in others if other.agrees is False}
    assert wrong == {"%LMQ%beta"}


def test_a_pull_of_a_queue_that_runs_ahead_is_complete(golden):
    """Each message of %LMQ%beta is delivered, whatever its list says; the same in 4.9.8 is damage."""
    found = golden("v533-lmq")
    for release, code in (("5.3.3", 0), ("4.9.8", 3)):
        done = rmq("query-offset", found.path, "%LMQ%beta", 0, 0, "-n", 32, "--as-version", release)
        assert done.exit_code == code


def test_pulls_of_a_queue_that_runs_ahead_read_the_log_once(golden, monkeypatch):
    """However many there are: what the log shows of the queue is kept."""
    read = []
    opened = wrong_units.opened

    def counted(segment, *rest, **more):
        read.append(segment.base)
        return opened(segment, *rest, **more)

    monkeypatch.setattr(wrong_units, "opened", counted)
    monkeypatch.setattr(offset_query, "AT_ONCE", 1)
    found = golden("v533-lmq")
    assert rmq("query-offset", found.path, "%LMQ%beta", 0, 0, "-n", 32).exit_code == 0
    assert read
    assert len(read) == len(set(read))


def test_extension_addresses_are_resolved(golden):
    found = golden("v533-cqext")
    store = Store.open(found.path)
    expected = {
        (queue["topic"], queue["queue"], unit[0]): unit[3]
        for queue in found.expected["cqUnits"]
        for unit in queue["units"]
    }
    for one in found.expected["records"]:
        record = at_offset(store, "", one["physicalOffset"]).record()
        own, _ = units_of(store, record)
        assert own.ext_tags_code == expected[own.topic, own.queue_id, own.slot]
        assert own.meaning == "extension address"


@pytest.mark.share
@pytest.mark.parametrize("name", ["v498-basic", "v533-ipv6", "v470-basic"])
def test_unique_ids_are_found_by_the_index_and_by_reading(golden, name, tmp_path):
    found = golden(name)
    store = Store.open(found.path)
    places = {}
    for one in found.expected["records"]:
        if one["uniqKey"]:
            places.setdefault(one["uniqKey"], []).append(one["physicalOffset"])
    for key in list(places)[::40]:
        indexed = find_uniq_key(store, key, ReadOptions())
        assert list(indexed.offsets) == places[key]
        assert indexed.source in {"index", "index+scan"}
        scanned = find_uniq_key(Store.open(found.path / "commitlog"), key, ReadOptions())
        assert (list(scanned.offsets), scanned.source) == (places[key], "scan")
        assert list(find_uniq_key(store, key.lower(), ReadOptions()).offsets) == places[key]


def test_a_unique_id_of_a_topic_that_only_its_records_name_is_found_by_reading(fresh_golden):
    found = fresh_golden("v533-basic")
    known = [one for one in found.expected["records"] if one["uniqKey"] and one["topic"][0] != "%"]
    one = known[9]  # not at the end of an index file, where the log is read anyway
    shutil.rmtree(found.path / "consumequeue" / one["topic"])
    for name in ("topics.json", "topics.json.bak"):
        (found.path / "config" / name).unlink(missing_ok=True)
    answer = find_uniq_key(Store.open(found.path), one["uniqKey"], ReadOptions())
    assert (answer.offsets, answer.source) == ((one["physicalOffset"],), "scan")
    assert not find_uniq_key(Store.open(found.path), one["uniqKey"], ReadOptions(), thorough=False).offsets


@pytest.mark.parametrize("name", ["v498-basic", "v533-ipv6"])
def test_offset_ids_need_no_flag(golden, name):
    found = golden(name)
    store = Store.open(found.path)
    for one in found.expected["records"][::20]:
        answer = by_id(store, one["offsetMsgId"], ReadOptions())
        assert answer.kind == "offset_msg_id"
        assert answer.place.physical_offset == one["physicalOffset"]
        assert answer.notes == []


def test_forms_of_ids():
    assert is_id("7F00000100002A9F0000000140000833")
    assert is_id("a" * 56)
    assert not is_id("0" * 20)
    assert not is_id("0x" + "0" * 30)
    assert not is_id("g" * 32)
