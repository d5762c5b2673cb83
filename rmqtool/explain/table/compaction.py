"""Topics with cleanup policy COMPACTION (5.x)."""

from __future__ import annotations

from rmqtool.explain.entry import Entry

_5X = "5.x"

ENTRIES = (
    Entry(
        "compaction.mismatch",
        "problem",
        (
            "{topic}:{queue_id} compactionLog mismatch with compactionCq",
            "log file mismatch with consumeQueue file {path}",
            "consumeQueue file mismatch with log file {path}",
        ),
        "The compacted log of a queue and its own queue files do not belong together; the store does not load this queue.",
        "compaction/commitLog and compaction/consumequeue of that topic: the same files in both?",
        ("info STORE",),
        ("F41",),
        ("CompactionStore#load", "CompactionLog#replaceFiles"),
        _5X,
    ),
    Entry(
        "compaction.load-error",
        "problem",
        (
            "load compaction store error",
            "load compactionLog {topic}:{word} exception: ",
            "create compactionLog exception: ",
        ),
        "The compacted topics could not be loaded.",
        "The exception below.",
        ("info STORE",),
        ("F41",),
        ("CompactionService#load", "CompactionStore#load"),
        _5X,
    ),
    Entry(
        "compaction.run-error",
        "problem",
        (
            "do compaction exception: ",
            "offsetMap put exception: ",
            "offset map is full",
            "move file {path} to parent directory exception: ",
            "move consume queue file {path} to parent directory exception: ",
            "roll log and cq exception: ",
            "do merge replicating and current exception: ",
        ),
        "A round of compaction failed; the topic stays uncompacted, or was left half-way between old and new files.",
        "The exception below, and sub-directories left in compaction/.",
        ("info STORE",),
        ("F41",),
        ("CompactionLog#doCompaction",),
        _5X,
    ),
    Entry(
        "compaction.no-key",
        "problem",
        (
            "message {topic}-{queue_id}:{word} have no key, will not put in compaction log",
            "message has no keys",
        ),
        "A message without key was sent to a compacted topic; it is not kept there.",
        "The producer.",
        ("dump STORE --topic {topic} --queue {queue_id}",),
        ("F41",),
        ("CompactionLog#asyncPutMessage",),
        _5X,
    ),
    Entry(
        "compaction.put-error",
        "problem",
        (
            "putMessage into {topic}:{queue_id} compactionLog exception: ",
            "put message {topic}-{queue_id} position info failed",
            "create mapped file or consumerQueue exception: ",
        ),
        "A message could not be written to the compacted log; consumers of the topic do not see it.",
        "The exception below, space.",
        ("info STORE",),
        ("F41", "F21"),
        ("CompactionService#putRequest", "CompactionLog#doAppend"),
        _5X,
    ),
    Entry(
        "compaction.skip",
        "normal",
        (
            "compactionLog state is {word}, skip this time",
            "compactionSchedule was abruptly shutdown. {count} tasks",
        ),
        "Compaction of a queue is left out once, because it is busy or the broker stops.",
        "Nothing.",
        (),
        (),
        ("CompactionLog#doCompaction",),
        _5X,
    ),
    Entry(
        "compaction.from-master",
        "notice",
        (
            "pullMessageFromMaster exception: ",
            "fetch message from master exception: ",
            "{topic}:{queue_id} prepare to {word} pull message failed",
            "{topic}:{queue_id} pull message responseHeader is null",
        ),
        "A replica could not fetch a compacted topic from its master.",
        "The way to the master.",
        (),
        ("F41",),
        ("CompactionLog#loadFromRemoteAsync", "MessageFetcher#pullMessageFromMaster"),
        _5X,
    ),
)
