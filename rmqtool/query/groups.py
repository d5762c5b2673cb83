"""What a store knows about consumer groups: committed offsets, settings, stored SQL92 filters.

`ConsumerOffsetManager`, `SubscriptionGroupManager`, `ConsumerFilterManager`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from formats.java import java_parse_int
from rmqtool.query.subscription import FilterType, Subscription

if TYPE_CHECKING:
    from rmqtool.store.layout import Store

_OFFSETS = ("consumerOffset.json", "lmqConsumerOffset.json")


@dataclass(frozen=True, slots=True)
class CommittedOffset:
    """Where a group goes on in a queue: the next queue offset that it will ask for."""

    topic: str
    group: str
    queue_id: int
    offset: int


def committed_offsets(store: Store) -> list[CommittedOffset]:
    """All offsets in consumerOffset.json (or its .bak, as a broker falls back), sorted; no odd entries."""
    found: list[CommittedOffset] = []
    for name in _OFFSETS:
        table = _table(store.config_pair(name).data, "offsetTable")
        for key, queues in table.items():
            topic, separator, group = key.rpartition("@")
            if not separator or not isinstance(queues, dict):
                continue
            for number, offset in queues.items():
                queue_id = java_parse_int(str(number))
                if queue_id is not None and isinstance(offset, int) and not isinstance(offset, bool):
                    found.append(CommittedOffset(topic, group, queue_id, offset))
    return sorted(found, key=lambda one: (one.topic, one.group, one.queue_id))


def committed_offset(store: Store, group: str, topic: str, queue_id: int) -> int | None:
    """The offset of one group in one queue, None without one."""
    wanted = (group, topic, queue_id)
    matches = (one for one in committed_offsets(store) if (one.group, one.topic, one.queue_id) == wanted)
    return next((one.offset for one in matches), None)


def may_consume(store: Store, group: str) -> bool | None:
    """`consumeEnable` of the group, None where no settings of it are stored (the broker may make them)."""
    table = _table(store.config_pair("subscriptionGroup.json").data, "subscriptionGroupTable")
    entry = table.get(group)
    return bool(entry.get("consumeEnable", True)) if isinstance(entry, dict) else None


def stored_filter(store: Store, group: str, topic: str) -> Subscription | None:
    """The SQL92 expression that the group subscribed with, where the broker keeps it; never a tag list."""
    by_topic = _table(store.config_pair("consumerFilter.json").data, "filterDataByTopic").get(topic)
    entry = _table(by_topic, "groupFilterData").get(group)
    if not isinstance(entry, dict) or entry.get("expressionType") != FilterType.SQL92:
        return None
    expression = entry.get("expression")
    return Subscription.of(expression, FilterType.SQL92) if isinstance(expression, str) else None


def _table(data: Any, name: str) -> dict[str, Any]:
    found = data.get(name) if isinstance(data, dict) else None
    return found if isinstance(found, dict) else {}
