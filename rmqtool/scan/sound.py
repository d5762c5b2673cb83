"""Records that have nothing to tell, by their sums: what is made of a run without its rows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

import numpy as np

from rmqtool.scan.events import Records
from rmqtool.scan.fields import (
    ROW_WIDTH,
    STATUS_WIDTH,
    Check,
    DispatchColumn,
    Field,
    Place,
    Status,
    Stop,
    Sum,
)

if TYPE_CHECKING:
    import numpy.typing as npt

    from rmqtool.scan.kernel_types import Kernels
    from rmqtool.scan.partitions import Partitions, Placed, StretchedPartitions

    Bytes = npt.NDArray[np.uint8]
    Int32s = npt.NDArray[np.int32]
    Ints = npt.NDArray[np.int64]

BLOCK = 128
"""records that are checked before they are summed up: their rows stay in the nearest cache"""

MOST_BYTES = 32 << 20
"""bytes that are checked before somebody can say that it is enough"""

MOST_APART = 86_400_000
"""milliseconds by which a store timestamp may differ from the one before: else it tells too little"""

LEAST = 65
"""records of a run: what is fewer is looked at one by one"""

MOST_COLUMNS = 1 << 14
"""records of a run of which each has a column: more than what is read at once usually has"""

KEYS_ROOM = 5 * MOST_COLUMNS
"""keys of such a run: a record alone may have as many as a run has records"""

_MOST_PASSED = 16
"""runs that are looked at one by one at most before sums are tried again"""


@dataclass(frozen=True, slots=True)
class Passed:
    """A run of records that was passed over: how many, its bytes [start, end), and store times (ms)."""

    records: int
    start: int
    end: int
    first_time: int
    last_time: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Sound(Passed):
    """A run of records by stretches of neighbouring queue offsets, and its sums (`fields.Sum`)."""

    keyed: int
    keyed_start: int
    keyed_end: int
    stretches: Placed


@dataclass(frozen=True, slots=True, kw_only=True)
class Columned(Passed):
    """A run of records by columns.

    placed: of those that want a unit. hashes, owners: of the keys for the index, as `keys.key_hashes` has
    them. places: of every record (`fields.Place`).
    """

    placed: Placed
    hashes: Int32s
    owners: Int32s
    places: Ints


Run = TypeVar("Run", bound=Passed)


class Runs(ABC, Generic[Run]):
    """Takes the records of one segment that have nothing to tell, up to the first that has."""

    def __init__(self, kernels: Kernels, checks: Check) -> None:
        self._kernels, self._checks = kernels, int(checks)
        self._rows = np.empty((BLOCK, ROW_WIDTH), np.int64)
        self._status = np.zeros(STATUS_WIDTH, np.int64)
        self._sums = np.zeros(len(Sum), np.int64)
        self._failed = self._resting = 0
        """times in a row that there were too few, and how often to answer so without a look"""

    def __call__(self, window: Bytes, start: int, origin: int, place: tuple[int, int, int]) -> Run | None:
        """From window position `start` on; place: see `kernels.sound._is_sound`. None for too few.

        Where a block does not fit into the window, or has something to tell again and again, what was checked
        in vain is checked once more: so it is not always tried.
        """
        if self._resting:
            self._resting -= 1
            return None
        self._take(window, start, origin, np.array(place))
        found = self._made(self._sums.tolist())
        if found.records >= LEAST:
            self._failed = 0
            return found
        self._resting = min((1 << self._failed) - 1, _MOST_PASSED)
        self._failed += 1
        return None

    @property
    def cut(self) -> bool:
        """Whether the last run ended because a block did not fit into the window."""
        return bool(self._status[Status.STOP] == Stop.NEED_MORE)

    @abstractmethod
    def _take(self, window: Bytes, start: int, origin: int, place: Ints) -> None:
        """Sums up."""

    @abstractmethod
    def _made(self, sums: list[int]) -> Run:
        """The run of these sums."""


class SoundRuns(Runs[Sound]):
    """All of them, by their queues."""

    def __init__(self, kernels: Kernels, checks: Check, partitions: StretchedPartitions) -> None:
        super().__init__(kernels, checks)
        self._partitions = partitions
        self._keyed = np.zeros(3, np.int64)

    def _take(self, window: Bytes, start: int, origin: int, place: Ints) -> None:
        self._kernels.sound_stretches(
            window,
            start,
            origin,
            place,
            self._checks,
            MOST_APART,
            self._rows,
            self._status,
            *self._partitions.state(),
            self._keyed,
            self._sums,
        )

    def _made(self, sums: list[int]) -> Sound:
        return Sound(
            *sums[: Sum.KEYED],
            keyed=sums[Sum.KEYED],
            keyed_start=sums[Sum.KEYED_START],
            keyed_end=sums[Sum.KEYED_END],
            stretches=self._partitions.filled(),
        )


class ColumnRuns(Runs[Columned]):
    """All of them, each that wants a unit in a column, with the hashes of keys."""

    def __init__(self, kernels: Kernels, checks: Check, partitions: Partitions) -> None:
        super().__init__(kernels, checks)
        self._partitions = partitions
        self._keys = np.empty(KEYS_ROOM, np.int32), np.empty(KEYS_ROOM, np.int32)
        self._places = np.empty((len(Place), partitions.columns.shape[1]), np.int64)

    def _take(self, window: Bytes, start: int, origin: int, place: Ints) -> None:
        self._kernels.sound_columns(
            window,
            start,
            origin,
            place,
            self._checks,
            MOST_APART,
            self._rows,
            self._status,
            *self._partitions.state(),
            self._keys,
            self._places,
            self._sums,
        )
        delayed = self._partitions.delayed_places()
        if len(delayed):
            size, base, _ = place.tolist()
            at = self._partitions.columns[DispatchColumn.OFFSET, delayed] - base - origin
            rows = np.empty((len(delayed), ROW_WIDTH), np.int64)
            count = self._kernels.records_at(window, at, origin, size, base, int(Check.FRAME), rows)
            # a file that was changed meanwhile may have fewer
            there = np.isin(at + origin, rows[:count, Field.POSITION])
            self._partitions.set_delivery_times(delayed[there], Records(rows[:count], window, origin))

    def _made(self, sums: list[int]) -> Columned:
        hashes, owners = (one[: sums[Sum.KEYED]].copy() for one in self._keys)
        return Columned(
            *sums[: Sum.KEYED],
            placed=self._partitions.filled(),
            hashes=hashes,
            owners=owners,
            places=self._places[:, : sums[Sum.RECORDS]].copy(),
        )


class RunsWithoutKeys(Runs[Passed]):
    """Those without a key of a sieve. bits: of the sieve, see `kernels.hashes.first_in_sieve`."""

    def __init__(self, kernels: Kernels, checks: Check, bits: Bytes) -> None:
        super().__init__(kernels, checks)
        self._bits = bits

    def _take(self, window: Bytes, start: int, origin: int, place: Ints) -> None:
        self._kernels.sound_without_keys(
            window,
            start,
            origin,
            place,
            self._checks,
            MOST_APART,
            self._bits,
            self._rows,
            self._status,
            self._sums,
        )

    def _made(self, sums: list[int]) -> Passed:
        return Passed(*sums[: Sum.KEYED])
