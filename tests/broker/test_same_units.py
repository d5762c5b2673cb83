"""A queue does not depend on how its records are handed over, nor on which kernels write it."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from rmqtool.broker.batch_consume_queue import BatchConsumeQueue
from rmqtool.broker.consume_queue import ConsumeQueue
from rmqtool.broker.extension_files import ExtensionFiles
from rmqtool.broker.files import StoreFiles
from rmqtool.broker.mapped_files import MappedFiles
from rmqtool.broker.queue_records import QueueRecords
from rmqtool.scan.fields import DispatchColumn
from tests.build.building import files_of, kernel_modules

if TYPE_CHECKING:
    from types import ModuleType

UNITS = 4
RECORDS = st.lists(
    st.tuples(
        st.integers(-300, 300),
        st.integers(91, 400),
        st.one_of(st.integers(-3, 12), st.sampled_from([-(1 << 63), 1 << 60, (1 << 63) - 1])),
        st.integers(-9, 9),
    ),
    max_size=25,
)
"""bytes between a record and the one before, its size, its queue offset, its tags code"""


def records(given_: list[tuple[int, int, int, int]]) -> QueueRecords:
    gaps, sizes, slots, codes = np.array(given_, np.int64).reshape(-1, 4).T
    ends = np.maximum(np.cumsum(gaps + sizes), sizes)
    columns = np.zeros((len(DispatchColumn), len(given_)), np.int64)
    columns[DispatchColumn.SLOT], columns[DispatchColumn.OFFSET], columns[DispatchColumn.SIZE] = (
        slots,
        ends - sizes,
        sizes,
    )
    columns[DispatchColumn.CODE], columns[DispatchColumn.TIME] = codes, ends
    places = np.arange(len(given_))
    return QueueRecords(columns, places, counts=np.ones_like(places), own=places % 3 > 0)


def appended(
    root: Path, run: QueueRecords, parts: list[slice], kernels: ModuleType, *, batch: bool, floor: int | None
) -> tuple[dict[str, bytes], dict[str, object]]:
    """Files of a queue that is given these parts of a run, and what it counted."""
    root.mkdir()
    with StoreFiles(str(root)) as files:
        queue: ConsumeQueue | BatchConsumeQueue
        if batch:
            mapped = MappedFiles(46 * UNITS, "batchconsumequeue/T/1", disk=files)
            queue = BatchConsumeQueue("T", 1, mapped, "pread", keep_units=floor is not None)
        else:
            mapped = MappedFiles(20 * UNITS, "consumequeue/T/1", disk=files)
            extension = ExtensionFiles("T", 1, 70, files)
            queue = ConsumeQueue("T", 1, mapped, "pread", floor, kernels, extension=extension)
        own = np.zeros(0, np.bool_) if run.own is None else run.own
        for part in parts:
            queue.append(QueueRecords(run.columns, run.chosen[part], counts=run.counts, own=own[part]))
    names = ("appended", "misplaced", "doubled", "skipped", "max_physical", "min_offset", "max_offset")
    return files_of(root), {name: getattr(queue, name) for name in names}


@pytest.mark.parametrize("batch", [False, True], ids=["plain", "batch"])
@settings(max_examples=50)
@given(RECORDS, st.integers(0, 25))
@example([(0, 100, -5, 0), (0, 100, 7, 1), (0, 100, 8, 2)], 1)
def test_one_by_one_or_together(batch: bool, some: list[tuple[int, int, int, int]], cut: int) -> None:
    run = records(some)
    with tempfile.TemporaryDirectory() as place:
        ways: dict[str, tuple[list[slice], int | None]] = {
            "whole": ([slice(None)], 0),
            "cut": ([slice(0, cut), slice(cut, None)], 0),
            "single": ([slice(at, at + 1) for at in range(len(run))], 0),
            "bulk": ([slice(None)], None),
        }
        found = [
            appended(Path(place, f"{name}{number}"), run, parts, kernels, batch=batch, floor=floor)
            for name, (parts, floor) in ways.items()
            for number, kernels in enumerate(kernel_modules())
        ]
        assert all(one == found[0] for one in found)
