"""Sparse files are read by their data, and say the same as when every byte of them is read."""

from __future__ import annotations

import os
import resource
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rmqtool.store.access import open_source
from rmqtool.store.bytes import MemorySource
from rmqtool.store.holes import data_places, data_windows, hole_before, is_zero, last_in, last_nonzero

if TYPE_CHECKING:
    from pathlib import Path

    from rmqtool.store.bytes import Window

BLOCK = 4096
TIB = 1 << 40


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("holes") / "file"


@given(st.integers(0, 5000), st.lists(st.tuples(st.integers(0, 4999), st.integers(0, 255)), max_size=4))
def test_the_last_byte_that_is_not_zero(size: int, written: list[tuple[int, int]]) -> None:
    window = np.zeros(size, np.uint8)
    for at, value in written:
        window[at : at + 1] = value
    assert last_in(window) == max(np.flatnonzero(window).tolist(), default=-1)


@settings(max_examples=25)
@given(
    st.lists(st.sampled_from(["hole", "zeros", "data"]), max_size=12),
    st.integers(0, 70),
    st.sampled_from([20, BLOCK, 3 * BLOCK + 20]),
    st.integers(0, BLOCK),
)
def test_windows_have_all_that_is_not_zero(
    place: Path, blocks: list[str], rest: int, step: int, start: int
) -> None:
    place.unlink(missing_ok=True)
    with place.open("wb") as file:
        for kind in blocks:
            if kind == "hole":
                file.seek(BLOCK, os.SEEK_CUR)
            else:
                file.write((b"\0" if kind == "zeros" else b"\0\7") * (BLOCK // (2 - (kind == "zeros"))))
        file.truncate(file.tell() + rest)
    raw = place.read_bytes()
    with open_source(place, "pread") as source:
        found = bytearray(len(raw))
        for at, window in data_windows(source, start, len(raw), step):
            assert (at - start) % step == 0
            found[at : at + len(window)] = window.tobytes()
        assert bytes(found[start:]) == raw[start:]
        assert last_nonzero(source) == len(raw.rstrip(b"\0")) - 1
        assert is_zero(source, start) == (not any(raw[start:]))
        before = hole_before(source, start := min(start, len(raw)))
        assert not any(raw[before:start])
        assert before < BLOCK or blocks[before // BLOCK - 1] != "hole"
        leads = list(data_places(source, start, len(raw), step, 3))
        for at in range(start, len(raw)):
            if raw[at]:
                assert any(one <= max(at - 3, start) < one + step for one in leads)


def test_a_hole_of_a_tib_costs_nothing(place: Path) -> None:
    with place.open("wb") as file:
        file.write(b"\1")
        file.seek(TIB // 2)
        file.write(b"\2")
        file.truncate(TIB)
    with open_source(place, "pread") as source:
        assert [at for at, _ in data_windows(source, 0, TIB, 1 << 20)] == [0, TIB // 2]
        assert last_nonzero(source) == TIB // 2
        assert 0 <= hole_before(source, TIB) - TIB // 2 <= BLOCK
        assert not is_zero(source, 1)
        assert is_zero(source, TIB // 2 + 1)


class Cut(MemorySource):
    """A file that another process cuts behind the question where its data lies."""

    def window(self, offset: int, length: int) -> Window:
        return super().window(offset, length)[:0]


def test_what_was_cut_meanwhile_is_no_data() -> None:
    assert is_zero(Cut(bytes(100), "cut"), 10)


def test_a_large_window_takes_the_memory_of_its_data(place: Path) -> None:
    """A file of 2 GiB with two bytes; cut while it is open, the window is shorter."""
    place.unlink(missing_ok=True)
    with place.open("wb") as file:
        file.seek(1 << 30)
        file.write(b"\1\2")
        file.truncate(1 << 31)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with open_source(place, "pread") as source:
        window = source.window(5, 1 << 31)
        assert (len(window), window[(1 << 30) - 5 : (1 << 30) - 2].tolist()) == ((1 << 31) - 5, [1, 2, 0])
        assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 64 << 10
        os.truncate(place, (1 << 30) + 1)
        assert len(source.window(0, 1 << 31)) == (1 << 30) + 1
    place.unlink()
