"""What clients of real brokers were answered (`queryMessage`, `viewMessage`, pulls), found offline again."""

from __future__ import annotations

from itertools import product

import pytest

import fixtures
from rmqtool.query.by_key import KeySource, find_keys
from rmqtool.query.id_query import IdQuery
from rmqtool.query.target import is_id
from rmqtool.query.wanted_keys import WantedKeys
from rmqtool.scan.options import ReadOptions
from rmqtool.scan.picked import pick
from rmqtool.store.layout import Store
from tests.tiers import kind_of, of_each_kind, sampled

NAMES = [name for name in fixtures.golden_names("broker") if "dledger" not in name]
"""DLedger data files are not decoded"""


@pytest.mark.share
@pytest.mark.parametrize(
    ("name", "source"),
    sampled(product(NAMES, (KeySource.AUTO, KeySource.SCAN)), kind=lambda one: kind_of(one[0]), unpack=True),
)
def test_keys_that_a_client_asked_for(golden, name, source):
    found = golden(name)
    store = Store.open(found.path)
    for asked in found.expected.get("keyQueries", ()):
        wanted = {hit["commitLogOffset"] for hit in asked.get("hits", ())}
        answer = find_keys(
            store, WantedKeys([asked["key"]], asked["topic"]), source=source, reading=ReadOptions()
        )
        if "CODE: 17" in asked.get("error", ""):
            continue  # the topic is deleted: the broker refuses, its records still lie there
        assert wanted <= set(answer.matches), asked
        later = sorted(set(answer.matches) - wanted)
        asked_at = asked.get("indexLastUpdateTimestamp", 1 << 62)
        for part in pick(store.segments, later, ("store_timestamp",)):
            assert part["store_timestamp"][0].as_py() > asked_at, asked
        assert answer.not_covered == []


@pytest.mark.share
@pytest.mark.parametrize("name", of_each_kind(NAMES))
def test_ids_that_a_client_asked_for(golden, name):
    found = golden(name)
    store = Store.open(found.path)
    for asked in found.expected.get("viewMessage", ()):
        if asked.get("found") is None:
            continue
        query = IdQuery(store, asked["asked"], ReadOptions())
        offsets = [
            at
            for part, _ in query.batches(("physical_offset",))
            for at in part["physical_offset"].to_pylist()
        ]
        assert asked["found"]["commitLogOffset"] in offsets, asked


@pytest.mark.share
@pytest.mark.parametrize("most", [10, pytest.param(1 << 20, marks=pytest.mark.full)])
@pytest.mark.parametrize("name", of_each_kind(NAMES))
def test_every_message_that_was_pulled_is_found_by_both_its_ids(golden, name, most):
    found = golden(name)
    store = Store.open(found.path)
    topics = store.topics
    compacted = {name for name, one in topics.items() if one.attributes.get("cleanup.policy") == "COMPACTION"}
    messages = found.expected["messages"]
    for message in messages[:: 1 + len(messages) // most]:
        offset = message["commitLogOffset"]
        if message["topic"] in compacted:
            continue  # its offset is one of the compacted log
        by_offset = IdQuery(store, message["offsetMsgId"], ReadOptions())
        assert by_offset.found_by == {offset: "offset_msg_id"}, message
        if message["msgId"] != message["offsetMsgId"]:
            given = message["msgId"].lower() if is_id(message["msgId"]) else message["msgId"]
            by_client = IdQuery(store, given, ReadOptions())
            assert by_client.found_by[offset] == "uniq_key", message
            parts = by_client.answers[0].id_parts
            assert (parts is not None and bool(parts["host"])) or not is_id(message["msgId"])
