"""Entries about single queues."""

from __future__ import annotations

from rmqtool.recovery.consequences.entry import Entry, Severity

E, W, N = Severity.ERROR, Severity.WARNING, Severity.NOTE

_VERIFY = "rmqtool verify STORE lists the messages without a consume queue entry"

QUEUES = (
    Entry(
        "DR-QUEUE-CUT",
        E,
        "{topic}/{queue_id} loses its last {count} {count:entry|entries}{when}: it ends at {end} instead of "
        "{before}, and new messages get these offsets again",
        "copy the store before the start",
    ),
    Entry(
        "DR-OFFSETS-TWICE",
        E,
        "{topic}/{queue_id}: new messages get queue offsets from {start} on, though messages in the log have "
        "{count} of them, up to {end}",
        _VERIFY + "; consumers that are ahead skip the new ones",
    ),
    Entry(
        "DR-MISPLACED",
        E,
        "{topic}/{queue_id}: {count} {count:entry is written at another slot than its message has|entries "
        "are written at other slots than their messages have}",
        _VERIFY,
    ),
    Entry(
        "DR-BATCH-AS-PLAIN",
        W,
        "this release knows no batch queues ({count} {count:topic has|topics have} them): it builds plain "
        "ones, in which a batch takes one place whatever its queue offset is, and gives the offsets behind "
        "to new messages",
        "start 5.0.0 or later on this store",
        "before 5.0.0",
    ),
    Entry(
        "DR-ASTRAY",
        E,
        "{topic}/{queue_id}: {count} {count:entry is|entries are} built with the offset that a record "
        "states, not where it lies",
        "rmqtool show STORE OFFSET shows the record",
    ),
    Entry(
        "DR-NOT-REBUILT",
        E,
        "{topic}/{queue_id}: {count} {count:message|messages} from queue offset {start} on {count:has|have} "
        "no consume queue entry, and the start builds none",
        _VERIFY,
    ),
    Entry(
        "DR-STALE-MAX",
        E,
        "{topic}/{queue_id} believes that it knows the log up to {offset}, which ends at {end}: new messages "
        "are acknowledged and get no consume queue entry until the log has grown that far",
        "move the queue's directory away; rmqtool verify STORE names the entry",
    ),
    Entry(
        "DR-PRE-BLANK-TAIL",
        E,
        "{topic}/{queue_id} ends in a blank entry: new messages are acknowledged and get no consume "
        "queue entry until the log has grown to 2 GiB",
        "move the queue's directory away",
    ),
    Entry(
        "DR-PHANTOM-UNIT",
        W,
        "{topic}/{queue_id}: a zero entry at queue offset {start} is taken for a message",
        "consumers find nothing there; move the queue's empty last file away",
    ),
    Entry(
        "DR-SHIFTED",
        W,
        "{topic}/{queue_id}: the last entry has slot {slot}, its message queue offset {expected}",
        "rmqtool verify STORE says where the shift begins",
    ),
    Entry(
        "DR-WRONG-ENTRIES",
        W,
        "{topic}/{queue_id}: {count} consume queue {count:entry does not lead to the message of its|entries "
        "do not lead to the message of their} queue offset: consumers get nothing there, or messages of "
        "another queue",
        "rmqtool verify STORE lists them; rmqtool recover STORE puts them right",
    ),
    Entry(
        "DR-WRONG-TAGS",
        W,
        "{topic}/{queue_id}: {count} consume queue {count:entry does not have the tags code of its|entries "
        "do not have the tags code of their} message: consumers that filter by tag do not get it",
        "rmqtool verify STORE lists them; rmqtool recover STORE puts them right",
    ),
    Entry(
        "DR-EXTENSION-CUT",
        E,
        "{topic}/{queue_id}: {count} consume queue {count:entry leads|entries lead} to extension units that "
        "the start takes away; extension units of new messages get their addresses, and their tags decide "
        "who gets the old messages",
        "copy the store before the start; rmqtool recover STORE writes the extension units again",
    ),
    Entry(
        "DR-DELAYED-AT-ONCE",
        W,
        "{topic}/{queue_id}: {count} delayed {count:message|messages} from queue offset {start} on "
        "{count:gets a consume queue entry|get consume queue entries} without their delivery time: they are "
        "delivered at once",
        "rmqtool recover STORE writes the entries with their delivery times",
        "4.9.2 to 4.9.8",
    ),
    Entry(
        "DR-TIMERS-LOST",
        E,
        "up to {count} {count:timer that is|timers that are} not due yet {count:is never delivered: its "
        "entry in the timer log is|are never delivered: their entries in the timer log are} gone, no slot of "
        "the timer wheel leads to {count:it|them}, or config/timercheck says that {count:it was|they were}",
        "rmqtool recover STORE makes a timer log of those that wait; without config/timercheck bring "
        "timerlog, timerwheel and config/timercheck back from one backup; the messages stay",
        "5.0.0 and later",
    ),
    Entry(
        "DR-TIMERS-PASSED",
        E,
        "up to {count} {count:timer was|timers were} due while no broker ran, and a start more than 7 days "
        "later (604,740 times timerPrecisionMs) passes over {count:it|them}: never delivered",
        "rmqtool recover STORE makes a timer log with which they are delivered, by a start within 6 days",
        "5.0.0 and later",
    ),
    Entry(
        "DR-TIMERS-AGAIN",
        E,
        "config/timercheck or the end of the timer log is gone: up to {count} "
        "{count:timer is|timers are} put into the timer log again, and those that were delivered are "
        "delivered once more",
        "rmqtool recover STORE makes a timer log of those that wait; without config/timercheck bring both "
        "back from one backup",
        "5.0.0 and later",
    ),
    Entry(
        "DR-UNCHECKED-TIMERS",
        N,
        "entries of the timer log are not compared with their messages, neither here nor by a broker: what "
        "leads to no message is not delivered",
        "nothing to do before a start; the messages stay in the topic rmq_sys_wheel_timer",
        "5.0.0 and later",
    ),
    Entry(
        "DR-COMPACTION-CUT",
        E,
        "the start deletes {count} {count:file|files} of compaction logs, as the queue does not lead there",
        "copy the store before the start; bring the files of compaction/compactionCq back from a backup",
        "5.1.0 and later",
    ),
    Entry(
        "DR-COMPACTION-LEFT-OUT",
        E,
        "the compaction log of {topic}/{queue_id} is not loaded: {reason}; consumers get nothing of the "
        "queue, and new messages do not come into its compaction log",
        "bring its files back from one backup; with enableCompaction=false the topic is served from the "
        "commit log",
        "5.1.0 and later",
    ),
    Entry(
        "DR-COMPACTION-DAMAGED",
        W,
        "the compaction logs have damage: {count} {count:message|messages} cannot be served",
        "rmqtool verify STORE lists it; with enableCompaction=false the topics are served from the commit "
        "log, as far as that goes back",
        "5.1.0 and later",
    ),
    Entry(
        "DR-SLOT-TAKEN",
        E,
        "{topic}/{queue_id}: {count} {count:message gets no consume queue entry, as another has its "
        "slot|messages get no consume queue entry, as others have their slots} already",
        _VERIFY,
    ),
    Entry(
        "DR-EXPIRED-QUEUE",
        N,
        "{topic}/{queue_id}: all messages were deleted with the oldest files, and the queue's minimum is not "
        "moved: a pull there returns bytes of other messages",
        "consumers should begin at {end}",
        "before 5.0.0",
    ),
    Entry(
        "DR-LMQ-SKIPPED",
        W,
        "{count} {count:message names more queues than it has|messages name more queues than they have} "
        "offsets for: those queues get no consume queue entry, and their later entries lie too low",
        "names without %LMQ% do not belong in INNER_MULTI_DISPATCH",
        "4.9.3 and later",
    ),
    Entry(
        "DR-LMQ-UNBUILT",
        E,
        "{topic}/{queue_id}: {count} {count:message|messages} from queue offset {start} on "
        "{count:names|name} this queue in INNER_MULTI_DISPATCH and {count:gets|get} no consume queue entry "
        "in it without enableMultiDispatch; no later start builds what this one has dispatched",
        "start with enableMultiDispatch=true, and with enableLmq=true if it was set",
        "4.9.3 and later",
    ),
    Entry(
        "DR-LMQ-MISSING",
        W,
        "{topic}/{queue_id}: {count} {count:message|messages} from queue offset {start} on "
        "{count:names|name} this queue in INNER_MULTI_DISPATCH and {count:has|have} no consume queue entry "
        "in it; a start does not build {count:it|them}",
        "rmqtool recover STORE builds the entries; then start with enableMultiDispatch=true, and with "
        "enableLmq=true if it was set",
        "4.9.3 and later",
    ),
)
