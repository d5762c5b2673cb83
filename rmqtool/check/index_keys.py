"""What records put into an index: the hashes of their keys."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from rmqtool.scan.fields import Field
from rmqtool.scan.keys import key_hashes
from rmqtool.scan.reader import BATCH_ROWS, WINDOW_BYTES

if TYPE_CHECKING:
    from collections.abc import Iterator

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


class KeyJoiner:
    """Keys of neighbouring runs together, up to what one run has that comes by its rows.

    A record claims items of its run: which of them must not depend on how records came to their runs, by
    blocks (`scan.sound`) or one by one. Add all, ask for the rest.
    """

    def __init__(self) -> None:
        self._held: list[Keys] = []

    def add(self, keys: Keys) -> Iterator[Keys]:
        """What is complete with these."""
        if not len(keys.offsets):
            return
        if self._held and not self._fits(keys):
            yield from self.rest()
        self._held.append(keys)

    def rest(self) -> Iterator[Keys]:
        """What was held back."""
        held, self._held = self._held, []
        if len(held) < 2:
            yield from held
            return
        firsts = np.cumsum([0, *(len(one.offsets) for one in held[:-1])]).tolist()
        yield Keys(
            np.concatenate([one.hashes for one in held]),
            np.concatenate([one.owners + np.int32(first) for first, one in zip(firsts, held, strict=True)]),
            np.concatenate([one.offsets for one in held]),
            np.concatenate([one.ends for one in held]),
            np.concatenate([one.times for one in held]),
        )

    def _fits(self, keys: Keys) -> bool:
        rows = sum(len(one.offsets) for one in self._held) + len(keys.offsets)
        near = keys.ends[-1] - self._held[0].offsets[0] <= WINDOW_BYTES
        return bool(near and rows <= BATCH_ROWS and keys.offsets[0] == self._held[-1].ends[-1])


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
