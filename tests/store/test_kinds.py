"""Every row of the directory tree, and near misses."""

from __future__ import annotations

import pytest

from rmqtool.store.kinds import FileKind, is_rocksdb_name, role_of

ROWS = [
    ("commitlog/00000000001073741824", "commitlog", 1073741824),
    ("consumequeue/%RETRY%g/3/00000000000006000000", "consumequeue", 6000000),
    ("consumequeue_ext/T/0/00000000000000000000", "consumequeue_ext", 0),
    ("batchconsumequeue/T/0/00000000000013800000", "batchconsumequeue", 13800000),
    ("consumequeue/CURRENT", "rocksdb", None),
    ("consumequeue/000010.sst", "rocksdb", None),
    ("consumequeue/MANIFEST-000005", "rocksdb", None),
    ("index/20231114221320123", "index", None),
    ("index/25661114221320123", "index", None),
    ("checkpoint", "checkpoint", None),
    ("abort", "abort", None),
    ("abort.bak", "abort_bak", None),
    ("lock", "lock", None),
    ("config/topics.json", "config", None),
    ("config/subscriptionGroup.json", "config", None),
    ("config/consumerOffset.json", "config", None),
    ("config/lmqConsumerOffset.json", "config", None),
    ("config/consumerFilter.json", "config", None),
    ("config/delayOffset.json", "config", None),
    ("config/consumerOrderInfo.json", "config", None),
    ("config/topicQueueMapping.json", "config", None),
    ("config/messageRequestMode.json", "config", None),
    ("config/transactionMetrics", "config", None),
    ("config/timermetrics", "timermetrics", None),
    ("config/timermetrics.bak", "config_bak", None),
    ("config/timercheck", "timercheck", None),
    ("config/topics.json.bak", "config_bak", None),
    ("config/topics.json.tmp", "config_tmp", None),
    ("config/topics/CURRENT", "rocksdb", None),
    ("config/subscriptionGroups/000013.sst", "rocksdb", None),
    ("config/consumerOffsets/OPTIONS-000009", "rocksdb", None),
    ("config/rdb/LOCK", "rocksdb", None),
    ("kvStore/LOG.old.17", "rocksdb", None),
    ("timerwheel", "timerwheel", None),
    ("timerlog/00000000000104857600", "timerlog", 104857600),
    ("compaction/compactionLog/T/0/00000000000000000000", "compaction_log", 0),
    ("compaction/compactionLog/T/0/compacting/00000000000000008280", "compaction_log", 8280),
    ("compaction/compactionCq/T/0/replicating/00000000000000008280", "compaction_cq", 8280),
    ("compaction/compactionCq/T/0/00000000000000008280.delete", "compaction_cq", 8280),
    ("compaction/position-checkpoint", "compaction_position", None),
    ("compaction/position-checkpoint.bak", "compaction_position", None),
    ("epochFileCheckpoint", "epoch", None),
    ("epochFileCheckpoint.bak", "epoch", None),
    ("brokerIdentity", "broker_identity", None),
    ("dledger-n0/data/00000000000000032768", "dledger_data", 32768),
    ("dledger-n0/index/00000000000000000000", "dledger_index", 0),
    ("dledger-n0/checkpoint", "dledger_text", None),
    ("dledger-n0/currterm", "dledger_text", None),
    ("transaction/statetable/00000000000000000000", "transaction_state", None),
    ("transaction/redolog/00000000000000000000", "transaction_state", None),
]


@pytest.mark.parametrize(("path", "kind", "base"), ROWS)
def test_rows(path, kind, base):
    parts = tuple(path.split("/"))
    placed = role_of(parts[:-1]).place(parts[-1])
    assert (str(placed.kind), placed.base_offset) == (kind, base)


def test_all_kinds_have_a_row():
    assert {kind for _, kind, _ in ROWS} | {"unknown", "replay"} == set(FileKind)


@pytest.mark.parametrize(
    "path",
    [
        "commitlog/x",
        "commitlog/-1",
        "commitlog/00000000000000000000.tmp",
        "commitlog/a/0",
        "consumequeue/T/x/0",
        "consumequeue/T/0",
        "consumequeue/T/0/0/0",
        "consumequeue/0",
        "batchconsumequeue/CURRENT",
        "index/x",
        "config/x.json",
        "config/x.json.bak",
        "config/sub/topics.json",
        "Checkpoint",
        "checkpoint2",
        "store/checkpoint",
        "compaction/x",
        "compaction/compactionLog/T/0",
        "compaction/compactionLog/T/x/0",
        "compaction/compactionLog/T/0/other/0",
        "compaction/other/T/0/0",
        "dledger-n0/x",
        "dledger-n0/other/0",
        "transaction/x/0",
        "timerlog/x",
        "x/y/z",
    ],
)
def test_near_misses_are_unknown_and_say_why(path):
    parts = tuple(path.split("/"))
    placed = role_of(parts[:-1]).place(parts[-1])
    assert placed.kind is FileKind.UNKNOWN
    assert placed.note


def test_state_of_compaction_files():
    parts = ("compaction", "compactionLog", "T", "7", "compacting")
    role = role_of(parts)
    assert (role.topic, role.queue_id, role.place("0").note) == ("T", 7, "compacting")
    assert role_of(parts[:-1]).place("0.delete").note == "delete"
    assert role_of(parts[:-1]).place("0").note is None


@pytest.mark.parametrize(
    "name",
    [
        "CURRENT",
        "IDENTITY",
        "LOCK",
        "LOG",
        "LOG.old.1700000000",
        "MANIFEST-000001",
        "OPTIONS-000002.dbtmp",
        "000012.log",
        "1.blob",
    ],
)
def test_rocksdb_names(name):
    assert is_rocksdb_name(name)


@pytest.mark.parametrize("name", ["current", "00000000000000000000", "x.sst", "MANIFEST-", "12.txt"])
def test_other_names(name):
    assert not is_rocksdb_name(name)
