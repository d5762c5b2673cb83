"""Configuration files, topic table, consumer offsets."""

from __future__ import annotations

from rmqtool.check.catalogue.entry import Code, Severity

ENTRIES = (
    Code(
        "CFG-BAK",
        Severity.NOTE,
        "the backup is of no use: {found}",
        "the file itself is fine; the next change writes a new backup",
    ),
    Code(
        "CFG-DEPENDS",
        Severity.ERROR,
        "releases differ in what they make of this ({found}): an empty table, .bak or a refusal; "
        ".bak offers {expected}",
        "keep a copy of both before a broker starts",
    ),
    Code(
        "CFG-LOST",
        Severity.ERROR,
        "the file cannot be loaded ({found}) and has no backup: a broker starts with an empty table",
        "keep a copy before a broker starts; rmqtool dump of the file shows what is in it",
    ),
    Code("CFG-NO-QUEUE", Severity.NOTE, "no queue on disk: {found}", "topics without messages have none"),
    Code(
        "CFG-NO-TABLE",
        Severity.WARNING,
        "there is no topic table, but {found} topics have queues: a broker does not know them when it starts",
        "look for topics.json in backups; rmqtool info STORE lists the queues",
    ),
    Code(
        "CFG-NO-TOPIC",
        Severity.NOTE,
        "topic {topic} has {found} queues on disk and no entry",
        "nobody can read them; a deleted topic is cleaned up later",
    ),
    Code(
        "CFG-NOTHING",
        Severity.ERROR,
        "a broker loads an empty table ({found}) and does not try .bak, which offers {expected}",
        "keep a copy of both before a broker starts",
    ),
    Code("CFG-ODD", Severity.NOTE, "the file loads, but {found}", "no broker writes it so"),
    Code(
        "CFG-OFFSET-BELOW",
        Severity.NOTE,
        "{part}: the offset {found} is below the queue, which begins at {expected}",
        "consumers begin at the queue's start",
    ),
    Code(
        "CFG-OFFSET-BEYOND",
        Severity.WARNING,
        "{part}: the offset {found} is beyond the queue, which ends at {expected}",
        "consumers wait or start over; was the queue cut?",
    ),
    Code(
        "CFG-OFFSET-QUEUE",
        Severity.NOTE,
        "{part}: the offset {found} is of a queue that is not there",
        "rmqtool info STORE lists the queues",
    ),
    Code(
        "CFG-OFFSET-TOPIC",
        Severity.NOTE,
        "{part}: the offset {found} is of a topic that is not there",
        "deleted topics leave such offsets",
    ),
    Code(
        "CFG-OFFSET-VALUE",
        Severity.NOTE,
        "{part}: {found} is not written as a whole number; a broker reads {expected}",
        "a broker writes plain numbers; it refuses the whole file for what it cannot read as one",
    ),
    Code(
        "CFG-PERM",
        Severity.NOTE,
        "topic {topic} has no {expected} permission (perm {found})",
        "mqadmin updateTopicPerm changes it, if nobody meant it so",
    ),
    Code(
        "CFG-PRIMARY",
        Severity.WARNING,
        "the file cannot be loaded ({found}); a broker takes the older .bak: {expected}",
        "keep a copy of both before a broker starts",
    ),
    Code(
        "CFG-READ-MORE",
        Severity.NOTE,
        "{expected} read queues and {found} write queues",
        "usual while a topic is being shrunk",
    ),
    Code(
        "CFG-REFUSED",
        Severity.ERROR,
        "neither the file ({found}) nor its backup ({expected}) can be loaded: a broker does not start",
        "keep a copy of both; rmqtool dump of the file shows what is in it",
    ),
    Code(
        "CFG-UNREACHABLE",
        Severity.NOTE,
        "{found} {found:message|messages} of {topic}, stored {first_timestamp} to {last_timestamp}, "
        "{found:is|are} in a queue that consumers do not see (readQueueNums {expected})",
        "raise readQueueNums to reach them",
    ),
    Code(
        "CFG-UNREADABLE",
        Severity.ERROR,
        "the file cannot be read: {found}",
        "copy the disk first; then try --safe-io",
    ),
    Code(
        "CFG-WRITE-MORE",
        Severity.NOTE,
        "{found} write queues and {expected} read queues",
        "messages in the last ones reach no consumer",
    ),
)
