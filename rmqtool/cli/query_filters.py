"""The shared filters that mean something to each of the queries by key, id, offset and time."""

from __future__ import annotations

from dataclasses import dataclass

from rmqtool.cli.filters import (
    BodyFilter,
    BornFromFilter,
    BornToFilter,
    Filters,
    FromFilter,
    KeyFilter,
    OffsetRange,
    PropertyFilter,
    QueueFilter,
    QueueOffsetRange,
    TagFilter,
    ToFilter,
    TopicFilter,
    UniqKeyFilter,
)


@dataclass(frozen=True)
class KeyQueryFilters(Filters):
    """For messages that have a key: everything but the key itself."""

    topic: TopicFilter = None
    queue: QueueFilter = None
    store_from: FromFilter = None
    store_to: ToFilter = None
    born_from: BornFromFilter = None
    born_to: BornToFilter = None
    offset_range: OffsetRange = None
    queue_offset_range: QueueOffsetRange = None
    tag: TagFilter = None
    property: PropertyFilter = None
    body_contains: BodyFilter = None


@dataclass(frozen=True)
class IdQueryFilters(Filters):
    """For messages with one id: what tells those of a batch, or a message and its copies, apart."""

    topic: TopicFilter = None
    queue: QueueFilter = None
    tag: TagFilter = None
    key: KeyFilter = None


@dataclass(frozen=True)
class QueueQueryFilters(Filters):
    """For messages of one queue from an offset on."""

    store_from: FromFilter = None
    store_to: ToFilter = None
    born_from: BornFromFilter = None
    born_to: BornToFilter = None
    offset_range: OffsetRange = None
    tag: TagFilter = None
    key: KeyFilter = None
    uniq_key: UniqKeyFilter = None
    property: PropertyFilter = None
    body_contains: BodyFilter = None


@dataclass(frozen=True)
class TimeQueryFilters(Filters):
    """For the first message of a queue from a point in time on that passes."""

    tag: TagFilter = None
    key: KeyFilter = None
    uniq_key: UniqKeyFilter = None
    property: PropertyFilter = None
    body_contains: BodyFilter = None
