"""Which units and items of queue and index files are wanted."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

if TYPE_CHECKING:
    from rmqtool.query.message_filter import MessageFilter
    from rmqtool.store.files import StoreFile


_UNCOUNTED = frozenset({"gap", "tail", "ext_end", "index_header", "epoch_file"})


class UnitFilter:
    """The part of a `MessageFilter` that means something without records: topic, queue, offsets, limit."""

    def __init__(self, wanted: MessageFilter) -> None:
        self._wanted = wanted
        self._left = wanted.limit
        self.left_out: dict[str, Any] | None = None
        """the first row that was wanted and did not fit the limit any more; of a batch its numbers only"""

    def may_hold(self, file: StoreFile) -> bool:
        """False for files of queues that are not wanted."""
        wanted = self._wanted
        if wanted.topics and not any(fnmatchcase(file.topic or "", glob) for glob in wanted.topics):
            return False
        return not wanted.queues or file.queue_id in wanted.queues

    def units(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The rows of a batch that are wanted and still fit the limit."""
        wanted = self._wanted
        for name, low, high in (
            ("physical_offset", wanted.offset_from, wanted.offset_to),
            ("slot", wanted.queue_offset_from, wanted.queue_offset_to),
        ):
            if (low is not None or high is not None) and name in batch.schema.names:
                values = batch[name].to_numpy()
                keep = np.ones(len(values), bool)
                if low is not None:
                    keep &= values >= low
                if high is not None:
                    keep &= values < high
                batch = batch.filter(pa.array(keep))
        if self._left is None:
            return batch
        if batch.num_rows > self._left:
            place = [
                name for name in ("position", "slot", "number", "key_hash") if name in batch.schema.names
            ]
            self.left_out = batch.slice(self._left, 1).select(place).to_pylist()[0]
        batch = batch.slice(0, self._left)
        self._left -= batch.num_rows
        return batch

    def row(self, row: dict[str, Any]) -> dict[str, Any] | None:
        """A single row, None when the limit is reached. What is not a unit or item does not count."""
        if self._left is None or row["type"] in _UNCOUNTED:
            return row
        if self._left == 0:
            self.left_out = row
            return None
        self._left -= 1
        return row
