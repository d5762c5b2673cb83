"""Where consumer groups go on, as stored: `ConsumerOffsetManager`, `LmqConsumerOffsetManager`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from formats.java import java_parse_int

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rmqtool.store.layout import Store

_OFFSETS, _LMQ_OFFSETS = "consumerOffset.json", "lmqConsumerOffset.json"


@dataclass(frozen=True, slots=True)
class StoredOffset:
    """One entry, as it stands there. queue_id: -1 for what is no number. offset: the next queue offset."""

    topic: str
    group: str
    queue_id: int
    offset: Any


def offsets_file(store: Store) -> str:
    """Name of the file in `config/` that a broker loads and writes.

    With `enableLmq` (4.9.3) it has another one, and never looks into that of brokers without. Where the
    setting is not given, the file itself tells that it was on.
    """
    if store.config is not None and store.config.is_set("enable_lmq"):
        return _LMQ_OFFSETS if store.config.enable_lmq else _OFFSETS
    there = (store.file(f"config/{_LMQ_OFFSETS}{end}") for end in ("", ".bak"))
    return _LMQ_OFFSETS if any(there) else _OFFSETS


def stored_offsets(store: Store) -> Iterator[StoredOffset]:
    """All entries of that file, or of its .bak where a broker falls back to it.

    With `enableLmq` light groups have a table of their own, and one queue, 0, in each topic.
    """
    name = offsets_file(store)
    data = store.config_pair(name).data
    for key, queues in _table(data, "offsetTable"):
        topic, _, group = key.partition("@")
        if isinstance(queues, dict):
            for number, offset in queues.items():
                queue_id = java_parse_int(str(number))
                yield StoredOffset(topic, group, -1 if queue_id is None else queue_id, offset)
        else:
            yield StoredOffset(topic, group, 0, queues)
    if name == _LMQ_OFFSETS:
        for key, offset in _table(data, "lmqOffsetTable"):
            topic, _, group = key.partition("@")
            yield StoredOffset(topic, group, 0, offset)


def _table(data: Any, name: str) -> Iterator[tuple[str, Any]]:
    found = data.get(name) if isinstance(data, dict) else None
    for key, value in found.items() if isinstance(found, dict) else ():
        yield str(key), value
