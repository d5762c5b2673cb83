"""Queue offsets: which records keep theirs, and which ones are missing between them.

A broker hands records to a queue in the order of the log and does not look where a unit goes (`ConsumeQueue
#putMessagePositionInfo`): offsets that fall make records invisible, offsets that jump shift all that follow.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from rmqtool.repair.salvage.tables import Piece

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    from rmqtool.repair.salvage.tables import Found

    Ints = npt.NDArray[np.int64]


@dataclass(slots=True)
class Hole:
    """Queue offsets `[first, end)` of a partition that no record has; the log has `[start, stop)` for them.

    time: store time (ms) of the record in front of it.
    """

    partition: int
    first: int
    end: int
    start: int
    stop: int
    time: int


def in_queue_order(found: Found) -> Ints:
    """Row numbers of the pieces, by partition and physical offset."""
    return np.lexsort((found.pieces[:, Piece.START], found.pieces[:, Piece.PARTITION]))


def displaced(found: Found) -> Ints:
    """Row numbers of the pieces that must leave, so that the offsets of every queue rise with the log.

    Of each queue the rising chain with the most records stays.
    """
    order = in_queue_order(found)
    pieces = found.pieces[order]
    if len(pieces) == 0:
        return order
    same = pieces[1:, Piece.PARTITION] == pieces[:-1, Piece.PARTITION]
    falls = same & (pieces[1:, Piece.FIRST] < pieces[:-1, Piece.END])
    gone: list[Ints] = []
    for partition in np.unique(pieces[1:, Piece.PARTITION][falls]).tolist():
        low, high = np.searchsorted(pieces[:, Piece.PARTITION], [partition, partition + 1])
        stays = _heaviest_chain(pieces[low:high])
        gone.append(order[low:high][~stays])
    return np.concatenate(gone) if gone else np.empty(0, np.int64)


def _heaviest_chain(pieces: Ints) -> npt.NDArray[np.bool_]:
    """Which pieces form the rising chain with the most records (weighted, by their ends)."""
    ends: list[int] = []
    """rising, of chains each heavier than all that end before it"""
    weights: list[int] = []
    lasts: list[int] = []
    before = [-1] * len(pieces)
    columns = [Piece.FIRST, Piece.END, Piece.COUNT]
    for number, (first, end, count) in enumerate(pieces[:, columns].tolist()):
        place = bisect_right(ends, first) - 1
        weight = count + (weights[place] if place >= 0 else 0)
        before[number] = lasts[place] if place >= 0 else -1
        at = bisect_right(ends, end)
        if at and weights[at - 1] >= weight:
            continue
        beaten = at
        while beaten < len(ends) and weights[beaten] <= weight:
            beaten += 1
        ends[at:beaten], weights[at:beaten], lasts[at:beaten] = [end], [weight], [number]
    stays = np.zeros(len(pieces), np.bool_)
    one = lasts[-1]
    while one >= 0:
        stays[one] = True
        one = before[one]
    return stays


def holes(found: Found) -> Iterator[Hole]:
    """The missing offsets of all queues, partition after partition."""
    pieces = found.pieces[in_queue_order(found)]
    before, after = pieces[:-1], pieces[1:]
    jumps = (before[:, Piece.PARTITION] == after[:, Piece.PARTITION]) & (
        after[:, Piece.FIRST] > before[:, Piece.END]
    )
    for number in np.flatnonzero(jumps).tolist():
        last, following = before[number].tolist(), after[number].tolist()
        yield Hole(
            last[Piece.PARTITION],
            last[Piece.END],
            following[Piece.FIRST],
            last[Piece.STOP],
            following[Piece.START],
            last[Piece.TIME],
        )


def heads(found: Found) -> Iterator[Hole]:
    """The missing first offsets of the queues of a log that begins at 0.

    A queue is given blank units for them (`ConsumeQueue#fillPreBlank`), and those lead to physical offset 0:
    a broker whose log begins there takes them for messages that it cannot read.
    """
    pieces = found.pieces[in_queue_order(found)]
    first = np.concatenate([[True], pieces[1:, Piece.PARTITION] != pieces[:-1, Piece.PARTITION]])[
        : len(pieces)
    ]
    for piece in pieces[first & (pieces[:, Piece.FIRST] > 0)].tolist():
        yield Hole(piece[Piece.PARTITION], 0, piece[Piece.FIRST], 0, piece[Piece.START], piece[Piece.TIME])
