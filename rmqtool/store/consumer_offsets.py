"""Where consumer groups go on, as stored: `ConsumerOffsetManager`, `LmqConsumerOffsetManager`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from formats.java import java_parse_int
from rmqtool.store.config_types import number_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rmqtool.store.layout import Store

OFFSETS, LIGHT_OFFSETS = "consumerOffset.json", "lmqConsumerOffset.json"
DELAY_OFFSETS = "delayOffset.json"


@dataclass(frozen=True, slots=True)
class StoredOffset:
    """One entry. offset: the next queue offset, as a broker reads what is `stored`."""

    topic: str
    group: str
    queue_id: int
    offset: int
    stored: Any
    light: bool = False
    """of `lmqOffsetTable`, whose groups have one queue in each topic"""


def offsets_file(store: Store) -> str:
    """Name of the file in `config/` that a broker loads and writes.

    With `enableLmq` (4.9.3) it has another one, and never looks into that of brokers without. Where the
    setting is not given, the file itself tells that it was on.
    """
    if store.config is not None and store.config.is_set("enable_lmq"):
        return LIGHT_OFFSETS if store.config.enable_lmq else OFFSETS
    there = (store.file(f"config/{LIGHT_OFFSETS}{end}") for end in ("", ".bak"))
    return LIGHT_OFFSETS if any(there) else OFFSETS


def other_offsets_file(store: Store) -> str | None:
    """The file that a broker does not read by its settings, where the one that it reads is not there."""
    own = offsets_file(store)
    if any(store.file(f"config/{own}{end}") is not None for end in ("", ".bak")):
        return None
    return OFFSETS if own == LIGHT_OFFSETS else LIGHT_OFFSETS


def stored_offsets(store: Store) -> Iterator[StoredOffset]:
    """All entries of that file, or of its .bak where a broker falls back to it.

    With `enableLmq` light groups have a table of their own, and one queue, 0, in each topic.
    """
    name = offsets_file(store)
    yield from offsets_in(store.config_pair(name).data, light=name == LIGHT_OFFSETS)


def offsets_in(data: Any, *, light: bool) -> Iterator[StoredOffset]:
    """All entries of the table that was parsed. light: it is `lmqConsumerOffset.json`."""
    for key, queues in _table(data, "offsetTable"):
        for number, stored in queues.items() if isinstance(queues, dict) else ():
            yield from _entry(key, number, stored)
    if light:
        for key, stored in _table(data, "lmqOffsetTable"):
            yield from (replace(one, light=True) for one in _entry(key, "0", stored))


def stored_delay_offsets(store: Store) -> Iterator[tuple[int, int, Any]]:
    """(delay level, next queue offset, as stored) of `delayOffset.json`."""
    yield from delay_offsets_in(store.config_pair(DELAY_OFFSETS).data)


def delay_offsets_in(data: Any) -> Iterator[tuple[int, int, Any]]:
    """The same of a table that was parsed."""
    for level, stored in _table(data, "offsetTable"):
        number, offset = java_parse_int(level), number_of(stored)
        if number is not None and offset is not None:
            yield number, offset, stored


def _entry(key: str, number: str, stored: Any) -> Iterator[StoredOffset]:
    topic, _, group = key.partition("@")
    queue_id, offset = java_parse_int(number), number_of(stored)
    if queue_id is not None and offset is not None:  # `config_types` gives no table with others
        yield StoredOffset(topic, group, queue_id, offset, stored)


def _table(data: Any, name: str) -> Iterator[tuple[str, Any]]:
    found = data.get(name) if isinstance(data, dict) else None
    yield from found.items() if isinstance(found, dict) else ()
