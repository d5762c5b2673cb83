"""Clients: what operators find in the logs of producers and consumers."""

from __future__ import annotations

from rmqtool.explain.entry import Entry

ENTRIES = (
    Entry(
        "client.pull-offset-illegal",
        "problem",
        ("the pull request offset illegal, {text}", "fix the pull request offset, {text}"),
        "The broker says that the consumer's offset is outside the queue. The consumer drops the queue for ten seconds and "
        "goes on at the offset that the broker named: messages are skipped or repeated.",
        "The status and the offsets in the line; was the queue cut or built anew, the offset copied from elsewhere?",
        ("info STORE", "verify STORE"),
        ("F18", "F35"),
        ("DefaultMQPushConsumerImpl#pullMessage",),
    ),
    Entry(
        "client.pull-dropped",
        "normal",
        ("the pull request[{}] is dropped", "the message queue not be able to consume, because it's dropped"),
        "A queue went to another consumer of the group.",
        "Nothing.",
        (),
        (),
        ("DefaultMQPushConsumerImpl#pullMessage",),
    ),
    Entry(
        "client.flow-control",
        "notice",
        (
            "the cached message count exceeds the threshold {int}, so do flow control",
            "the cached message size exceeds the threshold {int} MiB, so do flow control",
            "the queue's messages, span too long, so do flow control",
        ),
        "The consumer holds as many unprocessed messages as it may and stops to pull. 'span too long': one message at the "
        "front does not finish.",
        "The consumer's own processing (jstack).",
        (),
        (),
        ("DefaultMQPushConsumerImpl#pullMessage",),
    ),
    Entry(
        "client.consume-retry",
        "notice",
        ("sendMessageBack exception, group: {group}", "consumeMessage exception: {text}"),
        "Processing a message threw an exception or could not be sent back; it is delivered again.",
        "The exception in the consumer's code.",
        (),
        (),
        ("ConsumeMessageConcurrentlyService.ConsumeRequest#run",),
    ),
    Entry(
        "client.group-exists",
        "problem",
        (
            "the producer group[{group}] exist already",
            "The consumer group[{group}] has been created before",
            "The producer group[{group}] has been created before",
        ),
        "Two producers or consumers of one group in one process with the same instance name.",
        "instanceName or unitName.",
        (),
        (),
        ("MQClientInstance#registerProducer",),
    ),
    Entry(
        "client.rebalance",
        "notice",
        (
            "doRebalance, {group}, but the topic[{topic}] not exist",
            "doRebalance, {group} {topic}, get consumer id list failed",
            "allocate message queue exception. strategy name: {word}",
        ),
        "The consumer cannot divide the queues: the topic has no route, or no broker tells the members of the group.",
        "Routes of the topic; the brokers.",
        (),
        ("F34",),
        ("RebalanceImpl#rebalanceByTopic",),
    ),
    Entry(
        "client.lock-failed",
        "notice",
        ("the message queue locked Failed, Group: {group}",),
        "An ordered consumer did not get the lock of a queue; another one holds it, or the broker is away.",
        "Whether it ends within a minute.",
        (),
        (),
        ("RebalanceImpl#lock",),
    ),
    Entry(
        "client.offset-strange",
        "problem",
        ("Queue offset[{queue_offset}] of msg is strange, not equal to the stored in msg",),
        "Of a batch that was sent, what came back has other queue offsets than its slots: units of the queue are shifted.",
        "The queue in the store.",
        ("verify STORE",),
        ("F14",),
        ("MQClientAPIImpl#processPopResponse",),
        "5.x",
    ),
    Entry(
        "client.body-decompress",
        "problem",
        ("DataFormatException: incorrect header check", "java.util.zip.DataFormatException"),
        "The body of a message says it is compressed and is not. As a half message it stops all checks of its queue (a poison "
        "message).",
        "The message: sysFlag against the first bytes of the body.",
        ("verify STORE",),
        ("F07",),
        ("MessageDecoder#decode",),
    ),
)
