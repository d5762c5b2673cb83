"""Filters of a query → what lets segments be skipped and records be passed over undecoded.

Everything taken here is looked at once more by Spark, so it may keep too much but never too little.
"""

from __future__ import annotations

import math
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rmqtool.query.message_filter import MessageFilter

_BOUNDS = {
    "store_timestamp": ("store_from", "store_to"),
    "store_time": ("store_from", "store_to"),
    "born_timestamp": ("born_from", "born_to"),
    "born_time": ("born_from", "born_to"),
    "physical_offset": ("offset_from", "offset_to"),
    "queue_offset": ("queue_offset_from", "queue_offset_to"),
}
"""column → first and last bound (half-open) in a `MessageFilter`"""
_SETS = {"tags": "tags", "uniq_key": "uniq_keys", "queue_id": "queues", "topic": "topics"}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def narrowed(wanted: MessageFilter, filters: Iterable[Any]) -> MessageFilter:
    """The filter and these filters of Spark, all of them, as far as they are about columns known here."""
    for one in filters:
        name = ".".join(getattr(one, "attribute", ()))
        kind, value = type(one).__name__, getattr(one, "value", None)
        if kind == "EqualTo" and name in _SETS:
            wanted = _among(wanted, _SETS[name], [value])
        elif kind == "In" and name in _SETS:
            wanted = _among(wanted, _SETS[name], list(value or ()))
        elif name in _BOUNDS:
            wanted = _bounded(wanted, _BOUNDS[name], kind, value)
    return wanted


def _among(wanted: MessageFilter, field: str, values: Sequence[Any]) -> MessageFilter:
    if getattr(wanted, field) or not values or any(value is None for value in values):
        return wanted
    if field == "topics":
        return replace(wanted, topics=tuple(_literal(value) for value in values))
    kept: dict[str, Any] = {field: frozenset(values)}
    return replace(wanted, **kept)


def _literal(topic: str) -> str:
    """A pattern that only this topic matches."""
    return "".join(f"[{letter}]" if letter in "*?[" else letter for letter in topic)


def _bounded(wanted: MessageFilter, bounds: tuple[str, str], kind: str, value: Any) -> MessageFilter:
    number = _number(value)
    if number is None:
        return wanted
    low, high = bounds
    changed: dict[str, int] = {}
    if kind in {"EqualTo", "GreaterThan", "GreaterThanOrEqual"}:
        known = getattr(wanted, low)
        changed[low] = math.floor(number) if known is None else max(known, math.floor(number))
    if kind in {"EqualTo", "LessThan", "LessThanOrEqual"}:
        known = getattr(wanted, high)
        changed[high] = math.ceil(number) + 1 if known is None else min(known, math.ceil(number) + 1)
    return replace(wanted, **changed)  # type: ignore[arg-type] # names and types of the table above


def _number(value: Any) -> float | int | None:
    """A bound as it counts here, times in epoch milliseconds."""
    if isinstance(value, datetime):
        zoned = value if value.tzinfo is not None else value.replace(tzinfo=UTC)
        passed = zoned - _EPOCH
        return (passed.days * 86_400 + passed.seconds) * 1000 + passed.microseconds / 1000
    return value if isinstance(value, int) and not isinstance(value, bool) else None
