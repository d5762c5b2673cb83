"""Several workers, one order."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

import pytest

from rmqtool.scan import parallel
from rmqtool.scan.budget import MAX_WORKERS, Budget
from rmqtool.scan.parallel import WorkerContext, in_order
from rmqtool.scan.windows import Windows
from rmqtool.store.bytes import MemorySource
from rmqtool.store.throttle import RateLimit

if TYPE_CHECKING:
    from collections.abc import Iterator

JOBS = [1, 2, 4, 50]


@pytest.fixture(autouse=True)
def no_thread_is_left() -> Iterator[None]:
    before = threading.active_count()
    yield
    assert threading.active_count() <= before  # threads of earlier tests may end meanwhile


@pytest.mark.parametrize("jobs", JOBS)
@pytest.mark.parametrize("count", [0, 1, 2, 20])
def test_results_come_in_order(jobs: int, count: int) -> None:
    def work(item: int, worker: WorkerContext) -> Iterator[tuple[int, int]]:
        time.sleep(0.002 * (count - item) / max(count, 1))
        for number in range(item % 7):
            yield item, number

    expected = [(item, number) for item in range(count) for number in range(item % 7)]
    assert list(in_order(range(count), work, jobs)) == expected


@pytest.mark.parametrize("jobs", JOBS)
def test_an_error_stands_in_its_place(jobs: int) -> None:
    def work(item: int, worker: WorkerContext) -> Iterator[int]:
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

    def work(item: int, worker: WorkerContext) -> Iterator[int]:
        started.append(item)
        yield from range(100_000)

    results = in_order(range(500), work, jobs)
    assert [next(results) for _ in range(5)] == [0, 1, 2, 3, 4]
    results.close()
    assert len(started) <= jobs


@pytest.mark.parametrize("jobs", [2, 4])
def test_nothing_is_started_far_ahead(jobs: int) -> None:
    started = []

    def work(item: int, worker: WorkerContext) -> Iterator[int]:
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

    def work(item: int, worker: WorkerContext) -> Iterator[int]:
        for number in range(1000):
            made.append(item)
            yield number

    results = in_order([0, 1], work, 2)
    next(results)
    time.sleep(0.3)
    assert made.count(1) <= 20
    assert sum(1 for _ in results) == 1999


def test_work_is_done_side_by_side() -> None:
    both = threading.Barrier(2, timeout=20)

    def work(item: int, worker: WorkerContext) -> Iterator[int]:
        both.wait()
        yield item

    assert list(in_order([0, 1], work, 2)) == [0, 1]


def test_a_worker_s_own_cleanup_runs() -> None:
    closed = []

    def work(item: int, worker: WorkerContext) -> Iterator[int]:
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


# ---- the byte budget -----------------------------------------------------------------------------


class Watched(Budget):
    """A budget that remembers when it went over its limit."""

    def __init__(self, limit: int, kept_back: int) -> None:
        super().__init__(limit, kept_back)
        self.over: list[int] = []

    def add(self, count: int) -> None:
        super().add(count)
        if self.in_flight > self.limit:
            self.over.append(self.in_flight)


@pytest.mark.share
@pytest.mark.parametrize("jobs", [2, 4, 50])
@pytest.mark.parametrize("pause", [0.0, 0.004])
def test_bytes_in_flight_stay_within_the_budget(jobs: int, pause: float) -> None:
    def work(item: int, worker: WorkerContext) -> Iterator[tuple[int, int]]:
        for number in range(25):
            size = 1 + (item * 31 + number * 17) % 40
            worker.take(size)
            yield item, number

    budget = Watched(100, 40)
    found = []
    for result in in_order(range(12), work, jobs, budget):
        time.sleep(pause)
        found.append(result)
    assert found == [(item, number) for item in range(12) for number in range(25)]
    assert budget.over == []
    assert 0 < budget.peak <= 100
    assert budget.in_flight == 0


def test_a_slow_reader_holds_the_workers_back() -> None:
    made = []

    def work(item: int, worker: WorkerContext) -> Iterator[int]:
        for _ in range(100):
            worker.take(10)
            made.append(item)
            yield item

    budget = Watched(60, 30)
    results = in_order(range(8), work, 8, budget)
    next(results)
    time.sleep(0.3)
    # one result is read; those of the first worker may fill the limit, those of others their part of it
    assert len(made) <= 6 + 1
    assert sum(1 for item in made if item != 0) <= 3
    results.close()
    assert budget.over == []


def test_a_result_larger_than_the_budget_comes_alone() -> None:
    sizes = {0: 5, 1: 500, 2: 5, 3: 700, 4: 5}

    def work(item: int, worker: WorkerContext) -> Iterator[int]:
        worker.take(sizes[item])
        yield item

    budget = Watched(50, 20)
    assert list(in_order(range(5), work, 3, budget)) == list(range(5))
    assert all(total <= 700 + 30 for total in budget.over)


def test_several_takes_belong_to_one_result() -> None:
    budget = Watched(100, 50)

    def work(item: int, worker: WorkerContext) -> Iterator[int]:
        worker.take(3)
        worker.take(4)
        yield item
        worker.take(20)

    for item in in_order([0, 1], work, 2, budget):
        if item == 1:
            until = time.monotonic() + 30
            while budget.in_flight != 7 + 20:  # the worker goes on once its result is taken
                assert time.monotonic() < until
                time.sleep(0.001)
    assert budget.in_flight == 0


def test_no_more_threads_than_memory_is_for() -> None:
    most = 0

    def work(item: int, worker: WorkerContext) -> Iterator[int]:
        nonlocal most
        most = max(most, threading.active_count())
        time.sleep(0.01)
        yield item

    before = threading.active_count()
    assert list(in_order(range(200), work, 1000)) == list(range(200))
    assert most - before <= MAX_WORKERS


# ---- readers that leave --------------------------------------------------------------------------


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """None is left behind because the machine is slow: `no_thread_is_left` holds all of them to their end."""
    monkeypatch.setattr(parallel, "PATIENCE", 60.0)


@pytest.mark.usefixtures("patient")
@pytest.mark.parametrize("jobs", [2, 12])
def test_workers_stop_at_once(jobs: int) -> None:
    limit = RateLimit(1)

    def throttled(item: int, worker: WorkerContext) -> Iterator[int]:
        if item:
            limit.take(1000, worker.stop)
        yield item

    def starved(item: int, worker: WorkerContext) -> Iterator[int]:
        worker.take(1000 if item else 1)
        yield item

    for work in (throttled, starved):
        results = in_order(range(12), work, jobs, Watched(10, 5))
        assert next(results) == 0
        began = time.monotonic()
        results.close()
        assert time.monotonic() - began < 30


@pytest.mark.usefixtures("patient")
def test_a_worker_that_yields_nothing_stops_too() -> None:
    """Megabytes of garbage between two looks at the next window."""
    source = MemorySource(bytes(range(1, 255)) * 10_000)

    def work(item: int, worker: WorkerContext) -> Iterator[int]:
        if not item:
            yield item
        while True:
            windows = Windows(source, worker.stop)
            windows.at(0, 1)

    results = in_order([0, 1], work, 2)
    next(results)
    began = time.monotonic()
    results.close()
    assert time.monotonic() - began < 30


def test_one_that_hangs_is_left_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parallel, "PATIENCE", 0.05)
    release, before = threading.Event(), threading.active_count()

    def work(item: int, worker: WorkerContext) -> Iterator[int]:
        if item:
            release.wait()
        yield item

    results = in_order([0, 1], work, 2)
    next(results)
    began = time.monotonic()
    results.close()
    release.set()
    while threading.active_count() > before and time.monotonic() - began < 30:
        time.sleep(0.01)
