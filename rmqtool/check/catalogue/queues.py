"""Consume queues of plain and batch units, and records without a unit."""

from __future__ import annotations

from rmqtool.check.catalogue.entry import SHOW, Code, Severity

ENTRIES = (
    Code(
        "CQ-HOLE",
        Severity.ERROR,
        "{found} consume queue {found:entry is|entries are} zero before others",
        "a broker cuts the queue here if it is in the last three files; rmqtool recover STORE repairs it",
    ),
    Code(
        "CQ-INVALID",
        Severity.ERROR,
        "{found} consume queue {found:entry has|entries have} a negative offset or no size",
        "a broker cuts the queue here if it is in the last three files; rmqtool recover STORE repairs it",
    ),
    Code(
        "CQ-ORDER",
        Severity.ERROR,
        "{found} consume queue {found:entry points|entries point} to a lower offset than an earlier one",
        "rmqtool dump of the file shows them",
    ),
    Code(
        "CQ-PRE-BLANK",
        Severity.WARNING,
        "{found} blank {found:entry comes|entries come} after entries of messages",
        "rmqtool dump of the file shows them",
    ),
    Code(
        "CQ-MISSING-FILE",
        Severity.ERROR,
        "no file of the queue covers {expected} to {found}",
        "look for the missing file in backups",
    ),
    Code("CQ-SIZE", Severity.ERROR, "the entry says {found} bytes, the record has {expected}", SHOW),
    Code(
        "CQ-TAGS",
        Severity.ERROR,
        "the entry's tags code is {found}, that of the record {expected}",
        "consumers with a tag filter miss or get this message wrongly",
    ),
    Code(
        "CQ-EXT",
        Severity.ERROR,
        "the extension address {found} leads to no extension unit",
        "the tags code of this message is lost to filters",
    ),
    Code(
        "CQ-SHIFT",
        Severity.ERROR,
        "entries from slot {found} on hold the records of slot {expected} on",
        "consumers get wrong offsets from here on; rmqtool recover STORE puts the entries right",
    ),
    Code(
        "CQ-DANGLING",
        Severity.ERROR,
        "{found} consume queue {found:entry points|entries in a row point} to no record",
        "rmqtool show STORE OFFSET shows what is stored there; rmqtool recover STORE repairs it",
    ),
    Code(
        "CQ-EXPIRED",
        Severity.NOTE,
        "{found} consume queue {found:entry points|entries point} below the first file of the "
        "log: {found:its record has|their records have} expired",
        "queues are cleaned file by file, later than the log",
    ),
    Code("CQ-FOREIGN", Severity.ERROR, "the entry points to a record of {found}", SHOW),
    Code(
        "CQ-TRANSACTION",
        Severity.ERROR,
        "the entry points to a prepared or rolled back record, which has none",
        SHOW,
    ),
    Code(
        "CQ-BEHIND",
        Severity.WARNING,
        "the queue ends before the log does: {found} {found:record has|records have} no consume "
        "queue entry yet",
        "a start may not build all of them; rmqtool recover STORE does",
    ),
    Code(
        "CQ-MORE",
        Severity.ERROR,
        "{found} further findings {part} of this file are not listed",
        "rmqtool dump of the file shows its entries",
    ),
    Code(
        "BCQ-HOLE",
        Severity.ERROR,
        "{found} batch queue {found:entry is|entries are} zero before others",
        "rmqtool dump of the file shows them",
    ),
    Code(
        "BCQ-INVALID",
        Severity.ERROR,
        "{found} batch queue {found:entry has|entries have} no offset, size or count",
        "rmqtool dump of the file shows them",
    ),
    Code(
        "BCQ-ORDER",
        Severity.ERROR,
        "{found} batch queue {found:entry points|entries point} to a lower offset than an earlier one",
        "rmqtool dump of the file shows them",
    ),
    Code(
        "BCQ-PRE-BLANK",
        Severity.WARNING,
        "{found} blank {found:entry comes|entries come} after entries of messages",
        "rmqtool dump of the file shows them",
    ),
    Code(
        "BCQ-MISSING-FILE",
        Severity.ERROR,
        "no file of the batch queue covers {expected} to {found}",
        "look for the missing file in backups",
    ),
    Code(
        "BCQ-BEHIND",
        Severity.WARNING,
        "the batch queue ends before the log does: {found} {found:record has|records have} no "
        "consume queue entry yet",
        "a start with the queues behind may not build all of them",
    ),
    Code(
        "BCQ-DANGLING",
        Severity.ERROR,
        "{found} batch queue {found:entry points|entries in a row point} to no record",
        "rmqtool show STORE OFFSET shows what is stored there",
    ),
    Code(
        "BCQ-EXPIRED",
        Severity.NOTE,
        "{found} batch queue {found:entry points|entries point} below the first file of the log: "
        "{found:its record has|their records have} expired",
        "queues are cleaned file by file, later than the log",
    ),
    Code("BCQ-FOREIGN", Severity.ERROR, "the entry points to a record of {found}", SHOW),
    Code(
        "BCQ-OFFSET",
        Severity.ERROR,
        "the record states queue offset {found}, its entry and its properties say {expected}",
        "consumers get wrong offsets for its messages; rmqtool recover STORE puts it right",
    ),
    Code("BCQ-TRANSACTION", Severity.ERROR, "the entry points to a prepared or rolled back record", SHOW),
    Code("BCQ-FIELD", Severity.ERROR, "the entry's {part} is {found}, the record says {expected}", SHOW),
    Code(
        "X-GHOST",
        Severity.WARNING,
        "{found} {found:message has|messages have} no consume queue entry: consumers will not "
        "receive {found:it|them}",
        SHOW,
    ),
    Code(
        "X-MORE",
        Severity.WARNING,
        "{found} more {found:record of this queue has|records of this queue have} no consume "
        "queue entry at their slot; the first "
        "4,096 runs are listed",
        "rmqtool dump STORE --topic TOPIC lists the records",
    ),
    Code(
        "X-LOST",
        Severity.ERROR,
        "queues know of {found} {found:record|records} beyond the end of the log, up to offset "
        "{expected}: {found:it is|they are} lost",
        "look for them in replicas; a broker cuts the queues here when it starts",
    ),
    Code(
        "X-ROCKSDB",
        Severity.NOTE,
        "the queues are in RocksDB: records are not compared with their entries",
        "rmqtool dump STORE lists the records",
    ),
    Code(
        "X-QUEUE-ID",
        Severity.ERROR,
        "the record says queue {found}, its queue offset is missing in queue {expected}",
        "rmqtool recover STORE puts it right",
    ),
    Code(
        "X-NO-QUEUES",
        Severity.NOTE,
        "{found} {found:record has|records have} no queues to be compared with: no queue and no "
        "topic table is here",
        "where only a part of a store was sent, ask for consumequeue/ and config/ too",
    ),
    Code(
        "X-NO-QUEUE",
        Severity.NOTE,
        "{found} {found:record|records} of a topic without a queue, as after its deletion",
        "rmqtool dump STORE --topic TOPIC lists them",
    ),
)
