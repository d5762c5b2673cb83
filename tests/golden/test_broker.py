"""Broker goldens: every message that real consumers read back, found in the dumped log, field by field."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

import fixtures
from tests.golden.comparison import DUMP_OPTIONS, java_hash, message_differences
from tests.helpers import rmq

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Open = Callable[[str], fixtures.Golden]

LOG_IN_ANOTHER_FORMAT = {
    "b497-dledger": "the log lies in DLedger entries",
    "b533-dledger": "the log lies in DLedger entries",
}
QUEUES_IN_ANOTHER_FORMAT = {
    "b533-rocksdb": "consume queues in RocksDB",
}

ANSWERED_FROM_ANOTHER_LOG = {"TopicCompact"}
"""The broker answers for a compaction topic from the compacted log: offsets there are not those here."""

NOT_READ_BACK = {
    "b497-full": {"RMQ_SYS_TRANS_OP_HALF_TOPIC": 4, "TopicDeleted": 4, "TopicShrunk": 4},
    "b497-ha": {"RMQ_SYS_TRANS_OP_HALF_TOPIC": 4},
    "b497-ha-late": {"RMQ_SYS_TRANS_OP_HALF_TOPIC": 4},
    "b497-ha-late/store-slave": {"RMQ_SYS_TRANS_OP_HALF_TOPIC": 2},
    "b497-unclean": {"RMQ_SYS_TRANS_OP_HALF_TOPIC": 4, "TopicBasic": 152},
    "b533-compaction": {"TopicCompact": 121},
    "b533-full": {"TopicDeleted": 4, "TopicShrunk": 4},
    "b533-timer": {"rmq_sys_wheel_timer": 11},
    "b533-unclean": {"TopicBasic": 153},
}
"""On disk but not in `messages`: deleted topics and queues, a topic that 4.9.7 does not list, timer messages
that kept rolling, the burst before the kill."""

SLAVE_BEGINS_AT = {"b497-ha-late/store-slave": 32768, "b533-ha-late/store-slave": 32768}
OWN_TAGS_CODE = ("SCHEDULE_TOPIC_XXXX", "rmq_sys_wheel_timer")

LOGS = [name for name in fixtures.golden_names("broker") if name not in LOG_IN_ANOTHER_FORMAT]
PAIRS = [name for name in LOGS if "-ha" in name]
STORES = [name for name in LOGS if name not in PAIRS]
STORES += [f"{name}/store-{role}" for name in PAIRS for role in ("master", "slave")]


def open_store(golden: Open, label: str) -> tuple[fixtures.Golden, Path]:
    name, _, store = label.partition("/")
    opened = golden(name)
    return opened, opened.stores[store] if store else opened.path


def readable(opened: fixtures.Golden, label: str) -> list[dict[str, Any]]:
    """The messages that clients read and that must lie in this store's log."""
    first = SLAVE_BEGINS_AT.get(label, 0)
    return [
        message
        for message in opened.expected["messages"]
        if message["commitLogOffset"] >= first and message["topic"] not in ANSWERED_FROM_ANOTHER_LOG
    ]


@pytest.mark.parametrize("label", STORES)
def test_messages_are_those_that_clients_read(
    golden: Open, store_unchanged: Callable[[Path], Path], label: str
) -> None:
    opened, path = open_store(golden, label)
    result = rmq("dump", store_unchanged(path), *DUMP_OPTIONS)
    assert (result.exit_code, result.stderr) == (0, "")
    rows = {row["physical_offset"]: row for row in result.of_type("message")}
    messages = readable(opened, label)
    for message in messages:
        assert message_differences(rows[message["commitLogOffset"]], message, opened.release) == []
    seen = {message["commitLogOffset"] for message in messages}
    extra = Counter(row["topic"] for offset, row in rows.items() if offset not in seen)
    name = label.removesuffix("/store-master")
    same_log = label.removesuffix("/store-slave") if label not in SLAVE_BEGINS_AT else label
    assert extra == NOT_READ_BACK.get(same_log if name == label else name, {})
    assert {row["crc"] for row in rows.values()} <= {"ok", "absent"}
    assert result.of_type("gap") == []
    assert result.rows[-1]["complete"] is True


@pytest.mark.parametrize("name", PAIRS)
def test_a_slave_dumps_its_master_s_records(golden: Open, name: str) -> None:
    stores = golden(name).stores
    master, slave = (rmq("dump", stores[f"store-{role}"], *DUMP_OPTIONS) for role in ("master", "slave"))
    first = SLAVE_BEGINS_AT.get(f"{name}/store-slave", 0)
    own = [row for row in master.of_type("message") if row["physical_offset"] >= first]
    assert slave.of_type("message") == own


@pytest.mark.parametrize("name", ["b497-unclean", "b533-unclean"])
def test_everything_acknowledged_before_the_kill_is_dumped(golden: Open, name: str) -> None:
    opened = golden(name)
    rows = rmq("dump", opened.path, *DUMP_OPTIONS).of_type("message")
    acknowledged = {sent["offsetMsgId"] for sent in opened.expected["burstAcked"]}
    assert acknowledged
    assert acknowledged <= {row["offset_msg_id"] for row in rows}


@pytest.mark.share
@pytest.mark.parametrize(
    "label", [label for label in [*STORES, *LOG_IN_ANOTHER_FORMAT] if label not in QUEUES_IN_ANOTHER_FORMAT]
)
def test_units_point_at_the_messages_that_clients_read(golden: Open, label: str) -> None:
    opened, path = open_store(golden, label)
    queues: dict[tuple[str, int], dict[int, dict[str, Any]]] = {}
    for message in readable(opened, label):
        queue = message["topic"], message["queueId"]
        if queue not in queues:
            directory = path / "consumequeue" / queue[0] / str(queue[1])
            units = rmq("dump", directory, "--format", "ndjson").of_type("unit")
            queues[queue] = {unit["slot"]: unit for unit in units}
        unit = queues[queue][message["queueOffset"]]
        assert (unit["physical_offset"], unit["size"]) == (message["commitLogOffset"], message["storeSize"])
        if message["topic"] not in OWN_TAGS_CODE:
            tags = message["properties"].get("TAGS")
            assert unit["tags_code"] == (java_hash(tags) if tags else 0)
    assert queues
