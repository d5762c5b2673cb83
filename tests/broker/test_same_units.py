"""Queues appended to by a start and queues built in bulk are the same bytes."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rmqtool.broker.batch_consume_queue import BatchConsumeQueue
from rmqtool.broker.consume_queue import ConsumeQueue
from rmqtool.broker.file_rules import FileRules
from rmqtool.broker.files import StoreFiles
from rmqtool.broker.mapped_files import MappedFiles
from rmqtool.broker.queue_records import QueueRecords
from rmqtool.build.files import DerivedFiles
from rmqtool.build.queues import BatchQueue, PlainQueue
from rmqtool.scan import kernels_python
from rmqtool.scan.fields import Column
from tests.build.building import files_of

UNITS = 4
RULES = FileRules(consume_queue_size=20 * UNITS, batch_queue_size=46 * UNITS)
RECORDS = st.lists(
    st.tuples(st.integers(0, 300), st.integers(91, 400), st.integers(0, 12), st.integers(-9, 9)), max_size=25
)
"""bytes between a record and the one before, its size, its queue offset, its tags code"""


def records(given_: list[tuple[int, int, int, int]]) -> QueueRecords:
    gaps, sizes, slots, codes = np.array(given_, np.int64).reshape(-1, 4).T
    ends = np.cumsum(gaps + sizes)
    ones = np.ones(len(given_), np.int64)
    return QueueRecords(ends - sizes, sizes, slots, ones > 0, slots, ones, codes, ends)


def columns_of(run: QueueRecords) -> np.ndarray:
    columns = np.zeros((len(Column), len(run)), np.int64)
    columns[Column.SLOT], columns[Column.OFFSET], columns[Column.SIZE] = run.slots, run.offsets, run.sizes
    columns[Column.CODE], columns[Column.TIME] = run.codes, run.times
    return columns


@pytest.mark.parametrize("batch", [False, True], ids=["plain", "batch"])
@given(RECORDS, st.integers(0, 25))
def test_one_rule_in_both_places(batch: bool, some: list[tuple[int, int, int, int]], cut: int) -> None:
    run = records(some)
    with tempfile.TemporaryDirectory() as place:
        started, built = Path(place, "started"), Path(place, "built")
        started.mkdir(), built.mkdir()
        with StoreFiles(str(started)) as files:
            queue: ConsumeQueue | BatchConsumeQueue
            if batch:
                mapped = MappedFiles(RULES.batch_queue_size, "batchconsumequeue/T/1", disk=files)
                queue = BatchConsumeQueue("T", 1, mapped, "pread")
            else:
                mapped = MappedFiles(RULES.consume_queue_size, "consumequeue/T/1", disk=files)
                queue = ConsumeQueue("T", 1, mapped, "pread", 0)
            queue.append(run[slice(0, cut)])
            queue.append(run[slice(cut, None)])
        columns, chosen = columns_of(run), np.arange(len(run))
        if batch:
            BatchQueue("T", 1, RULES, DerivedFiles(built)).append(columns, chosen, run.counts)
        else:
            PlainQueue("T", 1, RULES, DerivedFiles(built), kernels_python).append(columns, chosen)
        assert files_of(started) == files_of(built)
