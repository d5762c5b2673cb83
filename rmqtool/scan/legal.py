"""Bytes that may stand in a topic name."""

from __future__ import annotations

import numpy as np

TOPIC_CHARACTERS = b"%|abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-"
"""`TopicValidator` of broker and client."""

TOPIC_BYTES = np.zeros(256, dtype=np.bool_)
TOPIC_BYTES[np.frombuffer(TOPIC_CHARACTERS, dtype=np.uint8)] = True


def may_be_topic(name: str) -> bool:
    """Whether a topic can have this name, but for its length."""
    return bool(name) and set(name.encode("utf-8", "surrogateescape")) <= set(TOPIC_CHARACTERS)
