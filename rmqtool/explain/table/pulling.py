"""Offsets, pulls and subscriptions."""

from __future__ import annotations

from rmqtool.explain.entry import Entry

ENTRIES = (
    Entry(
        id="offset.less-than-store",
        severity="notice",
        lines=(
            (
                "[NOTIFYME]update consumer offset less than store. clientHost={word}, key={topic}, "
                "queueId={queue_id}, requestOffset={queue_offset}, storeOffset={int}"
            ),
        ),
        meaning=(
            "A consumer set its offset back: messages in between are delivered again. It is a reset on "
            "purpose, or two consumers of the same group that both think the queue theirs."
        ),
        look="Which client; whether it repeats in both directions.",
        next=("info STORE",),
        incidents=("F35", "F36"),
        source=("ConsumerOffsetManager#commitOffset",),
    ),
    Entry(
        id="offset.moved",
        severity="problem",
        lines=(
            (
                "PULL_OFFSET_MOVED:correction offset. topic={topic}, groupId={group}, "
                "requestOffset={queue_offset}, newOffset={int}"
            ),
        ),
        meaning=(
            "A group asked for an offset outside the queue and was sent elsewhere. A new offset of 0 or "
            "the minimum repeats messages, the maximum skips them."
        ),
        look="The offset of the group against the bounds of the queue; was the queue cut or rebuilt?",
        next=("info STORE", "verify STORE"),
        incidents=("F18", "F35"),
        source=("DefaultPullMessageResultHandler#handle", "PullMessageProcessor#processRequest"),
    ),
    Entry(
        id="offset.moved-not",
        severity="notice",
        lines=(
            "PULL_OFFSET_MOVED:none correction. topic={topic}, groupId={group}, requestOffset={queue_offset}",
        ),
        meaning=(
            "A consumer asked a broker that lacks this part of the queue and was sent to another broker."
        ),
        look="Whether the slave is behind.",
        incidents=("F35",),
        source=("DefaultPullMessageResultHandler#handle", "PullMessageProcessor#processRequest"),
    ),
    Entry(
        id="offset.cleaned",
        severity="notice",
        lines=(
            "remove topic offset, {topic}",
            "Clean group's offset, {topic}",
            "Clean topic's offset, {topic}",
            "clean group offset {topic}",
            "clean lmq group offset {topic}",
        ),
        meaning=(
            "Offsets of a group were removed, because the group or topic was deleted or nobody "
            "subscribes any more. A group that comes back begins at its configured start."
        ),
        look="Whether the group was only away for long.",
        incidents=("F35",),
        source=("ConsumerOffsetManager#scanUnsubscribedTopic",),
    ),
    Entry(
        id="offset.reset-refused",
        severity="notice",
        lines=(
            "Reset offset failed, topic does not exist. topic={topic}",
            "Reset offset failed, group does not exist. topic={topic}",
            "Reset offset aborted: no queues to reset",
            "[reset-offset] reset offset failed, no topic in this broker. topic={topic}",
            "[reset-offset] reset offset exception. topic={topic}",
            "reset offset is invalid. topic={topic}, queueId={queue_id}, timeStampOffset={int}",
            "[reset-offset] the client does not support this feature",
        ),
        meaning="A reset of offsets that somebody asked for was not done.",
        look="The names in the request; consumers must be connected for some forms of it.",
        incidents=("F35",),
        source=("AdminBrokerProcessor#resetOffsetInner", "Broker2Client#resetOffset"),
    ),
    Entry(
        id="pull.topic-missing",
        severity="problem",
        lines=(
            "the topic {topic} not exist, consumer: {word}",
            "The topic {topic} not exist, consumer: {word}",
            "the topic {topic} not exist, producer: {word}",
        ),
        meaning=(
            "Clients use a topic that this broker does not know. If it existed before, topics.json was "
            "lost or the client talks to a wrong broker; its messages are still in the store."
        ),
        look="config/topics.json and its .bak against consumequeue/.",
        next=("info STORE", "verify STORE"),
        incidents=("F33", "F34"),
        source=("PullMessageProcessor#processRequest", "AbstractSendMessageProcessor#msgCheck"),
    ),
    Entry(
        id="topic.create-refused",
        severity="notice",
        lines=(
            "Create new topic failed, because the default topic[{topic}] has no perm",
            "Create new topic failed, because the default topic[{topic}] not exist",
        ),
        meaning="A producer sends to an unknown topic and the broker does not create topics by itself.",
        look="autoCreateTopicEnable; the name of the topic.",
        incidents=("F34",),
        source=("TopicConfigManager#createTopicInSendMessageMethod",),
    ),
    Entry(
        id="topic.absent-in-admin",
        severity="notice",
        lines=(
            "delete topic config failed, topic: {topic} not exists",
            "delete subscription group failed, subscription groupName: {group} not exist",
            "topic config does not exist, topic={topic}",
            "topic config not exist, {topic}",
            "No topic in this broker, client: {word}",
            "No group in this broker, client: {word}",
            "topic does not exist in consumer group's subscription, topic={topic}",
        ),
        meaning="An administrator's request names a topic or group that is not here.",
        look="The name; config/topics.json when it should be here.",
        incidents=("F34",),
        source=("AdminBrokerProcessor#getTopicConfig", "TopicConfigManager#deleteTopicConfig"),
    ),
    Entry(
        id="pull.subscription",
        severity="notice",
        lines=(
            "Parse the consumer's subscription[{}] failed, group: {group}",
            "the consumer's group info not exist, group: {group}",
            "the consumer's subscription not exist, group: {group}, topic:{topic}",
            "The broker's subscription is not latest, group: {group}",
            "The broker's consumer filter data is not latest, group: {group}, topic: {topic}",
            "subscription changed, group: {group} remove topic {topic}",
        ),
        meaning=(
            "What a consumer subscribes is not (yet) what the broker knows. For a moment after a "
            "restart that is ordinary; for long, consumers of one group subscribe different things, and "
            "each gets a part of the messages only."
        ),
        look="Subscriptions of all consumers of the group.",
        source=("PullMessageProcessor#processRequest", "ConsumerGroupInfo#updateSubscription"),
    ),
    Entry(
        id="pull.transfer-failed",
        severity="notice",
        lines=(
            "Fail to transfer messages from page cache to {word}",
            "Error occurred when transferring messages from page cache",
            "transfer many message by pagecache failed, {word}",
            "transfer many message by pagecache exception",
            "transfer query message by page cache failed",
            "channel {word} not writable ,cid {group}",
        ),
        meaning="A consumer went away, or was too slow, while messages were sent to it. It asks again.",
        look="Whether it is always the same consumer.",
        source=("DefaultPullMessageResultHandler#handle",),
    ),
    Entry(
        id="pull.hold-slow",
        severity="notice",
        lines=(
            "PullRequestHoldService: check hold pull request cost {millis}ms",
            "[NOTIFYME] check hold request cost {millis} ms.",
        ),
        meaning=(
            "Looking through waiting consumers took long: very many of them, or a pause of the process."
        ),
        look="The garbage collector's log.",
        source=("PullRequestHoldService#run",),
    ),
    Entry(
        id="pull.hold-failed",
        severity="problem",
        lines=(
            "PullRequestHoldService: failed to check hold request failed, topic={topic}, queueId={queue_id}",
            "check hold request failed. topic={topic}, queueId={queue_id}",
            "PullRequestHoldService#notifyMessageArriving: failed to execute",
        ),
        meaning=(
            "Waiting consumers of a queue could not be looked after; they wait until their time is over."
        ),
        look="The exception below, and the queue.",
        next=("verify STORE",),
        incidents=("F18",),
        source=("PullRequestHoldService#checkHoldRequest",),
    ),
    Entry(
        id="filter.failed",
        severity="notice",
        lines=(
            "Message Filter error, ",
            "bloom filter error, sub=",
            "Calc filter bit map error!commitLogOffset={physical_offset}",
            "Calc bit map error! topic={topic}, offset={physical_offset}, queueId={queue_id}",
            "[BUG] Consumer in filter manager has no ",
            "load filter data error, ",
            "parse error: expr={}, topic={topic}, group={group}",
        ),
        meaning=(
            "A filter by expression failed on a message; the message is delivered or held back "
            "regardless of it."
        ),
        look="The expression and the properties of the message.",
        source=("CommitLogDispatcherCalcBitMap#dispatch", "ExpressionMessageFilter#isMatchedByCommitLog"),
    ),
    Entry(
        id="queue-lock.other-client",
        severity="notice",
        lines=(
            "message queue has been locked by other client, group={group}",
            "tryLock, message queue locked by other client. Group: {group}",
            "tryLockBatch, message queue locked by other client. Group: {group}",
            "try to lock a expired message queue, group={group}",
            "message queue lock expired, I got it. Group: {group}",
            "unlockBatch, but mq locked by other client: {word}",
            "RebalanceLockManager#unlockBatch: mq locked by other client, group={group}",
            "RebalanceLockManager#unlockBatch: mq not locked, group={group}",
            "unlockBatch, but mq not locked, Group: {group}",
            "RebalanceLockManager#unlockBatch: group not exist, group={group}",
            "unlockBatch, group not exist, Group: {group}",
        ),
        meaning=(
            "Ordered consumers pass a queue from one to the other. Ordinary while consumers come and "
            "go; without end, two of them disagree about the members of the group."
        ),
        look="Whether it ends within a minute.",
        source=("RebalanceLockManager#tryLock", "RebalanceLockManager#tryLockBatch"),
    ),
    Entry(
        id="client.channel-expired",
        severity="normal",
        lines=(
            "remove expired channel from ConsumerManager consumerTable",
            "remove expired channel[{word}] from ProducerManager groupChannelTable",
            "SCAN: remove expired channel from ProducerManager groupChannelTable",
            "NETTY EVENT: remove not active channel[{word}] from ConsumerGroupInfo",
            "NETTY EVENT: remove channel[{word}]",
        ),
        meaning=(
            "A client that did not send heartbeats for two minutes, or closed its connection, was taken "
            "off the list."
        ),
        look="Only when many go at once.",
        source=("ConsumerManager#scanNotActiveChannel", "ProducerManager#scanNotActiveChannel"),
    ),
    Entry(
        id="client.id-conflict",
        severity="problem",
        lines=(
            "consumer channel exists in broker, but clientId is not the same one",
            "[BUG] consumer channel exist in broker, but clientId not equal. GROUP: {group}",
        ),
        meaning=(
            "One connection announces two client ids of a group: several consumers share instance "
            "names. Queues are divided wrongly and messages stay or repeat."
        ),
        look="instanceName of the consumers; containers in which every process has number 1.",
        source=("ConsumerGroupInfo#updateChannel",),
    ),
)
