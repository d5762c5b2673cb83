"""Bytes that may stand in a topic name."""

from __future__ import annotations

import numpy as np

TOPIC_CHARACTERS = b"%|abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-"
"""`TopicValidator` of broker and client."""

TOPIC_BYTES = np.zeros(256, dtype=np.bool_)
TOPIC_BYTES[np.frombuffer(TOPIC_CHARACTERS, dtype=np.uint8)] = True

POP_RETRY_PREFIX = b"%RETRY%"
POP_RETRY_SEPARATOR = b"+"
"""between group and topic with enableRetryTopicV2 (`KeyBuilder#buildPopRetryTopicV2`)"""
REVIVE_PREFIX = b"rmq_sys_REVIVE_LOG_"
"""with the name of the cluster behind it, which nobody checks (`PopAckConstants#buildClusterReviveTopic`)"""

_CONTROL = frozenset(range(0x20)) | {0x7F}


def made_by_broker(topic: bytes) -> bool:
    """Whether a broker from 5.0 on puts messages into such a topic past its own validator.

    topic: well-formed UTF-8.
    """
    if topic.startswith(REVIVE_PREFIX):
        return len(topic) > len(REVIVE_PREFIX) and _CONTROL.isdisjoint(topic)
    if not topic.startswith(POP_RETRY_PREFIX):
        return False
    group, separator, name = topic.removeprefix(POP_RETRY_PREFIX).partition(POP_RETRY_SEPARATOR)
    return bool(separator and group and name) and set(group + name) <= set(TOPIC_CHARACTERS)


def may_be_topic(name: str) -> bool:
    """Whether a topic can have this name, but for its length."""
    try:
        topic = name.encode()
    except UnicodeEncodeError:  # bytes of a file name that are not UTF-8, or half a character in a table
        return False
    return bool(topic) and (set(topic) <= set(TOPIC_CHARACTERS) or made_by_broker(topic))
