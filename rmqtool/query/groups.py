"""What a store knows about consumer groups: committed offsets, settings, stored SQL92 filters.

`SubscriptionGroupManager`, `ConsumerFilterManager`; offsets: `store.consumer_offsets`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from rmqtool.query.subscription import FilterType, Subscription
from rmqtool.store.consumer_offsets import stored_offsets

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rmqtool.store.layout import Store


@dataclass(frozen=True, slots=True)
class CommittedOffset:
    """Where a group goes on in a queue: the next queue offset that it will ask for."""

    topic: str
    group: str
    queue_id: int
    offset: int


@dataclass(frozen=True, slots=True)
class GroupConfig:
    """Settings of a group, one entry of `subscriptionGroup.json` (`SubscriptionGroupConfig`).

    retry_max_times: how often a message is given back before it goes to the dead letters. further: what else
    the entry holds, under the broker's names.
    """

    name: str
    consume_enable: bool = True
    consume_broadcast_enable: bool = True
    retry_max_times: int = 16
    retry_queue_nums: int = 1
    further: Mapping[str, Any] = field(default_factory=dict)


GROUP_KEYS = {
    "groupName": "name",
    "consumeEnable": "consume_enable",
    "consumeBroadcastEnable": "consume_broadcast_enable",
    "retryMaxTimes": "retry_max_times",
    "retryQueueNums": "retry_queue_nums",
}
"""names in the file of what `GroupConfig` has by itself"""


def group_configs(store: Store) -> dict[str, GroupConfig]:
    """Settings of all groups that a broker would load, by name; a value of another type is the default."""
    table = _table(store.config_pair("subscriptionGroup.json").data, "subscriptionGroupTable")
    return {name: _group_of(name, entry) for name, entry in table.items() if isinstance(entry, dict)}


def _group_of(name: str, entry: dict[str, Any]) -> GroupConfig:
    default = GroupConfig(name)
    known = {own: entry[key] for key, own in GROUP_KEYS.items() if key in entry}
    fitting = {own: one for own, one in known.items() if type(one) is type(getattr(default, own))}
    rest = {key: one for key, one in entry.items() if key not in GROUP_KEYS}
    return GroupConfig(**{**fitting, "name": name, "further": rest})


def committed_offsets(store: Store) -> list[CommittedOffset]:
    """All offsets that a broker would load, sorted."""
    found = [CommittedOffset(one.topic, one.group, one.queue_id, one.offset) for one in stored_offsets(store)]
    return sorted(found, key=lambda one: (one.topic, one.group, one.queue_id))


def committed_offset(store: Store, group: str, topic: str, queue_id: int) -> int | None:
    """The offset of one group in one queue, None without one."""
    wanted = (group, topic, queue_id)
    matches = (one for one in committed_offsets(store) if (one.group, one.topic, one.queue_id) == wanted)
    return next((one.offset for one in matches), None)


def unconsumed_queues(store: Store, topic: str, queues: Mapping[int, tuple[int, int]]) -> list[int]:
    """Numbers of the queues with messages that a group of the topic has in front of it, or nobody consumed.

    queues: min and max offset by number.
    """
    committed = [one for one in stored_offsets(store) if one.topic == topic]
    groups = {one.group for one in committed}
    reached = {(one.group, one.queue_id): one.offset for one in committed}
    return sorted(
        number
        for number, (low, high) in queues.items()
        if low < high and (not groups or any(reached.get((group, number), low) < high for group in groups))
    )


def may_consume(store: Store, group: str) -> bool | None:
    """`consumeEnable` of the group, None where no settings of it are stored (the broker may make them)."""
    found = group_configs(store).get(group)
    return None if found is None else found.consume_enable


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
