"""Settings that a message store refuses, or passes over with a warning."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rmqtool import Message, MessageStore
from rmqtool.errors import UsageError
from rmqtool.messagestore import settings as known
from tests.messagestore.effects import refused

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"storeType": "defaultRocksDB"}, "storeType"),
        ({"enableDLegerCommitLog": True}, "enableDLegerCommitLog"),
        ({"mappedFileSizeCommitLog": 1 << 31}, "mappedFileSizeCommitLog"),
        ({"flushDiskType": "NEVER"}, "flushDiskType"),
        ({"mappedFileSizeComitLog": 4096}, "mappedFileSizeCommitLog is"),
        ({"mappedfilesizecommitlog": 4096}, "mappedFileSizeCommitLog is"),
        ({"FLUSHDISKTYPE": "SYNC_FLUSH"}, "flushDiskType is"),
        ({"messageDelayLevel": "1x"}, "messageDelayLevel"),
        ({"brokerRole": "LEADER"}, "brokerRole"),
        ({"brokerIP1": "no..where"}, "brokerIP1=no..where: no address and no known host"),
    ],
)
def test_settings_that_are_refused(tmp_path: Path, settings: dict[str, object], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        MessageStore.open(tmp_path / "store", create=True, config=settings)
    assert not (tmp_path / "store").exists()


def test_a_broker_conf_and_unknown_settings(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    conf = tmp_path / "broker.conf"
    conf.write_text("brokerName=a\nmappedFileSizeCommitLog=4096\nsomethingOfOurOwn=1\nmaxMsgsNumBatch=64\n")
    with MessageStore.open(tmp_path / "store", create=True, config=conf) as store:
        store.put(Message("T", b"x"))
    assert (tmp_path / "store" / "commitlog" / ("0" * 20)).stat().st_size == 4096
    assert "somethingOfOurOwn" in caplog.text
    assert "maxMsgsNumBatch has no effect" in caplog.text
    assert "brokerName" not in caplog.text


@pytest.mark.parametrize("name", sorted(known.UNSUPPORTED))
def test_what_is_not_supported_is_refused(name: str, tmp_path: Path) -> None:
    refused(tmp_path, {name: "defaultRocksDB" if name == "storeType" else True})


@pytest.mark.parametrize(
    "setting",
    [
        "flushIntervalCommitLog=0",  # a thread that never rests
        "commitIntervalCommitLog=-1",
        "cleanResourceInterval=0",
        "deleteFileBatchMax=-1",  # all segments but one went, whatever their age
        "fileReservedTime=-1",
        "deleteWhen=never",
        "deleteWhen=04,16",
        "listenPort=70000",
        "listenPort=99999999999",
        "osPageCacheBusyTimeOutMills=-1",
        "defaultTopicQueueNums=0",
        "flushDelayOffsetInterval=9223372036854775807",
        "transactionTimeOut=1.5",
        "autoCreateTopicEnable=1",
        "transientStorePoolEnable=yes",
    ],
)
def test_an_impossible_value_is_refused(setting: str, tmp_path: Path) -> None:
    name, _, value = setting.partition("=")
    refused(tmp_path, {name: value})
    assert not (tmp_path / "store").exists()


@pytest.mark.parametrize(
    "name",
    [
        "replyThreadPoolQueueCapacity",
        "waitTimeMillsInAckQueue",
        "serverSocketSndBufSize",
        "accessMessageInMemoryHotRatio",
        "minInSyncReplicas",
        "haMasterAddress",
    ],
)
def test_a_setting_of_brokers_is_no_misspelling(name: str, caplog: pytest.LogCaptureFixture) -> None:
    known.settings_from({name: "1"})
    assert "is not known" not in caplog.text
    with pytest.raises(UsageError, match=f"{name} is"):
        known.settings_from({name[:-2] + name[-1]: "1"})
