"""Sums of a run of records: kernel, plain-Python twin and counting byte by byte give the same."""

from __future__ import annotations

from itertools import groupby
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from rmqtool.scan.fields import ROW_WIDTH, CrcState, Field, TopicSum
from tests.scan.conftest import compiled_kernels, python_kernels

TOPICS = np.array([1, 0, 2, 1])
"""number by partition"""
RECORD = st.tuples(
    st.integers(0, 40),
    st.integers(1, 90),
    st.integers(0, len(TOPICS) - 1),
    st.sampled_from([CrcState.OK, CrcState.OK, CrcState.BAD]),
    st.integers(-3000, 3000) | st.integers(1_700_000_000_000, 1_700_000_002_500),
    st.integers(-1, 50),
    st.sampled_from([0, 1, 5, 8]),
)
"""bytes in front, size, partition, CRC, store time, bytes of the body, sysFlag"""


def rows_of(records: list[Any]) -> np.ndarray:
    rows, at = np.zeros((len(records), ROW_WIDTH), np.int64), 0
    columns = Field.STORE_SIZE, Field.CRC_STATE, Field.STORE_TIMESTAMP, Field.BODY_LENGTH, Field.SYS_FLAG
    for row, (gap, size, _, crc, *others) in zip(rows, records, strict=True):
        row[Field.POSITION] = at + gap
        row[list(columns)] = size, crc, *others
        at += gap + size
    return rows


def counted(rows: np.ndarray, partitions: np.ndarray, width: int, size: int) -> tuple[Any, ...]:
    """Everything that `tally` answers, by its description."""
    drawn: dict[tuple[int, int], int] = {}
    for row, topic in zip(rows, TOPICS[partitions].tolist(), strict=True):
        column = 0 if row[Field.CRC_STATE] == CrcState.BAD else topic + 1
        for at in range(row[Field.POSITION], min(row[Field.POSITION] + row[Field.STORE_SIZE], size)):
            drawn[at // width, column] = drawn.get((at // width, column), 0) + 1
    sums = {}
    for topic in set(TOPICS[partitions].tolist()):
        own = rows[TOPICS[partitions] == topic]
        sizes, times = own[:, Field.STORE_SIZE], own[:, Field.STORE_TIMESTAMP]
        compressed = int((own[:, Field.SYS_FLAG] & 1).sum())
        bodies = int(own[own[:, Field.BODY_LENGTH] > 0, Field.BODY_LENGTH].sum())
        ends = int(times.min()), int(times.max())
        sums[topic] = [len(own), int(sizes.sum()), bodies, compressed, int(sizes.max()), *ends]
    seconds = []
    for second, group in groupby(rows, lambda row: int(row[Field.STORE_TIMESTAMP]) // 1000):
        sizes = [int(row[Field.STORE_SIZE]) for row in group]
        seconds.append([second, len(sizes), sum(sizes)])
    return drawn, sums, seconds, int(rows[:, Field.STORE_SIZE].argmax())


@given(st.lists(RECORD, min_size=1, max_size=30), st.integers(1, 70), st.integers(0, 30))
def test_adds_up(records, width, behind):
    rows, partitions = rows_of(records), np.array([one[2] for one in records])
    end = int(rows[-1, Field.POSITION] + rows[-1, Field.STORE_SIZE])
    grid = np.array([width, max(end - behind, 0)])
    front = int(rows[0, Field.POSITION]) // width
    drawn, sums, seconds, largest = counted(rows, partitions, *grid.tolist())
    for kernels in (python_kernels(), compiled_kernels()):
        cells = np.zeros((-(-end // width) - front, 4), np.int64)
        by_topic, by_second = np.zeros((3, len(TopicSum)), np.int64), np.empty((len(rows), 3), np.int64)
        used, at = kernels.tally(rows, partitions, TOPICS, grid, cells, by_topic, by_second)
        places = zip(*(one.tolist() for one in np.nonzero(cells)), strict=True)
        assert {(cell + front, column): int(cells[cell, column]) for cell, column in places} == drawn
        assert {topic: by_topic[topic].tolist() for topic in sums} == sums
        assert not by_topic[[topic for topic in range(3) if topic not in sums]].any()
        assert (by_second[:used].tolist(), at) == (seconds, largest)
