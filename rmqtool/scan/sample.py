"""A fixed number of records out of any number, chosen evenly and the same way every time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt


class Sample:
    """Keeps the `size` records whose physical offsets hash lowest; holds that many rows and a batch."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._kept: pa.Table | None = None
        self.offered = 0
        """records that there were to choose from"""

    def offer(self, batch: pa.RecordBatch) -> None:
        """Takes a batch with a column `physical_offset`."""
        self.offered += batch.num_rows
        fresh = pa.Table.from_batches([batch])
        table = fresh if self._kept is None else pa.concat_tables([self._kept, fresh])
        if table.num_rows > self._size:
            order = np.argsort(_mix(table["physical_offset"].to_numpy()), kind="stable")[: self._size]
            table = table.take(pa.array(np.sort(order)))
        self._kept = table.combine_chunks()

    def batches(self, limit: int | None = None) -> Iterator[pa.RecordBatch]:
        """What was kept, in physical order."""
        if self._kept is not None:
            yield from self._kept.slice(0, limit).to_batches()


def _mix(offsets: npt.NDArray[np.int64]) -> npt.NDArray[np.uint64]:
    """SplitMix64's finisher: neighbours end far apart."""
    mixed = offsets.astype(np.uint64)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
    return mixed ^ (mixed >> np.uint64(31))
