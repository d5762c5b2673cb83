"""Transactions that are open: half messages that no op message settles (`TransactionalMessageBridge`)."""

from __future__ import annotations

from array import array
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from formats.properties import (
    PRODUCER_GROUP,
    REAL_QID,
    REAL_TOPIC,
    TRAN_PREPARED_QUEUE_OFFSET,
    TRANSACTION_CHECK_TIMES,
    TRANSACTION_ID,
)
from formats.system_topics import HALF_TOPIC, OP_HALF_TOPIC, OP_REMOVE_TAG, TRANSACTION_GROUP, half_offsets
from rmqtool.query.groups import committed_offsets
from rmqtool.query.views.topic_records import numbers_of, property_of, records_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

    from rmqtool.scan.options import ReadOptions
    from rmqtool.store.layout import Store

Row = dict[str, Any]

_COLUMNS = (
    "physical_offset", "topic", "queue_id", "queue_offset", "born_timestamp", "store_timestamp", "uniq_key",
    "tags", "body", "properties",
)  # fmt: skip


@dataclass
class HalfMessages:
    """Half messages and what settles them. left: rows of `not_covered`.

    Memory goes with the transactions that are open at some place of the log, and with the settled ones by
    eight bytes each.
    """

    store: Store
    reading: ReadOptions
    now: int
    left: list[Row] = field(default_factory=list)
    halves: int = 0
    ops: int = 0
    _open: dict[tuple[int, int], Row] = field(default_factory=dict)
    _settled: dict[tuple[int, int], int] = field(default_factory=dict)
    """physical offset of the op message, of halves that were not met yet"""
    _met: dict[int, array[int]] = field(default_factory=dict)
    _orphans: list[Row] = field(default_factory=list)

    def read(self) -> None:
        """All of the log."""
        reached = {
            one.queue_id: one.offset
            for one in committed_offsets(self.store)
            if (one.group, one.topic) == (TRANSACTION_GROUP, HALF_TOPIC)
        }
        topics = (HALF_TOPIC, OP_HALF_TOPIC)
        for batch in records_of(self.store, topics, _COLUMNS, self.reading, self.left):
            half = [one == HALF_TOPIC for one in batch["topic"].to_pylist()]
            self._take(batch, half, reached)
        self._settle_late()

    def _take(self, batch: pa.RecordBatch, half: list[bool], reached: dict[int, int]) -> None:
        facts = {
            name: property_of(batch, name).to_pylist()
            for name in (REAL_TOPIC, PRODUCER_GROUP, TRANSACTION_ID)
        }
        checks, real_queues, before = (
            numbers_of(property_of(batch, name)).to_pylist()
            for name in (TRANSACTION_CHECK_TIMES, REAL_QID, TRAN_PREPARED_QUEUE_OFFSET)
        )
        columns = {name: batch[name].to_pylist() for name in _COLUMNS if name not in {"body", "properties"}}
        for row, is_half in enumerate(half):
            queue, slot = columns["queue_id"][row], columns["queue_offset"][row]
            if not is_half:
                if columns["tags"][row] == OP_REMOVE_TAG:
                    self._op(queue, batch["body"][row].as_py() or b"", columns, row)
                continue
            self.halves += 1
            self._met.setdefault(queue, array("q")).append(slot)
            if self._settled.pop((queue, slot), None) is not None or slot < reached.get(queue, 0):
                continue
            older = before[row]
            if older is not None:  # put back by a check, in the place of an older one
                self._open.pop((queue, older), None)
            identity = facts[TRANSACTION_ID][row] or columns["uniq_key"][row]
            self._open[queue, slot] = {
                "type": "half",
                "topic": facts[REAL_TOPIC][row],
                "queue_id": real_queues[row],
                "group": facts[PRODUCER_GROUP][row],
                "age_ms": self.now - columns["born_timestamp"][row],
                "checks": max(checks[row] or 0, 0),
                "born_timestamp": columns["born_timestamp"][row],
                "physical_offset": columns["physical_offset"][row],
                "queue_offset": slot,
                "transaction_id": identity,
            }

    def _op(self, queue: int, body: bytes, columns: dict[str, list[Any]], row: int) -> None:
        self.ops += 1
        for slot in half_offsets(body):
            if self._open.pop((queue, slot), None) is None:
                self._settled[queue, slot] = columns["physical_offset"][row]

    def _settle_late(self) -> None:
        """What ops settle that was never met: expired, unless the log has all halves from the first on."""
        expired = self.store.segments.first_offset > 0
        met = {queue: np.unique(np.array(slots, np.int64)) for queue, slots in self._met.items()}
        for (queue, slot), place in sorted(self._settled.items(), key=lambda one: one[1]):
            known = met.get(queue, np.empty(0, np.int64))
            lowest = (int(known[0]) if len(known) else None) if expired else 0
            at = int(np.searchsorted(known, slot))
            there = at < len(known) and int(known[at]) == slot
            if not there and lowest is not None and slot >= lowest:
                self._orphans.append(
                    {
                        "type": "op_without_half",
                        "topic": None,
                        "group": None,
                        "queue_id": queue,
                        "queue_offset": slot,
                        "physical_offset": place,
                    }
                )

    def rows(self) -> Iterator[Row]:
        """Open halves, the oldest first, then ops without half."""
        yield from self._open.values()
        yield from self._orphans

    def summary(self) -> Row:
        """Of what was found."""
        ages = [one["age_ms"] for one in self._open.values()]
        groups: dict[str, int] = {}
        for one in self._open.values():
            groups[one["group"] or ""] = groups.get(one["group"] or "", 0) + 1
        return {
            "open": len(self._open),
            "ops_without_half": len(self._orphans),
            "halves": self.halves,
            "ops": self.ops,
            "oldest_ms": max(ages, default=None),
            "now_timestamp": self.now,
            "by_group": groups,
        }
