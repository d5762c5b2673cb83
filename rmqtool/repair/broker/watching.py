"""What recovery hands to the dispatchers, kept as far as the bytes of queues and index need it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rmqtool.scan.fields import DispatchColumn, Field
from rmqtool.scan.keys import key_hashes
from rmqtool.scan.partitions import Partitions

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy.typing as npt

    from rmqtool.scan.events import Records
    from rmqtool.scan.kernel_types import Kernels

    Ints = npt.NDArray[np.int64]

_ROOM = 1 << 16


class Watcher:
    """Is given every run that is dispatched. 24 bytes are kept for each record, 20 for each key.

    levels: delays in ms by level, as recovery knows them (`Rules.levels`).
    """

    def __init__(self, kernels: Kernels, levels: Mapping[int, int] | None) -> None:
        self._partitions = Partitions(kernels, _ROOM, levels)
        self._hashing = kernels.hashes
        self._units: list[Ints] = []
        self._keys: list[tuple[Ints, Ints]] = []
        self._records: list[Ints] = []
        self._seen = 0

    def see(self, run: Records, base: int) -> None:
        """A run in the order of the log."""
        rows = run.rows
        offsets, times = rows[:, Field.STORED_PHYSICAL_OFFSET], rows[:, Field.STORE_TIMESTAMP]
        for start in range(0, len(rows), _ROOM):
            part = type(run)(rows[start : start + _ROOM], run.window, run.origin)
            self._codes(part, base)
        hashes, owners = key_hashes(self._hashing, run)
        self._keys.append((hashes.astype(np.int64), owners.astype(np.int64) + self._seen))
        self._records.append(np.stack([offsets, times]))
        self._seen += len(rows)

    def _codes(self, run: Records, base: int) -> None:
        for _ in self._partitions.take(run, base):
            self._collect(run)
        self._collect(run)

    def _collect(self, run: Records) -> None:
        filled = self._partitions.columns[:, : len(self._partitions)]
        owners = filled[DispatchColumn.OWNER]
        rows = run.rows
        self._units.append(
            np.stack(
                [
                    rows[owners, Field.STORED_PHYSICAL_OFFSET],
                    filled[DispatchColumn.CODE],
                    rows[owners, Field.STORE_TIMESTAMP],
                ]
            )
        )
        self._partitions.clear()

    def codes_and_times(self, offsets: Ints) -> tuple[Ints, Ints]:
        """Tags codes and store times (ms) of the records at these offsets; 0 where none was dispatched."""
        known = np.concatenate([np.empty((3, 0), np.int64), *self._units], axis=1)
        order = np.argsort(known[0], kind="stable")
        known = known[:, order]
        places = np.searchsorted(known[0], offsets, side="right") - 1
        if not known.shape[1]:
            return np.zeros(len(offsets), np.int64), np.zeros(len(offsets), np.int64)
        places = np.maximum(places, 0)
        hit = known[0][places] == offsets
        return np.where(hit, known[1][places], 0), np.where(hit, known[2][places], 0)

    def records(self) -> tuple[Ints, Ints]:
        """Offsets and store times (ms) of all records, in order."""
        both = np.concatenate([np.empty((2, 0), np.int64), *self._records], axis=1)
        return both[0], both[1]

    def keys(self) -> tuple[Ints, Ints]:
        """Hash of every key, and the number of its record among `records`."""
        nothing = np.empty(0, np.int64)
        return (
            np.concatenate([nothing, *(one for one, _ in self._keys)]),
            np.concatenate([nothing, *(one for _, one in self._keys)]),
        )
