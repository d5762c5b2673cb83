"""One queue through a start, by hand: expected values follow from `ConsumeQueue` line by line."""

from __future__ import annotations

import struct
import tempfile
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rmqtool.broker.consume_queue import ConsumeQueue, NegativePositionError
from rmqtool.broker.mapped_files import MappedFile, MappedFiles
from rmqtool.broker.queue_records import NO_CODE, QueueRecords
from rmqtool.scan.fields import DispatchColumn
from rmqtool.store.layout import Store

if TYPE_CHECKING:
    from collections.abc import Sequence

SIZE = 100
"""five units in a file"""
RECORD = 1000


def queue(tmp_path: Path, *files: Sequence[tuple[int, int]], base: int = 0, floor: int = 0) -> ConsumeQueue:
    """A queue with these (offset, size) units, file by file."""
    directory = tmp_path / "consumequeue" / "T" / "0"
    directory.mkdir(parents=True)
    (tmp_path / "commitlog").mkdir()
    for number, units in enumerate(files):
        raw = b"".join(struct.pack(">qiq", offset, size, 0) for offset, size in units)
        (directory / f"{base + number * SIZE:020d}").write_bytes(raw.ljust(SIZE, b"\0"))
    mapped = MappedFiles(SIZE, "consumequeue/T/0")
    for file in Store.open(tmp_path).files:
        mapped.files.append(MappedFile(int(file.name), SIZE, file.path, file))
    return ConsumeQueue("T", 0, mapped, "pread", floor)


def full(first: int) -> list[tuple[int, int]]:
    return [((first + i) * RECORD, RECORD) for i in range(5)]


def run(*records: tuple[int, int], displaced: Sequence[int] = ()) -> QueueRecords:
    """(physical offset, queue offset) of records; those numbered in `displaced` lie elsewhere."""
    columns = np.zeros((len(DispatchColumn), len(records)), np.int64)
    columns[[DispatchColumn.OFFSET, DispatchColumn.SLOT]] = np.array(records, np.int64).T
    columns[DispatchColumn.SIZE], columns[DispatchColumn.CODE] = RECORD, NO_CODE
    places = np.arange(len(records))
    return QueueRecords(columns, places, ~np.isin(places, displaced))


def test_recovery_ends_at_the_first_unit_that_is_none(tmp_path: Path) -> None:
    made = queue(tmp_path, full(0), full(5)[:2])
    made.recover()
    assert (made.max_offset, made.max_physical) == (7, 7 * RECORD)


def test_recovery_deletes_what_follows_a_hole(tmp_path: Path) -> None:
    made = queue(tmp_path, full(0)[:3], full(5))
    made.recover()
    assert made.max_offset == 3
    assert made.files.deleted == ["consumequeue/T/0/00000000000000000100"]


def test_recovery_looks_at_three_files(tmp_path: Path) -> None:
    made = queue(tmp_path, [], full(5), full(10), full(15))
    made.recover()
    assert made.max_offset == 20


def test_what_is_known_is_not_appended(tmp_path: Path) -> None:
    made = queue(tmp_path, full(0)[:3])
    made.recover()
    made.append(run((2 * RECORD, 2), (3 * RECORD, 3), (4 * RECORD, 4), (5 * RECORD, 5)))
    assert (made.max_offset, made.appended, made.max_physical) == (6, 3, 6 * RECORD)


def test_a_gap_is_closed_and_counted(tmp_path: Path) -> None:
    made = queue(tmp_path, full(0)[:3])
    made.recover()
    made.append(run((9 * RECORD, 9), (10 * RECORD, 10)))
    assert (made.max_offset, made.misplaced) == (5, 2)


def test_a_slot_below_the_end_is_a_duplicate(tmp_path: Path) -> None:
    made = queue(tmp_path, full(0)[:3])
    made.recover()
    made.append(run((9 * RECORD, 1), (10 * RECORD, 2)))
    assert (made.max_offset, made.appended) == (3, 0)


def test_a_duplicate_behind_a_full_file_still_makes_the_next_file(tmp_path: Path) -> None:
    made = queue(tmp_path, full(0))
    made.recover()
    made.append(run((9 * RECORD, 1), (10 * RECORD, 2)))
    assert made.max_offset == 5
    assert [one.base for one in made.files.files] == [0, SIZE]
    # the pass over the queues takes the first unit of that empty file without a look
    made.truncate(20 * RECORD)
    assert made.max_offset == 6


def test_a_queue_that_begins_later_gets_blank_units(tmp_path: Path) -> None:
    made = queue(tmp_path)
    made.append(run((50 * RECORD, 7), (51 * RECORD, 8)))
    assert (made.min_offset, made.max_offset, made.blanked) == (7, 9, 2)
    assert [one.base for one in made.files.files] == [SIZE]
    made.correct_min(0)
    assert made.min_offset == 5


def test_truncation_keeps_what_points_below(tmp_path: Path) -> None:
    made = queue(tmp_path, full(0), full(5))
    made.recover()
    made.truncate(3 * RECORD)
    assert (made.max_offset, made.max_physical) == (3, 3 * RECORD)
    assert made.files.deleted == ["consumequeue/T/0/00000000000000000100"]


def test_truncation_of_everything_leaves_the_offset(tmp_path: Path) -> None:
    made = queue(tmp_path, full(5))
    made.recover()
    made.truncate(RECORD)
    assert (made.max_offset, made.max_physical) == (0, RECORD)


@given(st.lists(st.integers(0, 9), min_size=1, max_size=10), st.integers(1, 11))
def test_truncation_takes_units_in_any_order(offsets: list[int], end: int) -> None:
    with tempfile.TemporaryDirectory() as name:
        made = queue(Path(name), *([(at, 1) for at in part] for part in (offsets[:5], offsets[5:]) if part))
        made.recover()
        made.truncate(end)
    kept = offsets
    while kept:  # file by file from the last one on, up to the first that keeps something
        low = (len(kept) - 1) // 5 * 5
        below = list(takewhile(lambda at: at < end, kept[low:]))
        kept = kept[:low] + below
        if below:
            break
    assert made.max_offset == len(kept)
    assert made.max_physical == (kept[-1] + 1 if kept else end)


def test_truncation_cuts_off_appended_units_of_displaced_records(tmp_path: Path) -> None:
    made = queue(tmp_path, full(0)[:3])
    made.recover()
    made.append(run((3 * RECORD, 3), (99 * RECORD, 4), (100 * RECORD, 5), displaced=[1, 2]))
    assert made.max_offset == 6
    made.truncate(50 * RECORD)
    assert (made.max_offset, made.max_physical) == (4, 4 * RECORD)


def test_old_units_behind_appended_ones_are_taken_again(tmp_path: Path) -> None:
    units = full(0)
    units[2] = (0, 0)
    made = queue(tmp_path, units)
    made.recover()
    assert made.max_offset == 2
    made.append(run((2 * RECORD, 2)))
    made.truncate(50 * RECORD)
    assert (made.max_offset, made.max_physical) == (5, 5 * RECORD)


@pytest.mark.parametrize("floor", [0, 4 * RECORD, 3 * RECORD + 1, 10 * RECORD])
def test_both_ways_find_the_same_minimum_in_a_healthy_queue(tmp_path: Path, floor: int) -> None:
    made = queue(tmp_path, full(0), full(5), floor=floor)
    made.recover()
    made.correct_min(floor)
    linear = made.min_offset
    made.min_logical = 0
    made.search_min(floor)
    expired = floor == 10 * RECORD
    assert linear == (0 if expired else -(-floor // RECORD))
    assert made.min_offset == (10 if expired else linear)


def test_an_empty_file_behind_a_full_one_throws(tmp_path: Path) -> None:
    made = queue(tmp_path, full(0), [])
    made.recover()
    assert made.max_offset == 5
    with pytest.raises(NegativePositionError):
        made.search_min(0)


def test_no_floor_is_no_offset(tmp_path: Path) -> None:
    made = queue(tmp_path)
    made.recover()
    made.search_min(-1)
    made.correct_min(-1)
    assert (made.min_offset, made.max_offset, made.max_physical) == (0, 0, -1)
