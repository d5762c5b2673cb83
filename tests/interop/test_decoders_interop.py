"""Damaged tables in the hands of the brokers' own decoders: none that they give up counts as sound."""

from __future__ import annotations

import re
from random import Random
from typing import TYPE_CHECKING

import pytest

from rmqtool.broker.traits import traits_of
from rmqtool.check.config_files import View
from rmqtool.recovery.config_tables import config_view, parsed_by
from rmqtool.store.config_json import parse_config
from tests.interop.broker import BROKER_RELEASES
from tests.interop.conftest import require
from tests.interop.javastore import JavaProcess
from tests.store.test_fastjson import REFUSED, TAKEN

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.interop

VERSION = '{"dataVersion":{"counter":5,"stateVersion":0,"timestamp":17},'
TABLES = {
    "topics.json": VERSION + '"topicConfigTable":{"Orders":{"attributes":{"+a":"b"},"order":false,"perm":6,'
    '"readQueueNums":4,"topicFilterType":"SINGLE_TAG","topicName":"Orders","writeQueueNums":4}}}',
    "subscriptionGroup.json": VERSION + '"forbiddenTable":{"g":{"T":1}},"subscriptionGroupTable":{"g":'
    '{"brokerId":0,"consumeEnable":true,"groupName":"g","retryMaxTimes":16,"retryQueueNums":1}}}',
    "consumerOffset.json": VERSION + '"groupTopicMap":{},"offsetTable":{"T@g":{0:12,1:3},"U@g":{0:0}}}',
    "consumerFilter.json": '{"filterDataByTopic":{"T":{"groupFilterData":{"g":{"bornTime":1,"topic":"T",'
    '"consumerGroup":"g","expression":"a > 1","expressionType":"SQL92"}},"topic":"T"}}}',
}
OF_5 = {
    "lmqConsumerOffset.json": '{"lmqOffsetTable":{"%LMQ%a@g":5},"offsetTable":{"T@g":{0:12}}}',
    "consumerOrderInfo.json": '{"table":{"T@g":{0:{"popTime":1,"i":30000,"l":5,"o":[1],"ot":{1:2},"cm":0}}}}',
    "topicQueueMapping.json": VERSION + '"topicQueueMappingInfoMap":{"T":{"bname":"b","currIdMap":{0:0},'
    '"epoch":1,"hostedQueues":{},"scope":"s","topic":"T","totalQueues":4,"dirty":false}}}',
}
HELD = {"topics.json": "topicConfigTable", "consumerOffset.json": "offsetTable"}
PIECES = ("{}[]:,\"'\\\0\n\t -+", "truE", "0x1", ".5", "//c\n", "/*c*/", "NaN", "null", '"x":1,', "é", "e")


def flipped(random: Random, raw: bytes) -> bytes:
    """With one bit the other way."""
    data = bytearray(raw)
    data[random.randrange(len(data))] ^= 1 << random.randrange(8)
    return bytes(data)


def unquoted(random: Random, raw: bytes) -> bytes:
    """With a whole number without quotes in the place of a name."""
    found = random.choice(list(re.finditer(rb'"[^"]*"(?=:)', raw)))
    return raw[: found.start()] + random.choice([b"7", b"-1", b"03", b"99999999999"]) + raw[found.end() :]


def spliced(random: Random, raw: bytes) -> bytes:
    """With a piece cut out, written twice or put in, as where a file was written over another one."""
    at, end = sorted(random.randrange(len(raw) + 1) for _ in range(2))
    piece = random.choice([*PIECES[0], *PIECES[1:]]).encode()
    return random.choice(
        [
            raw[:at] + raw[end:],
            raw[:end] + raw[at:],
            raw[:at] + piece + raw[at:],
            raw[:at] + piece + raw[at + 1 :],
        ]
    )


@pytest.mark.parametrize("count", [1500, pytest.param(20_000, marks=pytest.mark.full)])
@pytest.mark.parametrize("broker", BROKER_RELEASES)
def test_no_table_that_a_decoder_gives_up_is_sound(
    broker: str, count: int, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    require(request.config, broker, "broker")
    traits = traits_of(broker)
    tables = TABLES | (OF_5 if traits.tables_of_5 else {})
    cases = [("consumerOffset.json", raw) for raw in (*TAKEN, *REFUSED)]
    for seed in range(count):
        random = Random(seed)
        name = random.choice(sorted(tables))
        cases.append(
            (name, random.choice([flipped, flipped, spliced, unquoted])(random, tables[name].encode()))
        )
    java = JavaProcess(broker, tmp_path, artifact="broker")
    try:
        held = java.call("decode", tables=[(name, raw.hex()) for name, raw in cases])
    finally:
        java.kill()
    wrong = []
    for (name, raw), real in zip(cases, held, strict=True):
        view = config_view(name, raw, traits)
        if real is None and view not in (View.UNPARSABLE, View.EMPTY):
            wrong.append((name, raw, view))
        elif real is not None and view is View.LOADS and (table := HELD.get(name)):
            mine = parsed_by(name, raw, traits).data.get(table) or {}
            lost = mine.keys() - (parse_config(real.encode()).data[table] or {}).keys()
            wrong += [(name, raw, lost)] * bool(lost)
    assert wrong == []
    assert [one is None for one in held[: len(TAKEN) + len(REFUSED)]] == [
        *(False for _ in TAKEN),
        *(True for _ in REFUSED),
    ]
