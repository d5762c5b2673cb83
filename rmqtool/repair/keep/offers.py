"""Free positions of queues, found by a slot and a part of the queue's key: its topic or its number."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections import defaultdict
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import TYPE_CHECKING

from rmqtool.repair.keep.missed import length_and_number

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rmqtool.repair.keep.model import QueueKey

Part = str | int | tuple[int, int]
"""the topic or the number of a queue, or `length_and_number`"""


@dataclass(slots=True, eq=False)
class Offer:
    """Slots [first, last] of a queue, for a record in [low, high) of the log.

    goes_on: it is what follows the end of the queue, one slot after the other.
    """

    key: QueueKey
    first: int
    last: int
    low: int
    high: int
    goes_on: bool = False
    gone: bool = False


class Offers:
    """Offers that are open where the log is read; questions come in its order.

    asked: all parts and slots that will be asked for. An offer lies in log n lists for each part, and is
    dropped from them when it is met after its time.
    """

    def __init__(self, asked: Iterable[tuple[Part, int]]) -> None:
        slots: dict[Part, set[int]] = defaultdict(set)
        for part, slot in asked:
            slots[part].add(slot)
        self._slots = {part: sorted(there) for part, there in slots.items()}
        self._lists: dict[Part, list[list[Offer]]] = {
            part: [[] for _ in range(2 * len(there))] for part, there in self._slots.items()
        }
        self._of: dict[QueueKey, list[Offer]] = defaultdict(list)
        self._coming: list[tuple[int, int, Offer]] = []
        self._count = 0

    def add(self, offer: Offer) -> None:
        """One more; it may begin further on."""
        if offer.first <= offer.last:
            self._count += 1
            heappush(self._coming, (offer.low, self._count, offer))
            insort(self._of[offer.key], offer, key=lambda one: one.low)

    def take(self, key: QueueKey, slot: int, start: int, end: int) -> None:
        """A record in [start, end) has the slot; those behind it are for what follows."""
        there = self._of[key]
        at = bisect_right(there, start, key=lambda one: one.low) - 1
        if at < 0 or not there[at].first <= slot <= there[at].last:
            return
        old = there[at]
        old.gone = True
        last = slot + 1 if old.goes_on else old.last
        self.add(Offer(key, slot + 1, last, end, old.high, old.goes_on))

    def at(self, part: Part, slot: int, start: int, end: int, besides: QueueKey | None) -> list[Offer]:
        """Two at most that have the slot for a record in [start, end), none of the queue `besides`."""
        while self._coming and self._coming[0][0] <= start:
            self._open(heappop(self._coming)[2])
        found: list[Offer] = []
        lists = self._lists[part]
        node = bisect_left(self._slots[part], slot) + len(lists) // 2
        while node and len(found) < _ENOUGH:
            there = lists[node]
            at = len(there) - 1
            while at >= 0 and len(found) < _ENOUGH:
                offer = there[at]
                if offer.gone or offer.high < end:
                    there[at] = there[-1]
                    there.pop()
                elif offer.key != besides:
                    found.append(offer)
                at -= 1
            node >>= 1
        return found

    def _open(self, offer: Offer) -> None:
        for part in (*offer.key, length_and_number(offer.key)):
            slots = self._slots.get(part)
            if slots is None:
                continue
            lists = self._lists[part]
            left = bisect_left(slots, offer.first) + len(slots)
            right = bisect_right(slots, offer.last) + len(slots)
            while left < right:
                if left & 1:
                    lists[left].append(offer)
                    left += 1
                if right & 1:
                    right -= 1
                    lists[right].append(offer)
                left, right = left >> 1, right >> 1


_ENOUGH = 2
"""more than one is as good as any number: nobody can say which"""
