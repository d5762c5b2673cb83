"""Commit log: records, fillers, and what lies between and behind them."""

from __future__ import annotations

from rmqtool.check.catalogue.entry import SHOW, Code, Severity

ENTRIES = (
    Code(
        "CL-MAGIC",
        Severity.ERROR,
        "no record begins here: magic {found}; {length} bytes are skipped",
        "rmqtool dump STORE continues after it; rmqtool recover STORE keeps what is intact",
    ),
    Code(
        "CL-SIZE",
        Severity.ERROR,
        "a record's size is {found}, which cannot be; {length} bytes are skipped",
        "rmqtool show STORE OFFSET shows where its check fails; rmqtool recover STORE keeps what is intact",
    ),
    Code(
        "CL-LENGTH",
        Severity.ERROR,
        "the {part} is {found}, which does not fit the record; {length} bytes are skipped",
        "rmqtool show STORE OFFSET shows where its check fails; rmqtool recover STORE keeps what is intact",
    ),
    Code(
        "CL-ZERO",
        Severity.ERROR,
        "{length} bytes are zero where records must be",
        "rmqtool dump STORE continues after them; rmqtool recover STORE keeps what is intact",
    ),
    Code(
        "CL-SHORT",
        Severity.ERROR,
        "the file ends in the middle of a record, {length} bytes",
        "look for the whole file in backups and replicas",
    ),
    Code(
        "CL-BLANK",
        Severity.ERROR,
        "a filler of {found} bytes hides records: a broker skips the rest of the segment here",
        "rmqtool dump STORE lists what follows it; rmqtool recover STORE keeps what is intact",
    ),
    Code(
        "CL-CRC",
        Severity.ERROR,
        "the body does not have the CRC that the record says",
        "rmqtool show STORE OFFSET shows the record; rmqtool recover STORE puts a tombstone there",
    ),
    Code(
        "CL-CRC32",
        Severity.ERROR,
        "the record does not have the CRC of its __CRC32# property",
        "rmqtool show STORE OFFSET shows the record",
    ),
    Code(
        "CL-NO-CRC32",
        Severity.WARNING,
        "the record has no __CRC32# property, and forceVerifyPropCRC is on: a recovery stops here",
        "switch forceVerifyPropCRC off, or a start cuts the log from here on",
    ),
    Code(
        "CL-OFFSET",
        Severity.ERROR,
        "the record states the physical offset {found}",
        "a broker dispatches the offset that the record says; was the file renamed or copied?",
    ),
    Code(
        "CL-TOPIC",
        Severity.ERROR,
        "the topic holds bytes that no topic has",
        "rmqtool show STORE OFFSET shows the record",
    ),
    Code(
        "CL-NUL",
        Severity.ERROR,
        "there is a zero byte in the {part}: the record was torn when it was written",
        "rmqtool show STORE OFFSET shows the record",
    ),
    Code(
        "CL-NUL-VALUE",
        Severity.NOTE,
        "a property has a zero byte inside of its value: its producer may have sent it",
        "rmqtool show STORE OFFSET shows the record",
    ),
    Code(
        "CL-BODY",
        Severity.ERROR,
        "the body cannot be decompressed: {found}",
        "its CRC is right: the producer sent it like that; consumers fail on it",
    ),
    Code(
        "CL-INNER",
        Severity.ERROR,
        "the body is not a batch of messages: {found}",
        "rmqtool dump STORE --unwrap lists the messages before the break",
    ),
    Code(
        "CL-INNER-COUNT",
        Severity.ERROR,
        "the batch holds {found} {found:message|messages}, its property {part} says {expected}",
        "queue offsets after the batch do not fit; rmqtool dump STORE --unwrap lists the messages",
    ),
    Code(
        "CL-INNER-FIELD",
        Severity.WARNING,
        "{part} in the batch is {found}, by the content {expected}",
        "RocketMQ's decoder does not look at it; others may",
    ),
    Code(
        "CL-PROPERTY-SPLIT",
        Severity.NOTE,
        "a property's value holds the separator 0x01",
        "releases up to 4.9.0 drop such a property, later ones keep it",
    ),
    Code(
        "CL-PROPERTY-TWICE",
        Severity.NOTE,
        "a property is given twice",
        "the last one counts; rmqtool show STORE OFFSET",
    ),
    Code(
        "CL-UTF8",
        Severity.WARNING,
        "the properties are not UTF-8",
        "rmqtool show STORE OFFSET shows the record",
    ),
    Code(
        "CL-PROPERTIES",
        Severity.NOTE,
        "the properties hold a piece that Java drops",
        "rmqtool show STORE OFFSET shows the record",
    ),
    Code(
        "CL-FRAME",
        Severity.NOTE,
        "the body begins like a remoting command: bytes of a connection, stored as a message",
        SHOW,
    ),
    Code(
        "CL-SEPARATOR",
        Severity.NOTE,
        "a property separator stands inside the tags: a client or agent let two properties run together",
        SHOW,
    ),
    Code(
        "CL-SYSFLAG",
        Severity.NOTE,
        "sysFlag has bits that no known release sets: {found}",
        "is there a newer rmqtool? " + SHOW,
    ),
    Code(
        "CL-NEGATIVE",
        Severity.WARNING,
        "the {part} is {found}, which no broker writes",
        "brokers and clients take it for 0, and read the record as if nothing were there",
    ),
    Code(
        "CL-NUMBER",
        Severity.ERROR,
        "a property that brokers parse as a number is not one: recovery ends the log before the record",
        "rmqtool show STORE OFFSET shows the record; rmqtool recover STORE puts a tombstone there",
    ),
    Code(
        "CL-TIME",
        Severity.WARNING,
        "the store time {found} is days away from that of its neighbours",
        "searches by time go wrong around it",
    ),
    Code(
        "CL-BLANK-LENGTH",
        Severity.WARNING,
        "the filler says {found} bytes, {expected} are left in the file",
        "brokers look at its magic only",
    ),
    Code(
        "CL-BLANK-REST",
        Severity.NOTE,
        "bytes after the filler's header are not zero",
        "a reused buffer or a truncation leaves them; nothing reads them",
    ),
    Code(
        "CL-STALE",
        Severity.NOTE,
        "{found} {found:record|records} of an earlier life after the end of the log",
        "a truncation does not clear what it cuts off",
    ),
    Code(
        "CL-TAIL",
        Severity.WARNING,
        "bytes after the last record are neither zero nor a record",
        "a broker cuts them off when it starts",
    ),
    Code(
        "CL-MORE",
        Severity.ERROR,
        "{found} further findings {part} of this file are not listed",
        "rmqtool dump of the file shows its records",
    ),
)
