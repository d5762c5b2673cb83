"""The tags code of a record, as its consume-queue unit holds it: a hash, or the time of delivery.

docs/format/consumequeue.md; `CommitLog#checkMessageAndReturnSize`,
`MessageExtBrokerInner#tagsString2tagsCode`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from formats.errors import FormatError
from formats.java import java_hash, java_parse_int, to_i64
from formats.properties import DELAY, TAGS

if TYPE_CHECKING:
    from collections.abc import Mapping

SCHEDULE_TOPIC = "SCHEDULE_TOPIC_XXXX"
DEFAULT_DELAY_LEVELS = "1s 5s 10s 30s 1m 2m 3m 4m 5m 6m 7m 8m 9m 10m 20m 30m 1h 2h"
_UNITS_MS = {"s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_UNKNOWN_LEVEL_MS = 1000


def parse_delay_levels(text: str = DEFAULT_DELAY_LEVELS) -> dict[int, int]:
    """The setting `messageDelayLevel` as level (from 1) -> delay in ms."""
    levels: dict[int, int] = {}
    for level, part in enumerate(text.split(" "), start=1):
        unit, number = _UNITS_MS.get(part[-1:]), java_parse_int(part[:-1], 64)
        if unit is None or number is None:
            raise FormatError(f"{part!r} is not a delay such as 10s or 2h", f"messageDelayLevel.{level}")
        levels[level] = to_i64(number * unit)
    return levels


_DEFAULT_LEVELS = parse_delay_levels()


def tags_hash(tags: str | None) -> int:
    """The hash of a `TAGS` value as a signed 64-bit number; 0 without tags. The whole value is one tag."""
    return java_hash(tags) if tags else 0


def delay_level(value: str, max_level: int) -> int:
    """The level in a `DELAY` value, not above `max_level`; FormatError where Java's parser refuses it."""
    level = java_parse_int(value)
    if level is None:
        raise FormatError(f"{value!r} is not a 32-bit number", DELAY)
    return min(level, max_level)


def deliver_time(level: int, store_timestamp: int, levels: Mapping[int, int] | None = None) -> int:
    """When a delayed message is due, in ms; a level that is not configured counts as one second."""
    table = _DEFAULT_LEVELS if levels is None else levels
    return to_i64(store_timestamp + table.get(level, _UNKNOWN_LEVEL_MS))


def tags_code_of(
    topic: str, properties: Mapping[str, str], store_timestamp: int, levels: Mapping[int, int] | None = None
) -> int:
    """The tags code that dispatch computes for a record.

    For the schedule topic with a `DELAY` above 0 it is the time of delivery, else the hash of `TAGS`. Raises
    FormatError where dispatch takes the record for broken, because `DELAY` is not a number. `levels` are the
    broker's delays (`parse_delay_levels`), the defaults when not given.
    """
    delay = properties.get(DELAY)
    if topic == SCHEDULE_TOPIC and delay is not None:
        table = _DEFAULT_LEVELS if levels is None else levels
        level = delay_level(delay, max(table, default=0))
        if level > 0:
            return deliver_time(level, store_timestamp, table)
    return tags_hash(properties.get(TAGS))
