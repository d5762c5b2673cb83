"""Queues against a broker's rules, written down once more record by record."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from formats.consumequeue import EXT_END_MARKER, PRE_BLANK, BatchUnit, ExtUnit, Unit, ext_address
from rmqtool.broker.extension_files import ExtensionFiles
from rmqtool.broker.file_rules import FileRules
from rmqtool.broker.queue_records import QueueRecords
from rmqtool.build.files import DerivedFiles
from rmqtool.build.queues import Queues
from rmqtool.scan.fields import DispatchColumn
from tests.build.building import files_of, kernel_modules

if TYPE_CHECKING:
    from types import ModuleType

UNITS = 5
RULES = FileRules(consume_queue_size=UNITS * 20, batch_queue_size=3 * 46, extension_size=70, extension=False)

RECORDS = st.lists(
    st.tuples(st.integers(0, 30), st.sampled_from([0, 0, 0, 100, -100])), min_size=1, max_size=30
)
"""slots, and how far in front of or behind its place a record lies"""


def run_of(slots: list[int], offsets: list[int], counts: list[int] | None = None) -> QueueRecords:
    columns = np.zeros((len(DispatchColumn), len(slots)), np.int64)
    columns[DispatchColumn.SLOT] = slots
    columns[DispatchColumn.OFFSET] = offsets
    columns[DispatchColumn.SIZE] = 100
    columns[DispatchColumn.CODE] = [slot - 7 for slot in slots]
    columns[DispatchColumn.TIME] = [1000 + number for number in range(len(slots))]
    messages = None if counts is None else np.array(counts, np.int64)
    return QueueRecords(columns, np.arange(len(slots)), counts=messages)


class JavaQueue:
    """`ConsumeQueue#putMessagePositionInfo`: files by their first byte, and the end of the last message."""

    def __init__(self) -> None:
        self.files: dict[int, bytes] = {}
        self.known = -1

    def put(self, offset: int, size: int, code: int, slot: int) -> None:
        if offset + size <= self.known:
            return
        expected = slot * 20
        if not self.files:
            self.files[expected - expected % (UNITS * 20)] = b""
            if slot:
                self.files = dict.fromkeys(self.files, PRE_BLANK * (slot % UNITS))
        base = max(self.files)
        current = base + len(self.files[base])
        if len(self.files[base]) == UNITS * 20:
            base += UNITS * 20
            self.files[base] = b""
        if slot and expected < current:
            return
        self.files[base] += Unit.build({"physical_offset": offset, "size": size, "tags_code": code})
        self.known = offset + size


@settings(max_examples=150, deadline=None)
@given(RECORDS, st.integers(1, 30))
def test_units_are_those_of_the_brokers_rules(records: list[tuple[int, int]], at_once: int) -> None:
    slots = [slot for slot, _ in records]
    offsets = [max(100 * number + shift, 0) for number, (_, shift) in enumerate(records)]
    java = JavaQueue()
    for slot, offset in zip(slots, offsets, strict=True):
        java.put(offset, 100, slot - 7, slot)
    wanted = {
        f"consumequeue/T/3/{base:020d}": data.ljust(UNITS * 20, b"\0") for base, data in java.files.items()
    }
    for kernels in kernel_modules():
        with tempfile.TemporaryDirectory() as name:
            queues = Queues(RULES, DerivedFiles(Path(name)), kernels)
            for start in range(0, len(slots), at_once):
                queues.append(
                    ("T", 3), run_of(slots[start : start + at_once], offsets[start : start + at_once])
                )
            assert files_of(Path(name)) == wanted
            (queue,) = queues.built().values()
            assert queue.units + queue.doubled == len(records)


@pytest.mark.parametrize("kernels", kernel_modules())
def test_slots_of_lost_records_stay_free(kernels: ModuleType, tmp_path: Path) -> None:
    """Without damage the broker's way: the next slot, whatever the record says."""
    for name, lost, expected in (("lost", 3, [10, 11, None, None, 14]), ("none", 0, [10, 11, 14])):
        (tmp_path / name).mkdir()
        queues = Queues(RULES, DerivedFiles(tmp_path / name), kernels)
        queues.append(("T", 0), run_of([10, 11], [0, 100]))
        queues.append(("T", 0), run_of([14], [500]), lost)
        (queue,) = queues.built().values()
        data = b"".join(files_of(tmp_path / name).values())
        units = [data[at : at + 20] for at in range(0, 20 * len(expected), 20)]
        slots = [None if unit == PRE_BLANK else Unit.parse(unit).tags_code + 7 for unit in units]
        assert slots == expected
        assert (queue.filled, queue.misplaced, queue.next_slot) == ((2, 0, 15) if lost else (0, 1, 13))


@pytest.mark.parametrize("kernels", kernel_modules())
def test_no_more_slots_stay_free_than_records_can_be_lost(kernels: ModuleType, tmp_path: Path) -> None:
    queues = Queues(RULES, DerivedFiles(tmp_path), kernels)
    queues.append(("T", 0), run_of([0, 10**15, 2], [0, 100, 200]), 50)
    (queue,) = queues.built().values()
    assert (queue.units, queue.filled, queue.misplaced) == (3, 0, 1)


def test_a_files_time_is_that_of_its_last_record(tmp_path: Path) -> None:
    files = DerivedFiles(tmp_path)
    queues = Queues(RULES, files, kernel_modules()[0])
    queues.append(("T", 0), run_of(list(range(7)), list(range(0, 700, 100))))
    assert files.times == {
        f"consumequeue/T/0/{0:020d}": 1004,
        f"consumequeue/T/0/{100:020d}": 1006,
    }


def test_extension_files_end_with_a_marker_when_the_next_begins(tmp_path: Path) -> None:
    """70 bytes take three units of 20, as four stay free; the marker comes with the fourth."""
    extension = ExtensionFiles("T", 0, 70, DerivedFiles(tmp_path))
    codes, times = np.arange(3), np.arange(3) + 50
    assert extension.put(codes, times).tolist() == [ext_address(at) for at in (0, 20, 40)]
    assert EXT_END_MARKER not in next(iter(files_of(tmp_path).values()))
    assert extension.put(codes[:1] + 9, times[:1]).tolist() == [ext_address(70)]
    first, second = files_of(tmp_path).values()
    units = [
        ExtUnit.build(
            {"size": 20, "tags_code": code, "msg_store_time": code + 50, "bit_map_size": 0, "bit_map": b""}
        )
        for code in range(3)
    ]
    assert first == (b"".join(units) + EXT_END_MARKER).ljust(70, b"\0")
    assert ExtUnit.parse(second).tags_code == 9


def test_batch_units_lie_one_behind_the_other(tmp_path: Path) -> None:
    queues = Queues(
        replace(RULES, batch_topics=frozenset({"T"})), DerivedFiles(tmp_path), kernel_modules()[0]
    )
    queues.append(("T", 1), run_of([5, 8, 8, 12, 13], [0, 100, 100, 300, 200], [3, 4, 4, 1, 2]))
    data = b"".join(files_of(tmp_path).values())
    units = [BatchUnit.parse(data[at : at + 46]) for at in range(0, 3 * 46, 46)]
    assert [(one.base_offset, one.batch_size, one.compacted_offset) for one in units] == [
        (5, 3, -1),
        (8, 4, -1),
        (12, 1, -1),
    ]
    (queue,) = queues.built().values()
    assert (queue.first, queue.next_slot, queue.doubled) == (5, 13, 2)
    queues.append(("T", 1), run_of([20], [400], [1]))
    assert sorted(files_of(tmp_path)) == [f"batchconsumequeue/T/1/{base:020d}" for base in (0, 138)]
