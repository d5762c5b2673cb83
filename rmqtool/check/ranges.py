"""Ranges of a log, queue or file, each with a code, in and over each other as damage lies."""

from __future__ import annotations

from bisect import bisect_left, insort
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    import numpy as np
    import numpy.typing as npt

    Ints = npt.NDArray[np.int64]

_LONG_MAX = (1 << 63) - 1


class Range(NamedTuple):
    """[start, end) and the code of what is there."""

    start: int
    end: int
    code: str


class Ranges:
    """Answers for a place by the last range that begins in front of its end and reaches it.

    `_wider` has for each range the last one in front of it that ends behind it, so that a range within
    another does not hide that one, and no answer walks over all that lie in it. It is made as far as asked.
    """

    def __init__(self) -> None:
        self._ranges: list[Range] = []
        self._wider: list[int] = []
        self._columns: tuple[Ints, Ints, Ints] | None = None
        """starts, ends and `_wider` of all, for `find`"""

    def __iter__(self) -> Iterator[Range]:
        """By start."""
        return iter(self._ranges)

    def add(self, start: int, end: int, code: str) -> None:
        """One more range, in any order."""
        one = Range(start, end, code)
        insort(self._ranges, one)
        del self._wider[bisect_left(self._ranges, one) :]
        self._columns = None

    def over(self, start: int, end: int) -> Range | None:
        """The last range that begins in front of `end` and reaches beyond `start`."""
        at = bisect_left(self._ranges, (end,)) - 1
        self._extend(at)
        while at >= 0 and self._ranges[at].end <= start:
            at = self._wider[at]
        return self._ranges[at] if at >= 0 else None

    def __getitem__(self, number: int) -> Range:
        """By start."""
        return self._ranges[number]

    def find(self, offsets: Ints) -> Ints:
        """For many offsets at once the number of the range that `at` gives, -1 without one."""
        import numpy as np

        found = np.full(len(offsets), -1)
        if not self._ranges:
            return found
        if self._columns is None:
            self._extend(len(self._ranges) - 1)
            bounds = [(min(one.start, _LONG_MAX), min(one.end, _LONG_MAX)) for one in self._ranges]
            self._columns = *np.array(bounds, np.int64).T, np.array(self._wider, np.int64)
        starts, ends, wider = self._columns
        found[:] = np.searchsorted(starts, offsets, side="right") - 1
        while len(short := np.flatnonzero((found >= 0) & (ends[found] <= offsets))):
            found[short] = wider[found[short]]
        return found

    def at(self, offset: int | None) -> Range | None:
        """The last range around an offset."""
        return None if offset is None else self.over(offset, offset + 1)

    def _extend(self, last: int) -> None:
        for number in range(len(self._wider), last + 1):
            wider = number - 1
            while wider >= 0 and self._ranges[wider].end <= self._ranges[number].end:
                wider = self._wider[wider]
            self._wider.append(wider)


class RangesByCode:
    """Ranges, some of which explain a finding: one that does not hides none around it."""

    def __init__(self) -> None:
        self._ranges: dict[str, Ranges] = {}

    def __iter__(self) -> Iterator[Range]:
        """Code by code."""
        for one in self._ranges.values():
            yield from one

    def add(self, start: int, end: int, code: str) -> None:
        """One more range, in any order."""
        self._ranges.setdefault(code, Ranges()).add(start, end, code)

    def over(self, start: int, end: int, but: Collection[str] = ()) -> Range | None:
        """As `Ranges.over`, among those of other codes than `but`."""
        found = (one.over(start, end) for code, one in self._ranges.items() if code not in but)
        return max((one for one in found if one is not None), default=None)
