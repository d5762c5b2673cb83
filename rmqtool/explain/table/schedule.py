"""Messages with a delay level."""

from __future__ import annotations

from rmqtool.explain.entry import Entry

ENTRIES = (
    Entry(
        id="schedule.offset-invalid",
        severity="problem",
        lines=(
            (
                "schedule CQ offset invalid. offset={queue_offset}, cqMinOffset={min_offset}, "
                "cqMaxOffset={max_offset}, queueId={queue_id}"
            ),
            "schedule CQ offset invalid. offset={queue_offset}, cqMinOffset={min_offset}, queueId={queue_id}",
            "schedule CQ offset invalid. offset={queue_offset}, cqMaxOffset={max_offset}, queueId={queue_id}",
        ),
        meaning=(
            "delayOffset.json says that a level was delivered further than its queue "
            "SCHEDULE_TOPIC_XXXX reaches (or begins). Newer releases set the offset back; older ones "
            "deliver nothing of that level until the queue has caught up."
        ),
        look=(
            "delayOffset.json against the bounds of SCHEDULE_TOPIC_XXXX; was the file copied, or the log cut?"
        ),
        next=("info STORE", "verify STORE"),
        incidents=("F37",),
        source=("ScheduleMessageService#correctDelayOffset", "ScheduleMessageService#executeOnTimeUp"),
    ),
    Entry(
        id="schedule.offset-corrected",
        severity="notice",
        lines=("correct delay offset [ delayLevel {int} ] from {int} to {int}",),
        meaning=(
            "The delivered offset of a delay level was moved into its queue. Moved back, messages are "
            "delivered twice; moved on, some are never delivered."
        ),
        look="The two numbers.",
        next=("info STORE",),
        incidents=("F37",),
        source=("ScheduleMessageService#correctDelayOffset",),
    ),
    Entry(
        id="schedule.correct-exception",
        severity="problem",
        lines=("correctDelayOffset exception",),
        meaning=(
            "The delivered offsets could not be compared with the queues; the store does not load on 4.x."
        ),
        look="delayOffset.json.",
        next=("verify STORE",),
        incidents=("F37", "F33"),
        source=("ScheduleMessageService#correctDelayOffset",),
    ),
    Entry(
        id="schedule.level-syntax",
        severity="problem",
        lines=("parse message delay level failed. messageDelayLevel = {text}", "parseDelayLevel exception"),
        meaning="messageDelayLevel in the configuration cannot be read; the broker does not start.",
        look="broker.conf.",
        source=("ScheduleMessageService#parseDelayLevel", "DefaultMessageStore#parseDelayLevel"),
    ),
    Entry(
        id="schedule.discard",
        severity="problem",
        lines=("[BUG] the real topic of schedule msg is {topic}, discard the msg.",),
        meaning=(
            "A delayed message whose real topic is the half topic of transactions was thrown away: the "
            "two cannot be combined."
        ),
        look="The producer.",
        source=("ScheduleMessageService#executeOnTimeUp",),
    ),
    Entry(
        id="schedule.execute-error",
        severity="problem",
        lines=(
            "ScheduleMessageService, messageTimeup execute error, offset = {queue_offset}",
            "ScheduleMessageService, messageTimeUp execute error, offset = {queue_offset}",
            "ScheduleMessageService, executeOnTimeup exception",
            "ScheduleMessageService, executeOnTimeUp exception",
        ),
        meaning=(
            "Delivering a delayed message failed with an exception and is tried again: this level "
            "stands still meanwhile."
        ),
        look="The exception below; the record at that offset of SCHEDULE_TOPIC_XXXX.",
        next=("dump STORE --topic SCHEDULE_TOPIC_XXXX",),
        incidents=("F07", "F37"),
        source=("ScheduleMessageService#executeOnTimeUp",),
    ),
    Entry(
        id="schedule.put-failed",
        severity="problem",
        lines=(
            "ScheduleMessageService put message failed. info: ",
            "ScheduleMessageService put message exceptionally, info: ",
            "ScheduleMessageService onException, info: ",
            "ScheduleMessageService resend not found message. info: ",
            "Resend message error, info: ",
            "HandlePutResultTask exception. info=",
            "putResultProcess error, info=",
        ),
        meaning="A due message could not be stored in its topic; it is tried again.",
        look="Why storing fails: a full disk, a slave, a message too large.",
        incidents=("F21",),
        source=("ScheduleMessageService.PutResultProcess#doResend",),
    ),
    Entry(
        id="schedule.flow-control",
        severity="notice",
        lines=(
            "Asynchronous deliver triggers flow control, currentPendingNum={count}",
            "Asynchronous deliver block. info=",
        ),
        meaning="So many delayed messages are due that their delivery waits for the store.",
        look="Whether the lag shrinks again.",
        source=("ScheduleMessageService.DeliverDelayedMessageTimerTask#asyncDeliver",),
    ),
    Entry(
        id="schedule.shutdown",
        severity="normal",
        lines=(
            "deliverPendingTable level: {int}, size: {count}",
            "HandlePutResultTask shutdown, info=",
            "putResultProcess skip, info=",
        ),
        meaning=(
            "Delayed delivery is being stopped; what was on the way is delivered again after the start."
        ),
        look="Nothing.",
        source=("ScheduleMessageService#stop",),
    ),
    Entry(
        id="schedule.flush-exception",
        severity="notice",
        lines=("scheduleAtFixedRate flush exception",),
        meaning="delayOffset.json could not be written this time.",
        look="Space and permissions; after a crash messages would be delivered twice.",
        incidents=("F37",),
        source=("ScheduleMessageService#start",),
    ),
)
