"""Messages of a queue from a point in time on: what services had stored before a crash."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rmqtool.messagestore.messages import StoredMessage
    from rmqtool.messagestore.services.engine import Engine

_AT_ONCE = 1024


def messages_since(engine: Engine, place: tuple[str, int], timestamp: int) -> Iterator[StoredMessage]:
    """Messages of a queue stored at `timestamp` (ms) or later; store times grow with the queue.

    Raises `StoreIOError`, `UnreadableError`.
    """
    low, end = engine.offsets(*place)
    high = end
    while low < high:
        middle = (low + high) // 2
        units = engine.units(*place, middle, 1)
        (found,) = [None] if units is None else engine.records(units.physical_offsets[:1].tolist())
        if found is not None and found.store_timestamp >= timestamp:
            high = middle
        else:
            low = middle + 1
    while low < end:
        units = engine.units(*place, low, _AT_ONCE)
        if units is None:
            return
        for one in engine.records(units.physical_offsets.tolist()):
            if one is not None:
                yield one
        low = units.first + len(units.codes)
