"""What salvage knows of the records it found: two tables of int64, a row a stretch, never a row a record.

Memory follows the number of stretches: an image of whole segments has a few thousand, whatever its size.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    Ints = npt.NDArray[np.int64]


class Run(IntEnum):
    """Records that lie behind each other and continue each other by their stored physical offsets.

    LENGTH counts bytes of the file and of the address space alike. HEADER: bytes in front of each record that
    belong to no record (`ENTRY_HEAD_SIZE` or 0); those of the first are outside of the run. HOST: number of
    the store host that the records state, or, where `hosts` says so, of the log in which they lie. ROLLS: the
    segment end that a blank behind the run tells, or -1.
    """

    SOURCE = 0
    POSITION = 1
    LENGTH = 2
    COUNT = 3
    OFFSET = 4
    FIRST_TIME = 5
    LAST_TIME = 6
    HOST = 7
    HEADER = 8
    ROLLS = 9


class Piece(IntEnum):
    """Records of one topic and queue (PARTITION) in one run, whose queue offsets `[FIRST, END)` have no hole.

    START, STOP: physical offsets of the first record's first and the last record's behind-last byte. TIME:
    store time of the last record.
    """

    RUN = 0
    PARTITION = 1
    FIRST = 2
    END = 3
    START = 4
    STOP = 5
    COUNT = 6
    TIME = 7


@dataclass(frozen=True, slots=True)
class Found:
    """Runs (rows of `Run`), and their pieces (rows of `Piece`, whose RUN is a row number)."""

    runs: Ints
    pieces: Ints

    @property
    def ends(self) -> Ints:
        """Physical offset behind each run."""
        return self.runs[:, Run.OFFSET] + self.runs[:, Run.LENGTH]


def empty() -> Found:
    """Nothing found."""
    return Found(np.empty((0, len(Run)), np.int64), np.empty((0, len(Piece)), np.int64))


def joined(parts: Sequence[Found]) -> Found:
    """All of them behind each other."""
    if not parts:
        return empty()
    starts = np.cumsum([0, *(len(part.runs) for part in parts[:-1])])
    pieces = [part.pieces.copy() for part in parts]
    for start, piece in zip(starts, pieces, strict=True):
        piece[:, Piece.RUN] += start
    return Found(np.concatenate([part.runs for part in parts]), np.concatenate(pieces))


def taken(found: Found, chosen: Ints) -> Found:
    """Only the runs of these row numbers, in this order."""
    new = np.full(len(found.runs), -1, np.int64)
    new[chosen] = np.arange(len(chosen))
    pieces = found.pieces[new[found.pieces[:, Piece.RUN]] >= 0].copy()
    pieces[:, Piece.RUN] = new[pieces[:, Piece.RUN]]
    return Found(found.runs[chosen], pieces)


def merged(found: Found) -> Found:
    """Neighbours in the same file that continue each other made one, and so their pieces."""
    runs = found.runs
    if len(runs) == 0:
        return found
    before, after = runs[:-1], runs[1:]
    space = after[:, Run.POSITION] - before[:, Run.POSITION] - before[:, Run.LENGTH]
    same = (
        (before[:, Run.SOURCE] == after[:, Run.SOURCE])
        & (before[:, Run.HOST] == after[:, Run.HOST])
        & (space == after[:, Run.OFFSET] - before[:, Run.OFFSET] - before[:, Run.LENGTH])
        & (space == after[:, Run.HEADER])
        & ((space == before[:, Run.HEADER]) | (before[:, Run.COUNT] == 1))
    )
    starts = np.flatnonzero(np.concatenate([[True], ~same]))
    ends = np.concatenate([starts[1:], [len(runs)]]) - 1
    whole = runs[starts].copy()
    whole[:, Run.COUNT] = np.add.reduceat(runs[:, Run.COUNT], starts)
    whole[:, Run.LENGTH] = runs[ends, Run.POSITION] + runs[ends, Run.LENGTH] - whole[:, Run.POSITION]
    whole[:, Run.FIRST_TIME] = np.minimum.reduceat(runs[:, Run.FIRST_TIME], starts)
    whole[:, Run.LAST_TIME] = np.maximum.reduceat(runs[:, Run.LAST_TIME], starts)
    whole[:, Run.HEADER] = np.maximum.reduceat(runs[:, Run.HEADER], starts)
    whole[:, Run.ROLLS] = runs[ends, Run.ROLLS]
    group = np.cumsum(np.concatenate([[0], ~same]))
    return Found(whole, _merged_pieces(found.pieces, group))


def _merged_pieces(pieces: Ints, group: Ints) -> Ints:
    if len(pieces) == 0:
        return pieces
    pieces = pieces.copy()
    pieces[:, Piece.RUN] = group[pieces[:, Piece.RUN]]
    pieces = pieces[np.lexsort((pieces[:, Piece.START], pieces[:, Piece.PARTITION], pieces[:, Piece.RUN]))]
    before, after = pieces[:-1], pieces[1:]
    same = (
        (before[:, Piece.RUN] == after[:, Piece.RUN])
        & (before[:, Piece.PARTITION] == after[:, Piece.PARTITION])
        & (before[:, Piece.END] == after[:, Piece.FIRST])
    )
    starts = np.flatnonzero(np.concatenate([[True], ~same]))
    ends = np.concatenate([starts[1:], [len(pieces)]]) - 1
    whole = pieces[starts]
    whole[:, Piece.COUNT] = np.add.reduceat(pieces[:, Piece.COUNT], starts)
    for column in (Piece.END, Piece.STOP, Piece.TIME):
        whole[:, column] = pieces[ends, column]
    return whole
