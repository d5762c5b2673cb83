"""Records that state a wrong queue, by the order of queue offsets alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from rmqtool.check.queue_numbers import Misplaced, QueueNumbers


def add(numbers: QueueNumbers, queue: int, offsets: Any, slots: Any) -> None:
    """Records of every other queue as stretches of their own: it makes no difference."""
    starts = np.flatnonzero(np.diff(slots, prepend=-2) != 1)
    ends = np.append(starts[1:], len(slots)) - 1
    if queue % 2:
        starts = ends = np.arange(len(slots))
    numbers.add(("T", queue), np.stack((slots[starts], offsets[starts], slots[ends], offsets[ends])))


def found(wrong: int, chunk: int, stated: int = 7) -> list[Misplaced]:
    """Three queues in turn; record `wrong` says that it is of queue `stated`. Fed `chunk` records at once."""
    rows = [(stated if number == wrong else number % 3, number // 3, number * 100) for number in range(60)]
    numbers = QueueNumbers()
    for start in range(0, len(rows), chunk):
        part = rows[start : start + chunk]
        for queue in dict.fromkeys(row[0] for row in part):
            own = np.array([row for row in part if row[0] == queue])
            add(numbers, queue, own[:, 2], own[:, 1])
    return list(numbers.misplaced())


@pytest.mark.parametrize("chunk", [1, 2, 7, 100])
@pytest.mark.parametrize("wrong", [3, 30, 41, 56])
def test_a_queue_that_nobody_else_names(wrong: int, chunk: int) -> None:
    assert found(wrong, chunk) == [Misplaced("T", 7, wrong // 3, wrong * 100, wrong % 3)]


@pytest.mark.parametrize("chunk", [1, 5, 100])
def test_another_queue_of_the_topic(chunk: int) -> None:
    (one,) = found(30, chunk, stated=1)
    assert (one.queue_id, one.queue_offset, one.belongs_to) == (1, 10, 0)
    assert one.physical_offset in (3000, 3100)


def test_queues_that_begin_again_and_batches_are_no_finding() -> None:
    numbers = QueueNumbers()
    add(numbers, 0, np.arange(0, 4000, 100), np.arange(40) % 25)
    add(numbers, 1, np.arange(50, 4050, 100), np.arange(40) * 2)
    add(numbers, 2, np.array([7]), np.array([900]))
    assert not list(numbers.misplaced())
