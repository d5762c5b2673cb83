"""Topics and groups that brokers and clients keep for themselves (`TopicValidator`, `MixAll`)."""

from __future__ import annotations

from formats.tags_code import SCHEDULE_TOPIC
from formats.trace_context import TRACE_TOPIC

HALF_TOPIC = "RMQ_SYS_TRANS_HALF_TOPIC"
OP_HALF_TOPIC = "RMQ_SYS_TRANS_OP_HALF_TOPIC"
CHECK_MAX_TOPIC = "TRANS_CHECK_MAX_TIME_TOPIC"
"""where half messages go that were checked too often"""
TRANSACTION_GROUP = "CID_RMQ_SYS_TRANS"
"""whose offsets say how far half and op messages are settled (`MixAll#CID_SYS_RMQ_TRANS`)"""
BROKER_TOPICS = frozenset({SCHEDULE_TOPIC, HALF_TOPIC, OP_HALF_TOPIC, CHECK_MAX_TOPIC})
"""of delays and transactions, which brokers make themselves"""
TIMER_TOPIC = "rmq_sys_wheel_timer"
"""where messages of arbitrary delivery times wait (`TimerMessageStore#TIMER_TOPIC`)"""
AUTO_CREATE_TOPIC = "TBW102"
"""whose settings new topics get (`TopicValidator#AUTO_CREATE_TOPIC_KEY_TOPIC`)"""
SYSTEM_TOPIC_SET = frozenset(
    {
        *BROKER_TOPICS,
        AUTO_CREATE_TOPIC,
        "BenchmarkTest",
        TRACE_TOPIC,
        "SELF_TEST_TOPIC",
        "OFFSET_MOVED_EVENT",
        "CHECKPOINT_TOPIC",
    }
)
"""of `TopicValidator`, by the latest release"""
SYSTEM_TOPIC_PREFIX = "rmq_sys_"
REVIVE_PREFIX = f"{SYSTEM_TOPIC_PREFIX}REVIVE_LOG_"
"""with the name of the cluster after it (`PopAckConstants#buildClusterReviveTopic`)"""
RETRY_PREFIX = "%RETRY%"
DLQ_PREFIX = "%DLQ%"
OP_REMOVE_TAG = "d"
"""tag of an op message that settles half messages (`TransactionalMessageUtil#REMOVE_TAG`)"""


def is_system_topic(name: str) -> bool:
    """Whether brokers or clients keep a topic for delays, transactions, retries or dead letters."""
    return name in BROKER_TOPICS or name.startswith((RETRY_PREFIX, DLQ_PREFIX))


def retry_topic(group: str) -> str:
    """Where a group's messages wait for another try (`MixAll#getRetryTopic`)."""
    return RETRY_PREFIX + group


def dead_letter_topic(group: str) -> str:
    """Where a group's messages end that were tried too often (`MixAll#getDLQTopic`)."""
    return DLQ_PREFIX + group


def half_offsets(body: bytes) -> list[int]:
    """Queue offsets of the half messages that an op message settles; what is not a number is passed over.

    4.x and 5.0 write one number, later releases each with a comma behind it
    (`TransactionalMessageServiceImpl#fillOpRemoveMap`).
    """
    parts = body.decode("utf-8", "replace").split(",")
    return [int(one) for one in parts if one.isascii() and one.isdigit() and len(one) <= len(str(1 << 63))]
