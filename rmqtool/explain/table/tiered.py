"""Tiered storage (5.1 and later)."""

from __future__ import annotations

from rmqtool.explain.entry import Entry

_5X = "5.1 and later"

ENTRIES = (
    Entry(
        "tiered.dispatch-gap",
        "problem",
        (
            "MessageDispatcher#dispatch, current offset is too small, topic={topic}, queueId={queue_id}, offset={min_offset}-{max_offset}, current={queue_offset}",
            "MessageDispatcher#dispatch, current offset is too large, topic={topic}, queueId={queue_id}, offset={min_offset}-{max_offset}, current={queue_offset}",
        ),
        "The tiered copy of a queue ends before the local queue begins (messages expired before they were copied) or behind "
        "its end (the local log was cut). The copy goes on with a gap, or waits.",
        "The bounds of the local queue.",
        ("info STORE",),
        ("F18",),
        ("MessageStoreDispatcherImpl#doScheduleDispatch",),
        _5X,
    ),
    Entry(
        "tiered.dispatch-not-found",
        "problem",
        (
            "MessageDispatcher#dispatch cq not found, topic={topic}, queueId={queue_id}",
            "MessageDispatcher#dispatch message not found, topic={topic}, queueId={queue_id}",
        ),
        "A unit or its record was missing while a queue was being copied to the tiered storage.",
        "The queue at 'current'.",
        ("verify STORE",),
        ("F16",),
        ("MessageStoreDispatcherImpl#doScheduleDispatch",),
        _5X,
    ),
    Entry(
        "tiered.dispatch-behind",
        "notice",
        (
            "MessageDispatcher#dispatch behind too much, topic={topic}",
            "MessageDispatcher#dispatch init, topic={topic}",
        ),
        "Copying to the tiered storage lags. If the local segments expire first, there will be a gap.",
        "'remain' over time, and the local retention.",
        (),
        (),
        ("MessageStoreDispatcherImpl#doScheduleDispatch",),
        _5X,
    ),
    Entry(
        "tiered.dispatch-error",
        "problem",
        (
            "MessageStore dispatch error",
            "MessageDispatcher#commitAsync failed",
            "commitAsync again failed. topic: {topic}",
            "FileSegment commit exception",
            "FileSegment correct position error",
        ),
        "Writing to the tiered storage failed and is tried again.",
        "The exception below: the storage's answer.",
        (),
        (),
        ("MessageStoreDispatcherImpl#dispatchWithSemaphore", "FileSegment#commitAsync"),
        _5X,
    ),
    Entry(
        "tiered.split-error",
        "problem",
        ("MessageFormatUtil split buffer error, ",),
        "What came back from the tiered storage is no row of records: the copy is damaged or was cut.",
        "The same messages in the local store, as long as they are there.",
        ("verify STORE",),
        (),
        ("MessageFormatUtil#splitMessageBuffer",),
        _5X,
    ),
    Entry(
        "tiered.get-failed",
        "problem",
        (
            "GetMessageAsync from tiered store failed",
            "GetMessageAsync not found and message is not in next store",
            "MessageFetcher#getMessageFromTieredStoreAsync",
            "TieredMessageStore#queryMessageAsync",
            "MessageFetcher prefetch message then put to cache failed",
        ),
        "A message could not be read from the tiered storage.",
        "Whether the offset is within the local queue.",
        (),
        (),
        ("TieredMessageStore#getMessageAsync",),
        _5X,
    ),
    Entry(
        "tiered.index-error",
        "notice",
        ("IndexStoreService {}error", "IndexStoreFile {}error", "constructIndexFile error"),
        "The index of the tiered storage could not be written or read; queries by key miss messages there.",
        "The exception below.",
        (),
        (),
        ("IndexStoreService#putKey", "IndexStoreFile#putKey"),
        _5X,
    ),
)
