"""Messages that consumers gave back, and those that were given back too often."""

from __future__ import annotations

from array import array
from collections import Counter
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from formats.properties import DLQ_ORIGIN_MESSAGE_ID, DLQ_ORIGIN_TOPIC, ORIGIN_MESSAGE_ID, RETRY_TOPIC
from formats.system_topics import DLQ_PREFIX, RETRY_PREFIX
from rmqtool.query.groups import committed_offsets
from rmqtool.query.views.topic_records import property_of, records_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import numpy.typing as npt

    from rmqtool.scan.options import ReadOptions
    from rmqtool.store.layout import Store

Row = dict[str, Any]

PREFIXES = {"retry": RETRY_PREFIX, "dlq": DLQ_PREFIX}
ORIGINS = {"retry": (RETRY_TOPIC,), "dlq": (DLQ_ORIGIN_TOPIC, RETRY_TOPIC)}
"""properties that say where a message came from; the first that is there counts"""
_COLUMNS = (
    "physical_offset", "topic", "queue_id", "queue_offset", "store_timestamp", "born_timestamp",
    "reconsume_times", "uniq_key", "keys", "properties",
)  # fmt: skip


def returned_topics(kind: str, groups: Sequence[str]) -> tuple[str, ...]:
    """Globs of the topics of these groups, themselves globs; of all without any. kind: `retry` or `dlq`."""
    return tuple(PREFIXES[kind] + one for one in groups or ("*",))


@dataclass
class Returned:
    """Of one kind, in order of the log. left: rows of `not_covered`."""

    store: Store
    reading: ReadOptions
    kind: str
    groups: tuple[str, ...] = ()
    left: list[Row] = field(default_factory=list)
    by_group: Counter[str] = field(default_factory=Counter)
    waiting: int = 0
    without_origin: int = 0
    _places: array[int] = field(default_factory=partial(array, "q"))

    def rows(self) -> Iterator[Row]:
        """A row for each message; consumed: the group has come past it, None where no offset is stored."""
        prefix = PREFIXES[self.kind]
        reached = {
            (one.topic, one.queue_id): one.offset
            for one in committed_offsets(self.store)
            if one.topic == prefix + one.group
        }
        topics = returned_topics(self.kind, self.groups)
        shown = [one for one in _COLUMNS if one != "properties"]
        for batch in records_of(self.store, topics, _COLUMNS, self.reading, self.left):
            given = [property_of(batch, name).to_pylist() for name in ORIGINS[self.kind]]
            id_names = (DLQ_ORIGIN_MESSAGE_ID, ORIGIN_MESSAGE_ID)[self.kind == "retry" :]
            ids = [property_of(batch, name).to_pylist() for name in id_names]
            for row, one in enumerate(batch.select(shown).to_pylist()):
                group = one.pop("topic").removeprefix(prefix)
                offset = reached.get((prefix + group, one["queue_id"]))
                consumed = None if offset is None else one["queue_offset"] < offset
                self.by_group[group] += 1
                self.waiting += not consumed
                origin = next((names[row] for names in given if names[row]), None)
                if origin is None:
                    self.without_origin += 1
                else:
                    self._places.append(one["physical_offset"])
                yield {
                    "type": self.kind,
                    "group": group,
                    "origin_topic": origin,
                    "origin_msg_id": next((names[row] for names in ids if names[row]), None),
                    **one,
                    "consumed": consumed,
                }

    def places(self) -> npt.NDArray[np.int64]:
        """Physical offsets, sorted, of those listed that say which topic they came from."""
        return np.sort(np.frombuffer(self._places, np.int64))

    def summary(self) -> Row:
        """Of what was listed."""
        total = sum(self.by_group.values())
        return {"messages": total, "not_consumed": self.waiting, "by_group": dict(self.by_group)}
