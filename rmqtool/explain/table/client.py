"""Clients: what operators find in the logs of producers and consumers."""

from __future__ import annotations

from rmqtool.explain.entry import Entry

ENTRIES = (
    Entry(
        id="client.pull-offset-illegal",
        severity="problem",
        lines=("the pull request offset illegal, {text}", "fix the pull request offset, {text}"),
        meaning=(
            "The broker says that the consumer's offset is outside the queue. The consumer drops the "
            "queue for ten seconds and continues at the offset that the broker named: messages are "
            "skipped or repeated."
        ),
        look=(
            "The status and the offsets in the line; was the queue cut or rebuilt, the offset copied "
            "from elsewhere?"
        ),
        next=("info STORE", "verify STORE"),
        incidents=("F18", "F35"),
        source=("DefaultMQPushConsumerImpl#pullMessage",),
    ),
    Entry(
        id="client.pull-dropped",
        severity="normal",
        lines=(
            "the pull request[{}] is dropped",
            "the message queue not be able to consume, because it's dropped",
        ),
        meaning="A queue went to another consumer of the group.",
        look="Nothing.",
        source=("DefaultMQPushConsumerImpl#pullMessage",),
    ),
    Entry(
        id="client.flow-control",
        severity="notice",
        lines=(
            "the cached message count exceeds the threshold {int}, so do flow control",
            "the cached message size exceeds the threshold {int} MiB, so do flow control",
            "the queue's messages, span too long, so do flow control",
        ),
        meaning=(
            "The consumer holds as many unprocessed messages as it may and stops to pull. 'span too "
            "long': one message at the front does not finish."
        ),
        look="The consumer's own processing (jstack).",
        source=("DefaultMQPushConsumerImpl#pullMessage",),
    ),
    Entry(
        id="client.consume-retry",
        severity="notice",
        lines=("sendMessageBack exception, group: {group}", "consumeMessage exception: {text}"),
        meaning="Processing a message threw an exception or could not be sent back; it is delivered again.",
        look="The exception in the consumer's code.",
        source=("ConsumeMessageConcurrentlyService.ConsumeRequest#run",),
    ),
    Entry(
        id="client.group-exists",
        severity="problem",
        lines=(
            "the producer group[{group}] exist already",
            "The consumer group[{group}] has been created before",
            "The producer group[{group}] has been created before",
        ),
        meaning="Two producers or consumers of one group in one process with the same instance name.",
        look="instanceName or unitName.",
        source=("MQClientInstance#registerProducer",),
    ),
    Entry(
        id="client.rebalance",
        severity="notice",
        lines=(
            "doRebalance, {group}, but the topic[{topic}] not exist",
            "doRebalance, {group} {topic}, get consumer id list failed",
            "allocate message queue exception. strategy name: {word}",
        ),
        meaning=(
            "The consumer cannot divide the queues: the topic has no route, or no broker tells the "
            "members of the group."
        ),
        look="Routes of the topic; the brokers.",
        incidents=("F34",),
        source=("RebalanceImpl#rebalanceByTopic",),
    ),
    Entry(
        id="client.lock-failed",
        severity="notice",
        lines=("the message queue locked Failed, Group: {group}",),
        meaning=(
            "An ordered consumer did not get the lock of a queue; another one holds it, or the broker "
            "is away."
        ),
        look="Whether it ends within a minute.",
        source=("RebalanceImpl#lock",),
    ),
    Entry(
        id="client.offset-strange",
        severity="problem",
        lines=("Queue offset[{queue_offset}] of msg is strange, not equal to the stored in msg",),
        meaning=(
            "Of a batch that was sent, what came back has other queue offsets than its slots: entries of "
            "the queue are shifted."
        ),
        look="The queue in the store.",
        next=("verify STORE",),
        incidents=("F14",),
        source=("MQClientAPIImpl#processPopResponse",),
        releases="5.x",
    ),
    Entry(
        id="client.body-decompress",
        severity="problem",
        lines=("DataFormatException: incorrect header check", "java.util.zip.DataFormatException"),
        meaning=(
            "The body of a message says it is compressed and is not. As a half message it stops all "
            "checks of its queue (a poison message)."
        ),
        look="The message: sysFlag against the first bytes of the body.",
        next=("verify STORE",),
        incidents=("F07",),
        source=("MessageDecoder#decode",),
    ),
)
