"""Our own table of the topics in memory, `config/rmqtool-memory.json`: which they are, where queues go on.

Brokers drop what `topics.json` says of memory when they write it, and leave this file alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from formats.java import java_parse_int
from rmqtool.store.config_json import MEMORY_TABLE
from rmqtool.store.consumer_offsets import stored_offsets
from rmqtool.store.kinds import MEMORY_FILE

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from rmqtool.broker.start import AnyQueue, Key
    from rmqtool.messagestore.state_files import StateFiles
    from rmqtool.store.layout import Store

_MOST = 1 << 62
"""offsets that are believed are below it"""


class MemoryTable:
    """stored: the files as they were when the store was opened. queues: those of the log."""

    def __init__(self, stored: Store, files: StateFiles, queues: Mapping[Key, AnyQueue]) -> None:
        self._stored, self._files, self._queues = stored, files, queues
        self._offsets = _offsets(stored.config_pair(MEMORY_FILE).data)

    def begin(self, topic: str) -> dict[int, int]:
        """Offsets at which the queues of a topic go on, by number.

        Behind what it had when the store was closed, what groups have committed, and what it has in the log:
        no message gets an offset that a group is behind already.
        """
        found = dict(self._offsets.get(topic, {}))
        ends = [(key[1], one.max_offset) for key, one in self._queues.items() if key[0] == topic]
        ends += [(one.queue_id, one.offset) for one in stored_offsets(self._stored) if one.topic == topic]
        for number, offset in ends:
            if 0 <= offset < _MOST:
                found[number] = max(found.get(number, 0), offset)
        return found

    def save(self, topics: Iterable[str], offsets: Mapping[str, Mapping[int, int]] | None = None) -> None:
        """Writes it: which topics are in memory, and where those of `offsets` are. Raises `StoreIOError`."""
        wanted = sorted(topics)
        if not wanted and not self._offsets and not self._stored.config_pair(MEMORY_FILE).data:
            return
        known = {**self._offsets, **(offsets or {})}
        self._offsets = {name: dict(known.get(name, {})) for name in wanted}
        self._files.table(MEMORY_FILE, {MEMORY_TABLE: self._offsets})


def _offsets(data: object) -> dict[str, dict[int, int]]:
    table = data.get(MEMORY_TABLE) if isinstance(data, dict) else None
    found: dict[str, dict[int, int]] = {}
    for name, queues in table.items() if isinstance(table, dict) else ():
        found[name] = {}
        for key, offset in queues.items() if isinstance(queues, dict) else ():
            number = java_parse_int(str(key))
            if number is not None and number >= 0 and type(offset) is int and 0 <= offset < _MOST:
                found[name][number] = offset
    return found
