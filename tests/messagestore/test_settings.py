"""Every setting of a message store: one look at what it does, or a place among those that do nothing here."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from rmqtool import Message
from rmqtool.messagestore import settings as known
from rmqtool.messagestore.broker_names import NOTHING_TO_DO, WITHOUT_EFFECT
from rmqtool.messagestore.messages import PutStatus
from rmqtool.store.config import StoreConfig
from tests.disks import replace
from tests.messagestore.effects import (
    HOUR,
    answers,
    asked,
    by_default,
    checkpointed,
    cleaned_again,
    commits,
    consumes,
    elsewhere,
    evicted,
    expired,
    extended,
    filtered,
    flushed,
    got,
    host,
    hot,
    length_of,
    light,
    listed,
    listened,
    looked,
    put,
    refused,
    retried,
    settled,
    slow,
    slow_flush,
    stamped,
    started,
    told,
    unchecked_body,
    warmed,
    written,
)
from tests.messagestore.helpers import POOLED

if TYPE_CHECKING:
    from tests.messagestore.effects import Effect

ALIASES = {field.alias or name for name, field in StoreConfig.model_fields.items()} - {"rmqtool.directory"}


@pytest.fixture(autouse=True)
def without_syncs(monkeypatch: pytest.MonkeyPatch) -> None:
    """A hundred stores are made, and no setting changes what a sync does."""
    for call in ("fsync", "fdatasync"):
        replace(monkeypatch, call, int)


OK, ILLEGAL = PutStatus.PUT_OK, PutStatus.MESSAGE_ILLEGAL
NO_PLACE = PutStatus.CREATE_MAPPED_FILE_FAILED
FLUSHES = {"flushIntervalCommitLog": 1, "flushCommitLogThoroughInterval": HOUR}
EFFECTS: dict[str, Effect] = {
    "storePathCommitLog": elsewhere,
    "readOnlyCommitLogStorePaths": lambda root, patch, name: refused(root, {name: "/elsewhere"}),
    "mappedFileSizeCommitLog": length_of("commitlog", 8192),
    "mappedFileSizeConsumeQueue": length_of("consumequeue", 200),
    "mapperFileSizeBatchConsumeQueue": length_of("batchconsumequeue", 92),
    "mappedFileSizeConsumeQueueExt": length_of("consumequeue_ext", 500, {"enableConsumeQueueExt": True}),
    "enableConsumeQueueExt": answers(False, True, extended, [False, True]),
    "maxHashSlotNum": length_of("index", 40 + 4 * 7 + 20 * 40, given=7),
    "maxIndexNum": length_of("index", 40 + 4 * 13 + 20 * 50, {"maxHashSlotNum": 13}, given=50),
    "messageIndexEnable": answers(False, True, lambda store: store._opened.index is not None, [False, True]),
    "memoryTopicMaxBytes": evicted,
    "messageIndexSafe": started(False, True, "index_safe"),
    "recheckReputOffsetFromCq": started(False, True, "recheck_reput"),
    "forceVerifyPropCRC": started(False, True, "force_property_crc"),
    "checkCRCOnRecover": unchecked_body,
    "maxMessageSize": answers(100, 1000, put(b"", bytes(101)), [[OK, ILLEGAL], [OK, OK]]),
    "flushDiskType": answers(
        "ASYNC_FLUSH", "SYNC_FLUSH", flushed(0), [False, True], flushIntervalCommitLog=HOUR
    ),
    "flushIntervalCommitLog": answers(HOUR, 1, flushed(0.5), [False, True]),
    "flushCommitLogLeastPages": answers(500, 2, flushed(0.5), [False, True], **FLUSHES),
    "flushCommitLogThoroughInterval": answers(
        HOUR, 1, flushed(0.5), [False, True], flushIntervalCommitLog=1, flushCommitLogLeastPages=500
    ),
    "flushConsumeQueueThoroughInterval": checkpointed,
    "syncFlushTimeout": slow_flush,
    "transientStorePoolEnable": answers(
        False, True, got(), [20, 0], commitIntervalCommitLog=HOUR
    ),
    "transientStorePoolSize": answers(
        1, 99, lambda store: put(*[bytes(500)] * 20)(store)[-1], [NO_PLACE, OK],
        fastFailIfNoBufferInStorePool=True, **POOLED,
    ),
    "fastFailIfNoBufferInStorePool": answers(
        True, False, lambda store: put(*[bytes(500)] * 20)(store)[-1], [NO_PLACE, OK],
        **POOLED | {"transientStorePoolSize": 1},
    ),
    "commitIntervalCommitLog": commits(commitIntervalCommitLog=1, commitCommitLogLeastPages=0),
    "commitCommitLogLeastPages": commits(commitCommitLogLeastPages=0, commitIntervalCommitLog=1),
    "commitCommitLogThoroughInterval": commits(commitCommitLogThoroughInterval=1, commitIntervalCommitLog=1),
    "warmMapedFileEnable": warmed,
    "flushLeastPagesWhenWarmMapedFile": warmed,
    "enabledAppendPropCRC": answers(
        False, True, lambda store: (put(b"")(store), store.message_at(0))[1].raw[-20:-11] == b"__CRC32#\1",
        [False, True], release="5.3.3",
    ),
    "autoMessageVersionOnTopicLen": answers(
        False, True, lambda store: store.put(Message("%RETRY%" + "g" * 150, b"")).status, [ILLEGAL, OK],
    ),
    "messageDelayLevel": answers("1s 2s", "1s 9s", stamped, [2000, 9000]),
    "deleteWhen": looked("04", "05"),
    "fileReservedTime": answers(1, 10**6, lambda store: expired()(store)[0], [5, 0]),
    "diskMaxUsedSpaceRatio": looked(75, 95, 80, 3),
    "diskSpaceWarningLevelRatio": looked(90, 50, 70),
    "diskSpaceCleanForciblyRatio": looked(85, 50, 70),
    "cleanFileForciblyEnable": looked("true", "false", 87),
    "cleanResourceInterval": lambda root, patch, name: cleaned_again(root, patch, {name: 1}),
    "deleteCommitLogFilesInterval": answers(
        1, 60, lambda store: expired()(store)[1], [False, True], deleteConsumeQueueFilesInterval=1
    ),
    "deleteConsumeQueueFilesInterval": answers(
        1, 60, lambda store: expired()(store)[1], [False, True], deleteCommitLogFilesInterval=1,
        mappedFileSizeConsumeQueue=60,
    ),
    "redeleteHangedFileInterval": retried,
    "deleteFileBatchMax": answers(
        2, 4, lambda store: expired(once=True)(store)[0], [2, 4], deleteCommitLogFilesInterval=1
    ),
    "maxTransferBytesOnMessageInMemory": answers(500, 10**6, got(), [2, 20]),
    "maxTransferCountOnMessageInMemory": answers(3, 20, got(), [3, 20]),
    "maxTransferBytesOnMessageInDisk": answers(500, 10**6, got(6), [2, 6], accessMessageInMemoryMaxRatio=0),
    "maxTransferCountOnMessageInDisk": answers(3, 6, got(6), [3, 6], accessMessageInMemoryMaxRatio=0),
    "accessMessageInMemoryMaxRatio": answers(0, 40, hot, [True, False], slaveReadEnable=True),
    "slaveReadEnable": answers(False, True, hot, [False, True], accessMessageInMemoryMaxRatio=0),
    "maxFilterMessageSize": answers(20, 16000, filtered, [32, 61], mappedFileSizeConsumeQueue=20_000),
    "brokerRole": answers("SLAVE", "SYNC_MASTER", put(b""), [[PutStatus.SERVICE_NOT_AVAILABLE], [OK]]),
    "osPageCacheBusyTimeOutMills": answers(
        0, 1000, lambda store: store._settings.busy_after, [0.0, 1.0]
    ),
    "enableMultiDispatch": answers(
        False, True, light, [[("T", 0)], [("%LMQ%a", 0), ("T", 0)]], enableLmq=True
    ),
    "enableLmq": answers(False, True, listed, [False, True], release="5.3.3"),
    "autoCreateTopicEnable": answers(False, True, put(b""), [[ILLEGAL], [OK]]),
    "defaultTopicQueueNums": answers(
        2, 8, lambda store: (put(b"")(store), store.topics.get("T").write_queue_nums)[1], [2, 4]
    ),
    "autoCreateSubscriptionGroup": answers(False, True, consumes, [False, True]),
    "flushConsumerOffsetInterval": answers(5, 60_000, written("consumerOffset.json", 0.5), [True, False]),
    "flushDelayOffsetInterval": answers(5, 60_000, written("delayOffset.json", 0.5), [True, False]),
    "transactionTimeOut": answers(0, 6000, asked(1), [[1], [0]]),
    "transactionCheckMax": answers(1, 15, asked(2), [[1, 0], [1, 1]], transactionTimeOut=0),
    "transactionCheckInterval": answers(5, 60_000, listened(0.5), [True, False], transactionTimeOut=0),
    "transactionOpMsgMaxSize": answers(1, 4096, settled(2), [2, 0]),
    "transactionOpBatchInterval": answers(0, 60_000, settled(1), [1, 0]),
    "brokerIP1": answers("10.0.0.7", "localhost", host, [(7, 10911), (1, 10911)]),
    "listenPort": answers(7, 8, host, [(1, 7), (1, 8)]),
    "haListenPort": by_default,
    "haSendHeartbeatInterval": answers(50, 60_000, told(), [bytes(12), None]),
    "haHousekeepingInterval": answers(50, 60_000, told(), [b"", None], haSendHeartbeatInterval=60_000),
    "haTransferBatchSize": answers(
        40, 90, lambda store: (put(b"")(store), told()(store))[1][:12],
        [struct.pack(">qi", 0, 40), struct.pack(">qi", 0, 90)],
    ),
    "haSlaveFallbehindMax": answers(
        1, 1 << 20, slow, [PutStatus.SLAVE_NOT_AVAILABLE, PutStatus.FLUSH_SLAVE_TIMEOUT],
        brokerRole="SYNC_MASTER", slaveTimeout=1, release="4.9.8",
    ),
    "inSyncReplicas": answers(
        1, 2, slow, [OK, PutStatus.FLUSH_SLAVE_TIMEOUT],
        brokerRole="SYNC_MASTER", slaveTimeout=1, release="5.3.3",
    ),
    "slaveTimeout": answers(1, 3000, lambda store: store._settings.slave_timeout, [0.001, 3.0]),
}  # fmt: skip


@pytest.mark.share
@pytest.mark.parametrize("name", sorted(EFFECTS))
def test_a_setting_does_what_it_says(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    EFFECTS[name](tmp_path, monkeypatch, name)


def test_no_setting_is_forgotten() -> None:
    """Those of a store have an effect that is tested, are refused, or stand among those without one."""
    elsewhere = {*known.UNSUPPORTED, *WITHOUT_EFFECT, *NOTHING_TO_DO}
    assert {*ALIASES, *known.EXTRA} - {*EFFECTS, *elsewhere} == set()
    assert EFFECTS.keys() - {*ALIASES, *known.EXTRA} == set()
    assert EFFECTS.keys() & elsewhere == set()
