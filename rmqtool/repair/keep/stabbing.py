"""Ranges of numbers with a value each: the highest value of those that contain a number."""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

NOTHING = -1


class Stabbing:
    """A tree over the ends of all ranges that may come; each range and each question costs log n.

    ranges: [low, high), all that `raise_to` will be called with. Values are at least 0.
    """

    def __init__(self, ranges: Iterable[tuple[int, int]]) -> None:
        self._edges = sorted({edge for one in ranges for edge in one})
        self._values = [NOTHING] * (2 * len(self._edges))

    def raise_to(self, low: int, high: int, value: int) -> None:
        """Numbers in [low, high) have this value at least."""
        values, count = self._values, len(self._edges)
        left, right = self._place(low) + count, self._place(high) + count
        while left < right:
            if left & 1:
                values[left] = max(values[left], value)
                left += 1
            if right & 1:
                right -= 1
                values[right] = max(values[right], value)
            left, right = left >> 1, right >> 1

    def at(self, number: int) -> int:
        """The highest value at a number, `NOTHING` where no range has it."""
        found, place = NOTHING, self._place(number)
        node = place + len(self._edges) if place >= 0 else 0
        while node:
            found = max(found, self._values[node])
            node >>= 1
        return found

    def _place(self, number: int) -> int:
        return bisect_right(self._edges, number) - 1
