"""Several workers, one order."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

import pytest

from rmqtool.scan.parallel import Lane, in_order

if TYPE_CHECKING:
    from collections.abc import Iterator

JOBS = [1, 2, 4, 50]


@pytest.fixture(autouse=True)
def no_thread_is_left() -> Iterator[None]:
    before = threading.active_count()
    yield
    assert threading.active_count() == before


@pytest.mark.parametrize("jobs", JOBS)
@pytest.mark.parametrize("count", [0, 1, 2, 20])
def test_results_come_in_order(jobs: int, count: int) -> None:
    def work(item: int, lane: Lane) -> Iterator[tuple[int, int]]:
        time.sleep(0.002 * (count - item) / max(count, 1))
        for number in range(item % 7):
            yield item, number

    expected = [(item, number) for item in range(count) for number in range(item % 7)]
    assert list(in_order(range(count), work, jobs)) == expected


@pytest.mark.parametrize("jobs", JOBS)
def test_an_error_stands_in_its_place(jobs: int) -> None:
    def work(item: int, lane: Lane) -> Iterator[int]:
        yield item
        if item == 3:
            raise KeyError(item)
        yield -item

    found: list[int] = []
    with pytest.raises(KeyError, match="3"):
        found.extend(in_order(range(30), work, jobs))
    assert found == [0, 0, 1, -1, 2, -2, 3]


@pytest.mark.parametrize("jobs", JOBS)
def test_closing_early_stops_the_workers(jobs: int) -> None:
    started = []

    def work(item: int, lane: Lane) -> Iterator[int]:
        started.append(item)
        yield from range(100_000)

    results = in_order(range(500), work, jobs)
    assert [next(results) for _ in range(5)] == [0, 1, 2, 3, 4]
    results.close()
    assert len(started) <= jobs


@pytest.mark.parametrize("jobs", [2, 4])
def test_nothing_is_started_far_ahead(jobs: int) -> None:
    started = []

    def work(item: int, lane: Lane) -> Iterator[int]:
        started.append(item)
        yield item

    results = in_order(range(20), work, jobs)
    for expected in range(20):
        assert next(results) == expected
        time.sleep(0.005)
        assert len(started) <= expected + jobs + 1
    assert list(results) == []


def test_a_worker_waits_for_its_reader() -> None:
    made = []

    def work(item: int, lane: Lane) -> Iterator[int]:
        for number in range(1000):
            made.append(item)
            yield number

    results = in_order([0, 1], work, 2)
    next(results)
    time.sleep(0.3)
    assert made.count(1) <= 8
    assert sum(1 for _ in results) == 1999


def test_work_is_done_side_by_side() -> None:
    both = threading.Barrier(2, timeout=20)

    def work(item: int, lane: Lane) -> Iterator[int]:
        both.wait()
        yield item

    assert list(in_order([0, 1], work, 2)) == [0, 1]


def test_a_worker_s_own_cleanup_runs() -> None:
    closed = []

    def work(item: int, lane: Lane) -> Iterator[int]:
        try:
            yield from range(1000)
        finally:
            closed.append(item)

    for jobs in (1, 2):
        closed.clear()
        results = in_order([0, 1, 2], work, jobs)
        next(results)
        results.close()
        assert sorted(closed) == list(range(jobs))
