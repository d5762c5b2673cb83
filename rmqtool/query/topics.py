"""Topics of a store, by everything but its records."""

from __future__ import annotations

from typing import TYPE_CHECKING

from formats.system_topics import CHECK_MAX_TOPIC, HALF_TOPIC, OP_HALF_TOPIC
from formats.tags_code import SCHEDULE_TOPIC

if TYPE_CHECKING:
    from rmqtool.store.layout import Store

SYSTEM_TOPICS = (
    SCHEDULE_TOPIC,
    HALF_TOPIC,
    OP_HALF_TOPIC,
    "RMQ_SYS_TRACE_TOPIC",
    CHECK_MAX_TOPIC,
    "rmq_sys_wheel_timer",
)
"""topics that records may be in although neither queues nor settings name them"""


def known_topics(store: Store) -> list[str]:
    """Topics with a queue directory or an entry in topics.json, and the broker's own, sorted."""
    named = {queue.topic for kind in ("consumequeue", "batchconsumequeue") for queue in store.queues(kind)}
    return sorted({*(topic for topic in named if topic), *store.topics, *SYSTEM_TOPICS})
