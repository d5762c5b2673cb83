"""Cells: every byte of a segment is in exactly one state."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rmqtool.report.cells import ALL_CELLS, LEAST_CELLS, MOST_CELLS, Grid, cells_for, pieces

LENGTHS = st.lists(st.tuples(st.integers(0, 40), st.integers(1, 90), st.integers(0, 4)), max_size=40)
"""of stretches: bytes in front, length, state"""


def laid_out(lengths):
    """Starts, ends and states of stretches one behind the other."""
    at, found = 0, []
    for gap, length, code in lengths:
        found.append((at + gap, at + gap + length, code))
        at += gap + length
    columns = np.array(found, np.int64).reshape(-1, 3)
    return columns[:, 0], columns[:, 1], columns[:, 2]


def byte_by_byte(starts, ends, codes, grid):
    """Bytes by cell and state, as one who counts them."""
    found = {}
    for start, end, code in zip(starts.tolist(), ends.tolist(), codes.tolist(), strict=True):
        for at in range(max(start, 0), min(end, grid.size)):
            key = at // grid.cell_bytes, code
            found[key] = found.get(key, 0) + 1
    return found


@given(LENGTHS, st.integers(0, 3000), st.integers(1, 70))
def test_pieces_are_what_counting_bytes_gives(lengths, size, most):
    starts, ends, codes = laid_out(lengths)
    grid = Grid.of(size, most)
    found = pieces(starts, ends, codes, grid)
    keys = list(zip(found.cells.tolist(), found.codes.tolist(), strict=True))
    assert len(set(keys)) == len(keys)
    assert dict(zip(keys, found.sums.tolist(), strict=True)) == byte_by_byte(starts, ends, codes, grid)


@given(st.integers(0, 1 << 40), st.integers(1, MOST_CELLS))
def test_cells_are_the_segment(size, most):
    grid = Grid.of(size, most)
    assert grid.count <= most
    assert int(grid.sizes().sum()) == size
    assert (grid.sizes() > 0).all()


@pytest.mark.parametrize("segments", [0, 1, 10, 300, 2048, 100_000])
def test_cells_of_all_segments_are_bounded(segments):
    assert LEAST_CELLS <= cells_for(segments) <= MOST_CELLS
    assert cells_for(segments) * segments <= max(ALL_CELLS, LEAST_CELLS * segments)
