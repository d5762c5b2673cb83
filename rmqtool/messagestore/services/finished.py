"""Halves that were committed when a store was killed in front of their op messages, as its log tells.

Later releases write op messages every three seconds: a broker asks about these halves again, and commits them
twice if it is told to. A committed message names the physical offset of its half.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from formats import properties as props
from formats.commitlog import SysFlag
from formats.java import java_parse_int
from formats.tags_code import SCHEDULE_TOPIC
from rmqtool.messagestore.services.copying import real_place
from rmqtool.messagestore.services.since import messages_since

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rmqtool.messagestore.messages import StoredMessage
    from rmqtool.messagestore.services.engine import Engine

_TRANSACTION, _COMMIT = int(SysFlag.TRANSACTION_MASK), int(SysFlag.COMMIT)


def committed_halves(engine: Engine, halves: Iterable[StoredMessage], most_level: int) -> set[int]:
    """Physical offsets of the halves whose messages are in their topics. Raises `StoreIOError`."""
    since: dict[tuple[str, int], int] = {}
    wanted: set[int] = set()
    for half in halves:
        wanted.add(half.physical_offset)
        place = real_place(half.properties)
        level = java_parse_int(half.properties.get(props.DELAY, "")) or 0
        if level > 0:
            place = SCHEDULE_TOPIC, min(level, most_level) - 1
        if place is not None:
            since[place] = min(since.get(place, half.store_timestamp), half.store_timestamp)
    return {
        one.header["prepared_transaction_offset"]
        for place, begin in since.items()
        for one in messages_since(engine, place, begin)
        if one.sys_flag & _TRANSACTION == _COMMIT
    } & wanted
