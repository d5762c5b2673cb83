"""Settings of a broker that change bytes on disk: `broker.conf`.

Option names are RocketMQ's own (`MessageStoreConfig`, `BrokerConfig`); defaults are those of 5.3.3.
This module imports pydantic: import it where settings are really needed.
"""

from __future__ import annotations

import os
from typing import Annotated, Any

from pydantic import (
    AfterValidator,
    AliasChoices,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
)
from pydantic.alias_generators import to_camel

from formats.consumequeue import BatchUnit, Unit
from formats.index import file_size as index_file_size
from formats.primitives import java_parse_int, sizeof
from rmqtool.errors import UsageError
from rmqtool.store.kinds import ROCKSDB_STORE_TYPE
from rmqtool.store.names import INT_MAX, escape_name, may_be_path
from rmqtool.store.properties import read_properties

UNIT = sizeof(Unit)
BATCH_UNIT = sizeof(BatchUnit)


def _java_bool(value: object) -> object:
    """`Boolean.parseBoolean`: everything but "true" is false."""
    return value.strip().lower() == "true" if isinstance(value, str) else value


def _java_int(value: object) -> object:
    """Optional sign and decimal digits as `Integer.parseInt` takes them; blanks around are forgiven."""
    if isinstance(value, str):
        number = java_parse_int(value.strip())
        if number is None:
            raise ValueError("this is not a 32-bit integer")
        return number
    return value


def _path(value: str) -> str:
    if not may_be_path(value):
        raise ValueError("this is not a path")
    return value


StorePath = Annotated[str, AfterValidator(_path)]
JavaBool = Annotated[bool, BeforeValidator(_java_bool)]
JavaInt = Annotated[int, BeforeValidator(_java_int), Field(ge=-INT_MAX - 1, le=INT_MAX)]
FileLength = Annotated[int, BeforeValidator(_java_int), Field(gt=0, le=INT_MAX)]
Count = Annotated[int, BeforeValidator(_java_int), Field(gt=0, le=INT_MAX)]


class StoreConfig(BaseModel):
    """Settings by RocketMQ's names (aliases) or in snake_case; unknown ones are kept in `model_extra`.

    Sizes are bytes, intervals milliseconds. `is_set` tells given values from defaults.
    """

    model_config = ConfigDict(
        alias_generator=to_camel, populate_by_name=True, extra="allow", frozen=True, str_strip_whitespace=True
    )

    store_path_root_dir: StorePath | None = None
    store_path_commit_log: StorePath | None = None
    read_only_commit_log_store_paths: StorePath | None = None
    store_path_dledger_commit_log: StorePath | None = Field(None, alias="storePathDLedgerCommitLog")
    store_path_epoch_file: StorePath | None = None
    store_path_broker_identity: StorePath | None = None

    mapped_file_size_commit_log: FileLength = Field(
        1_073_741_824,
        validation_alias=AliasChoices("mappedFileSizeCommitLog", "mapedFileSizeCommitLog"),
        serialization_alias="mappedFileSizeCommitLog",
    )
    mapped_file_size_consume_queue: FileLength = Field(
        6_000_000,
        validation_alias=AliasChoices("mappedFileSizeConsumeQueue", "mapedFileSizeConsumeQueue"),
        serialization_alias="mappedFileSizeConsumeQueue",
    )
    mapped_file_size_consume_queue_ext: FileLength = 50_331_648
    mapper_file_size_batch_consume_queue: FileLength = 13_800_000
    mapped_file_size_timer_log: FileLength = 104_857_600
    compaction_mapped_file_size: FileLength = 104_857_600
    compaction_cq_mapped_file_size: FileLength = 10_485_760
    enable_consume_queue_ext: JavaBool = False
    bit_map_length_consume_queue_ext: JavaInt = 64
    max_hash_slot_num: Count = 5_000_000
    max_index_num: Count = 20_000_000
    message_index_enable: JavaBool = True
    message_index_safe: JavaBool = False
    max_message_size: JavaInt = 4_194_304

    flush_disk_type: str = "ASYNC_FLUSH"
    flush_interval_commit_log: JavaInt = 500
    flush_commit_log_least_pages: JavaInt = 4
    flush_commit_log_thorough_interval: JavaInt = 10_000
    flush_commit_log_timed: JavaBool = True
    flush_interval_consume_queue: JavaInt = 1_000
    flush_consume_queue_least_pages: JavaInt = 2
    flush_consume_queue_thorough_interval: JavaInt = 60_000
    transient_store_pool_enable: JavaBool = False
    transient_store_pool_size: JavaInt = 5
    commit_interval_commit_log: JavaInt = 200
    commit_commit_log_least_pages: JavaInt = 4
    commit_commit_log_thorough_interval: JavaInt = 200
    check_crc_on_recover: JavaBool = Field(True, alias="checkCRCOnRecover")
    duplication_enable: JavaBool = False
    enabled_append_prop_crc: JavaBool = Field(False, alias="enabledAppendPropCRC")
    force_verify_prop_crc: JavaBool = Field(False, alias="forceVerifyPropCRC")
    auto_message_version_on_topic_len: JavaBool = True
    put_consume_queue_data_by_file_channel: JavaBool = True
    message_delay_level: str = "1s 5s 10s 30s 1m 2m 3m 4m 5m 6m 7m 8m 9m 10m 20m 30m 1h 2h"

    delete_when: str = "04"
    file_reserved_time: JavaInt = 72
    disk_max_used_space_ratio: JavaInt = 75
    disk_space_warning_level_ratio: JavaInt = 90
    disk_space_clean_forcibly_ratio: JavaInt = 85
    clean_resource_interval: JavaInt = 10_000
    delete_commit_log_files_interval: JavaInt = 100
    delete_consume_queue_files_interval: JavaInt = 100
    destroy_mapped_file_interval_forcibly: JavaInt = Field(120_000, alias="destroyMapedFileIntervalForcibly")
    redelete_hanged_file_interval: JavaInt = 120_000
    delete_file_batch_max: JavaInt = 10
    clean_file_forcibly_enable: JavaBool = True

    max_transfer_bytes_on_message_in_memory: JavaInt = 262_144
    max_transfer_count_on_message_in_memory: JavaInt = 32
    max_transfer_bytes_on_message_in_disk: JavaInt = 65_536
    max_transfer_count_on_message_in_disk: JavaInt = 8
    access_message_in_memory_max_ratio: JavaInt = 40
    max_filter_message_size: JavaInt = 16_000
    max_msgs_num_batch: JavaInt = 64
    default_query_max_num: JavaInt = 32

    broker_role: str = "ASYNC_MASTER"
    ha_listen_port: JavaInt = 10_912
    ha_send_heartbeat_interval: JavaInt = 5_000
    ha_housekeeping_interval: JavaInt = 20_000
    ha_transfer_batch_size: JavaInt = 32_768
    enable_multi_dispatch: JavaBool = False
    enable_lmq: JavaBool = False
    max_lmq_consume_queue_num: JavaInt = 20_000
    store_type: str = "default"
    rocksdb_cq_double_write_enable: JavaBool = Field(False, alias="rocksdbCQDoubleWriteEnable")
    recheck_reput_offset_from_cq: JavaBool = False
    timer_wheel_enable: JavaBool = True
    timer_precision_ms: Count = 1_000
    timer_roll_window_slot: JavaInt = 172_800
    timer_max_delay_sec: JavaInt = 259_200
    enable_compaction: JavaBool = True
    enable_dledger_commit_log: JavaBool = Field(False, alias="enableDLegerCommitLog")
    dledger_self_id: str | None = Field(None, alias="dLegerSelfId")
    use_reentrant_lock_when_put_message: JavaBool = True
    topic_queue_lock_num: JavaInt = 32

    directory: str | None = Field(None, exclude=True, alias="rmqtool.directory")
    """Where relative paths start: the directory of the settings file, None for the working directory."""

    @property
    def consume_queue_file_size(self) -> int:
        """`MessageStoreConfig#getMappedFileSizeConsumeQueue`: rounded up to whole units of 20 bytes."""
        return -(-self.mapped_file_size_consume_queue // UNIT) * UNIT

    @property
    def compaction_cq_file_size(self) -> int:
        """`CompactionLog`: rounded down to whole units of 46 bytes."""
        return max(self.compaction_cq_mapped_file_size // BATCH_UNIT * BATCH_UNIT, BATCH_UNIT)

    @property
    def compaction_log_file_size(self) -> int:
        """`CompactionLog#getCompactionLogSize`: a multiple of the queue's file size, at least five."""
        unit = self.compaction_cq_file_size
        times, rest = divmod(self.compaction_mapped_file_size, unit)
        if times < 5:
            return 5 * unit
        return times * unit if 0 < rest < unit // 2 else (times + 1) * unit

    @property
    def index_file_size(self) -> int:
        """Length of an index file with these slots and items."""
        return index_file_size(self.max_hash_slot_num, self.max_index_num)

    @property
    def doubles_queues(self) -> bool:
        """Whether the broker serves queues from files and writes them to RocksDB, too."""
        return self.rocksdb_cq_double_write_enable and self.store_type != ROCKSDB_STORE_TYPE

    def is_set(self, name: str) -> bool:
        """Whether a setting was given, or one that a computed size (`consume_queue_file_size`) is from."""
        names = _COMPUTED.get(name, (name,))
        return any(one in self.model_fields_set for one in names)

    @classmethod
    def names(cls) -> list[str]:
        """All settings that are read, by RocketMQ's names."""
        return [one.serialization_alias or name for name, one in cls.model_fields.items()]

    def by_option_name(self) -> dict[str, Any]:
        """All settings under RocketMQ's names, defaults and unknown ones included."""
        return self.model_dump(by_alias=True)

    @property
    def root(self) -> str | None:
        """Absolute `storePathRootDir`; a relative one is taken from the directory of the settings file."""
        return None if not self.store_path_root_dir else self._absolute(self.store_path_root_dir)

    def is_root(self, location: str | os.PathLike[str]) -> bool:
        """Whether `location` is the store that these settings are for (and not a copy of it)."""
        return self.root is not None and os.path.realpath(self.root) == os.path.realpath(location)

    def commit_log_roots(self) -> list[str]:
        """Absolute directories of the commit log: writable paths first, then the read-only ones, as written.

        Several paths are separated by the comma of `MixAll#MULTI_PATH_SPLITTER`.
        """
        given = (self.store_path_commit_log, self.read_only_commit_log_store_paths)
        return [self._absolute(path) for paths in given if paths for path in split_paths(paths)]

    def _absolute(self, path: str) -> str:
        return os.path.normpath(os.path.join(self.directory or os.getcwd(), os.path.expanduser(path)))


PATH_SPLITTER = ","
"""between the paths of one setting (`MixAll#MULTI_PATH_SPLITTER`)"""
_COMPUTED = {
    "consume_queue_file_size": ("mapped_file_size_consume_queue",),
    "compaction_cq_file_size": ("compaction_cq_mapped_file_size",),
    "compaction_log_file_size": ("compaction_mapped_file_size", "compaction_cq_mapped_file_size"),
}


def split_paths(paths: str, separator: str | None = None) -> list[str]:
    """Single paths of a multi-path setting, without empty ones (`MultiPathMappedFileQueue#getPaths`).

    `separator` is the system property `rocketmq.broker.multiPathSplitter`, a comma unless given.
    """
    return [path.strip() for path in paths.split(separator or PATH_SPLITTER) if path.strip()]


def load_broker_conf(path: str | os.PathLike[str]) -> StoreConfig:
    """Reads a `broker.conf` (a Java properties file, ISO 8859-1 with escapes).

    Raises `UsageError` for a missing or malformed file and for values that are not legal numbers,
    `StoreIOError` when it may not be read. (The broker itself silently ignores such a value; a tool must
    not.)
    """
    settings = read_properties(path)
    return config_of(settings, escape_name(os.fspath(path)), os.path.dirname(os.path.abspath(path)))


def config_of(
    settings: dict[str, Any], origin: str = "settings", directory: str | None = None
) -> StoreConfig:
    """Settings from a mapping of RocketMQ's option names; `directory` is what relative paths are relative to.

    Raises `UsageError`, one line that names the first bad setting, not its value (a secret, perhaps).
    """
    given = {name: value for name, value in settings.items() if value != ""}
    try:
        config = StoreConfig.model_validate(given)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        name = ".".join(str(part) for part in first["loc"])
        why = first["msg"].removeprefix("Value error, ").lower()
        raise UsageError(f"{origin}: {name}: {why}") from None
    return config if directory is None else config.model_copy(update={"directory": directory})
