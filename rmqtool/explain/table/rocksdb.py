"""RocksDB: consume queues and configuration in it (5.2 and later)."""

from __future__ import annotations

from rmqtool.explain.entry import Entry

ENTRIES = (
    Entry(
        id="rocksdb.open-failed",
        severity="problem",
        lines=(
            "postLoad Failed. {path}",
            "PopConsumerStore init error",
            "PopConsumerRocksdbStore init error, filePath={path}",
        ),
        meaning=(
            "A RocksDB database cannot be opened, so the broker does not start. 'lock hold by' means "
            "that another process has it open; 'Corruption' that files of it are damaged or missing."
        ),
        look="The exception below.",
        next=("info STORE",),
        incidents=("F24",),
        source=("ConsumeQueueRocksDBStorage#postLoad", "ConfigRocksDBStorage#postLoad"),
        releases="5.2 and later",
    ),
    Entry(
        id="rocksdb.operation-failed",
        severity="problem",
        lines=(
            "batchPut Failed. {path},",
            "put Failed. {path},",
            "get Failed. {path},",
            "multiGet Failed. {path},",
            "delete Failed. {path},",
            "rangeDelete Failed. {path},",
            "flush Failed. {path},",
            "hold rocksdb Failed. {path}",
            "Failed to flush WAL",
            "kv flush WAL Failed.",
            "Failed to flush RocksDB",
        ),
        meaning=(
            "RocksDB refused an operation. 'IOError' and 'NoSpace' come from the disk; after them the "
            "database only reads until it is opened again."
        ),
        look="Space and the kernel's log.",
        next=("info STORE",),
        incidents=("F24", "F21"),
        source=("AbstractRocksDBStorage#put", "AbstractRocksDBStorage#batchPut"),
        releases="5.2 and later",
    ),
    Entry(
        id="rocksdb.reload",
        severity="notice",
        lines=(
            "scheduleReloadRocksdb. {path},",
            "reload rocksdb Failed. {path}",
            "reload rocksdb OK. {path}",
        ),
        meaning="After an error the database is closed and opened again.",
        look="Whether it says OK at last.",
        incidents=("F24",),
        source=("AbstractRocksDBStorage#scheduleReloadRocksdb",),
        releases="5.2 and later",
    ),
    Entry(
        id="rocksdb.put-queue-failed",
        severity="problem",
        lines=(
            "Put cq Failed. retryTime: {count}",
            "[BUG] put CQ Failed.",
            "putMessagePosition0 failed.",
            "Failed to build consume queue in RocksDB",
            "RocksGroupCommitService#buffer is full",
        ),
        meaning=(
            "Consume queue entries could not be written to RocksDB: consumers get nothing new, and the store "
            "may refuse messages."
        ),
        look="The exception below.",
        next=("info STORE",),
        incidents=("F21", "F24"),
        source=("RocksDBConsumeQueueStore#putMessagePosition",),
        releases="5.2 and later",
    ),
    Entry(
        id="rocksdb.read-queue-failed",
        severity="problem",
        lines=(
            "get cq from rocksdb failed. topic: {topic}, queueId: {queue_id}",
            "getMaxOffsetInQueue Failed. topic: {topic}, queueId: {queue_id}",
            "getMessageTotalInQueue Failed. topic: {topic}, queueId: {queue_id}",
            "getUnitAndStoreTime Failed. topic: {topic}, queueId: {queue_id}",
            "getEarliestUnitAndStoreTime Failed. topic: {topic}, queueId: {queue_id}",
            "getLatestUnit Failed. topic: {topic}, queueId: {queue_id}",
        ),
        meaning="A queue in RocksDB could not be read.",
        look="The exception below.",
        next=("info STORE",),
        incidents=("F24",),
        source=("RocksDBConsumeQueue#next",),
        releases="5.2 and later",
    ),
    Entry(
        id="rocksdb.iterate-nothing",
        severity="notice",
        lines=("iterateFrom0 - find nothing, startIndex:{queue_offset}, count:{count}",),
        meaning="No entries at this offset of a queue in RocksDB. At the end of the queue that is ordinary.",
        look="Whether the offset lies below the queue's maximum.",
        incidents=("F24",),
        source=("RocksDBConsumeQueue#iterateFrom0",),
        releases="5.2 and later",
    ),
    Entry(
        id="rocksdb.offset-regressed",
        severity="problem",
        lines=(
            "Max offset of consume-queue[topic={topic}, queue-id={queue_id}] regressed.",
            "cqOffset invalid1. old: {int}, now: {int}",
            "correct error. {topic}, {queue_id},",
            "[BUG] correctMaxCqOffset error! topic: {topic}, queueId: {queue_id}",
            "should have existed",
        ),
        meaning=(
            "The largest offset of a queue in RocksDB went back or is missing: offsets may be handed "
            "out twice. A crash of a store without write-ahead log leaves the database behind the "
            "commit log."
        ),
        look="Queue offsets of the newest records of the queue in the commit log.",
        next=("dump STORE --topic {topic} --queue {queue_id}", "info STORE"),
        incidents=("F24",),
        source=("RocksDBConsumeQueueOffsetTable#putHeapMaxCqOffset",),
        releases="5.2 and later",
    ),
    Entry(
        id="rocksdb.truncate",
        severity="notice",
        lines=(
            "truncateDirtyLogicFile topic: {topic}, queueId: {queue_id} from {int} to {int}",
            "RocksDBConsumeQueueOffsetTable has dirty cqOffset. topic: {topic}, queueId: {queue_id}",
            "correctMaxPyhOffset, oldMaxPhyOffset={int}, newMaxPhyOffset={int}",
        ),
        meaning="Queues in RocksDB point beyond the end of the recovered log and are cut back.",
        look="How far: that part of the log was lost.",
        next=("info STORE",),
        incidents=("F20", "F24"),
        source=("RocksDBConsumeQueueOffsetTable#truncateDirtyOffset",),
        releases="5.2 and later",
    ),
    Entry(
        id="rocksdb.offset-updated",
        severity="normal",
        lines=(
            "updateMaxOffsetInQueue. {topic}, {int}",
            "updateMinOffsetInQueue. {topic}, ",
            "updateCqOffset(max). topic: {topic}",
            "updateCqOffset(min). topic: {topic}",
            "getMinOffsetInQueue miss heap. topic: {topic}",
            "is initialized to {int} according to RocksDB",
        ),
        meaning="Bounds of a queue were taken from RocksDB into memory.",
        look="Nothing.",
        source=("RocksDBConsumeQueueOffsetTable#getMaxCqOffset",),
        releases="5.2 and later",
    ),
    Entry(
        id="rocksdb.load-queues",
        severity="normal",
        lines=("load rocksdb consume queue OK", "load rocksdb consume queue {word}"),
        meaning="The consume queues in RocksDB were opened.",
        look="Anything but OK: the broker does not start.",
        next=("info STORE",),
        incidents=("F24",),
        source=("RocksDBConsumeQueueStore#load",),
        releases="5.2 and later",
    ),
    Entry(
        id="rocksdb.config-failed",
        severity="problem",
        lines=(
            "kv put topic Failed, ",
            "kv remove topic Failed, ",
            "kv put sub Failed, ",
            "kv delete sub Failed, ",
            "kv remove consumerOffset Failed, ",
            "consumer offset persist Failed",
            "Failed to start config storage",
            "Failed to update topic config",
            "Failed to commit consumer offset",
        ),
        meaning=(
            "A topic, group or offset could not be stored in RocksDB: it is in memory only and gone "
            "after a restart."
        ),
        look="The exception below, space.",
        next=("info STORE",),
        incidents=("F24",),
        source=("RocksDBTopicConfigManager#putTopicConfig", "ConsumerOffsetManagerV2#commitOffset"),
        releases="5.2 and later",
    ),
)
