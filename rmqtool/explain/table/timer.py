"""Timer messages (timer wheel, 5.x)."""

from __future__ import annotations

from rmqtool.explain.entry import Entry

ENTRIES = (
    Entry(
        id="timer.wheel-length",
        severity="problem",
        lines=("Timer wheel length:{size} != expected:{word}",),
        meaning=(
            "The file timerwheel has not the length that slots and precision of the configuration give, "
            "so the broker does not start: it was cut, or timerWheelSlots or timerPrecisionMs changed."
        ),
        look="The length: slots x 2 x 32 bytes.",
        next=("info STORE",),
        incidents=("F39",),
        source=("TimerWheel#TimerWheel",),
        releases="5.x",
    ),
    Entry(
        id="timer.queue-offset-small",
        severity="problem",
        lines=("Timer currQueueOffset:{queue_offset} is smaller than minOffsetInQueue:{min_offset}",),
        meaning=(
            "The timer is further back than its queue begins: timer messages expired before they were "
            "put into the wheel. They are never delivered."
        ),
        look="How long the timer stood still, and the retention.",
        next=("info STORE",),
        incidents=("F39",),
        source=("TimerMessageStore#enqueue",),
        releases="5.x",
    ),
    Entry(
        id="timer.queue-offset-large",
        severity="problem",
        lines=("Timer currQueueOffset:{queue_offset} is larger than maxOffsetInQueue:{max_offset}",),
        meaning=(
            "timercheck is ahead of the queue of timer messages: the log was cut behind it. New timer "
            "messages wait until the queue has grown past that offset."
        ),
        look="The end of the log before and after the last start.",
        next=("info STORE", "verify STORE"),
        incidents=("F39",),
        source=("TimerMessageStore#recover",),
        releases="5.x",
    ),
    Entry(
        id="timer.message-unreadable",
        severity="problem",
        lines=(
            "Fail to read msg from commitLog offsetPy:{physical_offset} sizePy:{size}",
            "reviseQueueOffset check cq offset fail, msg in cq is not found.{physical_offset}, {size}",
        ),
        meaning=(
            "The timer log points to a record that is not there. The message is not delivered, and "
            "older releases stay stuck at it."
        ),
        look="The record at that offset.",
        next=("show STORE {physical_offset}",),
        incidents=("F39",),
        source=("TimerMessageStore#getMessageByCommitOffset",),
        releases="5.x",
    ),
    Entry(
        id="timer.dequeue-nothing",
        severity="problem",
        lines=("dequeue time:{millis} but read nothing from timerLog",),
        meaning=(
            "The wheel has a slot for this time and the timer log holds nothing for it: messages due "
            "then are not delivered."
        ),
        look="timerlog against timerwheel.",
        next=("info STORE",),
        incidents=("F39",),
        source=("TimerMessageStore#dequeue",),
        releases="5.x",
    ),
    Entry(
        id="timer.skip",
        severity="problem",
        lines=(
            "Skipping message due to unrecoverable error. Msg: ",
            "Skipping message due to unknown error, msg: ",
            "Message processing failed after {count} retries. Msg: ",
            "Unknown error in skipped in enqueuing",
        ),
        meaning="A due timer message could not be delivered and was given up.",
        look="The message in the line: its real topic, and whether that topic still exists.",
        incidents=("F39",),
        source=("TimerMessageStore.TimerDequeuePutMessageService#run",),
        releases="5.x",
    ),
    Entry(
        id="timer.retry",
        severity="notice",
        lines=("Retrying to process message. Retry count: {count}, Msg: ",),
        meaning="Delivering a timer message failed and is tried again.",
        look="Whether it ends.",
        source=("TimerMessageStore.TimerDequeuePutMessageService#run",),
        releases="5.x",
    ),
    Entry(
        id="timer.log-append",
        severity="problem",
        lines=(
            "Create mapped file1 error for timer log",
            "create mapped file2 error for timer log",
            "Append blank error for timer log",
            "Append error for timer log",
        ),
        meaning="The timer log could not be written; timer messages wait.",
        look="Space and inodes.",
        next=("info STORE",),
        incidents=("F21", "F39"),
        source=("TimerLog#append",),
        releases="5.x",
    ),
    Entry(
        id="timer.recover-error",
        severity="problem",
        lines=(
            "Recover timerLog error",
            "Unknown error in dequeue process",
            "Error in dequeue_read_timerlog",
            "Unknown exception in enqueuing",
            "Check latch failed delayedTime:{int}",
        ),
        meaning="The timer failed with an exception; messages of that time may be late.",
        look="The exception below.",
        next=("info STORE",),
        incidents=("F39",),
        source=("TimerMessageStore#recoverAndRevise", "TimerMessageStore#dequeue"),
        releases="5.x",
    ),
    Entry(
        id="timer.recheck",
        severity="notice",
        lines=("Timer recheck because of minFirst:{int} processOffset:{int}",),
        meaning=(
            "At the start the timer log was walked again from an earlier place, because the wheel "
            "points further back."
        ),
        look="Nothing.",
        incidents=("F39",),
        source=("TimerMessageStore#recover",),
        releases="5.x",
    ),
    Entry(
        id="timer.recover-ok",
        severity="normal",
        lines=(
            "Timer recover ok currReadTimerMs:{millis} currQueueOffset:{queue_offset}",
            "Begin to recover timerLog offset:{int}",
            "timer checkpoint file ",
        ),
        meaning="The timer was loaded. 'not exists' is normal until the first timer message.",
        look="currReadTimerMs long ago: the messages in between are delivered now.",
        source=("TimerMessageStore#recover", "TimerCheckpoint#TimerCheckpoint"),
        releases="5.x",
    ),
    Entry(
        id="timer.progress",
        severity="normal",
        lines=("Timer progress-check commitRead:[{}] currRead:[{}] currWrite:[{}] readBehind:{int}",),
        meaning="How far the timer is. readBehind is in seconds, offsetBehind in messages.",
        look="readBehind that grows: due messages are late.",
        source=("TimerMessageStore.TimerFlushService#run",),
        releases="5.x",
    ),
    Entry(
        id="timer.metrics",
        severity="notice",
        lines=("[CheckAndReviseMetrics]", "removeTimingCount error", "error in adding metric"),
        meaning=(
            "Counters of waiting timer messages were compared and corrected. Messages are not concerned."
        ),
        look="Nothing.",
        incidents=("F33",),
        source=("TimerMessageStore#checkAndReviseMetrics",),
        releases="5.x",
    ),
)
