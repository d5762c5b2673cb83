"""Evidence about the release from files other than the commit log."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from formats.checkpoint import parse_checkpoint
from formats.errors import FormatError
from formats.system_topics import REVIVE_PREFIX, SYSTEM_TOPIC_PREFIX, TIMER_TOPIC
from rmqtool.errors import RmqtoolError
from rmqtool.store.config_json import read_listed
from rmqtool.store.index_header import index_header
from rmqtool.store.kinds import FileKind
from rmqtool.store.releases import FIRST_5, LAST_4, Evidence, Weight, since, until
from rmqtool.store.resolve import StoreForm
from rmqtool.store.whole import read_whole

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rmqtool.store.contents import StoreContents
    from rmqtool.store.files import StoreFile

_NEW_KINDS = {
    FileKind.ABORT_BAK: FIRST_5,
    FileKind.BATCHCONSUMEQUEUE: FIRST_5,
    FileKind.TIMERCHECK: FIRST_5,
    FileKind.TIMERMETRICS: FIRST_5,
    FileKind.TIMERWHEEL: FIRST_5,
    FileKind.TIMERLOG: FIRST_5,
    FileKind.EPOCH: FIRST_5,
    FileKind.BROKER_IDENTITY: "5.1.0",
    FileKind.COMPACTION_LOG: "5.1.0",
    FileKind.COMPACTION_CQ: "5.1.0",
    FileKind.COMPACTION_POSITION: "5.1.0",
}
_NEW_CONFIGS = {
    "consumerOrderInfo.json": FIRST_5,
    "topicQueueMapping.json": FIRST_5,
    "messageRequestMode.json": FIRST_5,
    "transactionMetrics": FIRST_5,
    "lmqConsumerOffset.json": "4.9.3",
}
_ROCKSDB = {
    "consumequeue": "5.2.0",
    "config/topics": "5.1.4",
    "config/subscriptionGroups": "5.1.4",
    "config/consumerOffsets": "5.1.4",
    "config/rdb": "5.3.2",
    "kvStore": "5.3.2",
}
_NEW_TOPICS = (TIMER_TOPIC, REVIVE_PREFIX, f"{SYSTEM_TOPIC_PREFIX}SYNC_BROKER_MEMBER_")
_VERSIONED = ("topics.json", "subscriptionGroup.json", "consumerOffset.json", "delayOffset.json")


def file_evidence(store: StoreContents) -> Iterator[Evidence]:
    """Everything that markers, directories, checkpoint, configuration and index headers tell."""
    yield from _presence(store)
    yield from _topics(store)
    for file in store.of_kind(FileKind.ABORT):
        yield from _abort(store, file)
    for file in store.of_kind(FileKind.CHECKPOINT):
        yield from _checkpoint(file)
    for file in store.of_kind(FileKind.CONFIG):
        yield from _config(file)
    yield from _index(store)


def _content(file: StoreFile) -> bytes | None:
    try:
        return read_whole(file)
    except RmqtoolError:
        return None


def _presence(store: StoreContents) -> Iterator[Evidence]:
    for kind, release in _NEW_KINDS.items():
        for file in store.of_kind(kind)[:1]:
            yield Evidence(f"{kind} exists", file.display_path, since(release), Weight.CERTAIN, file.mtime_ns)
    for file in store.of_kind(FileKind.CONFIG):
        if file.name in _NEW_CONFIGS:
            yield Evidence(
                "exists", file.display_path, since(_NEW_CONFIGS[file.name]), Weight.CERTAIN, file.mtime_ns
            )
    seen: set[str] = set()
    for file in store.of_kind(FileKind.ROCKSDB):
        directory = file.path.rpartition("/")[0]
        if directory in _ROCKSDB and directory not in seen:
            seen.add(directory)
            fact = "is a RocksDB database"
            yield Evidence(fact, directory, since(_ROCKSDB[directory]), Weight.CERTAIN, file.mtime_ns)
    whole = store.form is StoreForm.STORE
    if whole and store.of_kind(FileKind.CHECKPOINT) and not store.of_kind(FileKind.ABORT_BAK):
        yield Evidence("no abort.bak, which 5.x leaves behind at every start", "", until(LAST_4))


def _topics(store: StoreContents) -> Iterator[Evidence]:
    for queue in store.queues():
        if queue.topic is not None and queue.topic.startswith(_NEW_TOPICS):
            yield Evidence(f"topic {queue.topic} exists", "", since(FIRST_5))
            return


def _abort(store: StoreContents, file: StoreFile) -> Iterator[Evidence]:
    content = _content(file)
    if content is None:
        return
    if content.isdigit():
        fact = "holds a process id"
        yield Evidence(fact, file.display_path, since(FIRST_5), Weight.CERTAIN, file.mtime_ns)
    elif not content and not store.of_kind(FileKind.ABORT_BAK):
        yield Evidence("is empty", file.display_path, until(LAST_4), Weight.LIKELY, file.mtime_ns)


def _checkpoint(file: StoreFile) -> Iterator[Evidence]:
    content = _content(file)
    if content is None:
        return
    try:
        fields = parse_checkpoint(content)
    except FormatError:
        return
    if fields.master_flushed_offset or fields.confirm_physical_offset:
        fact = "has masterFlushedOffset or confirmPhyOffset"
        yield Evidence(fact, file.display_path, since(FIRST_5), Weight.WEAK, file.mtime_ns)


def _config(file: StoreFile) -> Iterator[Evidence]:
    data = read_listed(file)[0].data
    if not isinstance(data, dict) or file.name not in _VERSIONED:
        return
    version = data.get("dataVersion")
    if isinstance(version, dict) and "stateVersion" in version:
        fact = "dataVersion has a stateVersion"
        yield Evidence(fact, file.display_path, since(FIRST_5), Weight.CERTAIN, file.mtime_ns)
    elif isinstance(version, dict):
        yield Evidence(
            "dataVersion has no stateVersion", file.display_path, until(LAST_4), Weight.LIKELY, file.mtime_ns
        )
    elif file.name in ("consumerOffset.json", "delayOffset.json"):
        yield Evidence("has no dataVersion", file.display_path, until(LAST_4), Weight.LIKELY, file.mtime_ns)
    yield from _tables(file, data)


def _tables(file: StoreFile, data: dict[str, Any]) -> Iterator[Evidence]:
    topics = _entries(data, "topicConfigTable")
    if any("attributes" in entry for entry in topics):
        yield Evidence(
            "topics have attributes", file.display_path, since(FIRST_5), Weight.CERTAIN, file.mtime_ns
        )
    elif topics:
        yield Evidence(
            "no topic has attributes", file.display_path, until(LAST_4), Weight.LIKELY, file.mtime_ns
        )
    groups = _entries(data, "subscriptionGroupTable")
    if any("attributes" in entry for entry in groups):
        yield Evidence(
            "groups have attributes", file.display_path, since("5.1.0"), Weight.CERTAIN, file.mtime_ns
        )
    elif any("groupRetryPolicy" in entry or "consumeMessageOrderly" in entry for entry in groups):
        yield Evidence(
            "groups have fields of 5.x", file.display_path, since(FIRST_5), Weight.CERTAIN, file.mtime_ns
        )
    elif groups:
        yield Evidence(
            "no group has fields of 5.x", file.display_path, until(LAST_4), Weight.LIKELY, file.mtime_ns
        )
    if "forbiddenTable" in data:
        yield Evidence(
            "has a forbiddenTable", file.display_path, since(FIRST_5), Weight.CERTAIN, file.mtime_ns
        )


def _entries(data: dict[str, Any], table: str) -> list[dict[str, Any]]:
    found = data.get(table)
    return [entry for entry in found.values() if isinstance(entry, dict)] if isinstance(found, dict) else []


def _index(store: StoreContents) -> Iterator[Evidence]:
    """Counters of the newest index file: up to 4.7.0 hashSlotCount counts every put, later only new slots."""
    for file in reversed(store.index_files()):
        header = index_header(file)
        if header is None:
            continue
        puts = header.index_count - 1
        if header.index_count == 1 and header.hash_slot_count == 0 and not header.begin_timestamp:
            fact = "an index file without entries has the indexCount 1"
            yield Evidence(fact, file.display_path, since(FIRST_5), Weight.LIKELY, file.mtime_ns)
        elif 0 < header.hash_slot_count < puts:
            fact = "hashSlotCount is less than the number of entries"
            yield Evidence(fact, file.display_path, since("4.7.1"), Weight.LIKELY, file.mtime_ns)
        elif header.hash_slot_count == puts > 0 and _has_collision(file, puts):
            fact = "hashSlotCount counts entries that share a slot"
            yield Evidence(fact, file.display_path, until("4.7.0"), Weight.LIKELY, file.mtime_ns)
        elif puts <= 1:
            continue
        return


def _has_collision(file: StoreFile, puts: int) -> bool:
    """Whether one of the first items has a predecessor in its slot."""
    from rmqtool.store.index_geometry import try_geometry
    from rmqtool.store.index_solver import ITEM

    geometry = try_geometry(file)
    if geometry.slots is None:
        return False
    try:
        with file.open("pread") as source:
            raw = source.window(geometry.item_position(1), min(puts, 4096) * ITEM)
    except RmqtoolError:
        return False
    items = raw[: len(raw) // ITEM * ITEM].reshape(-1, ITEM)
    return bool(items[:, 16:].any())
