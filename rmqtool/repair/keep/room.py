"""Whether records that queues miss may have been in the holes of the log."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING

import numpy as np

from rmqtool.repair.keep.chain import BATCH
from rmqtool.repair.keep.headers import SMALLEST_RECORD

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rmqtool.repair.keep.model import Hole, QueueKey, Run

_NOTHING = np.empty((2, 0), np.int64)


@dataclass(frozen=True, slots=True)
class Missing:
    """Queue offsets [first, last] of one queue, to be placed between the physical offsets low and high."""

    key: QueueKey
    first: int
    last: int
    low: int
    high: int

    @property
    def count(self) -> int:
        """Queue offsets."""
        return self.last - self.first + 1


class Room:
    """How many records may have been in a range that is not one intact record."""

    def __init__(self, holes: Sequence[Hole], loose: Iterable[Run]) -> None:
        places = sorted(
            [(hole.start, _most_records(hole), hole.end) for hole in holes]
            + [(run.start, 1 if run.start == run.last_start else run.count, run.end) for run in loose]
        )
        self._starts = [start for start, _, _ in places]
        self._ends = [end for _, _, end in places]
        self._sums = [0, *accumulate(count for _, count, _ in places)]

    def takes(self, step: int, low: int, high: int, *, batch: bool) -> bool:
        """Whether records with so many queue offsets may have been in what begins in [low, high)."""
        return step == 0 or step <= self.between(low, high) * (BATCH if batch else 1)

    def between(self, low: int, high: int) -> int:
        """Records that fit into what begins in [low, high), and into the rest of a hole around `low`."""
        return max(self.until(high) - self.until(low) + self._rest(low), 0)

    def inside(self, low: int, high: int) -> int:
        """Records that fit into what lies between two places in holes."""
        return max(self._in_front(high) - self._in_front(low), 0) + 1

    def _rest(self, low: int) -> int:
        """A record that lies is in a hole, and still in the light queues that it names."""
        at = bisect_left(self._starts, low)
        if not at:
            return 0
        fit = max(self._ends[at - 1] - low, 0) // SMALLEST_RECORD
        return min(fit, self._sums[at] - self._sums[at - 1])

    def _in_front(self, place: int) -> int:
        at = bisect_left(self._starts, place)
        if not at:
            return 0
        part = (place - self._starts[at - 1]) // SMALLEST_RECORD
        return min(self._sums[at - 1] + part, self._sums[at])

    def until(self, high: int) -> int:
        """Records that fit into what begins in front of `high`."""
        return self._sums[bisect_left(self._starts, high)]


def _most_records(hole: Hole) -> int:
    """One for each frame that the scan saw, whatever its size, and as many as fit beside them.

    What was written for another place tells nothing of this one: as many as fit under it, too.
    """
    frames = [one for one in hole.frames if not one.moved or one.length < SMALLEST_RECORD]
    count, at = len(frames), hole.start
    for frame in sorted(frames, key=lambda one: one.start):
        count += max(frame.start - at, 0) // SMALLEST_RECORD
        at = max(at, frame.end)
    return count + max(hole.end - at, 0) // SMALLEST_RECORD


class Fronts:
    """Whether a queue that does not begin with queue offset 0 has lost what is in front of its first record.

    It may as well begin later, with blank units (`ConsumeQueue#fillPreBlank`). So holes and doubtful records
    of its topic must account for every position, and a record only for its own queue offset.
    """

    def __init__(self, holes: Room, doubtful: Iterable[Run]) -> None:
        self._holes = holes
        topics: dict[str, dict[int, int]] = defaultdict(dict)
        for run in doubtful:
            starts = topics[run.key[0]]
            for slot in range(run.first, run.last + 1):
                starts[slot] = min(run.start, starts.get(slot, run.start))
        self._topics = {
            topic: np.array(sorted(starts.items()), np.int64).T for topic, starts in topics.items()
        }

    def believes(self, front: Missing, *, batch: bool) -> bool:
        """Whether it can be accounted for."""
        if self._holes.takes(front.count, front.low, front.high, batch=batch):
            return True
        slots, starts = self._topics.get(front.key[0], _NOTHING)
        upto = int(np.searchsorted(slots, front.last, side="right"))
        known = int((starts[:upto] < front.high).sum())
        return front.count <= self._holes.between(front.low, front.high) + known
