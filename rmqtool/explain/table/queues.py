"""Consume queues and the dispatch that writes them."""

from __future__ import annotations

from rmqtool.explain.entry import Entry

ENTRIES = (
    Entry(
        id="dispatch.bad-record",
        severity="problem",
        lines=("[BUG]dispatch message to consume queue error, COMMITLOG OFFSET: {physical_offset}",),
        meaning=(
            "Dispatch met a record that it cannot read. A master then skips to the end of what was "
            "readable of the segment: all messages behind the record up to there get no unit and no "
            "index item, although their senders had SEND_OK."
        ),
        look="Records behind this offset in the same segment that no unit points to.",
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
            "stay without unit."
        ),
        look="The record at that offset, and records behind it without unit.",
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
            "Writing units failed with an exception; dispatch tries the same offset again. While it "
            "fails consumers get nothing new."
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
            "consume queue; dispatch goes on at the first segment that is left."
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
            "A unit is written into a slot that is not the queue offset of its message, and every later "
            "one of the queue as well: the broker only warns. A positive difference means that units "
            "were lost (a queue file deleted, a lost tail); a negative one that the queue holds units "
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
            "no unit."
        ),
        look="Whether maxPhysicOffset is the same in all lines and lies behind the end of the log.",
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
        meaning="The same for a batch queue: the unit exists, nothing is written.",
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
            "A unit could not be written after all retries. The store marks itself as not writable and "
            "refuses messages until the next start. Mostly the disk is full."
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
        meaning="Writing a unit failed and is tried again, up to 30 times.",
        look="Space, and errors of creating or mapping files nearby.",
        next=("info STORE",),
        incidents=("F21",),
        source=("ConsumeQueue#putMessagePositionInfoWrapper",),
    ),
    Entry(
        id="queue.min-offset-exception",
        severity="problem",
        lines=("Exception thrown when correctMinOffset",),
        meaning=(
            "Finding the first valid unit of a queue failed. On some releases the broker does not "
            "start: the case is a queue whose last file is all zero behind a full one."
        ),
        look="Queues whose last file holds only zeros.",
        next=("verify STORE",),
        incidents=("F17",),
        source=("ConsumeQueue#correctMinOffset",),
        releases="5.x",
    ),
    Entry(
        id="queue.newposition-negative",
        severity="problem",
        lines=("newPosition < 0: ({int} < 0)",),
        meaning=(
            "A queue has a full file followed by one of zeros only, whose messages never reached the "
            "log. The broker cannot start until that empty queue file is moved away."
        ),
        look="The queue whose last file is all zero.",
        next=("verify STORE",),
        incidents=("F17",),
        source=("ConsumeQueue#correctMinOffset",),
        releases="5.x",
    ),
    Entry(
        id="queue.no-valid-entries",
        severity="normal",
        lines=(
            "contains no valid entries. Min-offset is assigned as: {queue_offset}",
            "ConsumeQueue[Topic={topic}, queue-id={queue_id}] contains no valid entries",
        ),
        meaning=(
            "All units of the queue point to records that are expired or there are none: the queue is "
            "empty for consumers."
        ),
        look="Whether the topic should have messages.",
        next=("info STORE",),
        incidents=("F18",),
        source=("ConsumeQueue#correctMinOffset",),
        releases="5.x",
    ),
    Entry(
        id="queue.min-scan-failed",
        severity="problem",
        lines=(
            "[Bug] Failed to scan consume queue entries from file on correcting min offset: {path}",
            "[Bug][InconsistentState] ConsumeQueue file {path} should have been deleted",
            "Correct min offset found null cq file topic:{topic} queue:{queue_id}",
        ),
        meaning=(
            "The smallest offset of a queue could not be found because one of its files is not as it "
            "should be. Consumers may be sent to offsets that no longer exist."
        ),
        look="The named file, and the first units of the queue.",
        next=("verify STORE",),
        incidents=("F18",),
        source=("ConsumeQueue#correctMinOffset",),
        releases="5.x",
    ),
    Entry(
        id="queue.need-correct",
        severity="notice",
        lines=("CorrectLogicOffsetService.needCorrect. ",),
        meaning=(
            "A queue's smallest offset points to expired data and is corrected. 'It should not happen' "
            "in it means that min and max of the queue contradict each other."
        ),
        look="The queue and its min and max in the line.",
        next=("verify STORE",),
        incidents=("F18",),
        source=("DefaultMessageStore.CorrectLogicOffsetService#needCorrect",),
        releases="5.x",
    ),
    Entry(
        id="queue.recovered",
        severity="normal",
        lines=(
            "recover current consume queue file over, {path}",
            "recover last consume queue file over, last mapped file {path}",
            "recover next consume queue file, {path}",
            "recover current consume queue over {path}",
            "recover current consume queue queue over {path}",
            "Recover current batch consume queue file over",
            "Recover last batch consume queue file over",
            "Recover next batch consume queue file",
            "Recover next consume queue extend file",
            "All files of consume queue extend has been recovered over",
        ),
        meaning="The last files of a queue were walked to find its end.",
        look="Nothing.",
        source=("ConsumeQueue#recover", "BatchConsumeQueue#recover"),
    ),
    Entry(
        id="queue.file-destroyed",
        severity="notice",
        lines=("on recover, destroy a logic mapped file {path}",),
        meaning=(
            "Recovery deletes a queue file because all of it lies behind the end of the commit log. "
            "Normal for one or two files after a crash; many mean that the log was cut."
        ),
        look="The end of the log that recovery found, against before.",
        next=("info STORE",),
        incidents=("F01", "F20"),
        source=("MappedFileQueue#deleteLastMappedFile",),
    ),
    Entry(
        id="queue.pre-blank",
        severity="normal",
        lines=("fill pre blank space {path}",),
        meaning=(
            "A queue begins in the middle of a file; the slots before are filled with markers. They are "
            "no messages."
        ),
        look="Only when the topic is not new: then earlier units of the queue are gone.",
        incidents=("F19",),
        source=("ConsumeQueue#putMessagePositionInfo",),
    ),
    Entry(
        id="queue.extension-missing",
        severity="problem",
        lines=(
            "[BUG] can't find consume queue extend file content!",
            "[BUG] Consume queue extend unit({int}) is not found!",
            "[BUG] address {int} of consume queue extend not found!",
        ),
        meaning=(
            "A unit points into consumequeue_ext and nothing is there. Filters on tags work on wrong "
            "data; messages are delivered or held back wrongly."
        ),
        look="Whether consumequeue_ext was deleted or enableConsumeQueueExt changed.",
        next=("verify STORE",),
        incidents=("F16",),
        source=("ConsumeQueueExt#get", "ConsumeQueue.ConsumeQueueIterator#next"),
    ),
    Entry(
        id="queue.extension-not-saved",
        severity="notice",
        lines=(
            "Save consume queue extend fail, So just save tagsCode!",
            "Save consume queue extend error, ",
            "Create mapped file when save consume queue extend",
            "Capacity of ext is maximum!",
            "Size of cq ext unit is greater than {size}",
        ),
        meaning=(
            "The extension unit of a message could not be written; the plain tags code is used. Filters "
            "by expression see less, no message is lost."
        ),
        look="Space, and the size of the filter bit map.",
        incidents=("F21",),
        source=("ConsumeQueueExt#put",),
    ),
    Entry(
        id="queue.expired-destroyed",
        severity="notice",
        lines=(
            (
                "cleanExpiredConsumerQueue: {topic} {}consumer queue destroyed, minCommitLogOffset: "
                "{min_offset} maxCLOffsetInConsumeQueue: {int}"
            ),
            "cleanExpiredConsumerQueue: {topic},topic destroyed",
        ),
        meaning=(
            "A queue whose newest message is older than the commit log was deleted by the daily cleaning."
        ),
        look=(
            "Whether the topic should have had messages: a queue that lags because dispatch was stuck "
            "is deleted, too."
        ),
        next=("info STORE",),
        incidents=("F18",),
        source=("ConsumeQueueStore#cleanExpired", "DefaultMessageStore#cleanExpiredConsumerQueue"),
    ),
    Entry(
        id="queue.just-created",
        severity="normal",
        lines=("maybe ConsumeQueue was created just now. topic={topic} queueId={queue_id}",),
        meaning="A queue without messages was met while cleaning; it is left alone.",
        look="Nothing.",
        source=("ConsumeQueueStore#cleanExpired",),
    ),
    Entry(
        id="queue.recover-concurrently",
        severity="problem",
        lines=("Exception occurs while recover consume queue concurrently",),
        meaning="Walking a queue at the start failed; its end is not known.",
        look="The exception below and the queue's files.",
        next=("verify STORE",),
        incidents=("F17",),
        source=("ConsumeQueueStore#recoverConcurrently",),
        releases="5.1 and later",
    ),
    Entry(
        id="queue.multi-dispatch",
        severity="problem",
        lines=(
            "[bug] queues.length!=queueOffsets.length",
            "[bug] no multiQueueOffset when updating {topic}",
            "[bug] num is not equal when updateMultiQueueOffset {topic}",
            "[BUG] Data racing, lmqTopicQueueTable should NOT contain key={word}",
            "Failed to wrap multi-dispatch",
            "rebuild msgInner for multiDispatch",
        ),
        meaning=(
            "A message names several light queues (LMQ), but not as many offsets: it is missing in some "
            "of them, or dispatch stops."
        ),
        look=(
            "The properties INNER_MULTI_DISPATCH and INNER_MULTI_QUEUE_OFFSET of the newest messages of "
            "the topic."
        ),
        next=("dump STORE --topic {topic}", "verify STORE"),
        source=("ConsumeQueue#multiDispatchLmqQueue", "MultiDispatch#updateMultiQueueOffset"),
    ),
    Entry(
        id="queue.access-failed",
        severity="problem",
        lines=("but access logic queue failed",),
        meaning=(
            "A consumer asked for an offset between min and max of the queue and the queue file could "
            "not be read there: a file of the queue is missing or cut. The consumer is sent on to the "
            "next file, or stays stuck."
        ),
        look="The files of that queue: a gap in the names, or a hole.",
        next=("verify STORE",),
        incidents=("F16", "F18"),
        source=("DefaultMessageStore#getMessage",),
    ),
    Entry(
        id="queue.topic-deleted",
        severity="normal",
        lines=(
            "DeleteTopic: ConsumeQueue has been cleaned, topic={topic}, queueId={queue_id}",
            "DeleteTopic: Topic has been destroyed, topic={topic}",
            "cleanUnusedTopic: {topic},topic destroyed",
        ),
        meaning=(
            "The queues of a topic were deleted on request. Its records stay in the commit log until "
            "their segments expire."
        ),
        look="Who asked for it.",
        incidents=("F15",),
        source=("DefaultMessageStore#deleteTopics",),
    ),
    Entry(
        id="queue.topic-delete-error",
        severity="problem",
        lines=("DeleteTopic: ConsumeQueue cleans error!, topic={topic}, queueId={queue_id}",),
        meaning="Deleting a queue failed half-way; its files may come back at the next start.",
        look="What is left in consumequeue/ for that topic.",
        next=("info STORE",),
        incidents=("F15",),
        source=("DefaultMessageStore#deleteTopics",),
        releases="5.x",
    ),
)
