"""Which records that a query has found pass a `MessageFilter`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rmqtool.query.select import TextFilter
from rmqtool.scan.picked import Missing, pick

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt
    import pyarrow as pa

    from rmqtool.query.message_filter import MessageFilter
    from rmqtool.store.segments import SegmentSet


class FoundFilter:
    """A filter over batches of the record table. `columns`: those that it reads, none when all pass."""

    def __init__(self, wanted: MessageFilter) -> None:
        self._bounds = {
            "store_timestamp": (wanted.store_from, wanted.store_to),
            "born_timestamp": (wanted.born_from, wanted.born_to),
            "physical_offset": (wanted.offset_from, wanted.offset_to),
            "queue_offset": (wanted.queue_offset_from, wanted.queue_offset_to),
        }
        self._queues = sorted(wanted.queues)
        self._text = TextFilter(wanted)
        bounded = [name for name, bounds in self._bounds.items() if bounds != (None, None)]
        self.columns = (*bounded, *(["queue_id"] if self._queues else []), *self._text.columns)

    def mask(self, batch: pa.RecordBatch) -> npt.NDArray[np.bool_]:
        """Which rows pass."""
        mask = self._text.mask(batch)
        for name, (low, high) in self._bounds.items():
            if low is not None:
                mask &= batch[name].to_numpy() >= low
            if high is not None:
                mask &= batch[name].to_numpy() < high
        if self._queues:
            mask &= np.isin(batch["queue_id"].to_numpy(), self._queues)
        return mask


def passing(
    segments: SegmentSet, offsets: Sequence[int], wanted: MessageFilter
) -> tuple[list[int], list[Missing]]:
    """Those of the records at `offsets` that pass, in that order, and what could not be judged."""
    judge = FoundFilter(wanted)
    if not judge.columns:
        return list(offsets), []
    found: list[int] = []
    missing: list[Missing] = []
    for part in pick(segments, offsets, tuple(dict.fromkeys(("physical_offset", *judge.columns)))):
        if isinstance(part, Missing):
            missing.append(part)
        else:
            found += part["physical_offset"].to_numpy()[judge.mask(part)].tolist()
    return found, missing
