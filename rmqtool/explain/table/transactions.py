"""Transactional messages: half messages, their checks and op messages."""

from __future__ import annotations

from rmqtool.explain.entry import Entry

_HALF = "dump STORE --topic RMQ_SYS_TRANS_HALF_TOPIC"
_OP = "dump STORE --topic RMQ_SYS_TRANS_OP_HALF_TOPIC"

ENTRIES = (
    Entry(
        "transaction.too-many-checks",
        "problem",
        (
            "has been checked too many times, so discard it by moving it to system topic TRANS_CHECK_MAXTIME_TOPIC",
        ),
        "A half message was asked about transactionCheckMax times (15) and nobody answered: it is moved to "
        "TRANS_CHECK_MAX_TIME_TOPIC and never delivered.",
        "The producer group: its check listener, and whether a producer of the group was connected.",
        ("dump STORE --topic TRANS_CHECK_MAX_TIME_TOPIC", _HALF),
        ("F38",),
        ("DefaultTransactionalMessageCheckListener#resolveDiscardMsg",),
    ),
    Entry(
        "transaction.too-many-checks-put",
        "problem",
        (
            "Put checked-too-many-time half message to TRANS_CHECK_MAXTIME_TOPIC failed",
            "Put checked-too-many-time message to TRANS_CHECK_MAXTIME_TOPIC error",
            "create TRANS_CHECK_MAX_TIME_TOPIC exception",
        ),
        "A half message that nobody decided could not be moved away; it is checked again.",
        "Why storing fails.",
        (_HALF,),
        ("F38",),
        ("DefaultTransactionalMessageCheckListener#resolveDiscardMsg",),
    ),
    Entry(
        "transaction.moved-ok",
        "notice",
        ("Put checked-too-many-time half message to TRANS_CHECK_MAXTIME_TOPIC OK",),
        "A half message that nobody decided lies in TRANS_CHECK_MAX_TIME_TOPIC now.",
        "The message there: it can be sent again by hand.",
        ("dump STORE --topic TRANS_CHECK_MAX_TIME_TOPIC",),
        ("F38",),
        ("DefaultTransactionalMessageCheckListener#resolveDiscardMsg",),
    ),
    Entry(
        "transaction.illegal-offset",
        "problem",
        ("illegal offset read: {queue_offset}, op offset: {int},skip this queue",),
        "The position in the half or op queue is negative: the queue is not checked any more.",
        "The offsets of group CID_RMQ_SYS_TRANS in consumerOffset.json.",
        (_HALF, "verify STORE"),
        ("F35", "F38"),
        ("TransactionalMessageServiceImpl#check",),
    ),
    Entry(
        "transaction.pull-null",
        "problem",
        (
            "check msgOffset={queue_offset} with opOffset={int} failed, pullResult is null",
            "Get message from store return null. topic={topic}, groupId={group}, requestOffset={queue_offset}",
        ),
        "The op queue could not be read, so no half message of this queue is checked in this round.",
        "The op queue at that offset.",
        (_OP, "verify STORE"),
        ("F38",),
        ("TransactionalMessageServiceImpl#check", "TransactionalMessageBridge#getMessage"),
    ),
    Entry(
        "transaction.check-error",
        "problem",
        ("Check error", "Send check message error!"),
        "A round of checks ended in an exception. When it repeats, one half message cannot be decoded (a poison message) "
        "and all behind it wait.",
        "The exception below; the first half message that has no op message.",
        (_HALF,),
        ("F07", "F38"),
        ("TransactionalMessageServiceImpl#check",),
    ),
    Entry(
        "transaction.op-missing",
        "notice",
        (
            "The miss op offset={queue_offset} in queue={} is illegal, pullResult=",
            "The miss op offset={queue_offset} in queue={} is NO_NEW_MSG, pullResult=",
            "The miss op offset={queue_offset} in queue={} is empty, pullResult=",
        ),
        "The op queue has nothing where the check goes on: it was deleted or expired. Half messages that were decided "
        "long ago may be checked again.",
        "The bounds of the op queue.",
        (_OP, "info STORE"),
        ("F38",),
        ("TransactionalMessageServiceImpl#fillOpRemoveMap",),
    ),
    Entry(
        "transaction.op-damaged",
        "problem",
        (
            "op message body is null. queueId={queue_id}, offset={queue_offset}",
            "Found a illegal tag in opMessageExt= ",
        ),
        "An op message has no list of half offsets or an unknown tag and is passed over; its half messages are checked "
        "again.",
        "The record at that place of RMQ_SYS_TRANS_OP_HALF_TOPIC.",
        (_OP,),
        ("F38",),
        ("TransactionalMessageServiceImpl#fillOpRemoveMap",),
    ),
    Entry(
        "transaction.op-write-failed",
        "problem",
        (
            "Transaction op message write failed. messageId is {word}, queueId is {queue_id}",
            "Transaction batch op message write failed.",
            "batchSendOp error.",
        ),
        "A decision was taken but its op message not stored: the half message is asked about again, and a message that "
        "was committed may be delivered twice.",
        "Why storing fails.",
        (_OP,),
        ("F38",),
        ("TransactionalMessageServiceImpl#deletePrepareMessage",),
    ),
    Entry(
        "transaction.put-back-failed",
        "problem",
        (
            "PutBackToHalfQueueReturnResult write failed, topic: {topic}, queueId: {queue_id}",
            "PutBackToHalfQueueReturnResult error",
            "Put message back to RMQ_SYS_TRANS_HALF_TOPIC failed.",
        ),
        "A half message that is to be asked about again could not be written behind the queue.",
        "Why storing fails.",
        (_HALF,),
        ("F38",),
        ("TransactionalMessageServiceImpl#putBackHalfMsgQueue",),
    ),
    Entry(
        "transaction.put-failed",
        "problem",
        (
            "Put message failed, topic: {topic}, queueId: {queue_id}, msgId: {word}",
            "Escaping message failed, topic: {topic}",
        ),
        "A message of the transaction service could not be stored.",
        "Why storing fails.",
        (),
        ("F38",),
        ("TransactionalMessageBridge#putMessage",),
    ),
    Entry(
        "transaction.get-status",
        "notice",
        (
            "No matched message. GetMessageStatus={word}, topic={topic}, groupId={group}, requestOffset={queue_offset}",
            "No new message. GetMessageStatus={word}, topic={topic}, groupId={group}, requestOffset={queue_offset}",
            "Offset illegal. GetMessageStatus={word}, topic={topic}, groupId={group}, requestOffset={queue_offset}",
        ),
        "Reading the half or op queue gave no message at this offset. 'No new message' is ordinary; 'illegal' means that "
        "the stored position lies outside the queue.",
        "The position against the bounds of the queue.",
        ("info STORE",),
        ("F35", "F38"),
        ("TransactionalMessageBridge#getMessage",),
    ),
    Entry(
        "transaction.no-producer",
        "notice",
        (
            "Check transaction failed, channel table is empty. groupId={group}",
            "Check transaction failed, channel is null. groupId={group}",
            "Channel list is empty. groupId={group}",
        ),
        "A half message is to be checked and no producer of its group is connected. After transactionCheckMax rounds it is "
        "given up.",
        "The producers of this group.",
        (_HALF,),
        ("F38",),
        ("ProducerManager#getAvailableChannel",),
    ),
    Entry(
        "transaction.producer-failed",
        "notice",
        ("Check transaction failed because invoke producer exception. group={group}, msgId={word}",),
        "The producer could not be asked about a half message; it is asked again later.",
        "The way to the producer.",
        (),
        ("F38",),
        ("Broker2Client#checkProducerTransactionState",),
    ),
    Entry(
        "transaction.queue-empty",
        "normal",
        ("The queue of topic is empty :{topic}",),
        "There is no queue of half messages yet.",
        "Nothing.",
        (),
        (),
        ("TransactionalMessageServiceImpl#check",),
    ),
    Entry(
        "transaction.end-pending",
        "notice",
        (
            "Check producer[{word}] transaction state, but it's pending status",
            "Check producer[{word}] transaction state, the producer rollback the message",
            "Check producer[{word}] transaction state, the producer commit the message",
            "The producer[{word}] end transaction in sending message, and it's pending status",
            "The producer[{word}] end transaction in sending message, rollback the message",
        ),
        "What a producer answered about a half message. 'pending' means it does not know yet and is asked again.",
        "Nothing, unless it stays pending.",
        (),
        ("F38",),
        ("EndTransactionProcessor#processRequest",),
    ),
    Entry(
        "transaction.end-too-late",
        "notice",
        (
            "Message commit fail [producer end]. currentTimeMillis - bornTime > checkImmunityTime",
            "Message rollback fail [producer end]. currentTimeMillis - bornTime > checkImmunityTime",
        ),
        "The producer's decision came later than its own immunity time allows; the broker checks instead.",
        "CHECK_IMMUNITY_TIME_IN_SECONDS of the message against the time that the local transaction takes.",
        (),
        ("F38",),
        ("EndTransactionProcessor#processRequest",),
        "5.x",
    ),
    Entry(
        "transaction.escaping-failed",
        "problem",
        ("Escaping transactional message failed {count} times! msgId(offsetId)={word}",),
        "A slave that acts as master could not hand a half message to another broker.",
        "enableRemoteEscape and the other brokers of the cluster.",
        (),
        ("F38",),
        ("TransactionalMessageServiceImpl#check",),
        "5.x",
    ),
)
