"""Entries about whether a broker starts at all, how it recovers, and its configuration files."""

from __future__ import annotations

from rmqtool.recovery.consequences.entry import Entry, Severity

E, W, N = Severity.ERROR, Severity.WARNING, Severity.NOTE

_AWAY = "move it out of the store, do not delete it"
_CONFIG = (
    "put a good copy of the file in place before the start, or let rmqtool recover STORE keep what is whole"
)

REFUSALS = (
    Entry(
        "DR-REFUSE-LENGTH",
        E,
        "the broker does not start: {reason}",
        "compare mappedFileSizeCommitLog and mappedFileSizeConsumeQueue with rmqtool info STORE; "
        "a foreign file belongs elsewhere, a file that was cut is better fetched again",
        "every; directories only before 5.1.0",
    ),
    Entry("DR-REFUSE-NAME", E, "the broker does not start: {reason}", _AWAY),
    Entry(
        "DR-REFUSE-CONFIG",
        E,
        "the broker does not start: {reason}",
        _CONFIG,
    ),
    Entry("DR-REFUSE-CHECKPOINT", E, "the broker does not start: checkpoint is not a regular file", _AWAY),
    Entry(
        "DR-REFUSE-ABORT",
        E,
        "the broker does not start: {reason}; recovery runs anyway",
        _AWAY,
        "5.0.0 and later",
    ),
    Entry("DR-REFUSE-LOCK", E, "the broker does not start: {reason}", _AWAY),
    Entry(
        "DR-REFUSE-QUEUE-TYPE",
        E,
        "the broker does not start: {reason}",
        "is topics.json the one of this store? see queue.type in it",
        "5.0.0 and later",
    ),
    Entry(
        "DR-REFUSE-RECORD-SIZE",
        E,
        "the broker dies at every start: {reason}, and the memory error is caught by nobody",
        "rmqtool show STORE OFFSET shows the record; 5.3.2 and later stop there instead",
        "before 5.3.2",
    ),
    Entry(
        "DR-REFUSE-MULTI-DISPATCH",
        E,
        "the broker does not start: {reason}",
        "it starts with enableMultiDispatch off; the named queues are then not written",
        "4.9.3 and later",
    ),
    Entry(
        "DR-REFUSE-EXTENSION",
        E,
        "the broker does not start, every time: {reason}",
        "a queue file of another queue has addresses of that queue's extension files: rmqtool verify STORE "
        "shows it, rmqtool recover STORE puts queue and extension files right",
    ),
    Entry(
        "DR-REFUSE-ZERO-FILE",
        E,
        "the broker does not start, every time: {reason}",
        _AWAY,
        "5.0.0 and later",
    ),
    Entry(
        "DR-REFUSE-STUCK",
        E,
        "the start never ends: dispatching stays at {offset} and cannot reach {end}",
        "rmqtool verify STORE says what is stored there",
    ),
    Entry(
        "DR-REFUSE-INDEX",
        E,
        "the broker does not start: {reason}",
        _AWAY,
        "5.1.0 and later; every release where index is not a directory",
    ),
    Entry(
        "DR-REFUSE-TIMER-WHEEL",
        E,
        "the broker does not start: {reason}",
        "move it out of the store: it is rebuilt from the timer log",
        "5.0.0 and later",
    ),
    Entry(
        "DR-REFUSE-TIMER-FILE",
        E,
        "the broker does not start: {reason}",
        _AWAY,
        "5.0.0 and later",
    ),
    Entry(
        "DR-REFUSE-COMPACTION",
        E,
        "the broker does not start: {reason}",
        "bring the files of compaction/compactionLog and compactionCq back from one backup, or move what is "
        "no pair away; with enableCompaction=false it starts, and serves the topics from the commit log",
        "5.1.0 and later",
    ),
    Entry(
        "DR-REFUSED-LATE",
        E,
        "the broker refuses only after recovery: {count} {count:file is|files are} gone by then",
        "copy the store before anybody tries again",
    ),
    Entry(
        "DR-BLOCKED-DIRECTORY",
        E,
        "{path} is not a directory, so that the broker can make no file below it: {what}",
        "move it out of the store; if it is a link, mount the disk that it leads to",
    ),
    Entry(
        "DR-BLOCKED-FILE",
        E,
        "{path} is a directory, so that the broker cannot write the file: {what}",
        _AWAY,
    ),
    Entry(
        "DR-OTHER-OWNER",
        E,
        "the user to whom the store's directory belongs may not write all files of it ({count} not, first "
        "{path}): a broker that runs as this user does not start",
        "give all files of the store this owner, or start the broker as a user who may write them",
    ),
    Entry(
        "DR-LOCK-HELD",
        E,
        'a process holds the store{holder}: a second broker ends with "Lock failed, MQ already started"',
        "do not start a second one; its recovery runs before it asks for the lock",
    ),
    Entry(
        "DR-SECOND-START",
        E,
        "before it asks for the lock, a second start deletes {count} {count:file|files} of the running "
        "broker",
        "stop the running broker first",
    ),
)

START = (
    Entry(
        "DR-BLOCKED",
        W,
        "{path} is not a directory, so that the broker can make no file below it: {what}",
        "move it out of the store; if it is a link, mount the disk that it leads to",
    ),
    Entry(
        "DR-LOCK-UNKNOWN",
        W,
        "whether a broker runs on this store cannot be known: {reason}",
        "look on every host that mounts it",
    ),
    Entry(
        "DR-ABNORMAL",
        N,
        "abort is there: the store is recovered as after a crash, from {offset} on",
        "rmqtool verify STORE says whether the log is intact",
    ),
    Entry(
        "DR-ABORT-LINK",
        W,
        "abort is a link that leads nowhere, and the broker makes no file behind it: a crash, also an "
        "earlier one, passes for a clean stop",
        "mount the disk that it leads to, or remove the link",
        "before 5.0.0",
    ),
    Entry(
        "DR-FULL-SCAN",
        N,
        "recovery reads the whole log with CRCs, up to {bytes} bytes, because {reason}: one bad record "
        "anywhere ends it there, and later files are deleted",
        "rmqtool verify STORE finds bad records beforehand; give liveness probes that much time",
    ),
    Entry(
        "DR-UNREAD-FILES",
        N,
        "recovery does not look at the {count} {count:file|files} before {offset}: damage in them stays "
        "unnoticed",
        "rmqtool verify STORE reads them",
    ),
    Entry(
        "DR-CHECKPOINT-FUTURE",
        W,
        "the checkpoint is younger than every message: recovery begins at the last file, entries that are "
        "missing before it are never built",
        "move the checkpoint away, then the whole log is scanned",
    ),
    Entry(
        "DR-CRC-OFF",
        N,
        "checkCRCOnRecover is off: damaged bodies pass",
        "rmqtool verify STORE checks every body",
    ),
    Entry(
        "DR-PROPERTY-CRC",
        E,
        "forceVerifyPropCRC is on and the record at {offset} has no right property CRC: everything from "
        "there on is cut off",
        "switch it off before the start; it fits stores that had it from the first message on",
        "5.2.0 and later",
    ),
    Entry(
        "DR-DUP-INFO",
        E,
        "duplicationEnable is on and the record at {offset} has no DUP_INFO: everything from there on is cut "
        "off",
        "switch it off before the start",
        "5.0.0 and later",
    ),
    Entry(
        "DR-HEAP",
        W,
        "{reason}",
        "rmqtool show STORE OFFSET shows the record",
        "before 5.3.2",
    ),
    Entry(
        "DR-ROCKSDB-QUEUES",
        N,
        "the queues are in RocksDB, which has no write-ahead log here: after a crash it may be empty, and is "
        "filled again from the log",
        "rmqtool info STORE lists what there is",
        "5.2.0 and later",
    ),
)

TABLES = (
    Entry(
        "DR-CONFIG-EMPTY",
        E,
        "{path} loads as an empty table: {what} are forgotten, and the next write overwrites the file",
        _CONFIG + "; keep the damaged one, most of it can be read",
    ),
    Entry(
        "DR-CONFIG-BAK",
        E,
        "{path} cannot be used, its .bak is: {what} of the last writes are forgotten",
        _CONFIG,
    ),
    Entry(
        "DR-CONFIG-BAK-ONLY",
        N,
        "{path} is not there, its .bak is used",
        "nothing to do; the next write makes the file again",
    ),
    Entry(
        "DR-CONFIG-BAK-BAD",
        N,
        "the .bak of {path} cannot be used: nothing is in reserve, and once the file itself is unusable the "
        "broker starts with an empty table or not at all",
        "the next two writes make a good one",
    ),
    Entry(
        "DR-CONFIG-FORGIVEN",
        N,
        "{path} {reason}: the broker accepts it anyway",
        "nothing to do; the next write makes it clean",
    ),
    Entry(
        "DR-BATCH-TOPICS-UNKNOWN",
        E,
        "there is no topic table: batch queues (of {count} {count:topic|topics}) are of the wrong kind to a "
        "broker that does not know their topics, and it refuses them",
        "put topics.json back, or let rmqtool recover STORE make one",
        "5.0.0 and later",
    ),
    Entry(
        "DR-TOPICS-UNKNOWN",
        N,
        "there is no topic table, though {count} {count:topic has data: the broker does not know it|topics "
        "have data: the broker does not know them}",
        "put topics.json back: brokers that create topics by themselves use default settings for them",
    ),
    Entry(
        "DR-TABLE-UNREAD",
        E,
        "with {setting} a broker does not read {path}: {what} are forgotten",
        "leave the setting as it was; with another enableLmq a copy of the file under the name that is read "
        "then (lmqConsumerOffset.json, or consumerOffset.json) keeps the offsets",
        releases="4.9.3 and later",
    ),
    Entry(
        "DR-OFFSETS-UNKNOWN",
        N,
        "there is a topic table, but no {path} and no .bak of it, which a broker writes every few seconds: "
        "consumer groups have no offsets here and start over where their clients say",
        "put consumerOffset.json back, from a slave or a copy, before the first start writes an empty one",
    ),
    Entry(
        "DR-DELAY-OFFSETS-UNKNOWN",
        W,
        "there is a topic table, but no {path} and no .bak of it: each delay level begins at its first "
        "entry, and delayed messages ({messages} in the queues) that were delivered are delivered once more",
        "put delayOffset.json back, from a slave or a copy, before the first start writes another one",
    ),
)
