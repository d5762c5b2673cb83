"""What units say about single records whose topic, queue number or queue offset may be wrong."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rmqtool.repair.keep.headers import SMALLEST_RECORD
from rmqtool.repair.keep.missed import differs_in_one

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from rmqtool.repair.keep.model import Position, QueueKey, Run


@dataclass(frozen=True, slots=True)
class UnitEvidence:
    """Units that point at records.

    pointed: positions with a unit for a single record, by its physical offset. find_places: where in their
    own queue some single records, by physical offset, have units.
    """

    pointed: Mapping[int, Sequence[Position]]
    find_places: Callable[[Sequence[Run]], Mapping[int, Collection[int]]]

    def places(self, runs: Sequence[Run]) -> Mapping[int, Collection[int]]:
        """Queue offsets at which the queues of these records have units for them, by physical offset."""
        return self.find_places(runs) if runs else {}

    def with_unit(self, runs: Sequence[Run]) -> frozenset[int]:
        """Where those of these records begin that have a unit at their queue offset."""
        known = self.places(runs)
        return frozenset(one.start for one in runs if one.first in known.get(one.start, ()))

    def has_own(self, run: Run) -> bool:
        """Whether the record's queue has a unit for it at its place."""
        return (run.key, run.first) in self._positions(run)

    def is_claimed(self, run: Run, chosen: Mapping[QueueKey, Sequence[Run]]) -> bool:
        """Whether not the record's queue has a unit for it at its place, but one whose key it may have had.

        T/1 claims a record of T/9. The name of a directory proves nothing, it may be a copy; records of that
        queue do. So does that no log ever had as many records in front of it as its queue would have.
        """
        if self.has_own(run):
            return False
        keys = [key for key, _ in self._positions(run)]
        if run.first > run.start // SMALLEST_RECORD and run.key in keys:
            return True
        # of two records another queue may have one
        return run.count == 1 and any(chosen.get(key) and differs_in_one(run.key, key) for key in keys)

    def is_moved(self, run: Run) -> bool:
        """Whether the record's queue has its unit elsewhere, and one bit of the queue offset is the reason.

        A record with 7 that the unit at 5 points at: 5 with another bit is 7.
        """
        if run.count > 1 or self.has_own(run):
            return False
        return any(
            key == run.key and (slot ^ run.first).bit_count() == 1 for key, slot in self._positions(run)
        )

    def _positions(self, run: Run) -> Sequence[Position]:
        return self.pointed.get(run.start, ())
