"""Which segments a broker may delete when, and which of them consumer groups still need.

`CommitLog#deleteExpiredFile`, `MappedFileQueue#deleteExpiredFileByTime`: a file goes when its modification
time is `fileReservedTime` hours ago, from the oldest on, never the last one; at the hour `deleteWhen`, or
when the disk is full.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow.compute as pc

from rmqtool.broker.expiry import aged, reserved_until
from rmqtool.broker.file_rules import lmq_of
from rmqtool.query.groups import committed_offsets
from rmqtool.query.stats.further_queues import COLUMNS as FURTHER
from rmqtool.query.stats.further_queues import further_queues
from rmqtool.scan.multi import LMQ_PREFIX
from rmqtool.store.config import StoreConfig

if TYPE_CHECKING:
    import pyarrow as pa

    from rmqtool.query.groups import CommittedOffset
    from rmqtool.store.layout import Store

Row = dict[str, Any]
_Queue = tuple[str, int]

_COLUMNS = ("topic", "queue_id", "queue_offset", "physical_offset", "store_size", "sys_flag")


class Needs:
    """For each committed offset: the messages behind it, their bytes, and where the first of them lies.

    columns: of the batches that `add` takes.
    """

    def __init__(self, store: Store) -> None:
        self._committed: dict[_Queue, list[CommittedOffset]] = defaultdict(list)
        for one in committed_offsets(store):
            self._committed[one.topic, one.queue_id].append(one)
        self._light = any(topic.startswith(LMQ_PREFIX) for topic, _ in self._committed)
        self._lmq = lmq_of(store)
        self.columns = (*_COLUMNS, *(FURTHER if self._light else ()))
        self._limits = {
            queue: np.array(sorted({one.offset for one in found}), np.int64)
            for queue, found in self._committed.items()
        }
        """a message at or behind the n-th limit is waited for by those who committed up to it"""
        self._messages = {
            queue: np.zeros(len(limits) + 1, np.int64) for queue, limits in self._limits.items()
        }
        self._bytes = {queue: np.zeros(len(limits) + 1, np.int64) for queue, limits in self._limits.items()}
        self._first = {queue: np.full(len(limits) + 1, 1 << 62) for queue, limits in self._limits.items()}

    def add(self, batch: pa.RecordBatch) -> None:
        """Adds the records of a batch; half and rolled back ones are in no queue."""
        if not self._limits or not batch.num_rows:
            return
        kinds = (batch["sys_flag"].to_numpy() >> 2) & 3
        coded = pc.dictionary_encode(batch["topic"])
        topics = coded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
        queues = batch["queue_id"].to_numpy()
        columns = [batch[name].to_numpy() for name in ("queue_offset", "store_size", "physical_offset")]
        served = (kinds == 0) | (kinds == 2)
        for number, topic in enumerate(coded.dictionary.to_pylist()):
            of_topic = (topics == number) & served
            for queue_id in np.unique(queues[of_topic]).tolist():
                if (topic, queue_id) in self._limits:
                    chosen = of_topic & (queues == queue_id)
                    self._add((topic, queue_id), *(column[chosen] for column in columns))
        if self._light:
            served_rows = batch.filter(served)
            sizes, places = (served_rows[name].to_numpy() for name in ("store_size", "physical_offset"))
            for queue, (rows, slots) in further_queues(served_rows, lmq=self._lmq).items():
                if queue in self._limits:
                    self._add(queue, slots, sizes[rows], places[rows])

    def _add(self, queue: _Queue, offsets: np.ndarray, sizes: np.ndarray, places: np.ndarray) -> None:
        bucket = np.searchsorted(self._limits[queue], offsets, side="right")
        np.add.at(self._messages[queue], bucket, 1)
        np.add.at(self._bytes[queue], bucket, sizes)
        np.minimum.at(self._first[queue], bucket, places)

    def add_sums(self, more: Needs) -> None:
        """Adds what another one with the same committed offsets found in another part of the log."""
        for queue in self._limits:
            self._messages[queue] += more._messages[queue]
            self._bytes[queue] += more._bytes[queue]
            np.minimum(self._first[queue], more._first[queue], out=self._first[queue])

    def rows(self) -> list[Row]:
        """One row for each consumer group: what waits for it, and the lowest physical offset of that."""
        groups: dict[str, Row] = {}
        for queue, found in self._committed.items():
            for one in found:
                at = int(np.searchsorted(self._limits[queue], one.offset, side="right"))
                first = int(self._first[queue][at:].min())
                row = groups.setdefault(
                    one.group,
                    {"group": one.group, "queues": 0, "topics": set(), "waiting_messages": 0,
                     "waiting_bytes": 0, "needs_physical_offset": None},
                )  # fmt: skip
                row["queues"] += 1
                row["topics"].add(one.topic)
                row["waiting_messages"] += int(self._messages[queue][at:].sum())
                row["waiting_bytes"] += int(self._bytes[queue][at:].sum())
                lowest = row["needs_physical_offset"]
                if first < 1 << 62:
                    row["needs_physical_offset"] = first if lowest is None else min(lowest, first)
        for row in groups.values():
            row["topics"] = sorted(row["topics"])
        return sorted(groups.values(), key=lambda row: (-row["waiting_messages"], row["group"]))


def forecast(store: Store, needs: list[Row], now_millis: int) -> list[Row]:
    """One row for each segment: when it is free to go, and the groups that need it or what lies before it."""
    config = store.config or StoreConfig.model_validate({})
    segments = list(store.segments)
    rows: list[Row] = []
    modified = [one.file.mtime_ns // 1_000_000 for one in segments]
    free = aged(config, modified, now_millis)
    for index, one in enumerate(segments):
        last = index == len(segments) - 1
        waiting = [
            row["group"]
            for row in needs
            if row["needs_physical_offset"] is not None and row["needs_physical_offset"] < one.end
        ]
        rows.append(
            {
                "path": one.file.display_path,
                "segment": one.base,
                "size": one.size,
                "disk_bytes": one.file.disk_bytes,
                "modified_timestamp": modified[index],
                "free_timestamp": None if last else reserved_until(config, modified[index]),
                "free_now": index < free,
                "needed_by": waiting,
            }
        )
    return rows
