"""Codes and statuses in answers of a broker, as clients write them down."""

from __future__ import annotations

from rmqtool.explain.entry import Entry

ENTRIES = (
    Entry(
        id="answer.disk-full-code",
        severity="problem",
        lines=("CODE: 14 DESC: {text}", "CODE: 14  DESC: {text}"),
        meaning="Code 14, SERVICE_NOT_AVAILABLE: the broker takes no messages.",
        look="The description.",
        next=("info STORE",),
        incidents=("F21",),
        source=("ResponseCode",),
    ),
    Entry(
        id="answer.system-busy-code",
        severity="problem",
        lines=("CODE: 2 DESC: {text}", "CODE: 2  DESC: {text}"),
        meaning=(
            "Code 2, SYSTEM_BUSY: the broker refuses work because it is overloaded; the request was not "
            "carried out."
        ),
        look="The description says which protection acted.",
        source=("RemotingSysResponseCode",),
    ),
    Entry(
        id="answer.not-permitted-code",
        severity="notice",
        lines=("CODE: 16 DESC: {text}", "CODE: 16  DESC: {text}"),
        meaning="Code 16, NO_PERMISSION: broker, topic or group do not allow it.",
        look="brokerPermission, perm of the topic.",
        next=("info STORE",),
        source=("ResponseCode",),
    ),
    Entry(
        id="answer.topic-code",
        severity="problem",
        lines=("CODE: 17 DESC: {text}", "CODE: 17  DESC: {text}"),
        meaning="Code 17, TOPIC_NOT_EXIST.",
        look="config/topics.json and its .bak.",
        next=("info STORE",),
        incidents=("F34",),
        source=("ResponseCode",),
    ),
    Entry(
        id="answer.code",
        severity="notice",
        lines=("CODE: {code} DESC: {text}", "CODE: {code}  DESC: {text}"),
        meaning=(
            "A request was answered with an error. 1 SYSTEM_ERROR, 10 FLUSH_DISK_TIMEOUT, 11 "
            "SLAVE_NOT_AVAILABLE, 12 FLUSH_SLAVE_TIMEOUT, 13 MESSAGE_ILLEGAL, 15 VERSION_NOT_SUPPORTED, "
            "21 PULL_OFFSET_MOVED, 22 QUERY_NOT_FOUND, 24 SUBSCRIPTION_NOT_EXIST, 26 "
            "SUBSCRIPTION_GROUP_NOT_EXIST, 206 CONSUMER_NOT_ONLINE."
        ),
        look="The description behind the code.",
        source=("ResponseCode",),
    ),
    Entry(
        id="answer.send-status",
        severity="notice",
        lines=("FLUSH_DISK_TIMEOUT", "FLUSH_SLAVE_TIMEOUT", "SLAVE_NOT_AVAILABLE"),
        meaning=(
            "The message is stored on the master, but the promise of flushing or replicating it was not "
            "kept in time. Sending it again makes a duplicate."
        ),
        look="Disk latency, or the slave's connection.",
        incidents=("F42",),
        source=("SendStatus",),
    ),
    Entry(
        id="answer.offset-end",
        severity="normal",
        lines=("OFFSET_OVERFLOW_ONE", "NO_MESSAGE_IN_QUEUE"),
        meaning="A status of a pull: the consumer stands at the end of the queue, or the queue is empty.",
        look="Nothing.",
        source=("GetMessageStatus",),
    ),
    Entry(
        id="answer.offset-status",
        severity="problem",
        lines=(
            "OFFSET_OVERFLOW_BADLY",
            "OFFSET_TOO_SMALL",
            "NO_MATCHED_LOGIC_QUEUE",
            "OFFSET_FOUND_NULL",
        ),
        meaning=(
            "A status of a pull: the offset is behind the end of the queue (BADLY: by more than one), "
            "before its start, the queue does not exist, or its file could not be read."
        ),
        look=(
            "The offset of the group against the bounds of the queue; was the queue cut, deleted or rebuilt?"
        ),
        next=("info STORE", "verify STORE"),
        incidents=("F15", "F18", "F35"),
        source=("GetMessageStatus",),
    ),
)
