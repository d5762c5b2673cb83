"""`config/topics.json` for the topics that were found, so that a broker serves them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from formats.tags_code import SCHEDULE_TOPIC

if TYPE_CHECKING:
    from collections.abc import Iterable
    from collections.abc import Set as AbstractSet

_READ_WRITE = 6
_DELAY_LEVELS = 18


def topics_json(partitions: Iterable[tuple[str, int]], batch_topics: set[str], now: int) -> bytes:
    """The file as `TopicConfigManager` reads it in 4.9 and 5.x (4.9 passes over `attributes`).

    now: epoch ms for the version of the data. Every topic may be read and written, with as many queues as
    its highest queue number asks for; what else its old configuration said is not in the log.
    """
    table = topic_entries(partitions, batch_topics)
    version = {"counter": 1, "stateVersion": 0, "timestamp": now}
    text = json.dumps({"dataVersion": version, "topicConfigTable": table}, indent="\t", ensure_ascii=False)
    return text.encode()


def topic_entries(
    partitions: Iterable[tuple[str, int]], batch_topics: AbstractSet[str]
) -> dict[str, dict[str, Any]]:
    """The same as entries of the table, by topic."""
    queues: dict[str, int] = {}
    for topic, queue_id in partitions:
        least = _DELAY_LEVELS if topic == SCHEDULE_TOPIC else 1
        queues[topic] = max(queues.get(topic, least), queue_id + 1)
    return {topic: _config(topic, queues[topic], topic in batch_topics) for topic in sorted(queues)}


def _config(topic: str, queues: int, batch: bool) -> dict[str, Any]:
    return {
        "attributes": {"queue.type": "BatchCQ"} if batch else {},
        "order": False,
        "perm": _READ_WRITE,
        "readQueueNums": queues,
        "topicFilterType": "SINGLE_TAG",
        "topicName": topic,
        "topicSysFlag": 0,
        "writeQueueNums": queues,
    }
