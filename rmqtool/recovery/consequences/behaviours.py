"""What is known of starting and running brokers, and which codes speak of it.

`start-N`: what a start makes of what lies there. `run-N`: what a running broker does with a bad record.
`seen-N`: observed in runs of the real stores of 4.9.8 and 5.3.3.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Behaviour:
    """One row. why: what else shows it, or why a store bears no trace of it, where no code does."""

    id: str
    what: str
    codes: tuple[str, ...] = ()
    why: str = ""


_TAIL = "rmqtool explain knows the line; a tail of zeros is not damage and leaves nothing to tell"

BEHAVIOURS = (
    Behaviour(
        "start-1",
        "no abort: normal recovery, from the last file that the queues know (since 5.3.2) or the last three",
        ("DR-UNREAD-FILES", "DR-FULL-SCAN", "DR-UNREAD-DAMAGE"),
        "mode and start_segment say the rest",
    ),
    Behaviour(
        "start-2",
        "abort: recovery from the last file that begins before the checkpoint; without one the whole log",
        ("DR-ABNORMAL", "DR-FULL-SCAN", "DR-CHECKPOINT-FUTURE"),
    ),
    Behaviour(
        "start-3",
        "a bad record where recovery reads: the log ends there, queues are cut, files behind are deleted",
        ("DR-LOG-CUT", "DR-MESSAGES-LOST", "DR-SEGMENTS-DELETED", "DR-QUEUE-CUT", "DR-LOOKAHEAD-DELETED"),
    ),
    Behaviour(
        "start-4",
        "an empty commitlog directory: all queues are destroyed",
        ("DR-QUEUES-DESTROYED", "DR-LOG-GONE"),
    ),
    Behaviour(
        "start-5",
        "a file of another length than configured, or an extension unit that leads out of its data: no start",
        ("DR-REFUSE-LENGTH", "DR-REFUSE-EXTENSION"),
    ),
    Behaviour(
        "start-6",
        "a last file of no bytes: deleted since 5.1.3, no start before",
        ("DR-EMPTY-FILE-DELETED", "DR-REFUSE-LENGTH"),
    ),
    Behaviour(
        "start-7",
        "index files younger than the checkpoint says, after a crash: deleted",
        ("DR-INDEX-DROPPED", "DR-INDEX-ITEMS-MISSING"),
    ),
    Behaviour(
        "start-8",
        "a configuration file that is empty or no JSON: its .bak, an empty table, or no start",
        (
            "DR-CONFIG-EMPTY",
            "DR-CONFIG-BAK",
            "DR-CONFIG-BAK-ONLY",
            "DR-REFUSE-CONFIG",
            "DR-TOPICS-UNKNOWN",
            "DR-OFFSETS-UNKNOWN",
            "DR-DELAY-OFFSETS-UNKNOWN",
            "DR-BATCH-TOPICS-UNKNOWN",
        ),
    ),
    Behaviour("start-9", "a timer wheel of another length: no start", ("DR-REFUSE-TIMER-WHEEL",)),
    Behaviour(
        "start-10",
        "a second broker on the same store: recovery with all its deletions before the lock is asked for",
        ("DR-LOCK-HELD", "DR-SECOND-START", "DR-LOCK-UNKNOWN"),
    ),
    Behaviour(
        "start-11",
        "queues deleted while abort is there: built from the start segment on only",
        ("DR-NOT-REBUILT", "DR-OFFSETS-TWICE", "DR-MISPLACED"),
    ),
    Behaviour(
        "start-12",
        "one queue lost its tail while others are ahead: never rebuilt, its offsets are given again",
        ("DR-OFFSETS-TWICE", "DR-MISPLACED", "DR-SHIFTED", "DR-SLOT-TAKEN"),
    ),
    Behaviour(
        "run-1",
        "dispatching at a bad record: a master skips what is readable of the file, a slave stays for ever",
        ("DR-SKIPPED", "DR-REFUSE-STUCK", "DR-NOT-REBUILT"),
        "rmqtool verify STORE finds what an earlier run has left out (X-GHOST)",
    ),
    Behaviour("run-2", "`found a illegal magic code 0x0` at the end of the data: ordinary", (), _TAIL),
    Behaviour(
        "run-3",
        "`CRC check failed. bodyCRC={}, currentCRC={}` prints its two numbers in the opposite order",
        (),
        "a matter of the log line, which rmqtool explain knows; nothing of it is in a store",
    ),
    Behaviour(
        "seen-1",
        "5.3.3, clean stop, queues deleted: CRC scan of the whole log, a bad record deletes all later files",
        ("DR-FULL-SCAN", "DR-SEGMENTS-DELETED", "DR-MESSAGES-LOST"),
    ),
    Behaviour("seen-2", "after a truncation of the log new messages are not indexed", ("DR-NOT-INDEXED",)),
    Behaviour(
        "seen-3",
        "5.3.3: the record that begins where the queues end is not dispatched; later entries one "
        "slot too low, index entries double",
        ("DR-BORDER-RECORD", "DR-MISPLACED", "DR-OFFSETS-TWICE", "DR-INDEX-DOUBLE"),
    ),
    Behaviour(
        "seen-4",
        "queues behind the log and abort: entries before the start segment are never built, others misplaced",
        ("DR-NOT-REBUILT", "DR-MISPLACED", "DR-DISPATCHED"),
    ),
    Behaviour(
        "seen-5",
        "before 5.3.2 a record of 2 GiB by its size field ends the process",
        ("DR-REFUSE-RECORD-SIZE", "DR-HEAP"),
    ),
    Behaviour(
        "seen-6",
        "4.9.8: dispatching behind a record that does not add up overshoots into the next file",
        ("DR-SKIPPED", "DR-DISPATCH-AHEAD"),
    ),
    Behaviour(
        "seen-7",
        "a queue that ends in blank entries, or points too far: put is acknowledged, no entry is written",
        ("DR-PRE-BLANK-TAIL", "DR-STALE-MAX", "DR-DISPATCH-AHEAD"),
    ),
    Behaviour(
        "seen-8",
        "an idle queue with a full file and a zero file: 5.3.3 refuses, or an invalid entry appears",
        ("DR-REFUSE-ZERO-FILE", "DR-PHANTOM-UNIT"),
    ),
    Behaviour(
        "seen-9",
        "a second start deletes the file made ahead, and index files, before it fails at the lock",
        ("DR-SECOND-START",),
    ),
    Behaviour(
        "seen-10",
        "5.3.3: recovery runs although the index cannot be loaded, then the store refuses",
        ("DR-REFUSE-INDEX", "DR-REFUSED-LATE"),
    ),
    Behaviour(
        "seen-11",
        "not noticed: a missing middle file, a lost end, exchanged or renamed files, wrong physical offsets, "
        "zeroed properties, a filler in mid-file, damage in files that recovery does not read",
        (
            "DR-GAP",
            "DR-END-LOST",
            "DR-END-DOUBTED",
            "DR-BAD-BODIES",
            "DR-WRONG-ENTRIES",
            "DR-WRONG-TAGS",
            "DR-DISPLACED",
            "DR-ASTRAY",
            "DR-TORN-PROPERTIES",
            "DR-FILLER-HIDES",
            "DR-UNREAD-DAMAGE",
            "DR-UNREAD-FILES",
        ),
    ),
    Behaviour(
        "seen-12",
        "5.3.3 deletes an empty last file of any name, loads names without padding, ignores directories that "
        "4.9.8 refuses",
        ("DR-EMPTY-FILE-DELETED", "DR-UNPADDED-NAME", "DR-DIRECTORY-IGNORED", "DR-REFUSE-LENGTH"),
    ),
    Behaviour(
        "seen-13",
        "configuration files: `null` and `[]` are empty tables, byte order marks and single quotes are "
        "forgiven, an unusable .bak matters only when the file is unusable, too",
        ("DR-CONFIG-EMPTY", "DR-CONFIG-FORGIVEN", "DR-CONFIG-BAK-BAD", "DR-REFUSE-CONFIG"),
    ),
    Behaviour(
        "seen-14",
        "a sound store with abort loses its newest index file, which is made again from the start segment on",
        ("DR-INDEX-DROPPED", "DR-INDEX-ITEMS-MISSING"),
    ),
    Behaviour("seen-15", "queues in RocksDB have no write-ahead log", ("DR-ROCKSDB-QUEUES",)),
    Behaviour(
        "seen-16",
        "lists of queues with names that are not LMQ names: no entry, or dispatching throws",
        ("DR-LMQ-SKIPPED", "DR-REFUSE-MULTI-DISPATCH", "DR-REFUSE-STUCK"),
    ),
    Behaviour(
        "seen-17",
        "4.9.8: a pull from a queue whose messages have all expired returns foreign bytes",
        ("DR-EXPIRED-QUEUE",),
    ),
    Behaviour("seen-18", "names of files in the digits or calendar of a locale", ("DR-LOCALE-NAMES",)),
    Behaviour(
        "seen-19",
        "4.9.8: recovery after a crash dispatches delayed messages before the delay levels are loaded",
        ("DR-DELAYED-AT-ONCE",),
    ),
    Behaviour(
        "seen-20",
        "a topic that holds a zero byte: its queue cannot be made, 30 tries later no queue is written to any "
        "more",
        ("DR-QUEUES-STOP",),
    ),
    Behaviour(
        "more-1",
        "settings that do not fit the store: a CRC or DUP_INFO demanded of records that have none",
        ("DR-PROPERTY-CRC", "DR-DUP-INFO", "DR-CRC-OFF"),
    ),
    Behaviour(
        "more-2",
        "half messages whose body does not decompress, or without their topic: their check fails for ever",
        ("DR-POISON-HALF",),
    ),
    Behaviour(
        "more-3",
        "directories, or links into one that is not there, in the place of files; queues of the wrong type; "
        "names that are not numbers",
        (
            "DR-REFUSE-ABORT",
            "DR-REFUSE-CHECKPOINT",
            "DR-REFUSE-LOCK",
            "DR-REFUSE-QUEUE-TYPE",
            "DR-REFUSE-NAME",
        ),
    ),
    Behaviour(
        "more-6",
        "a file, or a link that leads nowhere, in the place of a directory: nothing can be written below it; "
        "without an index directory dispatching throws at every record",
        ("DR-BLOCKED-DIRECTORY", "DR-BLOCKED"),
    ),
    Behaviour(
        "more-8",
        "a directory in the place of a table or its .bak: it is never saved; in that of the next segment: "
        "messages are refused; in that of the timers' checkpoint or wheel: 5.x does not start",
        ("DR-BLOCKED-FILE", "DR-REFUSE-TIMER-FILE"),
    ),
    Behaviour(
        "more-13",
        "a segment, queue file, checkpoint or lock that belongs to root in the store of another user: no "
        "start as this user; index files and abort since 5.x",
        ("DR-OTHER-OWNER",),
    ),
    Behaviour(
        "more-12",
        "enableLmq or configManagerVersion changed: tables under their old names are not read, and nothing "
        "takes them over",
        ("DR-TABLE-UNREAD",),
    ),
    Behaviour(
        "more-14",
        "a start without enableMultiDispatch builds no entry in the queues that messages list, nor does a "
        "later one with it",
        ("DR-LMQ-UNBUILT", "DR-LMQ-MISSING"),
    ),
    Behaviour(
        "more-9",
        "4.9.8 over a link in the place of abort that leads nowhere: it never makes the file, and takes a "
        "crash for a clean stop; a stop in order removes the link",
        ("DR-ABORT-LINK",),
    ),
    Behaviour(
        "more-5",
        "timer files that are gone: nothing but the end of the timer log is made again from the timer topic",
        ("DR-TIMERS-LOST", "DR-TIMERS-AGAIN", "DR-UNCHECKED-TIMERS"),
    ),
    Behaviour(
        "more-11",
        "timers of a store that no broker had for 8 days: none is delivered; after 6 days all are",
        ("DR-TIMERS-PASSED",),
    ),
    Behaviour(
        "more-10",
        "compaction logs and queues with other names: no start; with another length: that queue is left out; "
        "a damaged record is handed out, or ends what is served",
        ("DR-REFUSE-COMPACTION", "DR-COMPACTION-CUT", "DR-COMPACTION-LEFT-OUT", "DR-COMPACTION-DAMAGED"),
    ),
    Behaviour(
        "more-4",
        "extension units behind a damaged one in the last file: new messages get their addresses",
        ("DR-EXTENSION-CUT",),
    ),
    Behaviour(
        "more-7",
        "4.9.8 over batch queues of 5.x: each batch takes one place in a plain queue that it builds",
        ("DR-BATCH-AS-PLAIN", "DR-MISPLACED", "DR-OFFSETS-TWICE"),
    ),
)
