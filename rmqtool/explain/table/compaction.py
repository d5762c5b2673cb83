"""Topics with cleanup policy COMPACTION (5.x)."""

from __future__ import annotations

from rmqtool.explain.entry import Entry

ENTRIES = (
    Entry(
        id="compaction.mismatch",
        severity="problem",
        lines=(
            "{topic}:{queue_id} compactionLog mismatch with compactionCq",
            "log file mismatch with consumeQueue file {path}",
            "consumeQueue file mismatch with log file {path}",
        ),
        meaning=(
            "The compacted log of a queue and its own queue files do not belong together; the store "
            "does not load this queue."
        ),
        look="compaction/commitLog and compaction/consumequeue of that topic: the same files in both?",
        next=("info STORE",),
        incidents=("F41",),
        source=("CompactionStore#load", "CompactionLog#replaceFiles"),
        releases="5.x",
    ),
    Entry(
        id="compaction.load-error",
        severity="problem",
        lines=(
            "load compaction store error",
            "load compactionLog {topic}:{word} exception: ",
            "create compactionLog exception: ",
        ),
        meaning="The compacted topics could not be loaded.",
        look="The exception below.",
        next=("info STORE",),
        incidents=("F41",),
        source=("CompactionService#load", "CompactionStore#load"),
        releases="5.x",
    ),
    Entry(
        id="compaction.run-error",
        severity="problem",
        lines=(
            "do compaction exception: ",
            "offsetMap put exception: ",
            "offset map is full",
            "move file {path} to parent directory exception: ",
            "move consume queue file {path} to parent directory exception: ",
            "roll log and cq exception: ",
            "do merge replicating and current exception: ",
        ),
        meaning=(
            "A round of compaction failed; the topic stays uncompacted, or was left half-way between "
            "old and new files."
        ),
        look="The exception below, and sub-directories left in compaction/.",
        next=("info STORE",),
        incidents=("F41",),
        source=("CompactionLog#doCompaction",),
        releases="5.x",
    ),
    Entry(
        id="compaction.no-key",
        severity="problem",
        lines=(
            "message {topic}-{queue_id}:{word} have no key, will not put in compaction log",
            "message has no keys",
        ),
        meaning="A message without key was sent to a compacted topic; it is not kept there.",
        look="The producer.",
        next=("dump STORE --topic {topic} --queue {queue_id}",),
        incidents=("F41",),
        source=("CompactionLog#asyncPutMessage",),
        releases="5.x",
    ),
    Entry(
        id="compaction.put-error",
        severity="problem",
        lines=(
            "putMessage into {topic}:{queue_id} compactionLog exception: ",
            "put message {topic}-{queue_id} position info failed",
            "create mapped file or consumerQueue exception: ",
        ),
        meaning=(
            "A message could not be written to the compacted log; consumers of the topic do not see it."
        ),
        look="The exception below, space.",
        next=("info STORE",),
        incidents=("F41", "F21"),
        source=("CompactionService#putRequest", "CompactionLog#doAppend"),
        releases="5.x",
    ),
    Entry(
        id="compaction.skip",
        severity="normal",
        lines=(
            "compactionLog state is {word}, skip this time",
            "compactionSchedule was abruptly shutdown. {count} tasks",
        ),
        meaning="Compaction of a queue is left out once, because it is busy or the broker stops.",
        look="Nothing.",
        source=("CompactionLog#doCompaction",),
        releases="5.x",
    ),
    Entry(
        id="compaction.from-master",
        severity="notice",
        lines=(
            "pullMessageFromMaster exception: ",
            "fetch message from master exception: ",
            "{topic}:{queue_id} prepare to {word} pull message failed",
            "{topic}:{queue_id} pull message responseHeader is null",
        ),
        meaning="A replica could not fetch a compacted topic from its master.",
        look="The way to the master.",
        incidents=("F41",),
        source=("CompactionLog#loadFromRemoteAsync", "MessageFetcher#pullMessageFromMaster"),
        releases="5.x",
    ),
)
