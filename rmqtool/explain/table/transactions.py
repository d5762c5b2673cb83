"""Transactional messages: half messages, their checks and op messages."""

from __future__ import annotations

from rmqtool.explain.entry import Entry

ENTRIES = (
    Entry(
        id="transaction.too-many-checks",
        severity="problem",
        lines=(
            (
                "has been checked too many times, so discard it by moving it to system topic "
                "TRANS_CHECK_MAXTIME_TOPIC"
            ),
        ),
        meaning=(
            "A half message was asked about transactionCheckMax times (15) and nobody answered: it is "
            "moved to TRANS_CHECK_MAX_TIME_TOPIC and never delivered."
        ),
        look="The producer group: its check listener, and whether a producer of the group was connected.",
        next=("dump STORE --topic TRANS_CHECK_MAX_TIME_TOPIC", "dump STORE --topic RMQ_SYS_TRANS_HALF_TOPIC"),
        incidents=("F38",),
        source=("DefaultTransactionalMessageCheckListener#resolveDiscardMsg",),
    ),
    Entry(
        id="transaction.too-many-checks-put",
        severity="problem",
        lines=(
            "Put checked-too-many-time half message to TRANS_CHECK_MAXTIME_TOPIC failed",
            "Put checked-too-many-time message to TRANS_CHECK_MAXTIME_TOPIC error",
            "create TRANS_CHECK_MAX_TIME_TOPIC exception",
        ),
        meaning="A half message that nobody decided could not be moved away; it is checked again.",
        look="Why storing fails.",
        next=("dump STORE --topic RMQ_SYS_TRANS_HALF_TOPIC",),
        incidents=("F38",),
        source=("DefaultTransactionalMessageCheckListener#resolveDiscardMsg",),
    ),
    Entry(
        id="transaction.moved-ok",
        severity="notice",
        lines=("Put checked-too-many-time half message to TRANS_CHECK_MAXTIME_TOPIC OK",),
        meaning="A half message that nobody decided lies in TRANS_CHECK_MAX_TIME_TOPIC now.",
        look="The message there: it can be sent again by hand.",
        next=("dump STORE --topic TRANS_CHECK_MAX_TIME_TOPIC",),
        incidents=("F38",),
        source=("DefaultTransactionalMessageCheckListener#resolveDiscardMsg",),
    ),
    Entry(
        id="transaction.illegal-offset",
        severity="problem",
        lines=("illegal offset read: {queue_offset}, op offset: {int},skip this queue",),
        meaning="The position in the half or op queue is negative: the queue is not checked any more.",
        look="The offsets of group CID_RMQ_SYS_TRANS in consumerOffset.json.",
        next=("dump STORE --topic RMQ_SYS_TRANS_HALF_TOPIC", "verify STORE"),
        incidents=("F35", "F38"),
        source=("TransactionalMessageServiceImpl#check",),
    ),
    Entry(
        id="transaction.pull-null",
        severity="problem",
        lines=(
            "check msgOffset={queue_offset} with opOffset={int} failed, pullResult is null",
            (
                "Get message from store return null. topic={topic}, groupId={group}, "
                "requestOffset={queue_offset}"
            ),
        ),
        meaning=(
            "The op queue could not be read, so no half message of this queue is checked in this round."
        ),
        look="The op queue at that offset.",
        next=("dump STORE --topic RMQ_SYS_TRANS_OP_HALF_TOPIC", "verify STORE"),
        incidents=("F38",),
        source=("TransactionalMessageServiceImpl#check", "TransactionalMessageBridge#getMessage"),
    ),
    Entry(
        id="transaction.check-error",
        severity="problem",
        lines=("Check error", "Send check message error!"),
        meaning=(
            "A round of checks ended in an exception. When it repeats, one half message cannot be "
            "decoded (a poison message) and all behind it wait."
        ),
        look="The exception below; the first half message that has no op message.",
        next=("dump STORE --topic RMQ_SYS_TRANS_HALF_TOPIC",),
        incidents=("F07", "F38"),
        source=("TransactionalMessageServiceImpl#check",),
    ),
    Entry(
        id="transaction.op-missing",
        severity="notice",
        lines=(
            "The miss op offset={queue_offset} in queue={} is illegal, pullResult=",
            "The miss op offset={queue_offset} in queue={} is NO_NEW_MSG, pullResult=",
            "The miss op offset={queue_offset} in queue={} is empty, pullResult=",
        ),
        meaning=(
            "The op queue has nothing where the check continues: it was deleted or expired. Half messages "
            "that were decided long ago may be checked again."
        ),
        look="The bounds of the op queue.",
        next=("dump STORE --topic RMQ_SYS_TRANS_OP_HALF_TOPIC", "info STORE"),
        incidents=("F38",),
        source=("TransactionalMessageServiceImpl#fillOpRemoveMap",),
    ),
    Entry(
        id="transaction.op-damaged",
        severity="problem",
        lines=(
            "op message body is null. queueId={queue_id}, offset={queue_offset}",
            "Found a illegal tag in opMessageExt= ",
        ),
        meaning=(
            "An op message has no list of half offsets or an unknown tag and is skipped; its half "
            "messages are checked again."
        ),
        look="The record at that place of RMQ_SYS_TRANS_OP_HALF_TOPIC.",
        next=("dump STORE --topic RMQ_SYS_TRANS_OP_HALF_TOPIC",),
        incidents=("F38",),
        source=("TransactionalMessageServiceImpl#fillOpRemoveMap",),
    ),
    Entry(
        id="transaction.op-write-failed",
        severity="problem",
        lines=(
            "Transaction op message write failed. messageId is {word}, queueId is {queue_id}",
            "Transaction batch op message write failed.",
            "batchSendOp error.",
        ),
        meaning=(
            "A decision was taken but its op message not stored: the half message is asked about again, "
            "and a message that was committed may be delivered twice."
        ),
        look="Why storing fails.",
        next=("dump STORE --topic RMQ_SYS_TRANS_OP_HALF_TOPIC",),
        incidents=("F38",),
        source=("TransactionalMessageServiceImpl#deletePrepareMessage",),
    ),
    Entry(
        id="transaction.put-back-failed",
        severity="problem",
        lines=(
            "PutBackToHalfQueueReturnResult write failed, topic: {topic}, queueId: {queue_id}",
            "PutBackToHalfQueueReturnResult error",
            "Put message back to RMQ_SYS_TRANS_HALF_TOPIC failed.",
        ),
        meaning="A half message that is to be asked about again could not be written behind the queue.",
        look="Why storing fails.",
        next=("dump STORE --topic RMQ_SYS_TRANS_HALF_TOPIC",),
        incidents=("F38",),
        source=("TransactionalMessageServiceImpl#putBackHalfMsgQueue",),
    ),
    Entry(
        id="transaction.put-failed",
        severity="problem",
        lines=(
            "Put message failed, topic: {topic}, queueId: {queue_id}, msgId: {word}",
            "Escaping message failed, topic: {topic}",
        ),
        meaning="A message of the transaction service could not be stored.",
        look="Why storing fails.",
        incidents=("F38",),
        source=("TransactionalMessageBridge#putMessage",),
    ),
    Entry(
        id="transaction.get-status",
        severity="notice",
        lines=(
            (
                "No matched message. GetMessageStatus={word}, topic={topic}, groupId={group}, "
                "requestOffset={queue_offset}"
            ),
            (
                "No new message. GetMessageStatus={word}, topic={topic}, groupId={group}, "
                "requestOffset={queue_offset}"
            ),
            (
                "Offset illegal. GetMessageStatus={word}, topic={topic}, groupId={group}, "
                "requestOffset={queue_offset}"
            ),
        ),
        meaning=(
            "Reading the half or op queue gave no message at this offset. 'No new message' is ordinary; "
            "'illegal' means that the stored position lies outside the queue."
        ),
        look="The position against the bounds of the queue.",
        next=("info STORE",),
        incidents=("F35", "F38"),
        source=("TransactionalMessageBridge#getMessage",),
    ),
    Entry(
        id="transaction.no-producer",
        severity="notice",
        lines=(
            "Check transaction failed, channel table is empty. groupId={group}",
            "Check transaction failed, channel is null. groupId={group}",
            "Channel list is empty. groupId={group}",
        ),
        meaning=(
            "A half message is to be checked and no producer of its group is connected. After "
            "transactionCheckMax rounds it is given up."
        ),
        look="The producers of this group.",
        next=("dump STORE --topic RMQ_SYS_TRANS_HALF_TOPIC",),
        incidents=("F38",),
        source=("ProducerManager#getAvailableChannel",),
    ),
    Entry(
        id="transaction.producer-failed",
        severity="notice",
        lines=("Check transaction failed because invoke producer exception. group={group}, msgId={word}",),
        meaning="The producer could not be asked about a half message; it is asked again later.",
        look="The way to the producer.",
        incidents=("F38",),
        source=("Broker2Client#checkProducerTransactionState",),
    ),
    Entry(
        id="transaction.queue-empty",
        severity="normal",
        lines=("The queue of topic is empty :{topic}",),
        meaning="There is no queue of half messages yet.",
        look="Nothing.",
        source=("TransactionalMessageServiceImpl#check",),
    ),
    Entry(
        id="transaction.end-pending",
        severity="notice",
        lines=(
            "Check producer[{word}] transaction state, but it's pending status",
            "Check producer[{word}] transaction state, the producer rollback the message",
            "Check producer[{word}] transaction state, the producer commit the message",
            "The producer[{word}] end transaction in sending message, and it's pending status",
            "The producer[{word}] end transaction in sending message, rollback the message",
        ),
        meaning=(
            "What a producer answered about a half message. 'pending' means it does not know yet and is "
            "asked again."
        ),
        look="Nothing, unless it stays pending.",
        incidents=("F38",),
        source=("EndTransactionProcessor#processRequest",),
    ),
    Entry(
        id="transaction.end-too-late",
        severity="notice",
        lines=(
            "Message commit fail [producer end]. currentTimeMillis - bornTime > checkImmunityTime",
            "Message rollback fail [producer end]. currentTimeMillis - bornTime > checkImmunityTime",
        ),
        meaning=(
            "The producer's decision came later than its own immunity time allows; the broker checks instead."
        ),
        look=(
            "CHECK_IMMUNITY_TIME_IN_SECONDS of the message against the time that the local transaction takes."
        ),
        incidents=("F38",),
        source=("EndTransactionProcessor#processRequest",),
        releases="5.x",
    ),
    Entry(
        id="transaction.escaping-failed",
        severity="problem",
        lines=("Escaping transactional message failed {count} times! msgId(offsetId)={word}",),
        meaning="A slave that acts as master could not hand a half message to another broker.",
        look="enableRemoteEscape and the other brokers of the cluster.",
        incidents=("F38",),
        source=("TransactionalMessageServiceImpl#check",),
        releases="5.x",
    ),
)
