"""Positions that light queues miss, and which of them are next at a place of the log.

All questions come in the order of the log, so that a gap is looked at where it is open, not at each of them.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections import defaultdict, deque
from dataclasses import dataclass, field
from heapq import heappop, heappush
from itertools import accumulate
from typing import TYPE_CHECKING, NamedTuple

from rmqtool.scan.multi import takes_number

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from rmqtool.repair.keep.model import QueueKey
    from rmqtool.repair.keep.room import Missing


class Further(NamedTuple):
    """One position in one further queue."""

    key: QueueKey
    slot: int


@dataclass
class Gap:
    """Positions that a queue misses between two physical offsets. pointed: (start, slot) that units tell."""

    missing: Missing
    next_slot: int
    pointed: list[tuple[int, int]] = field(default_factory=list)
    lowest: list[int] = field(default_factory=list)
    """the lowest slot pointed at from each place in `pointed` on"""

    def find_lowest(self) -> None:
        """Call it when all of `pointed` is known."""
        self.lowest = list(accumulate((slot for _, slot in reversed(self.pointed)), min))[::-1]

    def held_until(self, start: int, slot: int) -> int | None:
        """Where the last unit lies that takes this slot, or one in front of it, behind `start`."""
        at = bisect_right(self.lowest, slot) - 1
        return self.pointed[at][0] if at >= 0 and self.pointed[at][0] > start else None


class Gaps:
    """What light queues miss, by queue, in the order of the log."""

    def __init__(self, missing: Mapping[QueueKey, Sequence[Missing]]) -> None:
        self._gaps = {key: [Gap(one, one.first) for one in gaps] for key, gaps in missing.items()}

    def __bool__(self) -> bool:
        return any(self._gaps.values())

    def around(self, one: Further, start: int) -> Gap | None:
        """The gap that has this position at this physical offset."""
        gaps = self._gaps.get(one.key, ())
        at = bisect_right(gaps, start, key=lambda gap: gap.missing.low) - 1
        if at < 0:
            return None
        missing = gaps[at].missing
        return gaps[at] if start < missing.high and missing.first <= one.slot <= missing.last else None

    def point(self, one: Further, start: int) -> None:
        """A unit tells a position."""
        gap = self.around(one, start)
        if gap is not None:
            insort(gap.pointed, (start, one.slot))

    def besides(self, apart: Collection[QueueKey]) -> Iterator[Gap]:
        """All of all queues but those."""
        for key, gaps in self._gaps.items():
            if key not in apart:
                yield from gaps

    def untaken(
        self, apart: Collection[QueueKey], taken: Mapping[QueueKey, Collection[int]]
    ) -> Iterator[tuple[QueueKey, int]]:
        """How many positions in each gap nobody took."""
        slots = {key: sorted(there) for key, there in taken.items()}
        for gap in self.besides(apart):
            one = gap.missing
            own = slots.get(one.key, [])
            yield one.key, one.count - (bisect_right(own, one.last) - bisect_left(own, one.first))


class OpenGaps:
    """The gaps that are open where the log is read. highest: slot of each queue that was given last.

    lmq: `enableLmq`.
    """

    def __init__(self, gaps: Iterator[Gap], highest: Mapping[QueueKey, int], *, lmq: bool) -> None:
        self._coming = sorted(gaps, key=lambda gap: gap.missing.low)[::-1]
        self._by_key: dict[QueueKey, list[Gap]] = defaultdict(list)
        for gap in reversed(self._coming):
            self._by_key[gap.missing.key].append(gap)
        self._highest, self._lmq = highest, lmq
        self._open: dict[int | None, deque[Gap]] = defaultdict(deque)
        self._held: list[tuple[int, int, Gap]] = []
        self._holds = 0
        for gap in self._coming:
            gap.find_lowest()

    def at(self, start: int, queue_id: int) -> Iterator[Further]:
        """The next positions that queues miss here and nothing points at, in turn from question to question.

        queue_id: of the record. Ask in the order of the log.
        """
        while self._coming and self._coming[-1].missing.low <= start:
            self._put(self._coming.pop())
        while self._held and self._held[0][0] <= start:
            self._put(heappop(self._held)[2])
        for there in (self._open[None], self._open[queue_id]):
            for _ in range(len(there)):
                gap = there.popleft()
                slot = self._next(gap)
                if start >= gap.missing.high or slot > gap.missing.last:
                    continue
                held = gap.held_until(start, slot)
                if held is not None:
                    self._holds += 1
                    heappush(self._held, (held, self._holds, gap))
                    continue
                there.append(gap)
                yield Further(gap.missing.key, slot)

    def next_slot(self, key: QueueKey, start: int) -> int | None:
        """The next position that this queue misses here and nothing points at."""
        gaps = self._by_key.get(key, [])
        at = bisect_right(gaps, start, key=lambda gap: gap.missing.low) - 1
        if at < 0 or start >= gaps[at].missing.high:
            return None
        slot = self._next(gaps[at])
        return slot if slot <= gaps[at].missing.last and gaps[at].held_until(start, slot) is None else None

    def _put(self, gap: Gap) -> None:
        """Among those of its number; light queues with LMQ's prefix take records of all numbers."""
        name, number = gap.missing.key
        if takes_number(name, lmq=self._lmq):
            self._open[number].append(gap)
        elif number == 0:
            self._open[None].append(gap)

    def _next(self, gap: Gap) -> int:
        """Positions ascend in the order of the log; one that was passed over stays blank."""
        gap.next_slot = max(gap.next_slot, self._highest.get(gap.missing.key, -1) + 1)
        return gap.next_slot
