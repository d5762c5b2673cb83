"""The settings that decide a start: given by `broker.conf`, else inferred from the files, else defaults."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from formats.errors import FormatError
from formats.java import java_parse_int
from formats.tags_code import parse_delay_levels
from rmqtool.errors import UsageError
from rmqtool.scan.multi import LMQ_PREFIX
from rmqtool.store.kinds import ROCKSDB_STORE_TYPE, FileKind
from rmqtool.store.rocksdb import reads_rocksdb_queues

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rmqtool.store.config import StoreConfig
    from rmqtool.store.layout import Store


@dataclass(frozen=True)
class StartSettings:
    """What recovery asks for; sizes are bytes.

    assumed: RocketMQ's names of the settings that nobody gave, with the values taken instead.
    """

    commit_log_size: int = 1 << 30
    consume_queue_size: int = 6_000_000
    batch_queue_size: int = 13_800_000
    check_crc: bool = True
    duplication: bool = False
    force_property_crc: bool = False
    index_enabled: bool = True
    index_safe: bool = False
    recheck_reput: bool = False
    sync_flush: bool = False
    multi_dispatch: bool = False
    lmq: bool = False
    master: bool = True
    controller: bool = False
    dledger: bool = False
    rocksdb_queues: bool = False
    extension: bool = False
    extension_size: int = 50_331_648
    timer_wheel: bool = True
    timer_log_size: int = 104_857_600
    timer_precision: int = 1_000
    compaction: bool = True
    compaction_log_size: int = 104_857_460
    compaction_queue_size: int = 10_485_746
    assumed: dict[str, Any] = field(default_factory=dict)


def settings_of(store: Store, config: StoreConfig | None = None) -> StartSettings:
    """Settings for a start on `store`; `config` overrides what the store was opened with."""
    from rmqtool.store.config import config_of

    known = config or store.config or config_of({})
    assumed = {}
    sizes = {}
    for kind, name, option in _SIZES:
        found = None if known.is_set(name) else store.sizes.get(kind)
        sizes[kind] = getattr(known, name) if found is None else found.value
        if not known.is_set(name):
            assumed[option] = sizes[kind]
    for name, option in _SWITCHES:
        if not known.is_set(name):
            assumed[option] = getattr(known, name)
    extra = known.model_extra or {}
    rocksdb = reads_rocksdb_queues(store, known)
    if rocksdb and not known.is_set("store_type"):
        assumed["storeType"] = ROCKSDB_STORE_TYPE
    controller = str(extra.get("enableControllerMode", "")).strip().lower() == "true"
    if "enableControllerMode" not in extra and store.of_kind(*_OF_CONTROLLER):
        controller = assumed["enableControllerMode"] = True
    extension = known.enable_consume_queue_ext
    if not known.is_set("enable_consume_queue_ext") and store.of_kind(FileKind.CONSUMEQUEUE_EXT):
        extension = assumed["enableConsumeQueueExt"] = True
    light = {}
    lights = any((one.topic or "").startswith(LMQ_PREFIX) for one in store.queues())
    for name, option in _OF_LIGHT_QUEUES:
        light[name] = getattr(known, name)
        if not known.is_set(name) and lights:
            light[name] = assumed[option] = True
    return StartSettings(
        commit_log_size=sizes[FileKind.COMMITLOG],
        consume_queue_size=sizes[FileKind.CONSUMEQUEUE],
        batch_queue_size=sizes[FileKind.BATCHCONSUMEQUEUE],
        check_crc=known.check_crc_on_recover,
        duplication=known.duplication_enable,
        force_property_crc=known.force_verify_prop_crc,
        index_enabled=known.message_index_enable,
        index_safe=known.message_index_safe,
        recheck_reput=known.recheck_reput_offset_from_cq,
        sync_flush=known.flush_disk_type == "SYNC_FLUSH",
        multi_dispatch=light["enable_multi_dispatch"],
        lmq=light["enable_lmq"],
        master=_is_master(known, extra, controller=controller),
        controller=controller,
        dledger=known.enable_dledger_commit_log or bool(store.of_kind(FileKind.DLEDGER_DATA)),
        rocksdb_queues=rocksdb,
        extension=extension,
        extension_size=_size_of(
            FileKind.CONSUMEQUEUE_EXT, "mapped_file_size_consume_queue_ext", store, known
        ),
        timer_wheel=known.timer_wheel_enable,
        timer_log_size=_size_of(FileKind.TIMERLOG, "mapped_file_size_timer_log", store, known),
        timer_precision=known.timer_precision_ms,
        compaction=known.enable_compaction,
        compaction_log_size=_size_of(FileKind.COMPACTION_LOG, "compaction_log_file_size", store, known),
        compaction_queue_size=_size_of(FileKind.COMPACTION_CQ, "compaction_cq_file_size", store, known),
        assumed=assumed,
    )


def _is_master(known: StoreConfig, extra: Mapping[str, Any], *, controller: bool) -> bool:
    """Whether the broker has number 0: masters get it, whatever is given (`BrokerStartup`).

    What is not a long is passed over (`MixAll#properties2Object`).
    """
    number = java_parse_int(str(extra.get("brokerId", "0")).strip(), 64)
    return not number or (known.broker_role != "SLAVE" and not controller)


def delay_levels(config: StoreConfig | None) -> Mapping[int, int]:
    """Delays in ms by level (`messageDelayLevel`). Raises `UsageError` for what is not a list of them."""
    from rmqtool.store.config import config_of

    try:
        return parse_delay_levels((config or config_of({})).message_delay_level)
    except FormatError as error:
        raise UsageError(str(error)) from error


def _size_of(kind: FileKind, name: str, store: Store, known: StoreConfig) -> int:
    found = store.sizes.get(kind)
    if found is None or known.is_set(name):
        return int(getattr(known, name))
    return found.value


_OF_LIGHT_QUEUES = ("enable_multi_dispatch", "enableMultiDispatch"), ("enable_lmq", "enableLmq")
_OF_CONTROLLER = FileKind.EPOCH, FileKind.BROKER_IDENTITY
"""no other broker makes them (`AutoSwitchHAService`, `ReplicasManager`)"""
_SIZES = (
    (FileKind.COMMITLOG, "mapped_file_size_commit_log", "mappedFileSizeCommitLog"),
    (FileKind.CONSUMEQUEUE, "consume_queue_file_size", "mappedFileSizeConsumeQueue"),
    (FileKind.BATCHCONSUMEQUEUE, "mapper_file_size_batch_consume_queue", "mapperFileSizeBatchConsumeQueue"),
)
_SWITCHES = (
    ("check_crc_on_recover", "checkCRCOnRecover"),
    ("duplication_enable", "duplicationEnable"),
    ("message_index_safe", "messageIndexSafe"),
    ("recheck_reput_offset_from_cq", "recheckReputOffsetFromCq"),
    ("enable_multi_dispatch", "enableMultiDispatch"),
)
