"""Two records of one queue with one queue offset: which one counts.

One of them is in order, the other one is an outlier, only as the queue offset is taken: one of the two is
wrong. Where neither units nor what other queues miss tells which, the pair is undecided.
"""

from __future__ import annotations

import sys
from bisect import bisect_left
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from rmqtool.repair.keep.model import QueueKey, Run


class Duplicate(NamedTuple):
    """Single records with one queue offset in one queue: the one in order, and the outlier."""

    chosen: Run
    outlier: Run


class Settled(NamedTuple):
    """exchanged: pairs of which the outlier counts. undecided: those for which nothing tells."""

    exchanged: list[Duplicate]
    undecided: list[Duplicate]


def duplicates_of(chosen: Mapping[QueueKey, Sequence[Run]], outliers: Iterable[Run]) -> list[Duplicate]:
    """By queue, in the order of the log."""
    alone = {(one.key, one.first): one for one in outliers if one.count == 1}
    return [
        Duplicate(one, alone[key, one.first])
        for key in sorted({key for key, _ in alone})
        for one in chosen[key]
        if one.count == 1 and (key, one.first) in alone
    ]


def settle(
    duplicates: Iterable[Duplicate],
    chosen: Mapping[QueueKey, Sequence[Run]],
    with_unit: Collection[int],
    missed: Collection[int],
) -> Settled:
    """Which record of each pair counts.

    The one in order does, unless the outlier lies between the same neighbours; then, of two records with 7
    between those with 6 and 8:

    1. The one that has a unit at 7 does, if the other one has none.
    2. The one that no other queue misses does, if another one misses 7 where the other record lies.
    3. Else the first in order stays, and the pair is undecided.

    with_unit: where records begin that have a unit at their queue offset. missed: those that another queue
    misses.
    """
    settled = Settled([], [])
    for pair in duplicates:
        one, other = pair
        if not _fits(chosen[one.key], pair):
            continue
        if (one.start in with_unit) != (other.start in with_unit):
            wrong = other.start in with_unit
        elif (one.start in missed) != (other.start in missed):
            wrong = one.start in missed
        else:
            settled.undecided.append(pair)
            continue
        if wrong:
            settled.exchanged.append(pair)
    return settled


def _fits(chosen: Sequence[Run], pair: Duplicate) -> bool:
    """Whether the outlier lies between the neighbours of the record in order."""
    at = bisect_left(chosen, pair.chosen.start, key=lambda run: run.start)
    low = chosen[at - 1].end if at else 0
    high = chosen[at + 1].start if at + 1 < len(chosen) else sys.maxsize
    return low <= pair.outlier.start < high
