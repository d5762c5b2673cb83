"""The bytes of a segment in a fixed number of cells: how many bytes of each cell are in which state.

Everything is in columns: a stretch of bytes, such as a record, becomes as many pieces as it touches cells.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    Ints = npt.NDArray[np.int64]

MOST_CELLS = 256
"""cells of a segment"""
LEAST_CELLS = 16
"""the same in a log of very many segments"""
ALL_CELLS = 1 << 16
"""cells of all segments together"""


class State(IntEnum):
    """What a byte of a segment is. Records in order have a number behind these, one for each topic."""

    BAD_CRC = 0
    """of a record whose body fails its CRC"""
    GAP = 1
    """of no record, where one must be"""
    UNREADABLE = 2
    GARBAGE = 3
    """behind the last record, and neither zero nor records of an earlier life"""
    STALE = 4
    BLANK = 5
    """end-of-file filler"""
    ZERO = 6
    """allocated and never written"""
    UNREAD = 7
    """nothing is known of it: reading ended before"""


TOPICS_FROM = len(State)
"""number of the first topic"""

DAMAGE = (State.BAD_CRC, State.GAP, State.UNREADABLE, State.GARBAGE)


@dataclass(frozen=True, slots=True)
class Grid:
    """How a segment of `size` bytes is cut: cells of `cell_bytes`, the last one shorter."""

    size: int
    cell_bytes: int

    @classmethod
    def of(cls, size: int, most: int = MOST_CELLS) -> Grid:
        """At most so many cells."""
        return cls(size, max(-(-size // most), 1))

    @property
    def count(self) -> int:
        """How many cells there are."""
        return -(-self.size // self.cell_bytes)

    def sizes(self) -> Ints:
        """Bytes of each cell."""
        found = np.full(self.count, self.cell_bytes, np.int64)
        if self.count:
            found[-1] = self.size - self.cell_bytes * (self.count - 1)
        return found


def cells_for(segments: int) -> int:
    """How many cells each of so many segments has."""
    return min(max(ALL_CELLS // max(segments, 1), LEAST_CELLS), MOST_CELLS)


@dataclass(frozen=True, slots=True)
class Pieces:
    """Bytes by cell and number of their state, each pair once."""

    cells: Ints
    codes: Ints
    sums: Ints

    @property
    def nbytes(self) -> int:
        """Memory."""
        return self.cells.nbytes + self.codes.nbytes + self.sums.nbytes


def pieces(starts: Ints, ends: Ints, codes: Ints, grid: Grid) -> Pieces:
    """Stretches [start, end) of a segment, in order and apart from each other, cut at the cells' bounds.

    What lies outside of the segment is left out.
    """
    if len(starts) and (starts[0] < 0 or ends[-1] > grid.size):
        starts, ends = np.clip(starts, 0, grid.size), np.clip(ends, 0, grid.size)
        kept = starts < ends
        starts, ends, codes = starts[kept], ends[kept], codes[kept]
    width = int(codes.max(initial=0)) + 1
    base = int(starts[0]) // grid.cell_bytes * width if len(starts) else 0
    places, sums = [], []
    while len(starts):  # each time the part of every stretch in its first cell: most lie in one
        cells = starts // grid.cell_bytes
        high = np.minimum(ends, (cells + 1) * grid.cell_bytes)
        places.append(cells * width + codes - base)
        sums.append(high - starts)
        more = np.flatnonzero(high < ends)
        starts, ends, codes = high[more], ends[more], codes[more]
    empty = [np.empty(0, np.int64)]
    # no larger than cells times states of a run; sums are below 2^53, so that floats hold them exactly
    dense = np.bincount(np.concatenate(places or empty), np.concatenate(sums or empty)).astype(np.int64)
    keys = np.flatnonzero(dense)
    return Pieces((keys + base) // width, (keys + base) % width, dense[keys])
