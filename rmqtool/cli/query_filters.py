"""The shared filters that mean something to each of the queries by key, id, offset and time."""

from __future__ import annotations

from dataclasses import dataclass

from rmqtool.cli.filters import (
    ContentFilters,
    KeyFilter,
    KeyFilters,
    KeylessFilters,
    PlaceFilters,
    RangeFilters,
    TagFilter,
)


@dataclass(frozen=True)
class KeyQueryFilters(KeylessFilters):
    """For messages that have a key: everything but the key itself."""


@dataclass(frozen=True)
class IdQueryFilters(PlaceFilters):
    """For messages with one id: what tells those of a batch, or a message and its copies, apart."""

    tag: TagFilter = None
    key: KeyFilter = None


@dataclass(frozen=True)
class TimeQueryFilters(KeyFilters, ContentFilters):
    """For the first message of a queue from a point in time on that passes."""


@dataclass(frozen=True)
class QueueQueryFilters(TimeQueryFilters, RangeFilters):
    """For messages of one queue from an offset on."""
