"""Storing a message."""

from __future__ import annotations

from rmqtool.explain.entry import Entry

ENTRIES = (
    Entry(
        id="put.create-file-error",
        severity="problem",
        lines=(
            "create mapped file1 error, topic: {topic} clientAddr: {word}",
            "create mapped file2 error, topic: {topic} clientAddr: {word}",
            "Create mapped file1 error, topic: {topic} clientAddr: {word}",
            "Create mapped file2 error, topic: {topic} clientAddr: {word}",
        ),
        meaning=(
            "The next segment could not be created, so a message was refused. A line of the allocating "
            "thread before says why."
        ),
        look="Space, inodes, latency of the disk.",
        next=("info STORE",),
        incidents=("F21",),
        source=("CommitLog#asyncPutMessage",),
    ),
    Entry(
        id="put.slow-in-lock",
        severity="notice",
        lines=(
            "[NOTIFYME]putMessage in lock cost time(ms)={millis}, bodyLength={size}",
            "[NOTIFYME]putMessages in lock cost time(ms)={millis}, bodyLength={size}",
        ),
        meaning=(
            "Appending one message held the lock of the log for more than half a second: page faults, "
            "swapping, a new file, or a pause of the JVM. From osPageCacheBusyTimeOutMills (1 s) on "
            "senders are refused."
        ),
        look="The garbage collector's log and disk latency at this time.",
        source=("CommitLog#asyncPutMessage",),
    ),
    Entry(
        id="put.slow",
        severity="notice",
        lines=(
            "putMessage not in lock elapsed time(ms)={millis}, bodyLength={size}",
            "not in lock elapsed time(ms)={millis}, bodyLength={size}",
            "not in lock eclipse time(ms)={millis}, bodyLength={size}",
            (
                "DefaultMessageStore#putMessage: CommitLog#putMessage cost {millis}ms, topic={topic}, "
                "bodyLength={size}"
            ),
        ),
        meaning="Storing a message took more than half a second, waiting for the lock included.",
        look=(
            "The same times in the garbage collector's log; with synchronous flush or replication, "
            "their latency."
        ),
        source=("DefaultMessageStore#asyncPutMessage",),
    ),
    Entry(
        id="put.not-writable",
        severity="problem",
        lines=("message store is not writeable, so putMessage is forbidden {flags}",),
        meaning="The store refuses messages. The number is a set of flags that says why.",
        look="The reason is further up: a full disk, or a queue or index file that could not be written.",
        next=("info STORE",),
        incidents=("F21",),
        source=("HookUtils#checkBeforePutMessage", "DefaultMessageStore#checkStoreStatus"),
        derive="flags",
    ),
    Entry(
        id="put.not-writable-reasons",
        severity="problem",
        lines=("the message store is not writable. It may be caused by one of the following reasons: ",),
        meaning=(
            "The store refuses messages: the disk is full, or a queue or index file could not be written."
        ),
        look="The reason is further up in the store's log.",
        next=("info STORE",),
        incidents=("F21",),
        source=("DefaultMessageStore#checkStoreStatus",),
        releases="4.9",
    ),
    Entry(
        id="put.on-slave",
        severity="notice",
        lines=(
            "message store is in slave mode, so putMessage is forbidden",
            "broke role is slave, so putMessage is forbidden",
            "Message store is slave mode, so end transaction is forbidden",
        ),
        meaning="A client sends to a slave. Its routes are old, or roles were exchanged by hand.",
        look="brokerRole and brokerId of both brokers.",
        source=("HookUtils#checkBeforePutMessage", "DefaultMessageStore#checkStoreStatus"),
    ),
    Entry(
        id="put.topic-too-long",
        severity="notice",
        lines=(
            "putMessage message topic length too long {count}",
            "putMessage message topic[{topic}] length too long {count}",
            "msgContentCheck: message topic length is too long, topic={topic}",
        ),
        meaning="A message was refused because the name of its topic is longer than 127 bytes.",
        look="The producer; retry and LMQ topics are made of a group and a topic.",
        source=("HookUtils#checkBeforePutMessage", "DefaultMessageStore#checkMessage"),
    ),
    Entry(
        id="put.properties-too-long",
        severity="notice",
        lines=(
            "putMessage message properties length too long. length={size}",
            "putMessage message properties length too long {size}",
            "msgContentCheck: message properties length is too long, topic={topic}",
            "Properties size of messageExtBatch exceeded, properties size: {size}",
        ),
        meaning="A message was refused because its properties are longer than 32767 bytes.",
        look="The producer: long keys, trace contexts, headers.",
        incidents=("F08",),
        source=("MessageExtEncoder#encode", "CommitLog#putMessage"),
    ),
    Entry(
        id="put.too-large",
        severity="notice",
        lines=(
            "message size exceeded, msg total size: {size}",
            "message body size exceeded, msg total size: {size}",
            "message body size exceeded, msg body size: {size}",
            "msgContentCheck: message body size exceeds the threshold, topic={topic}",
            "PutMessages body length too long {size}",
            " topic {topic} msg body size {size} from ",
        ),
        meaning="A message was refused because it is larger than maxMessageSize (4 MiB by default) allows.",
        look="The producer.",
        source=("MessageExtEncoder#encode", "CommitLog.MessageExtEncoder#encode"),
    ),
    Entry(
        id="put.body-null",
        severity="notice",
        lines=("putMessage message topic[{topic}], but message body is null",),
        meaning="A message without body was refused.",
        look="The producer.",
        source=("HookUtils#checkBeforePutMessage",),
        releases="5.x",
    ),
    Entry(
        id="put.inner-batch",
        severity="problem",
        lines=(
            "[BUG]The message had property {word} but is not an inner batch",
            "[BUG]The message is an inner batch but cq type is not batch cq",
        ),
        meaning="A batch and the queue type of its topic do not fit; the message was refused.",
        look="The queue.type attribute of the topic, and whether it was changed.",
        next=("info STORE",),
        source=("HookUtils#checkInnerBatch", "DefaultMessageStore#asyncPutMessage"),
        releases="5.x",
    ),
    Entry(
        id="put.result-timeout",
        severity="problem",
        lines=("usually it will never timeout, putMessageTimeout is much bigger than slaveTimeout",),
        meaning=(
            "A message was stored but its result did not come in time: the process stood still (garbage "
            "collection, disk)."
        ),
        look="Pauses at that time; the message may be in the log, so a repeated send makes a duplicate.",
        source=("DefaultMessageStore#waitForPutResult",),
    ),
    Entry(
        id="put.lmq-limit",
        severity="problem",
        lines=("lmq consumeQueue num exceed maxLmqConsumeQueueNum config num",),
        meaning=(
            "There are as many light queues as maxLmqConsumeQueueNum allows (20,000); messages for more "
            "are refused."
        ),
        look="Light queues that nobody reads any more.",
        next=("info STORE",),
        source=("DefaultMessageStore#checkLmqMessage", "SendMessageProcessor#handlePutMessageResult"),
    ),
    Entry(
        id="append.replica-failed",
        severity="problem",
        lines=(
            "appendToPhyQueue failed {physical_offset} {size}",
            (
                "DefaultMessageStore#appendToCommitLog: failed to append data to commitLog, physical "
                "offset={physical_offset}, data length={size}"
            ),
            "appendData getLastMappedFile error {physical_offset}",
        ),
        meaning="A slave could not write what its master sent.",
        look="Space on the slave, and errors of creating files before.",
        next=("info STORE",),
        incidents=("F21", "F42"),
        source=("DefaultMessageStore#appendToCommitLog", "CommitLog#appendData"),
    ),
    Entry(
        id="get.forbidden",
        severity="problem",
        lines=("message store is not readable, so getMessage is forbidden {flags}",),
        meaning="Consumers get nothing because the store is marked as not readable.",
        look="Why: the flags.",
        next=("info STORE",),
        source=("DefaultMessageStore#getMessage",),
        derive="flags",
    ),
    Entry(
        id="get.failed",
        severity="problem",
        lines=(
            (
                "getMessage Failed. cid: {group}, topic: {topic}, queueId: {queue_id}, offset: "
                "{queue_offset}, minOffset: {min_offset}, maxOffset: {max_offset}"
            ),
            "getMinOffsetInQueue Failed. topic: {topic}, queueId: {queue_id}",
            "getOffsetInQueueByTime Failed. topic: {topic}, queueId: {queue_id}",
        ),
        meaning="Reading from a queue failed with an exception; the consumer tries again.",
        look="The exception, and the queue at that offset.",
        next=("verify STORE",),
        incidents=("F24",),
        source=("DefaultMessageStore#getMessage",),
        releases="5.2 and later",
    ),
    Entry(
        id="get.pull-size",
        severity="normal",
        lines=("The max pull size is too large maxPullSize={size} topic={topic} queueId={queue_id}",),
        meaning="A consumer asks for more entries than the broker gives at once; it gets fewer.",
        look="Nothing.",
        source=("DefaultMessageStore#getMessage",),
        releases="5.x",
    ),
    Entry(
        id="truncate.not-aligned",
        severity="problem",
        lines=("offset {physical_offset} is not align, truncate failed, need manual fix",),
        meaning=(
            "A replica should be cut back to an offset that is not a boundary of a record, so nothing was "
            "cut: its log differs from the master's in the middle of a record."
        ),
        look="The record around that offset here and on the master.",
        next=("show STORE {physical_offset}",),
        incidents=("F03", "F42"),
        source=("DefaultMessageStore#truncateFiles",),
        releases="5.x",
    ),
    Entry(
        id="truncate.done",
        severity="notice",
        lines=("truncate dirty files to {physical_offset}", "Truncate commitLog to {physical_offset}"),
        meaning=(
            "A replica was cut back to this offset because its end was not the master's. The bytes "
            "behind stay in the file until they are overwritten, and can reappear at a restart (5.5.0)."
        ),
        look="Messages only here that were cut off.",
        next=("show STORE {physical_offset}", "verify STORE"),
        incidents=("F06", "F42"),
        source=("DefaultMessageStore#truncateDirtyFiles",),
        releases="5.x",
    ),
    Entry(
        id="truncate.not-needed",
        severity="normal",
        lines=("no need to truncate files, truncate offset is {int}, max physical offset is {int}",),
        meaning="The replica ends before the place to cut.",
        look="Nothing.",
        source=("DefaultMessageStore#truncateFiles",),
        releases="5.x",
    ),
    Entry(
        id="truncate.reset-reput",
        severity="normal",
        lines=("oldReputFromOffset is {int}, reset reput from offset to {physical_offset}",),
        meaning="Dispatch continues at the place where the log was cut.",
        look="Nothing.",
        source=("DefaultMessageStore#truncateDirtyFiles",),
        releases="5.x",
    ),
)
