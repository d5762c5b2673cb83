"""What a broker answers to clients: remarks, as they stand in client logs and stack traces."""

from __future__ import annotations

from rmqtool.explain.entry import Entry

ENTRIES = (
    Entry(
        id="answer.reject",
        severity="problem",
        lines=("[REJECTREQUEST]system busy, start flow control for a while",),
        meaning=(
            "The broker refuses sends because its page cache is busy (appending held the lock longer "
            "than osPageCacheBusyTimeOutMills) or, with the transient pool, no buffer is left."
        ),
        look=(
            "Latency of the disk, swapping and garbage collection at that time; 'putMessage in lock "
            "cost' in store.log."
        ),
        source=("NettyRemotingAbstract#processRequestCommand", "SendMessageProcessor#rejectRequest"),
    ),
    Entry(
        id="answer.timeout-clean",
        severity="problem",
        lines=(
            "[TIMEOUT_CLEAN_QUEUE]broker busy, start flow control for a while, period in queue: {millis}ms",
        ),
        meaning=(
            "A request waited longer than waitTimeMillsInSendQueue (200 ms) and was thrown out: the "
            "broker is slower than what is sent. It was not stored."
        ),
        look="What slows storing: disk, synchronous flush or replication, one thread for sends.",
        source=("BrokerFastFailure#cleanExpiredRequestInQueue",),
    ),
    Entry(
        id="answer.page-cache-busy",
        severity="problem",
        lines=(
            "[PCBUSY_CLEAN_QUEUE]broker busy, start flow control for a while, period in queue: {millis}ms",
            "[PC_SYNCHRONIZED]broker busy, start flow control for a while",
        ),
        meaning=(
            "Writing to the page cache takes longer than a second: the kernel is busy writing back, or "
            "memory is short."
        ),
        look=(
            "vm.dirty_* settings, free memory, disk latency; the broker's heap may leave too little for "
            "the page cache."
        ),
        source=("BrokerFastFailure#cleanExpiredRequest", "SendMessageProcessor#handlePutMessageResult"),
    ),
    Entry(
        id="answer.overload",
        severity="problem",
        lines=(
            "[OVERLOAD]system busy, start flow control for a while",
            "too many requests and system thread pool busy, RejectedExecutionException",
        ),
        meaning="The queue of requests of this kind is full; the request was refused.",
        look="[WATERMARK] lines: which queue.",
        source=("NettyRemotingAbstract#processRequestCommand",),
    ),
    Entry(
        id="answer.not-available",
        severity="problem",
        lines=(
            (
                "service not available now. It may be caused by one of the following reasons: the broker's "
                "disk is full"
            ),
            "service not available now, maybe disk full",
        ),
        meaning=(
            "The broker takes no messages (code 14): its disk is full, a queue or the index could not "
            "be written, it is a slave, or it is stopping. The ratios in brackets are the use of the "
            "disks of commit log, queues and index."
        ),
        look=(
            "Above 0.90 it is the disk; otherwise 'putMessage is forbidden' and its flags in the "
            "broker's log."
        ),
        next=("info STORE",),
        incidents=("F21",),
        source=("SendMessageProcessor#handlePutMessageResult",),
    ),
    Entry(
        id="answer.create-file",
        severity="problem",
        lines=("create mapped file failed, server is busy or broken",),
        meaning="The broker could not create the next segment.",
        look="Space, inodes, and the allocating thread's lines in store.log.",
        next=("info STORE",),
        incidents=("F21",),
        source=("SendMessageProcessor#handlePutMessageResult",),
    ),
    Entry(
        id="answer.memory",
        severity="problem",
        lines=("maybe your broker machine memory too small",),
        meaning=(
            "The broker did not answer in time or refused work; the client adds this guess. It is "
            "mostly the disk or a pause of the process, not the size of memory alone."
        ),
        look="The broker's store.log and garbage collector's log at that time.",
        source=("BrokerController#start",),
    ),
    Entry(
        id="answer.message-illegal",
        severity="notice",
        lines=(
            "the message is illegal, maybe msg body or properties length not matched",
            "the message is illegal, maybe msg properties length limit",
        ),
        meaning=(
            "A message is larger than the broker takes (code 13): body over maxMessageSize or "
            "properties over 32767 bytes."
        ),
        look="The producer.",
        source=("SendMessageProcessor#handlePutMessageResult",),
    ),
    Entry(
        id="answer.in-sync",
        severity="problem",
        lines=("in-sync replicas not enough",),
        meaning="Fewer replicas are in sync than inSyncReplicas asks for; nothing was stored.",
        look="The slaves: connected, and how far behind.",
        incidents=("F42",),
        source=("SendMessageProcessor#handlePutMessageResult",),
        releases="5.x",
    ),
    Entry(
        id="answer.topic-missing",
        severity="problem",
        lines=(
            "topic[{topic}] not exist, apply first please!",
            "the topic[{topic}] not exist, apply first please!",
        ),
        meaning=(
            "The broker does not know the topic (code 17). If it existed, its configuration was lost; "
            "the messages are still in the store."
        ),
        look="config/topics.json and its .bak; consumequeue/ for a directory of that name.",
        next=("info STORE",),
        incidents=("F33", "F34"),
        source=("PullMessageProcessor#processRequest", "SendMessageProcessor#msgCheck"),
    ),
    Entry(
        id="answer.no-route",
        severity="problem",
        lines=(
            "No route info of this topic: {topic}",
            "No route info of this topic, {topic}",
            "No topic route info in name server for the topic: {topic}",
        ),
        meaning=(
            "The name server knows no broker for this topic: the topic was never created, the broker is "
            "not registered there, or its topics.json was lost."
        ),
        look="Is the broker registered? Is the topic in its topics.json?",
        next=("info STORE",),
        incidents=("F34",),
        source=("DefaultMQProducerImpl#sendDefaultImpl", "ClientRequestProcessor#getRouteInfoByTopic"),
    ),
    Entry(
        id="answer.group-missing",
        severity="problem",
        lines=("subscription group [{group}] does not exist", "subscription group not exist, {group}"),
        meaning=(
            "The broker does not know the group (code 26). If it existed, subscriptionGroup.json was lost."
        ),
        look="config/subscriptionGroup.json and its .bak, autoCreateSubscriptionGroup.",
        next=("info STORE",),
        incidents=("F33", "F34"),
        source=("PullMessageProcessor#processRequest",),
    ),
    Entry(
        id="answer.forbidden",
        severity="notice",
        lines=(
            "pulling message is forbidden",
            "sending message is forbidden",
            "sending transaction message is forbidden",
            "subscription group no permission, {group}",
            "consume by broadcast way",
            "is forbidden for topic[{topic}]",
            "for lite pull consumer is forbidden",
        ),
        meaning=(
            "A permission of broker, topic or group denies the request (code 16). brokerPermission may "
            "have been changed to drain the broker."
        ),
        look="brokerPermission, perm of the topic, consumeEnable of the group.",
        next=("info STORE",),
        source=("PullMessageProcessor#processRequest", "AbstractSendMessageProcessor#msgCheck"),
    ),
    Entry(
        id="answer.subscription",
        severity="notice",
        lines=(
            "the consumer's subscription not exist",
            "the consumer's group info not exist",
            "the consumer's subscription not latest",
            "parse the consumer's subscription failed",
        ),
        meaning=(
            "The broker does not (yet) have the consumer's subscription (code 23, 24, 25). Lasting, it "
            "is one group with different subscriptions."
        ),
        look="All consumers of the group.",
        source=("PullMessageProcessor#processRequest",),
    ),
    Entry(
        id="answer.queue-id-illegal",
        severity="notice",
        lines=(
            "queueId[{int}] is illegal, topic:[{topic}] topicConfig.readQueueNums:[{int}] consumer:[{}]",
            "request queueId[{int}] is illegal, {text}",
        ),
        meaning=(
            "A client uses a queue number that the topic does not have on this broker: the number of "
            "queues was made smaller."
        ),
        look="Messages in queues above the new number: they stay unread.",
        next=("info STORE",),
        source=("PullMessageProcessor#processRequest", "AbstractSendMessageProcessor#msgCheck"),
    ),
)
