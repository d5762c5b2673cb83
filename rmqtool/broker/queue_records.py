"""Records on their way to one queue."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Ints = npt.NDArray[np.int64]
    Flags = npt.NDArray[np.bool_]

NO_CODE = (1 << 63) - 1
"""in a column of tags codes: not known; neither a hash nor a time"""


@dataclass(frozen=True, slots=True)
class QueueRecords:
    """Records for one queue in the order of the log.

    offsets: physical offset fields. sizes: total sizes. slots: queue offsets. ordinary: whether the record
    lies where its field says. bases, counts: first queue offset and number of the messages in it, which
    only batch queues ask for. codes: tags codes of their entries, or `NO_CODE`. times: store timestamps (ms).
    INT64 columns.
    """

    offsets: Ints
    sizes: Ints
    slots: Ints
    ordinary: Flags
    bases: Ints
    counts: Ints
    codes: Ints
    times: Ints

    def __getitem__(self, part: slice) -> QueueRecords:
        return QueueRecords(
            self.offsets[part],
            self.sizes[part],
            self.slots[part],
            self.ordinary[part],
            self.bases[part],
            self.counts[part],
            self.codes[part],
            self.times[part],
        )

    def __len__(self) -> int:
        return len(self.offsets)
