"""Numbers of 5,000 digits in properties, configuration, names and log lines are numbers to no command."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fixtures.builder import HandmadeLog
from fixtures.handmade import plain_unit
from fixtures.stores import HandmadeStore
from formats.commitlog import SysFlag
from formats.java import java_parse_int
from rmqtool.errors import NewerFormatError
from rmqtool.repair.journal import Journal, parse_as
from rmqtool.repair.salvage.relocate import batch_width
from rmqtool.store.config_json import parse_config
from tests.helpers import rmq

LONG = "9" * 5000


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = HandmadeStore(HandmadeLog(segment_size=1 << 16))
    flag = int(SysFlag.INNER_BATCH | SysFlag.NEED_UNWRAP)
    lmq = {"INNER_MULTI_DISPATCH": "%LMQ%x", "INNER_MULTI_QUEUE_OFFSET": LONG}
    many = made.put("Orders", b"x", keys="k1", properties=lmq)
    batch = made.put("Batches", b"x", properties={"INNER_BASE": LONG, "INNER_NUM": LONG}, sys_flag=flag)
    made.put("SCHEDULE_TOPIC_XXXX", b"x", queue_id=2, properties={"DELAY": LONG, "REAL_QID": LONG})
    made.put("Orders", b"x", properties={"TIMER_DELAY_MS": LONG, "RECONSUME_TIME": LONG, "POP_CK": LONG})
    made.queues.pop(("Batches", 0))
    made.put_batch("Batches", [b"a", b"b"])
    made._queue("%LMQ%x", 0).append(plain_unit(many.offset, many.size, 0))
    root = tmp_path_factory.mktemp("long") / "store"
    made.write(root)
    path, at = made.stored[-1].unit or ("", 0)
    unit = bytearray(made.read(path, at, 46))
    unit[:8] = batch.offset.to_bytes(8, "big")
    made.patch(path, at, bytes(unit))
    offsets = {"Orders@g": {LONG: 3, "0": int("9" * 30)}, "a\ud800@g": {"0": 1}}
    expression = {
        "consumerGroup": "g",
        "topic": "Orders",
        "expression": f"a = {LONG}",
        "expressionType": "SQL92",
    }
    topics = {
        "Orders": {"perm": 10**12, "readQueueNums": 10**12},
        "b\ud800": {"attributes": {"\ud801": "\ud802"}},
    }
    for name, data in {
        "consumerOffset": {"offsetTable": offsets},
        "delayOffset": {"offsetTable": {LONG: 3, "2": 1}},
        "topics": {"topicConfigTable": topics},
        "consumerFilter": {"filterDataByTopic": {"Orders": {"filterDataMap": {"g": expression}}}},
    }.items():
        made.add(f"config/{name}.json", json.dumps(data).encode())
    return root


@pytest.mark.share
@pytest.mark.parametrize(
    "command",
    [
        "verify",
        "doctor",
        "stats",
        "dump",
        "recover",
        "query-offset STORE Orders 0 min --group g",
        "query-offset STORE Orders 0 min --filter a>1 --filter-type sql92",
        "query-key STORE Orders k1",
        "sql STORE select+*+from+consumer_offsets",
        "sql STORE select+*+from+topics",
        "rebuild",
    ],
)
def test_no_internal_error(store: Path, command: str) -> None:
    name, *rest = command.split()
    arguments = [str(store) if one == "STORE" else one.replace("+", " ") for one in rest] or [str(store)]
    result = rmq(name, *arguments)
    assert result.exit_code in (0, 1, 2, 3), result.stderr


def test_names_as_json_shows_them(tmp_path: Path) -> None:
    (tmp_path / "config").mkdir()
    topics = {"Orders": {}, "b\ud800": {"attributes": {"\ud801": "\ud802"}}}
    (tmp_path / "config/topics.json").write_text(json.dumps({"topicConfigTable": topics}))
    found = rmq("sql", tmp_path, "select topic, perm from topics where configured", "--format", "ndjson")
    assert [(one["topic"], one["perm"]) for one in found.of_type("row")] == [("Orders", 6), ("b\\ud800", 6)]


def test_a_log_line(tmp_path: Path) -> None:
    log = tmp_path / "store.log"
    log.write_text(
        "2026-11-21 09:00:01 WARN ReputMessageService - "
        f"[BUG]logic queue order maybe wrong, expectLogicOffset: "
        f"{LONG} currentLogicOffset: {LONG} Topic: T QID: {LONG} Diff: {LONG}\n"
    )
    assert rmq("explain", log).exit_code == 1  # the line is of a problem


def test_parsers() -> None:
    assert java_parse_int(LONG, 64) is None
    assert java_parse_int("0" * 5000 + "7") == 7
    assert batch_width(LONG) == batch_width("-1") == 1
    numbers = f'{{"a": {LONG}, "b": -9223372036854775808}}'.encode()
    assert parse_config(numbers).data == {"a": None, "b": -(1 << 63)}
    with pytest.raises(NewerFormatError):
        parse_as(Journal, {"schema": f"rmqtool.journal/{LONG}"}, "path", "journal")
