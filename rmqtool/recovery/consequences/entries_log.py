"""Entries about the commit log and the index."""

from __future__ import annotations

from rmqtool.recovery.consequences.entry import Entry, Severity

E, W, N = Severity.ERROR, Severity.WARNING, Severity.NOTE

_COPY = "copy the store before the start"

LOG = (
    Entry(
        "DR-LOG-CUT",
        W,
        "recovery ends at {offset} in the middle of data ({reason}): what begins there is given up",
        "rmqtool show STORE OFFSET shows why",
    ),
    Entry(
        "DR-MESSAGES-LOST",
        E,
        "{messages} intact {messages:message|messages} ({bytes} bytes) after {offset} {messages:is|are} "
        "given up",
        _COPY + "; rmqtool dump STORE lists them",
    ),
    Entry(
        "DR-SEGMENTS-DELETED",
        E,
        "{count} {count:file|files} of the log after {offset} {count:is|are} deleted, with messages in them",
        _COPY,
    ),
    Entry(
        "DR-LOOKAHEAD-DELETED",
        N,
        "{count} {count:file|files} of the log after {offset} {count:is|are} deleted; no message is in them",
        "nothing to do: the broker makes files ahead",
    ),
    Entry(
        "DR-QUEUES-DESTROYED",
        E,
        "commitlog/ holds no file: is the disk mounted? A start would delete all {count} consume queue "
        "{count:file|files}",
        "mount it, or give its place with --commitlog or --store-config; commitlog/ must not be empty",
    ),
    Entry(
        "DR-LOG-GONE",
        E,
        "commitlog/ holds no file though the store had messages (seen in {evidence}): is the disk mounted? "
        "New messages would begin at offset 0, and queue offsets would be reused",
        "mount it, or give its place with --commitlog or --store-config",
    ),
    Entry(
        "DR-EMPTY-FILE-DELETED",
        N,
        "{count} last {count:file without any byte is deleted, whatever its name|files without any byte are "
        "deleted, whatever their names}",
        "nothing to do",
        "5.1.3 and later",
    ),
    Entry(
        "DR-GAP",
        W,
        "no file covers the offsets {start} to {end}: the broker does not notice, reads after it go wrong",
        "look for the missing file in backups and replicas",
    ),
    Entry(
        "DR-END-LOST",
        W,
        "the index knows a message at {offset}, beyond the end of the log at {end}: the log was longer, and "
        "the broker does not notice",
        "look for the lost end in replicas",
    ),
    Entry(
        "DR-END-DOUBTED",
        W,
        "the checkpoint knows of a message stored at {until}, later than every message of the log, ending at "
        "{end}: the last messages may be missing, and the broker does not notice",
        "look for the lost end in replicas; rmqtool recover STORE sets the checkpoint by the log",
    ),
    Entry(
        "DR-BAD-BODIES",
        W,
        "{count} {count:record has|records have} a body that does not match its CRC, first at {offset}: "
        "recovery does not reach them",
        "rmqtool recover STORE puts tombstones in their places",
    ),
    Entry(
        "DR-DISPLACED",
        W,
        "{count} {count:record states another offset than where it lies|records state another offset than "
        "where they lie}, first at {offset}: the broker takes them, and uses the offset that they state",
        "were files renamed, exchanged or reused? rmqtool verify STORE says which",
    ),
    Entry(
        "DR-TORN-PROPERTIES",
        W,
        "{count} {count:record has|records have} zero bytes in topic or properties, or a topic that is not "
        "UTF-8, first at {offset}: the broker takes them as they are",
        "rmqtool show STORE OFFSET shows the record",
    ),
    Entry(
        "DR-UNREAD-DAMAGE",
        W,
        "{count} {count:range|ranges} ({bytes} bytes) in files that recovery does not look at {count:is not "
        "a record|are not records}, first at {offset}: an abnormal start, or one without queues, ends the "
        "log there",
        "rmqtool verify STORE lists them",
    ),
    Entry(
        "DR-FILLER-HIDES",
        W,
        "a filler stands where a record was: recovery and dispatching miss it[ and {messages} intact "
        "{messages:message|messages} after it in the file]",
        "rmqtool dump STORE lists what follows it",
    ),
    Entry(
        "DR-SKIPPED",
        E,
        "dispatching permanently skips {bytes} bytes from {offset} on: messages there get no "
        "consume queue entry and no index entry",
        "rmqtool verify STORE says what is stored there",
    ),
    Entry(
        "DR-QUEUES-STOP",
        E,
        "the topic of the record at {offset} holds a zero byte, which no directory's name does: its queue "
        "cannot be made, no queue gets an entry from there on, and the broker takes no message any more",
        "rmqtool recover STORE puts the record right, or a filler in its place",
    ),
    Entry(
        "DR-DISPATCH-AHEAD",
        E,
        "dispatching begins at {offset}, beyond the end of the log at {end}: no message gets an entry until "
        "the log has grown that far, and abort stays when the broker stops",
        "rmqtool verify STORE names the queue that points too far",
        "before 5.0.0",
    ),
    Entry(
        "DR-BORDER-RECORD",
        E,
        "the record at {offset} begins exactly where the queues end: it gets no consume queue entry, "
        "and later entries of its queue are one slot too low",
        "releases before 5.3.2 build it",
        "5.3.2 and later",
    ),
    Entry(
        "DR-DISPATCHED",
        N,
        "{messages} {messages:message is|messages are} handed to queues and index during the start[, and "
        "{units} consume queue {units:entry is|entries are} built]",
        "nothing to do",
    ),
    Entry(
        "DR-DIRECTORY-IGNORED",
        N,
        "a directory is among the files and is ignored",
        "it does not belong there",
        "5.1.0 and later",
    ),
    Entry(
        "DR-UNPADDED-NAME",
        N,
        "{count} {count:name of a segment does|names of segments do} not have 20 digits: the broker loads "
        "{count:it by its|them by their} number",
        "rename {count:it|them}: brokers sort by name, and put the next segment that they make in front",
    ),
    Entry(
        "DR-LOCALE-NAMES",
        N,
        "{count} {count:name is|names are} written in the digits or the calendar of another locale",
        "start brokers with the locale that wrote the store, or with none",
    ),
    Entry(
        "DR-POISON-HALF",
        W,
        "{count} half {count:message|messages} cannot be checked, first at {offset}: unless {count:it "
        "is|they are} done with, the check of transactions fails at them again and again",
        "rmqtool show STORE OFFSET shows the record",
    ),
)

INDEX = (
    Entry(
        "DR-INDEX-DROPPED",
        N,
        "{count} index {count:file is|files are} deleted and built again from {offset} on",
        "nothing to do",
    ),
    Entry(
        "DR-INDEX-ITEMS-MISSING",
        W,
        "index entries ({items}) for messages before {offset} are in the deleted files and are not "
        "rebuilt: queries by key miss them",
        "with the checkpoint moved away the whole log is indexed again",
    ),
    Entry(
        "DR-NOT-INDEXED",
        W,
        "new messages are not indexed until the log, which ends at {end}, has grown to {offset}: the newest "
        "index file says that it goes that far",
        "move index/ away before the start",
    ),
    Entry(
        "DR-INDEX-DOUBLE",
        N,
        "the record at {offset} is indexed a second time",
        "queries by key return it twice",
    ),
)
