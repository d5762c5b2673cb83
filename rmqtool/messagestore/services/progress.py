"""How far consumer groups are: `ConsumerOffsetManager`, in `consumerOffset.json`."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from rmqtool.errors import UsageError
from rmqtool.messagestore.services.tables import Table
from rmqtool.query.groups import CommittedOffset
from rmqtool.scan.multi import LMQ_PREFIX
from rmqtool.store.consumer_offsets import LIGHT_OFFSETS, offsets_file, stored_offsets

if TYPE_CHECKING:
    from rmqtool.messagestore.services.engine import Engine

_LONG = 1 << 63


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

        Raises `UsageError` for what is no offset or no name.
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
