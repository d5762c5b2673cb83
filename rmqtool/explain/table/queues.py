"""Consume queues: their files, bounds, extension files and topics."""

from __future__ import annotations

from rmqtool.explain.entry import Entry

ENTRIES = (
    Entry(
        id="queue.min-offset-exception",
        severity="problem",
        lines=("Exception thrown when correctMinOffset",),
        meaning=(
            "Finding the first valid entry of a queue failed. On some releases the broker does not "
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
            "All entries of the queue point to records that are expired or there are none: the queue is "
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
        look="The named file, and the first entries of the queue.",
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
            "Recovery deletes a queue file because all of it is beyond the end of the commit log. "
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
        look="Only when the topic is not new: then earlier entries of the queue are gone.",
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
            "A consume queue entry points into consumequeue_ext and nothing is there. Filters on "
            "tags work on wrong data; messages are delivered or held back wrongly."
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
