"""A run of records with all that building asks of it and that needs nothing of the runs before."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from rmqtool.scan.events import Records
from rmqtool.scan.keys import key_hashes

if TYPE_CHECKING:
    import numpy.typing as npt

    from rmqtool.scan.kernel_types import Kernels

    Ints = npt.NDArray[np.int64]
    Int32s = npt.NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class Run:
    """Records of one segment in a row, made with `Check.ALL`.

    base: physical offset of the segment's first byte. offsets, times: physical offset and store timestamp
    (ms) of each. hashes, owners: of `scan.keys.key_hashes`, none where no index is wanted. elsewhere: how
    many state another physical offset. bad_bodies: how many bodies fail their CRC.
    """

    records: Records
    base: int
    offsets: Ints
    times: Ints
    hashes: Int32s
    owners: Int32s
    elsewhere: int
    bad_bodies: int

    @property
    def nbytes(self) -> int:
        """Memory, about."""
        return self.records.rows.nbytes + self.records.window.nbytes + self.hashes.nbytes


def run_of(records: Records, base: int, kernels: Kernels, *, keyed: bool, copied: bool = False) -> Run:
    """Work on one run that any thread, or any executor, can do.

    keyed: hash the keys for an index. copied: the rows, too, which are overwritten when the scan goes on.
    """
    if copied:
        records = Records(records.rows.copy(), records.window, records.origin)
    offsets = np.empty(len(records.rows), np.int64)
    times = np.empty_like(offsets)
    elsewhere, bad = kernels.building.places_and_times(records.rows, base, offsets, times)
    nothing = np.empty(0, np.int32)
    hashes, owners = key_hashes(kernels.hashes, records) if keyed else (nothing, nothing)
    return Run(records, base, offsets, times, hashes, owners, int(elsewhere), int(bad))
