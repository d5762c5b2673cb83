"""Bytes that may stand in a topic name."""

from __future__ import annotations

import numpy as np

TOPIC_CHARACTERS = b"%|abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-"
"""`TopicValidator` of broker and client."""

TOPIC_BYTES = np.zeros(256, dtype=np.bool_)
TOPIC_BYTES[np.frombuffer(TOPIC_CHARACTERS, dtype=np.uint8)] = True
