"""Runs of records with all that building asks of them and that needs nothing of the runs before."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from rmqtool.scan.events import Records
from rmqtool.scan.fields import Check, Field, Place
from rmqtool.scan.keys import key_hashes
from rmqtool.scan.partitions import Partitions
from rmqtool.scan.sound import MOST_COLUMNS, ColumnRuns

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy.typing as npt

    from rmqtool.scan.kernel_types import Kernels
    from rmqtool.scan.partitions import Placed
    from rmqtool.scan.sound import Columned
    from rmqtool.store.segments import Segment

    Ints = npt.NDArray[np.int64]
    Int32s = npt.NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class KeyedRun:
    """Records of one segment in a row.

    offsets, times: physical offset and store timestamp (ms) of each. hashes, owners: of
    `scan.keys.key_hashes`, none where no index is wanted.
    """

    offsets: Ints
    times: Ints
    hashes: Int32s
    owners: Int32s


@dataclass(frozen=True, slots=True)
class Run(KeyedRun):
    """Records that were looked at one by one, made with `Check.ALL`.

    base: physical offset of the segment's first byte. elsewhere: how many state another physical offset.
    bad_bodies: how many bodies fail their CRC.
    """

    records: Records
    base: int
    elsewhere: int
    bad_bodies: int

    @property
    def nbytes(self) -> int:
        """Memory, about."""
        return self.records.rows.nbytes + self.records.window.nbytes + self.hashes.nbytes


@dataclass(frozen=True, slots=True)
class PlacedRun(KeyedRun):
    """Single records with nothing to tell (`Check.SINGLE`). placed: those that want a unit, by queues."""

    placed: Placed

    @property
    def nbytes(self) -> int:
        """Memory, about."""
        return self.placed.columns.nbytes + 2 * self.offsets.nbytes + 2 * self.hashes.nbytes


@dataclass(frozen=True)
class RunFactory:
    """Makes a `RunMaker` for each segment.

    keyed: keys are hashed for an index. placed: records with nothing to tell come by queues (`PlacedRun`).
    levels: delays of the broker in ms, its defaults when not given. jobs: threads that read.
    """

    kernels: Kernels
    keyed: bool
    placed: bool
    levels: Mapping[int, int] | None = None
    jobs: int = 1

    def __call__(self, segment: Segment) -> RunMaker:
        """For the runs of one segment, in their order."""
        return RunMaker(segment.base, self)


class RunMaker:
    """Work on the runs of one segment that any thread, or any executor, can do."""

    def __init__(self, base: int, how: RunFactory) -> None:
        self._base, self._how = base, how
        self.sound: ColumnRuns | None = None
        if how.placed:
            partitions = Partitions(how.kernels, MOST_COLUMNS, how.levels)
            self.sound = ColumnRuns(how.kernels, Check.ALL | Check.SINGLE, partitions)

    def __call__(self, records: Records) -> Run:
        """Of a run by itself. What is kept of it neither the scan overwrites nor a mapping takes along."""
        kernels = self._how.kernels
        if self._how.placed:
            records = _copy(records)
        elif self._how.jobs > 1:
            records = Records(records.rows.copy(), records.window, records.origin)
        offsets = np.empty(len(records.rows), np.int64)
        times = np.empty_like(offsets)
        elsewhere, bad = kernels.building.places_and_times(records.rows, self._base, offsets, times)
        nothing = np.empty(0, np.int32)
        hashes, owners = key_hashes(kernels.hashes, records) if self._how.keyed else (nothing, nothing)
        return Run(offsets, times, hashes, owners, records, self._base, int(elsewhere), int(bad))

    def of_sound(self, run: Columned, /) -> PlacedRun:
        """Of a run by columns."""
        return PlacedRun(run.places[Place.START], run.places[Place.TIME], run.hashes, run.owners, run.placed)


def _copy(records: Records) -> Records:
    rows = records.rows.copy()
    start = int(rows[0, Field.POSITION])
    end = int(rows[-1, Field.POSITION] + rows[-1, Field.STORE_SIZE])
    window = records.window[start - records.origin : end - records.origin].copy()
    return Records(rows, window, start)
