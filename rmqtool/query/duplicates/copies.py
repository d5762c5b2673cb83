"""What a topic says about the records in it: messages of users, or copies that the broker made of them."""

from __future__ import annotations

from enum import StrEnum

from formats.system_topics import (
    CHECK_MAX_TOPIC,
    DLQ_PREFIX,
    HALF_TOPIC,
    OP_HALF_TOPIC,
    RETRY_PREFIX,
    SYSTEM_TOPIC_PREFIX,
    SYSTEM_TOPIC_SET,
    TIMER_TOPIC,
)
from formats.tags_code import SCHEDULE_TOPIC

_HALF = (HALF_TOPIC, OP_HALF_TOPIC, CHECK_MAX_TOPIC)
_INTERNAL_PREFIXES = ("RMQ_SYS_", SYSTEM_TOPIC_PREFIX, "CID_RMQ_SYS_")


class Copy(StrEnum):
    """Why a message is there: as it was sent, or while it waits for something."""

    OWN = "own"
    DELAY = "delay"
    HALF = "half"
    RETRY = "retry"
    DEAD_LETTER = "dead_letter"
    TIMER = "timer"
    INTERNAL = "internal"


def copy_of(topic: str | None) -> Copy:
    """By the name of the topic alone (`TopicValidator#isSystemTopic`, `MixAll`)."""
    name = topic or ""
    for found, kind in (
        (name == SCHEDULE_TOPIC, Copy.DELAY),
        (name in _HALF, Copy.HALF),
        (name.startswith(RETRY_PREFIX), Copy.RETRY),
        (name.startswith(DLQ_PREFIX), Copy.DEAD_LETTER),
        (name == TIMER_TOPIC, Copy.TIMER),
        (name in SYSTEM_TOPIC_SET or name.startswith(_INTERNAL_PREFIXES), Copy.INTERNAL),
    ):
        if found:
            return kind
    return Copy.OWN


def is_internal(topic: str | None) -> bool:
    """Whether brokers and clients write the topic for their own ends."""
    return copy_of(topic) is not Copy.OWN
