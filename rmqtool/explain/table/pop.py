"""Pop consumption: check points, acknowledgements, revival (5.x)."""

from __future__ import annotations

from rmqtool.explain.entry import Entry

ENTRIES = (
    Entry(
        id="pop.check-point-not-stored",
        severity="problem",
        lines=(
            "[PopBuffer]put ck to store fail: ",
            "[PopBuffer]PutMessageCallback cancelCheckPoint fail",
            "change invisible, put new ck error",
            "append checkpoint or ack origin failed",
        ),
        meaning=(
            "A check point of popped messages could not be stored. If the broker dies now, these "
            "messages are not delivered again although nobody acknowledged them."
        ),
        look="Why storing fails.",
        incidents=("F40",),
        source=(
            "PopBufferMergeService#handleCkMessagePutResult",
            "ChangeInvisibleTimeProcessor#appendCheckPointThenAckOrigin",
        ),
        releases="5.x",
    ),
    Entry(
        id="pop.ack-not-stored",
        severity="problem",
        lines=(
            "[PopBuffer]put ack to store fail: ",
            "[PopBuffer]put batchAckMsg to store fail: ",
            "[PopBuffer]put batch ack to store fail: ",
            "put ack msg error",
            "change Invisible, put ack msg fail: ",
            "change Invisible, put ack msg error: ",
        ),
        meaning="An acknowledgement could not be stored: the message is delivered again.",
        look="Why storing fails.",
        incidents=("F40",),
        source=("PopBufferMergeService#handleAckPutMessageResult", "AckMessageProcessor#appendAckNew"),
        releases="5.x",
    ),
    Entry(
        id="pop.ack-late",
        severity="notice",
        lines=(
            "[PopBuffer]add ack fail, rqId={int}, ",
            "[PopBuffer]add ck, timeout, ",
            "[PopBuffer]add ck, max size, ",
            "[PopBuffer]mergeKey conflict when add ck",
            "[PopBuffer]add ack error, rqId={int}",
        ),
        meaning=(
            "An acknowledgement or check point did not go into the buffer in memory and takes the way "
            "through the revive topic instead. Slower, nothing is lost."
        ),
        look="Whether it is every message: then popCkMaxBufferSize or the invisible time is too small.",
        incidents=("F40",),
        source=("PopBufferMergeService#addAk", "PopBufferMergeService#addCk"),
        releases="5.x",
    ),
    Entry(
        id="pop.buffer-slow",
        severity="notice",
        lines=(
            "[PopBuffer]ck finish fail, stay too long, ",
            "[PopBuffer] ck offset long time not commit, ",
            "[PopBuffer]scan stop, because eclipse too long",
            "Commit offset, consumer offset less than store, ",
        ),
        meaning="Popped messages stay unacknowledged for long or the buffer is scanned slowly.",
        look="Consumers that take longer than their invisible time.",
        incidents=("F40",),
        source=("PopBufferMergeService#scan",),
        releases="5.x",
    ),
    Entry(
        id="pop.invalid-ack",
        severity="problem",
        lines=(
            "[PopBuffer]Invalid index of ack, reviveQid=",
            "invalid ack index, ",
            "invalid batch ack index, ",
            "Illegal topic or queue found when batch ack ",
        ),
        meaning=(
            "An acknowledgement does not fit its check point and is dropped: the message is delivered again."
        ),
        look="The version of the client.",
        incidents=("F40",),
        source=("PopReviveService#consumeReviveMessage",),
        releases="5.x",
    ),
    Entry(
        id="pop.revive-illegal-offset",
        severity="problem",
        lines=(
            "reviveQueueId={queue_id}, OFFSET_ILLEGAL {queue_offset}, result is ",
            (
                "get message from store return null. topic={topic}, groupId={group}, "
                "requestOffset={queue_offset}"
            ),
            (
                "offset illegal. GetMessageStatus={word}, topic={topic}, groupId={group}, "
                "requestOffset={queue_offset}"
            ),
        ),
        meaning=(
            "The revive service stands outside its queue (rmq_sys_REVIVE_LOG_…): messages that were "
            "popped and not acknowledged are not delivered again until it is right."
        ),
        look="The offset of the revive group against the bounds of the revive topic.",
        next=("info STORE",),
        incidents=("F35", "F40"),
        source=("PopReviveService#getReviveMessage",),
        releases="5.x",
    ),
    Entry(
        id="pop.revive-error",
        severity="problem",
        lines=(
            "reviveQueueId={queue_id}, revive error",
            "PopConsumerService revive error, message may be lost, record=",
            "PopConsumerService drop record, message may be lost, record=",
            "PopConsumerService revive retry msg error, put status=",
            "PopConsumerService revive error",
            "rePut CK reach max times, drop it. ",
        ),
        meaning=(
            "A message whose invisible time is over could not be put into the retry topic. 'drop' and "
            "'may be lost' mean that the broker gave up on it; it is still in its queue."
        ),
        look="Topic, group and offset in the line.",
        next=("info STORE",),
        incidents=("F40",),
        source=("PopReviveService#reviveRetry", "PopConsumerService#revive"),
        releases="5.x",
    ),
    Entry(
        id="pop.revive-skips",
        severity="notice",
        lines=(
            "reviveQueueId={queue_id}, can not get normal topic {topic}, then continue",
            "reviveQueueId={queue_id}, can not get cid {group}, then continue",
            "ack wait for {millis}ms cannot find ck, skip this ack.",
            "stay too long, remove from reviveRequestMap",
            "PopConsumerService revive backoff retry, record=",
        ),
        meaning="A check point was skipped because its topic or group was deleted, or it comes later.",
        look="Whether the topic or group was deleted on purpose.",
        incidents=("F40",),
        source=("PopReviveService#mergeAndRevive",),
        releases="5.x",
    ),
    Entry(
        id="pop.too-many-unacked",
        severity="notice",
        lines=("Too much msgs unacked, then stop popping. topic={topic}, group={group}, queueId={queue_id}",),
        meaning=(
            "A group has too many popped messages that it did not acknowledge and gets no more for the "
            "moment."
        ),
        look="The consumers of that group.",
        incidents=("F40",),
        source=("PopMessageProcessor#popMsgFromQueue",),
        releases="5.x",
    ),
    Entry(
        id="pop.initial-offset",
        severity="notice",
        lines=(
            "Pop initial offset, because store is no correct, {text}",
            "PopConsumerService getMessageAsync, initial offset because store is no correct",
        ),
        meaning=(
            "The stored offset of a group lay outside the queue and was set to the nearest valid one: "
            "messages are skipped or repeated."
        ),
        look="The offset in consumerOffset.json against the bounds of the queue.",
        next=("info STORE",),
        incidents=("F35",),
        source=("PopMessageProcessor#getInitOffset",),
        releases="5.x",
    ),
    Entry(
        id="pop.order-info",
        severity="notice",
        lines=(
            "OrderInfo is null, ",
            "OrderInfo is empty, ",
            "popTime is not equal to orderInfo saved.",
            "OrderInfo not found commit offset, ",
            "orderInfo of queueId is null. key: ",
            "orderInfo is null, key: ",
        ),
        meaning=(
            "An acknowledgement in order does not fit what the broker remembers of the queue (a "
            "restart, or a late answer). It is ignored."
        ),
        look="Whether ordered consumption stands still.",
        incidents=("F40",),
        source=("ConsumerOrderInfoManager#commitAndNext",),
        releases="5.x",
    ),
)
