"""Columns of the tables of incident commands, by the keys of their rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rmqtool.output.tablerows import Column

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rmqtool.output.times import Zone

_TITLES = {
    "queue_id": "queue",
    "queue_offset": "q.offset",
    "physical_offset": "place",
    "min_offset": "min",
    "max_offset": "max",
    "next_timestamp": "next message",
    "deliver_timestamp": "due",
    "store_timestamp": "stored",
    "reconsume_times": "times",
    "entries_lost": "lost",
}
_NUMBERS = frozenset(
    {
        "queue_id", "queue_offset", "physical_offset", "offset", "min_offset", "max_offset", "lag", "level",
        "a", "b", "ahead", "checks", "reconsume_times", "entries_lost", "from", "to", "messages",
    }
)  # fmt: skip
_SHRINKING = frozenset(
    {
        "group", "topic", "keys", "uniq_key", "origin_topic", "origin_msg_id", "transaction_id", "path",
        "client", "queue_ids", "consumed_by", "not_consumed_by", "detail",
    }
)  # fmt: skip


def columns(keys: Sequence[str], zone: Zone) -> list[Column]:
    """A column for each key: numbers to the right, times in the zone, names cut where it is narrow."""
    return [
        Column(
            key,
            _TITLES.get(key),
            right=key in _NUMBERS,
            show=zone.iso if key.endswith("_timestamp") else _age if key.endswith("_ms") else None,
            shrinks=key in _SHRINKING,
        )
        for key in keys
    ]


def _age(millis: int) -> str:
    """A span of time in its two largest units."""
    sign, seconds = ("-" if millis < 0 else ""), abs(millis) // 1000
    for unit, small, size in (("d", "h", 86400), ("h", "m", 3600), ("m", "s", 60)):
        if seconds >= size:
            whole, rest = divmod(seconds, size)
            return f"{sign}{whole}{unit}{rest * {86400: 24, 3600: 60, 60: 60}[size] // size:02}{small}"
    return f"{sign}{seconds}s"
