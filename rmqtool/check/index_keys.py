"""What records put into an index: the hashes of their keys."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from rmqtool.scan.fields import Field
from rmqtool.scan.keys import key_hashes

if TYPE_CHECKING:
    import numpy.typing as npt

    from rmqtool.scan.events import Records
    from rmqtool.scan.kernel_types import Hashes

    Ints = npt.NDArray[np.int64]
    Int32s = npt.NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class Keys:
    """What a run of records puts into the index: hashes, and the place in the other columns of their record.

    offsets, ends: physical offsets of every record of the run and behind it; times: store timestamps, ms.
    """

    hashes: Int32s
    owners: Int32s
    offsets: Ints
    ends: Ints
    times: Ints

    @property
    def nbytes(self) -> int:
        """Memory, about."""
        columns = self.hashes, self.owners, self.offsets, self.ends, self.times
        return sum(one.nbytes for one in columns)

    def of(self, record: int) -> list[int]:
        """Hashes of one record."""
        low, high = np.searchsorted(self.owners, (record, record + 1))
        return [int(value) for value in self.hashes[low:high]]

    def unindexed(self) -> Unindexed:
        """What is said of them where there is no index."""
        if not len(self.owners):
            return Unindexed(0, 0, 0)
        first, last = self.owners[[0, -1]]
        count = int(np.count_nonzero(np.diff(self.owners))) + 1
        return Unindexed(int(self.offsets[first]), int(self.ends[last]), count)


@dataclass(frozen=True, slots=True)
class Unindexed:
    """What a run of records would have put into an index that is not there.

    start, end: physical offsets of the first record with keys and behind the last; records: how many have.
    """

    start: int
    end: int
    records: int

    nbytes = 0


def unindexed(hashing: Hashes, run: Records, segment_base: int) -> Unindexed:
    """Of a run of records. hashing: of `kernels.hashes`."""
    found = np.zeros(3, np.int64)
    hashing.keyed(run.window, run.origin, run.rows, found)
    first, last, count = found.tolist()
    if not count:
        return Unindexed(0, 0, 0)
    start, end, size = run.rows[[first, last, last], _PLACE].tolist()
    return Unindexed(segment_base + start, segment_base + end + size, count)


_PLACE = [Field.POSITION, Field.POSITION, Field.STORE_SIZE]


def keys_of(hashing: Hashes, run: Records, segment_base: int) -> Keys:
    """What a broker puts into the index for these records. hashing: of `kernels.hashes`."""
    hashes, owners = key_hashes(hashing, run)
    rows = run.rows
    offsets = segment_base + rows[:, Field.POSITION]
    ends = offsets + rows[:, Field.STORE_SIZE]
    return Keys(hashes, owners, offsets, ends, rows[:, Field.STORE_TIMESTAMP].copy())
