"""How far consumer groups are: `ConsumerOffsetManager`, in `consumerOffset.json`."""

from __future__ import annotations

import copy
import threading
from typing import TYPE_CHECKING, Any

from formats.java import java_parse_int
from rmqtool.errors import UsageError
from rmqtool.messagestore.services.tables import Table
from rmqtool.query.groups import CommittedOffset
from rmqtool.scan.multi import LMQ_PREFIX
from rmqtool.store.consumer_offsets import LIGHT_OFFSETS, offsets_file, stored_offsets
from rmqtool.store.kinds import BROADCAST_FILE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rmqtool.messagestore.services.engine import Engine

_LONG = 1 << 63
_MEMBERS = "broadcastMembers"


class Progress:
    """The next queue offset of each group in each queue; any thread may ask and commit."""

    def __init__(self, engine: Engine) -> None:
        self._guard = threading.Lock()
        self._offsets: dict[tuple[str, str], dict[int, int]] = {}
        for one in stored_offsets(engine.stored):
            self._offsets.setdefault((one.topic, one.group), {})[one.queue_id] = one.offset
        name = offsets_file(engine.stored)
        self._light, self._of_5 = name == LIGHT_OFFSETS, engine.of_5
        self._table = Table(engine, name, self._document, versioned=engine.of_5)

    def query(self, group: str, topic: str, queue_id: int) -> int | None:
        """What the group has committed in a queue, None where it has not (`#queryOffset`)."""
        return self._offsets.get((topic, group), {}).get(queue_id)

    def commit(self, group: str, topic: str, queue_id: int, offset: int) -> None:
        """The group goes on at `offset`, also where that is further back (`#commitOffset`).

        Raises `UsageError` for what is not an offset, or not a name.
        """
        if not 0 <= offset < _LONG or not 0 <= queue_id < 1 << 31:
            raise UsageError(f"offset {offset} of queue {queue_id} cannot be committed")
        if not topic or not group or "@" in topic:
            raise UsageError(f"group '{group}' cannot commit offsets of topic '{topic}'")
        with self._guard:
            self._offsets.setdefault((topic, group), {})[queue_id] = offset
            self._table.touch()

    def all(self) -> list[CommittedOffset]:
        """Everything that was committed, sorted."""
        with self._guard:
            found = [
                CommittedOffset(topic, group, queue_id, offset)
                for (topic, group), queues in self._offsets.items()
                for queue_id, offset in queues.items()
            ]
        return sorted(found, key=lambda one: (one.topic, one.group, one.queue_id))

    def forget(self, group: str) -> None:
        """A group that is gone has no offsets (`#removeOffset`)."""
        with self._guard:
            for key in [one for one in self._offsets if one[1] == group]:
                del self._offsets[key]
                self._table.touch()

    @property
    def changed(self) -> bool:
        """Something was committed since the table was written."""
        return self._table.changed

    def save(self) -> None:
        """Writes the table, if it has changed. Raises `StoreIOError`."""
        self._table.save()

    def _document(self) -> dict[str, Any]:
        with self._guard:
            table = {f"{topic}@{group}": dict(one) for (topic, group), one in self._offsets.items()}
            groups: dict[str, list[str]] = {}
            for topic, group in self._offsets:
                groups.setdefault(group, []).append(topic)
        made: dict[str, Any] = {"groupTopicMap": groups} if self._of_5 else {}
        if self._light:
            light = {
                key: table.pop(key) for key in list(table) if key.split("@", 1)[1].startswith(LMQ_PREFIX)
            }
            made["lmqOffsetTable"] = {key: one[0] for key, one in light.items() if 0 in one}
        return {**made, "offsetTable": table}


class BroadcastProgress:
    """How far the members of broadcasts are, each by itself, in a table of our own.

    Clients keep that in a file beside them (`LocalFileOffsetStore`); these members live with the store.
    """

    def __init__(self, engine: Engine) -> None:
        self._guard = threading.Lock()
        self._table = Table(engine, BROADCAST_FILE, self._document, versioned=False)
        self._offsets: dict[str, dict[str, dict[str, dict[int, int]]]] = {}
        """by group, member, topic and queue"""
        for group, member, topic, number, offset in _entries(self._table.loaded.get(_MEMBERS)):
            queue_id = java_parse_int(number)
            if queue_id is not None and type(offset) is int and 0 <= offset < _LONG:
                self._of(group, member, topic)[queue_id] = offset

    def _of(self, group: str, member: str, topic: str) -> dict[int, int]:
        return self._offsets.setdefault(group, {}).setdefault(member, {}).setdefault(topic, {})

    def query(self, group: str, member: str, topic: str, queue_id: int) -> int | None:
        """Where a member goes on in a queue, None where it has committed nothing."""
        return self._offsets.get(group, {}).get(member, {}).get(topic, {}).get(queue_id)

    def commit(self, group: str, member: str, topic: str, queue_id: int, offset: int) -> None:
        """A member goes on at `offset`."""
        with self._guard:
            self._of(group, member, topic)[queue_id] = offset
            self._table.touch()

    def save(self) -> None:
        """Writes the table, if it has changed. Raises `StoreIOError`."""
        self._table.save()

    def _document(self) -> dict[str, Any]:
        with self._guard:
            return {_MEMBERS: copy.deepcopy(self._offsets)}


def _entries(data: Any) -> Iterator[tuple[str, str, str, str, Any]]:
    """Leaves of a table of four levels, by their names."""
    for group, members in _items(data):
        for member, topics in _items(members):
            for topic, queues in _items(topics):
                for number, offset in _items(queues):
                    yield group, member, topic, number, offset


def _items(data: Any) -> Iterator[tuple[str, Any]]:
    for name, one in data.items() if isinstance(data, dict) else ():
        yield str(name), one
