"""Topics that were deleted: records of theirs stay in the log, and belong to no queue any more."""

from __future__ import annotations

from typing import TYPE_CHECKING

from formats.system_topics import CHECK_MAX_TOPIC, SYSTEM_TOPIC_PREFIX
from formats.tags_code import SCHEDULE_TOPIC
from rmqtool.scan.multi import LMQ_PREFIX

if TYPE_CHECKING:
    from collections.abc import Collection

_ALWAYS_THERE = (LMQ_PREFIX, SCHEDULE_TOPIC, "RMQ_SYS_", SYSTEM_TOPIC_PREFIX, CHECK_MAX_TOPIC)
"""topics that need no entry in the topic table"""


def is_somebodys(topics: Collection[str], topic: str) -> bool:
    """Not of a topic that was deleted; `topics` are those of `topics.json`, none where it tells nothing."""
    return not topics or topic in topics or topic.startswith(_ALWAYS_THERE)
