"""Topics of a store, by everything but its records."""

from __future__ import annotations

from typing import TYPE_CHECKING

from formats.system_topics import CHECK_MAX_TOPIC, HALF_TOPIC, OP_HALF_TOPIC, TIMER_TOPIC
from formats.tags_code import SCHEDULE_TOPIC
from formats.trace_context import TRACE_TOPIC
from rmqtool.store.kinds import FileKind
from rmqtool.store.rocksdb import queues_only_in_rocksdb

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rmqtool.store.layout import Store

_QUEUE_KINDS = ("consumequeue", "batchconsumequeue")

SYSTEM_TOPICS = (
    SCHEDULE_TOPIC,
    HALF_TOPIC,
    OP_HALF_TOPIC,
    TRACE_TOPIC,
    CHECK_MAX_TOPIC,
    TIMER_TOPIC,
)
"""topics that records may be in although neither queues nor settings name them"""


def known_topics(store: Store) -> list[str]:
    """Topics with a queue directory or an entry in topics.json, and the broker's own, sorted.

    A directory names its topic also where it cannot be listed, or is a link that leads nowhere.
    """
    named = {queue.topic for kind in _QUEUE_KINDS for queue in store.queues(kind)}
    for path in _unseen(store):
        kind, _, rest = path.partition("/")
        if kind in _QUEUE_KINDS:
            named.add(rest.partition("/")[0])
    return sorted({*(topic for topic in named if topic), *store.topics, *SYSTEM_TOPICS})


def names_all_topics(store: Store) -> bool:
    """Whether queues and topics.json were seen, so that every topic with either is known."""
    if queues_only_in_rocksdb(store):
        return False
    return bool(store.queues() or store.topics) and set(_unseen(store)).isdisjoint(_QUEUE_KINDS)


def _unseen(store: Store) -> Iterator[str]:
    """Paths of directories that could not be listed, and of links to disks that are not mounted."""
    yield from (one.path for one in store.directories if one.error is not None)
    yield from (one.path for one in store.of_kind(FileKind.UNKNOWN) if not one.regular)
