"""Columns of the tables of incident commands, by the keys of their rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rmqtool.output.tablerows import Column
from rmqtool.output.times import age

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
    "overdue_ms": "overdue",
    "age_ms": "age",
}
_NUMBERS = frozenset(
    {
        "queue_id", "queue_offset", "physical_offset", "offset", "min_offset", "max_offset", "lag", "level",
        "a", "b", "ahead", "checks", "reconsume_times", "entries_lost", "from", "to", "messages",
    }
)  # fmt: skip
_SHRINKING = frozenset(
    {
        "group", "topic", "keys", "uniq_key", "origin_topic", "origin_msg_id", "transaction_id", "client",
        "queue_ids", "consumed_by", "not_consumed_by",
    }
)  # fmt: skip


_GIVES = {
    "kind": 9, "uniq_key": 7, "keys": 6, "origin_msg_id": 5, "queue_offset": 4, "entries": 3,
    "physical_offset": 2, "next_timestamp": 1, "ahead": 1,
}  # fmt: skip
"""what is left out where a terminal is narrow, the highest number first"""


def columns(keys: Sequence[str], zone: Zone) -> list[Column]:
    """A column for each key: numbers to the right, times in the zone, names cut where it is narrow."""
    return [
        Column(
            key,
            _TITLES.get(key),
            right=key in _NUMBERS,
            show=age if key.endswith("_ms") else _yes if key == "consumed" else None,
            below=key == "detail",
            shrinks=key in _SHRINKING,
            gives=_GIVES.get(key, 0),
            zone=zone if key.endswith("_timestamp") else None,
        )
        for key in keys
    ]


def _yes(value: bool) -> str:
    return "yes" if value else "no"
