"""Dispatch: records of the log that become units of consume queues."""

from __future__ import annotations

from rmqtool.explain.entry import Entry

ENTRIES = (
    Entry(
        id="dispatch.bad-record",
        severity="problem",
        lines=("[BUG]dispatch message to consume queue error, COMMITLOG OFFSET: {physical_offset}",),
        meaning=(
            "Dispatch met a record that it cannot read. A master then skips to the end of what was "
            "readable of the segment: all messages behind the record up to there get no consume "
            "queue entry and no index entry, although their senders had SEND_OK."
        ),
        look="Records behind this offset in the same segment that no entry points to.",
        next=("show STORE {physical_offset}", "verify STORE"),
        incidents=("F02",),
        source=("DefaultMessageStore.ReputMessageService#doReput",),
    ),
    Entry(
        id="dispatch.size-sum",
        severity="problem",
        lines=(
            "[BUG]read total count not equals msg total size. reputFromOffset={physical_offset}",
            "[BUG]read total count not equals msg total size.",
        ),
        meaning=(
            "Dispatch met a record whose lengths do not add up and steps over it by its total size. If "
            "that size is wrong, it lands inside another record, and messages to the end of the segment "
            "stay without an entry."
        ),
        look="The record at that offset, and records behind it without an entry.",
        next=("show STORE {physical_offset}", "verify STORE"),
        incidents=("F02", "F04"),
        source=("DefaultMessageStore.ReputMessageService#doReput",),
    ),
    Entry(
        id="dispatch.exception",
        severity="problem",
        lines=(
            "dispatch message to cq exception. reputFromOffset: {physical_offset}",
            "There is an exception in task execution.",
        ),
        meaning=(
            "Writing consume queue entries failed with an exception; dispatch tries the same offset "
            "again. While it fails consumers get nothing new."
        ),
        look="The exception below; whether the offset in later lines moves on.",
        next=("show STORE {physical_offset}",),
        incidents=("F21",),
        source=("DefaultMessageStore.ReputMessageService#doReput",),
        releases="5.x",
    ),
    Entry(
        id="dispatch.expired",
        severity="problem",
        lines=(
            (
                "is smaller than minPyOffset={min_offset}, this usually indicate that the dispatch behind "
                "too much and the commitlog has expired"
            ),
        ),
        meaning=(
            "Segments were deleted before they had been dispatched. Their messages never reached a "
            "consume queue; dispatch continues at the first segment that is left."
        ),
        look="How long dispatch was stuck before, and the disk space that made the broker delete.",
        next=("info STORE", "verify STORE"),
        incidents=("F21",),
        source=("DefaultMessageStore.ReputMessageService#doReput",),
    ),
    Entry(
        id="queue.order-wrong",
        severity="problem",
        lines=(
            (
                "[BUG]logic queue order maybe wrong, expectLogicOffset: {expected} currentLogicOffset: "
                "{found} Topic: {topic} QID: {queue_id} Diff: {diff}"
            ),
        ),
        meaning=(
            "A consume queue entry is written into a slot that is not the queue offset of its "
            "message, and every later "
            "one of the queue as well: the broker only warns. A positive difference means that entries "
            "were lost (a queue file deleted, a lost tail); a negative one that the queue holds entries "
            "of an earlier topic with the same name. It never heals."
        ),
        look="The first slot of the queue whose record has another queue offset.",
        next=("verify STORE", "dump STORE --topic {topic} --queue {queue_id}"),
        incidents=("F14", "F15"),
        source=("ConsumeQueue#putMessagePositionInfo",),
        derive="slots",
    ),
    Entry(
        id="queue.built-again",
        severity="notice",
        lines=(
            (
                "Build consume queue repeatedly, expectLogicOffset: {expected} currentLogicOffset: {found} "
                "Topic: {topic} QID: {queue_id} Diff: {diff}"
            ),
            (
                "Build  consume queue repeatedly, expectLogicOffset: {expected} currentLogicOffset: {found} "
                "Topic: {topic} QID: {queue_id} Diff: {diff}"
            ),
        ),
        meaning=(
            "A message already has its slot, so nothing is written. Usual while a start dispatches "
            "again what was there. In a running broker it means that queue offsets went back: they are "
            "handed out twice."
        ),
        look="Whether it ends with the start ('load over', then no more such lines).",
        next=("verify STORE",),
        incidents=("F14",),
        source=("ConsumeQueue#putMessagePositionInfo",),
    ),
    Entry(
        id="queue.offered-again",
        severity="notice",
        lines=(
            (
                "Maybe try to build consume queue repeatedly maxPhysicOffset={max_offset} "
                "phyOffset={physical_offset}"
            ),
        ),
        meaning=(
            "The queue already holds a later record, so this one is dropped. During a start that is "
            "right and harmless, however many lines there are. In a running broker with a constant "
            "maxPhysicOffset the queue believes it holds data that is not there, and new messages get "
            "no entry."
        ),
        look="Whether maxPhysicOffset is the same in all lines and is beyond the end of the log.",
        next=("info STORE", "verify STORE"),
        incidents=("F22",),
        source=("ConsumeQueue#putMessagePositionInfo",),
    ),
    Entry(
        id="queue.batch-offered-again",
        severity="notice",
        lines=(
            (
                "Build batch consume queue repeatedly, maxMsgPhyOffsetInCommitLog:{max_offset} "
                "offset:{physical_offset} Topic: {topic} QID: {queue_id}"
            ),
            "Reput behind {word} topic:{topic} queue:{queue_id} offset:{physical_offset} behind:{word}",
        ),
        meaning="The same for a batch queue: the entry exists, nothing is written.",
        look="Whether it ends with the start.",
        next=("verify STORE",),
        incidents=("F22",),
        source=("BatchConsumeQueue#putBatchMessagePositionInfo",),
        releases="5.x",
    ),
    Entry(
        id="queue.cannot-write",
        severity="problem",
        lines=(
            "[BUG]consume queue can not write, {topic} {queue_id}",
            "[NOTIFYME]batch consume queue can not write, {topic} {queue_id}",
        ),
        meaning=(
            "A consume queue entry could not be written after all retries. The store marks itself as "
            "not writable and refuses messages until the next start. Mostly the disk is full."
        ),
        look="Space and inodes; afterwards a start must catch up from the log.",
        next=("info STORE",),
        incidents=("F21",),
        source=(
            "ConsumeQueue#putMessagePositionInfoWrapper",
            "BatchConsumeQueue#putMessagePositionInfoWrapper",
        ),
    ),
    Entry(
        id="queue.write-retry",
        severity="problem",
        lines=(
            (
                "[BUG]put commit log position info to {topic}:{queue_id} {physical_offset} failed, retry "
                "{count} times"
            ),
            (
                "[NOTIFYME]put commit log position info to batch consume queue {topic}:{queue_id} "
                "{physical_offset} failed, retry {count} times"
            ),
        ),
        meaning="Writing a consume queue entry failed and is tried again, up to 30 times.",
        look="Space, and errors of creating or mapping files nearby.",
        next=("info STORE",),
        incidents=("F21",),
        source=("ConsumeQueue#putMessagePositionInfoWrapper",),
    ),
)
