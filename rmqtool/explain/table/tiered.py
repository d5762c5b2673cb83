"""Tiered storage (5.1 and later)."""

from __future__ import annotations

from rmqtool.explain.entry import Entry

ENTRIES = (
    Entry(
        id="tiered.dispatch-gap",
        severity="problem",
        lines=(
            (
                "MessageDispatcher#dispatch, current offset is too small, topic={topic}, "
                "queueId={queue_id}, offset={min_offset}-{max_offset}, current={queue_offset}"
            ),
            (
                "MessageDispatcher#dispatch, current offset is too large, topic={topic}, "
                "queueId={queue_id}, offset={min_offset}-{max_offset}, current={queue_offset}"
            ),
        ),
        meaning=(
            "The tiered copy of a queue ends before the local queue begins (messages expired before "
            "they were copied) or behind its end (the local log was cut). The copy continues with a gap, "
            "or waits."
        ),
        look="The bounds of the local queue.",
        next=("info STORE",),
        incidents=("F18",),
        source=("MessageStoreDispatcherImpl#doScheduleDispatch",),
        releases="5.1 and later",
    ),
    Entry(
        id="tiered.dispatch-not-found",
        severity="problem",
        lines=(
            "MessageDispatcher#dispatch cq not found, topic={topic}, queueId={queue_id}",
            "MessageDispatcher#dispatch message not found, topic={topic}, queueId={queue_id}",
        ),
        meaning="An entry or its record was missing while a queue was being copied to the tiered storage.",
        look="The queue at 'current'.",
        next=("verify STORE",),
        incidents=("F16",),
        source=("MessageStoreDispatcherImpl#doScheduleDispatch",),
        releases="5.1 and later",
    ),
    Entry(
        id="tiered.dispatch-behind",
        severity="notice",
        lines=(
            "MessageDispatcher#dispatch behind too much, topic={topic}",
            "MessageDispatcher#dispatch init, topic={topic}",
        ),
        meaning=(
            "Copying to the tiered storage lags. If the local segments expire first, there will be a gap."
        ),
        look="'remain' over time, and the local retention.",
        source=("MessageStoreDispatcherImpl#doScheduleDispatch",),
        releases="5.1 and later",
    ),
    Entry(
        id="tiered.dispatch-error",
        severity="problem",
        lines=(
            "MessageStore dispatch error",
            "MessageDispatcher#commitAsync failed",
            "commitAsync again failed. topic: {topic}",
            "FileSegment commit exception",
            "FileSegment correct position error",
        ),
        meaning="Writing to the tiered storage failed and is tried again.",
        look="The exception below: the storage's answer.",
        source=("MessageStoreDispatcherImpl#dispatchWithSemaphore", "FileSegment#commitAsync"),
        releases="5.1 and later",
    ),
    Entry(
        id="tiered.split-error",
        severity="problem",
        lines=("MessageFormatUtil split buffer error, ",),
        meaning=(
            "What came back from the tiered storage is not a row of records: the copy is damaged or was cut."
        ),
        look="The same messages in the local store, as long as they are there.",
        next=("verify STORE",),
        source=("MessageFormatUtil#splitMessageBuffer",),
        releases="5.1 and later",
    ),
    Entry(
        id="tiered.get-failed",
        severity="problem",
        lines=(
            "GetMessageAsync from tiered store failed",
            "GetMessageAsync not found and message is not in next store",
            "MessageFetcher#getMessageFromTieredStoreAsync",
            "TieredMessageStore#queryMessageAsync",
            "MessageFetcher prefetch message then put to cache failed",
        ),
        meaning="A message could not be read from the tiered storage.",
        look="Whether the offset is within the local queue.",
        source=("TieredMessageStore#getMessageAsync",),
        releases="5.1 and later",
    ),
    Entry(
        id="tiered.index-error",
        severity="notice",
        lines=("IndexStoreService {}error", "IndexStoreFile {}error", "constructIndexFile error"),
        meaning=(
            "The index of the tiered storage could not be written or read; queries by key miss messages "
            "there."
        ),
        look="The exception below.",
        source=("IndexStoreService#putKey", "IndexStoreFile#putKey"),
        releases="5.1 and later",
    ),
)
