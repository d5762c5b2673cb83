"""Which pieces of a queue stay, and what goes into gaps: against trying everything."""

from __future__ import annotations

from itertools import combinations, pairwise

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from rmqtool.repair.salvage.bridge import Gap, allocate
from rmqtool.repair.salvage.queues import Hole, displaced, holes
from rmqtool.repair.salvage.tables import Found, Piece, Run

SPANS = st.lists(st.tuples(st.integers(0, 12), st.integers(1, 5)), min_size=1, max_size=8)


def found_of(spans: list[tuple[int, int]]) -> Found:
    pieces = np.zeros((len(spans), len(Piece)), np.int64)
    for number, (first, count) in enumerate(spans):
        pieces[number, [Piece.FIRST, Piece.END, Piece.COUNT]] = first, first + count, count
        pieces[number, [Piece.START, Piece.STOP]] = number * 100, number * 100 + 50
    return Found(np.zeros((1, len(Run)), np.int64), pieces)


def rises(spans: list[tuple[int, int]]) -> bool:
    return all(first + count <= other for (first, count), (other, _) in pairwise(spans))


@settings(max_examples=200, deadline=None)
@given(SPANS)
def test_the_heaviest_rising_chain_stays(spans: list[tuple[int, int]]) -> None:
    gone = set(displaced(found_of(spans)).tolist())
    kept = [span for number, span in enumerate(spans) if number not in gone]
    best = max(
        sum(count for _, count in chosen)
        for size in range(len(spans) + 1)
        for chosen in combinations(spans, size)
        if rises(list(chosen))
    )
    assert rises(kept)
    assert sum(count for _, count in kept) == best


def test_holes_lie_between_neighbours_of_a_queue() -> None:
    (hole,) = holes(found_of([(0, 3), (3, 2), (9, 1)]))
    assert (hole.first, hole.end, hole.start, hole.stop) == (5, 9, 150, 200)


def test_the_hole_that_ends_first_is_filled_first() -> None:
    gaps = [Gap(0, 300, rolls=False, time=0), Gap(1000, 1300, rolls=False, time=0)]
    late, early = Hole(1, 0, 3, 0, 2000, 0), Hole(2, 7, 9, 0, 500, 0)
    assert allocate(gaps, [late, early], lambda _: (100, 120, 1)) == []
    assert [(one.partition, one.first, one.end) for one in gaps[0].allocated] == [(2, 7, 9), (1, 0, 1)]
    assert [(one.partition, one.first, one.end) for one in gaps[1].allocated] == [(1, 1, 3)]
    assert gaps[0].room == 0 or gaps[0].room < 100


def test_what_does_not_fit_is_reported() -> None:
    gaps = [Gap(0, 300, rolls=True, time=0)]
    assert [one.partition for one in allocate(gaps, [Hole(1, 0, 4, 0, 300, 0)], lambda _: (100, 120, 1))] == [
        1
    ]
    assert [(one.first, one.end, one.size) for one in gaps[0].allocated] == [(0, 2, 120)]
    assert gaps[0].room == 292 - 240
