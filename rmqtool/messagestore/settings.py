"""Settings of a store that is written, under RocketMQ's names: which count, and which are refused."""

from __future__ import annotations

import logging
import os
import socket
import threading
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from formats.errors import FormatError
from formats.ha import MAX_FRAME, TransferHeader
from formats.index import FIRST_ITEM
from formats.java import java_parse_int, java_split
from formats.primitives import sizeof
from formats.tags_code import parse_delay_levels
from rmqtool.broker.get_message import PullLimits
from rmqtool.errors import UsageError
from rmqtool.messagestore.broker_names import NOTHING_TO_DO, WITHOUT_EFFECT
from rmqtool.messagestore.records import local_host
from rmqtool.messagestore.replication.master import Timing
from rmqtool.messagestore.replication.replicas import ReplicaRule
from rmqtool.store.config import StoreConfig, config_of, load_broker_conf
from rmqtool.store.releases import version_key

if TYPE_CHECKING:
    from pydantic.fields import FieldInfo

    from rmqtool.messagestore.messages import Host

Given = StoreConfig | Mapping[str, Any] | str | os.PathLike[str] | None

_LOG = logging.getLogger(__name__)

UNSUPPORTED: dict[str, str] = {
    "storeType": "default",
    "rocksdbCQDoubleWriteEnable": "false",
    "enableDLegerCommitLog": "false",
    "enableControllerMode": "false",
    "duplicationEnable": "false",
    "timerWheelEnable": "false",
    "enableCompaction": "false",
}
"""settings with the one value that they may be given"""
_ROLES = ("ASYNC_MASTER", "SYNC_MASTER", "SLAVE")
_FLUSH_TYPES = ("ASYNC_FLUSH", "SYNC_FLUSH")
EXTRA: dict[str, Any] = {
    "syncFlushTimeout": 5_000,
    "autoCreateTopicEnable": True,
    "defaultTopicQueueNums": 8,
    "brokerIP1": "",
    "listenPort": 10_911,
    "fastFailIfNoBufferInStorePool": False,
    "warmMapedFileEnable": False,
    "flushLeastPagesWhenWarmMapedFile": 4_096,
    "osPageCacheBusyTimeOutMills": 1_000,
    "slaveReadEnable": False,
    "autoCreateSubscriptionGroup": True,
    "flushConsumerOffsetInterval": 5_000,
    "flushDelayOffsetInterval": 10_000,
    "transactionTimeOut": 6_000,
    "transactionCheckMax": 15,
    "transactionCheckInterval": 30_000,
    "transactionOpMsgMaxSize": 4_096,
    "transactionOpBatchInterval": 3_000,
    "haSlaveFallbehindMax": 256 << 20,
    "slaveTimeout": 3_000,
    "inSyncReplicas": 1,
    "memoryTopicMaxBytes": 0,
}
"""settings beside those of `StoreConfig` that count, with their defaults"""
_AT_LEAST: dict[int, tuple[str, ...]] = {
    0: (
        "flushCommitLogThoroughInterval",
        "flushConsumeQueueThoroughInterval",
        "transientStorePoolSize",
        "commitCommitLogThoroughInterval",
        "fileReservedTime",
        "deleteCommitLogFilesInterval",
        "deleteConsumeQueueFilesInterval",
        "redeleteHangedFileInterval",
        "haListenPort",
        "listenPort",
        "syncFlushTimeout",
        "osPageCacheBusyTimeOutMills",
        "flushConsumerOffsetInterval",
        "flushDelayOffsetInterval",
        "transactionTimeOut",
        "transactionCheckInterval",
        "transactionOpBatchInterval",
        "slaveTimeout",
        "memoryTopicMaxBytes",
    ),
    1: (
        "maxMessageSize",
        "flushIntervalCommitLog",
        "commitIntervalCommitLog",
        "cleanResourceInterval",
        "deleteFileBatchMax",
        "haSendHeartbeatInterval",
        "haHousekeepingInterval",
        "defaultTopicQueueNums",
    ),
}
"""settings by the least value that means anything: a thread would never rest, nothing would ever be put"""
_AT_MOST: dict[int, tuple[str, ...]] = {
    0xFFFF: ("haListenPort", "listenPort"),
    int(threading.TIMEOUT_MAX) * 1000: (
        "osPageCacheBusyTimeOutMills",
        "flushDelayOffsetInterval",
        "transactionTimeOut",
        "transactionCheckInterval",
    ),
}
"""settings by the greatest value: of a port, ms that a thread can wait"""
_LONG = frozenset({"memoryTopicMaxBytes", *_AT_MOST[int(threading.TIMEOUT_MAX) * 1000]})
"""those of 64 bits"""
_TRUE_OR_FALSE = ("true", "false")
_HOURS = 24
_LIKENESS = 0.85
_OF_5 = (5, 0, 0)


@dataclass(frozen=True)
class StoreSettings:
    """What was asked for. Make it with `settings_from`. Intervals are seconds."""

    config: StoreConfig
    sync_flush: bool
    sync_flush_timeout: float
    create_topics: bool
    default_queues: int
    host: Host
    fails_fast: bool = False
    """`fastFailIfNoBufferInStorePool`"""
    warms_up: bool = False
    warmed_pages: int = 4_096
    """`flushLeastPagesWhenWarmMapedFile`"""
    busy_after: float = 1.0
    """`osPageCacheBusyTimeOutMills`"""
    reads_slave: bool = False
    """`slaveReadEnable`"""
    create_groups: bool = True
    """`autoCreateSubscriptionGroup`"""
    offset_interval: float = 5.0
    """`flushConsumerOffsetInterval`"""
    delay_interval: float = 10.0
    """`flushDelayOffsetInterval`"""
    transaction_timeout: int = 6_000
    """ms"""
    transaction_check_max: int = 15
    transaction_check_interval: float = 30.0
    op_message_size: int = 4_096
    """bytes of an op message behind which another one begins (`transactionOpMsgMaxSize`)"""
    op_batch_interval: float = 3.0
    """`transactionOpBatchInterval`; 0: an op message for each half"""
    timing: Timing = field(default_factory=Timing)
    slave_timeout: float = 3.0
    most_behind: int = 256 << 20
    """`haSlaveFallbehindMax`, before 5.0"""
    in_sync_replicas: int = 1
    memory_bytes: int = 0
    """`memoryTopicMaxBytes`, our own: bytes of messages in memory; 0: 75 % of what is available"""

    @property
    def slave(self) -> bool:
        """Nothing is put here, only what a master sends."""
        return self.config.broker_role == "SLAVE"

    def pools(self, release: str) -> bool:
        """Whether the transient store pool is in use (`MessageStoreConfig#isTransientStorePoolEnable`)."""
        if not self.config.transient_store_pool_enable or self.slave:
            return False
        return version_key(release) >= _OF_5 or not self.sync_flush

    def replica_rule(self, release: str) -> ReplicaRule | None:
        """What a put waits for at slaves, None where it does not."""
        if self.config.broker_role != "SYNC_MASTER":
            return None
        by_number = version_key(release) >= _OF_5
        return ReplicaRule(by_number, self.in_sync_replicas, self.most_behind, self.slave_timeout)

    @property
    def limits(self) -> PullLimits:
        """Those of a pull."""
        one = self.config
        return PullLimits(
            (one.max_transfer_bytes_on_message_in_memory, one.max_transfer_count_on_message_in_memory),
            (one.max_transfer_bytes_on_message_in_disk, one.max_transfer_count_on_message_in_disk),
            one.access_message_in_memory_max_ratio,
            one.max_filter_message_size,
        )


def settings_from(given: Given) -> StoreSettings:
    """Settings from a mapping of RocketMQ's names, a `broker.conf` or nothing.

    Raises `UsageError` for what is unsupported, impossible, or looks like a misspelling; other unknown names
    are logged as a warning.
    """
    config = _config(given)
    extra = dict(config.model_extra or {})
    _refuse_unknown(extra)
    _refuse_unsupported(config, extra)
    values = {name: _value(name, extra.get(name, default), default) for name, default in EXTRA.items()}
    _refuse_impossible(config, values)
    return StoreSettings(
        config,
        config.flush_disk_type == "SYNC_FLUSH",
        values["syncFlushTimeout"] / 1000,
        values["autoCreateTopicEnable"],
        values["defaultTopicQueueNums"],
        _host(values["brokerIP1"], values["listenPort"]),
        values["fastFailIfNoBufferInStorePool"],
        values["warmMapedFileEnable"],
        values["flushLeastPagesWhenWarmMapedFile"],
        values["osPageCacheBusyTimeOutMills"] / 1000,
        values["slaveReadEnable"],
        values["autoCreateSubscriptionGroup"],
        values["flushConsumerOffsetInterval"] / 1000,
        values["flushDelayOffsetInterval"] / 1000,
        values["transactionTimeOut"],
        values["transactionCheckMax"],
        values["transactionCheckInterval"] / 1000,
        values["transactionOpMsgMaxSize"],
        values["transactionOpBatchInterval"] / 1000,
        _timing(config),
        values["slaveTimeout"] / 1000,
        values["haSlaveFallbehindMax"],
        values["inSyncReplicas"],
        values["memoryTopicMaxBytes"],
    )


def _refuse_impossible(config: StoreConfig, values: dict[str, Any]) -> None:
    given = config.by_option_name() | values
    for least, names in _AT_LEAST.items():
        for name in names:
            if given[name] < least:
                raise UsageError(f"{name}={given[name]} is below {least}")
    for most, names in _AT_MOST.items():
        for name in names:
            if given[name] > most:
                raise UsageError(f"{name}={given[name]} is above {most}")
    for hour in java_split(config.delete_when, ";"):
        number = java_parse_int(hour)
        if number is None or not 0 <= number < _HOURS:
            raise UsageError(f"deleteWhen={config.delete_when}: '{hour}' is not an hour, 00 to 23")
    if config.max_index_num <= FIRST_ITEM:
        raise UsageError(f"maxIndexNum={config.max_index_num}: no index file has room for a key")
    try:
        parse_delay_levels(config.message_delay_level)
    except FormatError as error:
        raise UsageError(f"messageDelayLevel: {error}") from error


def _timing(config: StoreConfig) -> Timing:
    given = "ha_transfer_batch_size" in config.model_fields_set
    batch = config.ha_transfer_batch_size if given else Timing().batch
    if not 0 < batch <= MAX_FRAME - sizeof(TransferHeader):
        raise UsageError(f"haTransferBatchSize={batch}: no slave takes frames of that size")
    heartbeat, housekeeping = config.ha_send_heartbeat_interval, config.ha_housekeeping_interval
    return Timing(heartbeat / 1000, housekeeping / 1000, batch)


def _config(given: Given) -> StoreConfig:
    if given is None:
        return config_of({})
    if isinstance(given, StoreConfig):
        return given
    if isinstance(given, Mapping):
        texts = {name: _text(value) for name, value in given.items()}
        for name in texts.keys() & _switches():
            if texts[name].strip().lower() not in _TRUE_OR_FALSE:
                raise UsageError(f"{name} is not true or false")
        return config_of(texts)
    if not isinstance(given, (str, os.PathLike)):
        raise UsageError(f"settings: {given!r} is not a mapping, and not the path of a broker.conf")
    return load_broker_conf(given)


def _fields() -> dict[str, FieldInfo]:
    """Those of `StoreConfig` by RocketMQ's names."""
    return {one.serialization_alias or name: one for name, one in StoreConfig.model_fields.items()}


def _switches() -> set[str]:
    """Settings that are on or off. In a file all but `true` is off, as for brokers."""
    given = {name: one.default for name, one in _fields().items()} | EXTRA
    return {name for name, default in given.items() if isinstance(default, bool)}


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _refuse_unknown(extra: dict[str, Any]) -> None:
    known = [field.alias or name for name, field in StoreConfig.model_fields.items()]
    known += [*EXTRA, *UNSUPPORTED, *WITHOUT_EFFECT, *NOTHING_TO_DO]
    by_small = {name.lower(): name for name in known}
    for name in extra:
        if name in known:
            continue
        near = get_close_matches(name.lower(), by_small, 1, _LIKENESS)
        if near:
            raise UsageError(f"{name} is not a setting: {by_small[near[0]]} is")
        _LOG.warning("%s is not known and has no effect", name)


def _refuse_unsupported(config: StoreConfig, extra: dict[str, Any]) -> None:
    given = {
        StoreConfig.model_fields[name].alias or name: getattr(config, name)
        for name in config.model_fields_set & StoreConfig.model_fields.keys()
    } | extra
    for name in sorted(NOTHING_TO_DO & given.keys()):
        _LOG.warning("%s has no effect here", name)
    for name, only in UNSUPPORTED.items():
        if name in given and _text(given[name]) != only:
            raise UsageError(f"{name}={given[name]} is not supported here")
    if config.broker_role not in _ROLES:
        raise UsageError(f"brokerRole={config.broker_role} is not supported here: {' or '.join(_ROLES)}")
    if config.flush_disk_type not in _FLUSH_TYPES:
        raise UsageError(f"flushDiskType={config.flush_disk_type} is not {' or '.join(_FLUSH_TYPES)}")


def _value(name: str, given: Any, default: Any) -> Any:
    if isinstance(default, bool):
        return _text(given).strip().lower() == "true"
    text = _text(given).strip()
    if not isinstance(default, int):
        return text
    bits = 64 if name in _LONG else 32
    number = java_parse_int(text, bits)
    if number is None:
        raise UsageError(f"{name} is not a {bits}-bit integer")
    return number


def _host(ip: str, port: int) -> Host:
    """An address, or a host's first one (`InetSocketAddress`)."""
    if not ip:
        return local_host(port)
    family = socket.AF_INET6 if ":" in ip else socket.AF_INET
    with suppress(OSError):
        return socket.inet_pton(family, ip), port
    try:
        found = socket.getaddrinfo(ip, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        why = getattr(error, "strerror", None) or "not a name"
        raise UsageError(f"brokerIP1={ip}: no address and no known host: {why}") from None
    found.sort(key=lambda one: one[0] != socket.AF_INET)  # as Java does, where nothing else is asked of it
    return socket.inet_pton(found[0][0], str(found[0][4][0]).partition("%")[0]), port
