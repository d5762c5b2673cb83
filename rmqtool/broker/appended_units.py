"""Units that a start appends to a queue file, kept beside what lies on disk.

They are not kept one by one. Recovery only asks of a unit whether its offset lies between the log's first
byte and the end of recovery, which is true of every record that lies where it says; only others, and each
unit whose end may be asked for, are kept as they are.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    Ints = npt.NDArray[np.int64]


@dataclass(slots=True)
class AppendedUnits:
    """Units `[low, high)` of a file, by number in the file, that the start appended.

    exact: (number, offset, size) arrays of those that are kept, later ones over earlier ones. behind: such
    arrays of those that a truncation took away: their bytes stay in the file.
    """

    low: int
    high: int
    exact: list[tuple[Ints, Ints, Ints]] = field(default_factory=list)
    behind: list[tuple[Ints, Ints, Ints]] = field(default_factory=list)

    def add(self, first: int, count: int) -> None:
        """Units were appended at `first`."""
        self.low = min(self.low, first)
        self.high = first + count

    def keep(self, numbers: Ints, offsets: Ints, sizes: Ints) -> None:
        """These units are not ordinary, or are the last known."""
        if len(numbers):
            self.exact.append((numbers, offsets, sizes))

    def cut(self, end: int) -> None:
        """Units from `end` on are no longer data."""
        self.low, self.high = min(self.low, end), min(self.high, end)
        parts = [(numbers < end, numbers, offsets, sizes) for numbers, offsets, sizes in self.exact]
        self.exact = [(n[m], o[m], s[m]) for m, n, o, s in parts if m.any()]
        self.behind += [(n[~m], o[~m], s[~m]) for m, n, o, s in parts if not m.all()]

    def written(self) -> Iterator[tuple[Ints, Ints, Ints]]:
        """(number, offset, size) arrays of what is kept of all that was written, in this order."""
        yield from self.behind
        yield from self.exact

    def lay(self, first: int, offsets: Ints, sizes: Ints, ordinary: int) -> None:
        """Puts the appended units over columns that begin at unit `first`.

        `ordinary` stands for an offset that is not kept.
        """
        count = len(offsets)
        low, high = max(self.low - first, 0), min(self.high - first, count)
        if low < high:
            offsets[low:high], sizes[low:high] = ordinary, 1
        for numbers, kept, lengths in self.exact:
            here = (numbers >= first) & (numbers < first + count)
            places = numbers[here] - first
            offsets[places], sizes[places] = kept[here], lengths[here]

    def end_of(self, number: int) -> int | None:
        """Physical end of an appended unit, None when it was not kept."""
        for numbers, offsets, sizes in reversed(self.exact):
            hits = np.flatnonzero(numbers == number)
            if hits.size:
                return int(offsets[hits[-1]] + sizes[hits[-1]])
        return None
