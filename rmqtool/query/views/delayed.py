"""Messages that wait for a delay level, and how far the levels are (`ScheduleMessageService`)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from formats.properties import REAL_QID, REAL_TOPIC
from formats.tags_code import SCHEDULE_TOPIC, deliver_time, parse_delay_levels
from rmqtool.query.views.topic_records import numbers_of, property_of, records_of
from rmqtool.store.config import config_of
from rmqtool.store.consumer_offsets import stored_delay_offsets

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rmqtool.scan.options import ReadOptions
    from rmqtool.store.layout import Store

Row = dict[str, Any]

_COLUMNS = (
    "physical_offset", "queue_id", "queue_offset", "store_timestamp", "uniq_key", "keys", "properties",
    "reconsume_times",
)  # fmt: skip


@dataclass
class Delayed:
    """What waits at a moment (ms). left: rows of `not_covered`."""

    store: Store
    reading: ReadOptions
    now: int
    left: list[Row] = field(default_factory=list)
    levels: dict[int, Row] = field(default_factory=dict)

    def __post_init__(self) -> None:
        config = self.store.config or config_of({})
        self._delays = parse_delay_levels(config.message_delay_level)
        self._offsets = {level: offset for level, offset, _ in stored_delay_offsets(self.store)}

    def rows(self) -> Iterator[Row]:
        """A row for each message that its level has not come to, in order of the log."""
        for batch in records_of(self.store, (SCHEDULE_TOPIC,), _COLUMNS, self.reading, self.left):
            queues, offsets = batch["queue_id"].to_numpy(), batch["queue_offset"].to_numpy()
            reached = np.zeros(batch.num_rows, np.int64)
            for level in np.unique(queues).tolist():
                reached[queues == level] = self._offsets.get(level + 1, 0)
            yield from self._waiting(batch.take(np.flatnonzero(offsets >= reached)))

    def _waiting(self, batch: Any) -> Iterator[Row]:
        topics = property_of(batch, REAL_TOPIC).to_pylist()
        numbers = numbers_of(property_of(batch, REAL_QID)).to_pylist()
        columns = [batch[name].to_pylist() for name in _COLUMNS if name != "properties"]
        for topic, number, values in zip(topics, numbers, zip(*columns, strict=True), strict=True):
            place, queue, slot, stored, uniq_key, keys, times = values
            due = deliver_time(queue + 1, stored, self._delays)
            late = max(self.now - due, 0)
            self._count(queue + 1, due, late)
            yield {
                "type": "delayed",
                "topic": topic,
                "queue_id": number,
                "level": queue + 1,
                "deliver_timestamp": due,
                "overdue_ms": late,
                "store_timestamp": stored,
                "physical_offset": place,
                "queue_offset": slot,
                "keys": keys,
                "uniq_key": uniq_key,
                "reconsume_times": times,
            }

    def _count(self, level: int, due: int, late: int) -> None:
        new = {"level": level, "offset": self._offsets.get(level), "messages": 0, "overdue": 0}
        row = self.levels.setdefault(level, new | {"next_timestamp": due})
        row["messages"] += 1
        row["overdue"] += bool(late)
        row["next_timestamp"] = min(row["next_timestamp"], due)

    def summary(self) -> Row:
        """Of what was listed."""
        levels = [self.levels[level] for level in sorted(self.levels)]
        return {
            "messages": sum(one["messages"] for one in levels),
            "overdue": sum(one["overdue"] for one in levels),
            "next_timestamp": min((one["next_timestamp"] for one in levels), default=None),
            "now_timestamp": self.now,
            "by_level": levels,
        }
