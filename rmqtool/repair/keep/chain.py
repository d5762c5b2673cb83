"""The parts of a queue that keep the most records in order, in a time that goes with n log n.

Part j may follow part i when i lies in front of it in the log, and the step from i's last queue offset to j's
first is not larger than the room between them. With u the room in front of a physical offset, that is

    last(i) < first(j)  and  u(start(i) + 1) - last(i) <= u(start(j)) - first(j) + 1

Each side depends on one part only, and u never falls: the second inequality with the first says by itself
that i lies in front (where both sides are equal, the order in the log decides). So a sweep over queue offsets
with the best chain by the other side in a Fenwick tree finds the heaviest chain.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

BATCH = 0x7FFF
"""messages in one record of a batch queue"""


@dataclass(frozen=True, slots=True)
class Link:
    """One part. first, last: queue offsets. weight: what it adds to a chain. alone: what it counts in front.

    front, behind: the most queue offsets that records may have had in what begins in front of the part, and
    in that and the part itself.
    """

    first: int
    last: int
    weight: int
    alone: int
    front: int
    behind: int

    @property
    def reach(self) -> int:
        """See the inequality: of the part in front."""
        return self.behind - self.last

    @property
    def limit(self) -> int:
        """See the inequality: of the part that follows."""
        return self.front - self.first + 1


def heaviest(links: Sequence[Link]) -> list[int]:
    """The numbers, in order, of the chain that weighs most.

    Where several do, the one that misses the fewest queue offsets between its parts, and of these the first.
    links: in the order of the log, each with a weight above 0 and first <= last.
    """
    if not links:
        return []
    if links[0].alone == links[0].weight and _unbroken(links):
        return list(range(len(links)))
    return _Sweep(links).run()


def _unbroken(links: Sequence[Link]) -> bool:
    """Whether each part may follow the one in front of it: then all of them weigh most."""
    return all(a.last < b.first and a.reach <= b.limit for a, b in pairwise(links))


class _Sweep:
    def __init__(self, links: Sequence[Link]) -> None:
        self._links = links
        # behind the weight of a chain stands where it begins: what it misses goes with its two ends
        self._scale = max(one.last for one in links) + 1
        self._weights = [one.alone * self._scale + one.first for one in links]
        self._before = [-1] * len(links)
        ranked = sorted(range(len(links)), key=lambda i: (links[i].reach, i))
        self._ranks = [0] * len(links)
        for rank, number in enumerate(ranked, 1):
            self._ranks[number] = rank
        self._limits = self._counts(ranked)
        self._best = [-1] * (len(links) + 1)

    def _counts(self, ranked: list[int]) -> list[int]:
        """For each part, how many in the order of reach may lie in front of it."""
        links, counts, at = self._links, [0] * len(self._links), 0
        for number in sorted(range(len(links)), key=lambda j: (links[j].limit, j)):
            limit = links[number].limit, number
            while at < len(ranked) and (links[ranked[at]].reach, ranked[at]) < limit:
                at += 1
            counts[number] = at
        return counts

    def run(self) -> list[int]:
        """Parts by queue offset: each is weighed when all that end in front of it were."""
        links = self._links
        begins = sorted(range(len(links)), key=lambda i: links[i].first)
        ends = sorted(range(len(links)), key=lambda i: links[i].last)
        at = 0
        for number in begins:
            while links[ends[at]].last < links[number].first:
                self._offer(ends[at])
                at += 1
            best = self._ask(self._limits[number])
            weight = links[number].weight * self._scale
            if best >= 0 and self._weights[best] + weight > self._weights[number]:
                self._weights[number] = self._weights[best] + weight
                self._before[number] = best
        at = max(range(len(links)), key=lambda i: (self._weights[i] - links[i].last, -i))
        picked: list[int] = []
        while at >= 0:
            picked.append(at)
            at = self._before[at]
        return picked[::-1]

    def _offer(self, number: int) -> None:
        best, rank = self._best, self._ranks[number]
        while rank < len(best):
            best[rank] = self._better(number, best[rank])
            rank += rank & -rank

    def _ask(self, rank: int) -> int:
        found = -1
        while rank:
            found = self._better(self._best[rank], found)
            rank -= rank & -rank
        return found

    def _better(self, one: int, other: int) -> int:
        """The heavier of two parts, and of equal ones the first in the log; -1 is none."""
        if one < 0 or other < 0:
            return max(one, other)
        a, b = self._weights[one], self._weights[other]
        return one if a > b or (a == b and one < other) else other
