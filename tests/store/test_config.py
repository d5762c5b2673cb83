from __future__ import annotations

import os

import pytest

import fixtures
from rmqtool.errors import StoreIOError, UsageError
from rmqtool.store.config import StoreConfig, config_of, load_broker_conf, split_paths
from tests.disks import refuse


def test_defaults():
    """The settings that change bytes on disk and their documented defaults."""
    config = StoreConfig()
    expected = {
        "mappedFileSizeCommitLog": 1073741824,
        "mappedFileSizeConsumeQueue": 6000000,
        "mappedFileSizeConsumeQueueExt": 50331648,
        "mapperFileSizeBatchConsumeQueue": 13800000,
        "mappedFileSizeTimerLog": 104857600,
        "compactionMappedFileSize": 104857600,
        "compactionCqMappedFileSize": 10485760,
        "enableConsumeQueueExt": False,
        "maxHashSlotNum": 5000000,
        "maxIndexNum": 20000000,
        "messageIndexEnable": True,
        "messageIndexSafe": False,
        "maxMessageSize": 4194304,
        "flushDiskType": "ASYNC_FLUSH",
        "flushIntervalCommitLog": 500,
        "flushCommitLogLeastPages": 4,
        "flushCommitLogThoroughInterval": 10000,
        "flushIntervalConsumeQueue": 1000,
        "flushConsumeQueueLeastPages": 2,
        "flushConsumeQueueThoroughInterval": 60000,
        "transientStorePoolEnable": False,
        "transientStorePoolSize": 5,
        "checkCRCOnRecover": True,
        "duplicationEnable": False,
        "enabledAppendPropCRC": False,
        "forceVerifyPropCRC": False,
        "autoMessageVersionOnTopicLen": True,
        "putConsumeQueueDataByFileChannel": True,
        "messageDelayLevel": "1s 5s 10s 30s 1m 2m 3m 4m 5m 6m 7m 8m 9m 10m 20m 30m 1h 2h",
        "deleteWhen": "04",
        "fileReservedTime": 72,
        "diskMaxUsedSpaceRatio": 75,
        "cleanResourceInterval": 10000,
        "diskSpaceWarningLevelRatio": 90,
        "diskSpaceCleanForciblyRatio": 85,
        "deleteCommitLogFilesInterval": 100,
        "deleteConsumeQueueFilesInterval": 100,
        "destroyMapedFileIntervalForcibly": 120000,
        "redeleteHangedFileInterval": 120000,
        "deleteFileBatchMax": 10,
        "cleanFileForciblyEnable": True,
        "maxTransferBytesOnMessageInMemory": 262144,
        "maxTransferCountOnMessageInMemory": 32,
        "maxTransferBytesOnMessageInDisk": 65536,
        "maxTransferCountOnMessageInDisk": 8,
        "accessMessageInMemoryMaxRatio": 40,
        "maxFilterMessageSize": 16000,
        "maxMsgsNumBatch": 64,
        "defaultQueryMaxNum": 32,
        "brokerRole": "ASYNC_MASTER",
        "haListenPort": 10912,
        "haSendHeartbeatInterval": 5000,
        "haHousekeepingInterval": 20000,
        "haTransferBatchSize": 32768,
        "enableMultiDispatch": False,
        "enableLmq": False,
        "maxLmqConsumeQueueNum": 20000,
        "storeType": "default",
        "rocksdbCQDoubleWriteEnable": False,
        "recheckReputOffsetFromCq": False,
        "timerWheelEnable": True,
        "timerPrecisionMs": 1000,
        "timerRollWindowSlot": 172800,
        "timerMaxDelaySec": 259200,
        "useReentrantLockWhenPutMessage": True,
        "flushCommitLogTimed": True,
        "topicQueueLockNum": 32,
    }
    names = config.by_option_name()
    assert {name: names.get(name) for name in expected} == expected
    assert "directory" not in names
    assert config.index_file_size == 420_000_040
    assert config.compaction_log_file_size == 104_857_460
    assert config.compaction_cq_file_size == 10_485_746


@pytest.mark.parametrize(
    ("given", "size"), [(6000000, 6000000), (1, 20), (19, 20), (20, 20), (21, 40), (1001, 1020)]
)
def test_consume_queue_size_is_rounded_up(given, size):
    assert StoreConfig(mappedFileSizeConsumeQueue=given).consume_queue_file_size == size


def test_names_of_both_kinds_and_the_old_spelling():
    assert StoreConfig(mapped_file_size_commit_log=1024).mapped_file_size_commit_log == 1024
    assert config_of({"mapedFileSizeCommitLog": "2048"}).mapped_file_size_commit_log == 2048


def test_unknown_options_are_kept():
    config = config_of({"someFutureOption": "7", "maxIndexNum": "120"})
    assert config.by_option_name()["someFutureOption"] == "7"
    assert config.is_set("max_index_num")
    assert not config.is_set("max_hash_slot_num")


@pytest.mark.parametrize(
    ("text", "value"), [("true", True), ("TRUE ", True), ("yes", False), ("1", False), ("false", False)]
)
def test_switches_are_read_as_java_reads_them(text, value):
    assert config_of({"enableLmq": text}).enable_lmq is value


@pytest.mark.parametrize("name", [name for name in fixtures.golden_names() if name.startswith("b")])
def test_real_settings(golden, name):
    found = golden(name)
    for directory, path in found.configs.items():
        config = load_broker_conf(path)
        assert config.is_root(found.stores[directory])
        assert not config.is_root(found.path.parent)


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("maxIndexNum=abc", "maxIndexNum: this is not a 32-bit integer"),
        ("maxIndexNum=1_000", "this is not a 32-bit integer"),
        ("maxIndexNum=1.0", "this is not a 32-bit integer"),
        ("maxIndexNum=0x10", "this is not a 32-bit integer"),
        ("mappedFileSizeCommitLog=-1", "greater than 0"),
        ("mappedFileSizeConsumeQueue=0", "greater than 0"),
        ("timerPrecisionMs=0", "greater than 0"),
        ("mappedFileSizeCommitLog=99999999999", "this is not a 32-bit integer"),
        ("storePathRootDir=/x\\u0000y", "storePathRootDir: this is not a path"),
        ("name=\\u12zz", "not a properties file: line 2 has an invalid \\u escape"),
    ],
)
def test_bad_settings_are_one_clear_line(tmp_path, line, problem):
    path = tmp_path / "broker.conf"
    path.write_text(f"brokerName=a\n{line}\n")
    with pytest.raises(UsageError, match=r"broker\.conf") as caught:
        load_broker_conf(path)
    assert problem in str(caught.value)
    assert "\n" not in str(caught.value)
    assert line not in str(caught.value)  # its value may be a secret


def test_a_file_that_is_too_large_for_settings_is_not_read(tmp_path):
    path = tmp_path / "broker.conf"
    path.write_text("maxIndexNum=5\n")
    os.truncate(path, 200 << 30)
    with pytest.raises(UsageError, match="more than 65536 bytes"):
        load_broker_conf(path)


def test_properties_syntax(tmp_path):
    path = tmp_path / "broker.conf"
    path.write_bytes(
        b"# comment\n! another\nmaxIndexNum : 5\nbrokerName=a\\\n  b\n"
        b"note=caf\xe9\\u20ac\nmaxIndexNum=6\nempty=\n"
    )
    config = load_broker_conf(path)
    assert config.max_index_num == 6
    assert config.model_extra == {"brokerName": "ab", "note": "café€"}


def test_missing_and_odd_files(tmp_path, monkeypatch):
    with pytest.raises(UsageError, match="no such settings file"):
        load_broker_conf(tmp_path / "none")
    with pytest.raises(UsageError, match="is a directory, not a file"):
        load_broker_conf(tmp_path)
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(UsageError, match="symbolic links"):
        load_broker_conf(tmp_path / "loop")
    os.mkfifo(tmp_path / "fifo")
    with pytest.raises(UsageError, match="not a regular file"):
        load_broker_conf(tmp_path / "fifo")
    path = tmp_path / "broker.conf"
    path.touch()

    refuse(monkeypatch, "open")
    with pytest.raises(StoreIOError, match="Permission denied"):
        load_broker_conf(path)


def test_multi_path(tmp_path):
    assert split_paths(" /a ,/b,, /c/ ") == ["/a", "/b", "/c/"]
    assert split_paths("/a,1:/b", ":") == ["/a,1", "/b"]
    path = tmp_path / "broker.conf"
    path.write_text(
        "storePathRootDir=store\nstorePathCommitLog=/d1/commitlog, d2\nreadOnlyCommitLogStorePaths=/old\n"
    )
    config = load_broker_conf(path)
    assert config.root == str(tmp_path / "store")
    assert config.commit_log_roots() == ["/d1/commitlog", str(tmp_path / "d2"), "/old"]
    assert StoreConfig().commit_log_roots() == []
    assert StoreConfig().root is None


@pytest.mark.parametrize(
    ("log", "queue", "size"),
    [
        (104857600, 10485760, 104857460),
        (65536, 4000, 67252),
        (100, 460, 2300),
        (4600, 460, 5060),
        (4700, 460, 4600),
    ],
)
def test_size_of_a_compaction_log(log, queue, size):
    """Less than five files of the queue's size give five; half a file or more of remainder gives one more."""
    config = StoreConfig(compactionMappedFileSize=log, compactionCqMappedFileSize=queue)
    assert config.compaction_log_file_size == size
