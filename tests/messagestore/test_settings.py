"""Every setting of a message store: one look at what it does, or a place among those that do nothing here."""

from __future__ import annotations

import os
import shutil
import socket
import struct
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from formats.checkpoint import parse_checkpoint
from rmqtool import Message, MessageStore
from rmqtool.broker.expiry import look
from rmqtool.broker.mapped_files import MappedFiles
from rmqtool.errors import UsageError
from rmqtool.messagestore import settings as known
from rmqtool.messagestore.broker_names import NOTHING_TO_DO, WITHOUT_EFFECT
from rmqtool.messagestore.log_files import LogFiles
from rmqtool.messagestore.log_places import open_places
from rmqtool.messagestore.messages import PutStatus
from rmqtool.messagestore.warm_up import WarmUp
from rmqtool.store.config import StoreConfig, config_of
from tests.disks import replace
from tests.helpers import free_port
from tests.messagestore import test_store_pool as pool
from tests.messagestore.helpers import copy_of_open, open_small

if TYPE_CHECKING:
    from collections.abc import Callable

    Patch = pytest.MonkeyPatch
    Effect = Callable[[Path, Patch, str], None]

ALIASES = {field.alias or name for name, field in StoreConfig.model_fields.items()} - {"rmqtool.directory"}
HOUR = 3_600_000
NEARLY = 5 * 4096
"""bytes that may wait for further pages"""


@pytest.fixture(autouse=True)
def without_syncs(monkeypatch: pytest.MonkeyPatch) -> None:
    """A hundred stores are made, and no setting changes what a sync does."""
    for call in ("fsync", "fdatasync"):
        replace(monkeypatch, call, int)


def length_of(path: str, value: int, needs: dict[str, Any] | None = None, *, given: int = 0) -> Effect:
    """Every file below `path` has that length; given: the value of the setting, the length by default."""

    def effect(root: Path, patch: Patch, name: str) -> None:
        del patch
        settings = (needs or {}) | {name: given or value}
        with MessageStore.open(root, create=True, config={"maxIndexNum": 40} | settings) as store:
            store.topics.set("B", attributes={"queue.type": "BatchCQ"})
            store.put(Message("T", b"x", keys=["k"]))
            store.put(Message("B", b"x"))
            store.flush()
        assert {one.stat().st_size for one in (root / path).rglob("*") if one.is_file()} == {value}

    return effect


def answers(low: Any, high: Any, ask: Callable[[MessageStore], Any], expected: Any, **needs: Any) -> Effect:
    """What a store says with the one value and with the other."""

    def effect(root: Path, patch: Patch, name: str) -> None:
        del patch
        found = []
        for number, value in enumerate((low, high)):
            with open_small(root / str(number), **needs | {name: value}) as store:
                found.append(ask(store))
        assert found == expected

    return effect


def told() -> Callable[[MessageStore], bytes | None]:
    """What a slave without a log hears first; None when it hears nothing for a while."""

    def ask(store: MessageStore) -> bytes | None:
        with socket.create_connection(store.listen(port=0)) as peer:
            peer.sendall(bytes(8))
            peer.settimeout(0.7)
            try:
                return peer.recv(100)
            except TimeoutError:
                return None

    return ask


def slow(store: MessageStore) -> PutStatus:
    """A put beside a slave that has nothing."""
    with socket.create_connection(store.listen(port=0)) as peer:
        peer.sendall(bytes(8))
        until = time.monotonic() + 10
        while [one for _, one in store.slaves] != [0] and time.monotonic() < until:
            time.sleep(0.001)
        return store.put(Message("T", b"")).status


def by_default(root: Path, patch: Patch, name: str) -> None:
    """The port that is listened on."""
    del patch
    port = free_port()
    with open_small(root, **{name: port}) as store:
        assert store.listen()[1] == port


def looked(low: Any, high: Any, percent: int = 10, hour: int = 4, **needs: Any) -> Effect:
    """Expiry decides otherwise with the one value than with the other."""

    def effect(root: Path, patch: Patch, name: str) -> None:
        del root, patch
        first, second = (
            look(
                config_of({key: str(one) for key, one in (needs | {name: value}).items()}),
                percent,
                hour,
                manual=False,
            )
            for value in (low, high)
        )
        assert first != second

    return effect


def started(low: Any, high: Any, attribute: str) -> Effect:
    """The start of the store is reported; what follows is tested with the rules of a start."""
    return answers(low, high, lambda store: getattr(store._start.settings, attribute), [low, high])


def put(*bodies: bytes, **more: Any) -> Callable[[MessageStore], list[PutStatus]]:
    return lambda store: [store.put(Message("T", body, queue_id=0, **more)).status for body in bodies]


def flushed(wait: float) -> Callable[[MessageStore], bool]:
    """Whether a put of some pages is on the medium by itself within so many seconds."""

    def ask(store: MessageStore) -> bool:
        store.put_many([Message("T", bytes(500)) for _ in range(40)])
        until = time.monotonic() + wait
        while store.flush_behind > NEARLY and time.monotonic() < until:
            time.sleep(0.005)
        return store.flush_behind <= NEARLY

    return ask


def got(count: int = 20, body: bytes = b"x" * 100) -> Callable[[MessageStore], int]:
    def ask(store: MessageStore) -> int:
        store.put_many([Message("T", body, queue_id=0) for _ in range(count)])
        return len(store.get("T", 0, 0, limit=count).messages)

    return ask


def consumes(store: MessageStore) -> bool:
    with suppress(UsageError):
        store.groups.of_consumer("G")
    return "G" in store.groups


def written(name: str, wait: float) -> Callable[[MessageStore], bool]:
    """Whether a table is written by itself within so many seconds."""

    def ask(store: MessageStore) -> bool:
        path = Path(store.root, "config", name)
        before = path.read_text() if path.exists() else ""  # a new store has one without offsets
        store.commit_offset("G", "T", 0, 1)
        store.send_delayed(Message("T", b"x"), 1)
        later = store._services.engine.clock() + 1000
        while store._services.engine.clock() < later:
            time.sleep(0.05)
        store.deliver_due()
        until = time.monotonic() + wait
        while not (there := path.exists() and path.read_text() != before) and time.monotonic() < until:
            time.sleep(0.005)
        return there

    return ask


def asked(rounds: int) -> Callable[[MessageStore], list[int]]:
    """How many transactions a listener is asked about, round after round."""

    def ask(store: MessageStore) -> list[int]:
        store.transaction(Message("T", b"x"))
        found = []
        for _ in range(rounds):
            time.sleep(0.01)
            found.append(store.check_transactions(lambda half: None))
        return found

    return ask


def listened(wait: float) -> Callable[[MessageStore], bool]:
    """Whether a listener is asked within so many seconds."""

    def ask(store: MessageStore) -> bool:
        called = threading.Event()
        store.listen_to_transactions(lambda half: called.set())  # type: ignore[func-returns-value]
        store.transaction(Message("T", b"x"))
        return called.wait(wait)

    return ask


def settled(count: int) -> Callable[[MessageStore], int]:
    """How many op messages there are right behind so many commits."""

    def ask(store: MessageStore) -> int:
        for _ in range(count):
            with store.transaction(Message("T", b"x")):
                pass
        return store.offsets("RMQ_SYS_TRANS_OP_HALF_TOPIC", 0)[1]

    return ask


def expired(count: int = 5, *, once: bool = False) -> Callable[[MessageStore], tuple[int, bool]]:
    """Segments that go by hand, and whether it pauses for a tenth of a second."""

    def ask(store: MessageStore) -> tuple[int, bool]:
        store.put_many([Message("T", bytes(300), queue_id=number % 2) for number in range(count * 10)])
        store.flush()
        store.get("T", 0, 0)
        log = f"{store.root}/commitlog"
        for name in sorted(os.listdir(log))[:count]:
            os.utime(f"{log}/{name}", (0, 0))
        paused: list[float] = []
        vars(store._expiry._stop)["wait"] = paused.append
        gone = (store._expiry.clean(manual=True) if once else store.expire()).segments
        return gone, sum(paused) > 0.1

    return ask


def commits(**settings: Any) -> Effect:
    """With the value a pool commits by itself, without it does not."""

    def effect(root: Path, patch: Patch, name: str) -> None:
        del patch
        for number, more in enumerate((settings, {})):
            with open_small(
                root / str(number), **pool.POOLED | {"commitCommitLogThoroughInterval": HOUR} | more
            ) as store:
                store.put(pool.message(0))
                assert len(store.get("T", 0, 0, wait=0.05 if number else 5).messages) == 1 - number
        assert name in settings

    return effect


def slow_flush(root: Path, patch: Patch, name: str) -> None:
    with open_small(root, flushDiskType="SYNC_FLUSH", **{name: 20}) as store:
        store.put(Message("T", b""))
        sync = LogFiles.sync

        def slow(self: LogFiles, begin: int) -> int:
            entered.set()
            left.wait()
            return sync(self, begin)

        entered, left = threading.Event(), threading.Event()
        patch.setattr(LogFiles, "sync", slow)
        other = threading.Thread(target=store.put, args=(Message("T", b""),))
        other.start()
        entered.wait()
        assert store.put(Message("T", b"")).status is PutStatus.FLUSH_DISK_TIMEOUT
        left.set()
        other.join()


def checkpointed(root: Path, patch: Patch, name: str) -> None:
    del patch
    with open_small(root, **{name: 1}) as store:
        store.put(Message("T", b""))
        store.offsets("T", 0)
        store._background._keep_checkpoint()
        assert parse_checkpoint((root / "checkpoint").read_bytes()).logics_msg_timestamp > 0


def evicted(root: Path, patch: Patch, name: str) -> None:
    del patch
    with open_small(root, **{name: 1000}) as store:
        store.topics.set("M", memory=True)
        for _ in range(2):
            store.put(Message("M", bytes(600), queue_id=0))
        assert store.offsets("M", 0) == (1, 2)


def unchecked_body(root: Path, patch: Patch, name: str) -> None:
    """A body that is damaged ends the log of a crashed store, unless nobody looks."""
    del patch
    with open_small(root) as store:
        ack = store.put(Message("T", b"good", queue_id=0))
        store.put(Message("T", b"harmed", queue_id=0))
        store.flush()
        copy_of_open(root, root / "killed")
    log = root / "killed" / "commitlog" / ("0" * 20)
    log.write_bytes(log.read_bytes().replace(b"harmed", b"Harmed"))
    shutil.rmtree(root / "killed" / "consumequeue", ignore_errors=True)  # perhaps none was made yet
    found = []
    for value in (True, False):
        shutil.copytree(root / "killed", root / str(value))
        with MessageStore.open(
            root / str(value), config={"mappedFileSizeCommitLog": 4096, name: value}, recovery="broker"
        ) as store:
            found.append(store.offsets("T", 0)[1])
    assert (ack.queue_offset, found) == (0, [1, 2])


def stamped(store: MessageStore) -> int:
    """Tags code less store time of a message of a delay level."""
    store.put(Message("SCHEDULE_TOPIC_XXXX", b"", queue_id=1, properties={"DELAY": "2"}))
    message = store.get("SCHEDULE_TOPIC_XXXX", 1, 0).messages[0]
    unit = f"{store.root}/consumequeue/SCHEDULE_TOPIC_XXXX/1/{'0' * 20}"
    with open(unit, "rb") as file:
        return int.from_bytes(file.read(20)[12:], "big") - message.store_timestamp


def extended(store: MessageStore) -> bool:
    store.put(Message("T", b""))
    store.queues()
    return os.path.isdir(f"{store.root}/consumequeue_ext")


def hot(store: MessageStore) -> bool:
    got()(store)
    return store.get("T", 0, 0).suggest_pulling_from_slave


def filtered(store: MessageStore) -> int:
    store.put_many([Message("T", b"", queue_id=0, tags="A")] * 60 + [Message("T", b"", queue_id=0, tags="B")])
    return store.get("T", 0, 0, tags="B").next_begin_offset


def listed(store: MessageStore) -> bool:
    """Whether a message has offsets in the queues that it names."""
    store.put(Message("T", b"", properties={"INNER_MULTI_DISPATCH": "%LMQ%a"}))
    return "INNER_MULTI_QUEUE_OFFSET" in store.message_at(0).properties


def host(store: MessageStore) -> tuple[int, int]:
    address, port = store.put(Message("T", b"")).store_host
    return address[3], port


def light(store: MessageStore) -> list[tuple[str, int]]:
    store.put(Message("T", b"", queue_id=0, properties={"INNER_MULTI_DISPATCH": "%LMQ%a"}))
    return store.queues()


def warmed(root: Path, patch: Patch, name: str) -> None:
    """Segments have all of their room, and are forced more often the fewer pages are said."""
    forced: list[int] = []
    replace(patch, "fdatasync", forced.append)
    counts = []
    for pages in (1, 100):
        settings = SYNC | {"warmMapedFileEnable": True, "flushLeastPagesWhenWarmMapedFile": pages}
        forced.clear()
        (root / "commitlog").mkdir()
        places = open_places(root, config_of({}))
        log = LogFiles(places, MappedFiles(1 << 16, "commitlog"), ahead=False, warm=WarmUp(pages))
        log.place_for(100)
        log.close()
        counts.append(len(forced))
        with open_small(root / str(pages), **settings) as store:
            store.put(Message("T", b""))
            assert os.stat(f"{store.root}/commitlog/{'0' * 20}").st_blocks * 512 >= 4096
            assert store._settings.warmed_pages == pages
        shutil.rmtree(root / "commitlog")
    assert (counts, name in settings) == ([17, 1], True)


def elsewhere(root: Path, patch: Patch, name: str) -> None:
    """More of it in `test_log_places.py`."""
    del patch
    with open_small(root / "store", **{name: str(root / "disk")}) as store:
        store.put(Message("T", b""))
    assert os.listdir(root / "disk") == ["0" * 20]


def retried(root: Path, patch: Patch, name: str) -> None:
    del patch
    for number, (interval, again) in enumerate(((HOUR, False), (0, True))):
        with open_small(root / str(number), **{name: interval}) as store:
            store._expiry._hanging.append("commitlog/" + "9" * 20)
            store._expiry._tried = time.monotonic()
            store._expiry._again()
            assert (store._expiry._hanging == []) is again


SYNC = {"flushDiskType": "SYNC_FLUSH"}
OK, ILLEGAL = PutStatus.PUT_OK, PutStatus.MESSAGE_ILLEGAL
NO_PLACE = PutStatus.CREATE_MAPPED_FILE_FAILED
BUSY: dict[str, Any] = {"diskSpaceWarningLevelRatio": 90, "diskSpaceCleanForciblyRatio": 85}
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
        fastFailIfNoBufferInStorePool=True, **pool.POOLED,
    ),
    "fastFailIfNoBufferInStorePool": answers(
        True, False, lambda store: put(*[bytes(500)] * 20)(store)[-1], [NO_PLACE, OK],
        **pool.POOLED | {"transientStorePoolSize": 1},
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


def refused(root: Path, settings: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match=next(iter(settings))):
        MessageStore.open(root / "store", create=True, config=settings)


def cleaned_again(root: Path, patch: Patch, settings: dict[str, Any]) -> None:
    """Runs follow one another at the interval, once the first minute is over."""
    runs: list[float] = []
    patch.setattr("rmqtool.messagestore.expiry.FIRST_RUN", 0.001)
    patch.setattr("rmqtool.messagestore.expiry.Expiry.clean", lambda self: runs.append(time.monotonic()))
    with open_small(root, **settings):
        until = time.monotonic() + 5
        while len(runs) < 3 and time.monotonic() < until:
            time.sleep(0.005)
    assert len(runs) >= 3


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


def test_what_a_put_of_a_table_left_when_it_was_cut_off_goes(tmp_path: Path) -> None:
    root = tmp_path / "store"
    with open_small(root) as store:
        store.topics.set("One")
        (root / "config" / ".topics.json.tmp").write_text("{half")
        store.topics.set("Two")
    there = sorted(one.name for one in (root / "config").iterdir())
    assert there == ["consumerOffset.json", "topics.json", "topics.json.bak"]
