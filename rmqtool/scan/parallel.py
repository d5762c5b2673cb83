"""Work on several segments at once, results in order, within one byte budget."""

from __future__ import annotations

import time
from collections import deque
from contextlib import contextmanager
from threading import Event, Thread
from typing import TYPE_CHECKING, Generic, TypeVar

from rmqtool.errors import Stopped
from rmqtool.scan.budget import MAX_WORKERS, Budget

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Iterator, Sequence

    Work = Callable[["Item", "WorkerContext"], Iterable["Result"]]

Item = TypeVar("Item")
Result = TypeVar("Result")

_AHEAD = 16
"""results that a worker may be ahead of its reader, however small they are"""

_SMALL = 64 << 10
"""bytes of an item that no thread is started for"""

_LISTED = 256
"""small items that are passed over to start a thread on one behind them"""

_POLL = 0.1
"""seconds; waits are bounded, so that an interrupt reaches the main thread"""

PATIENCE = 1.0
"""seconds that workers have to stop; one that hangs in a read of a dying disk is left behind"""


class WorkerContext:
    """What the work on one item shares with that on others. This one stands alone: nothing to wait for."""

    stop: Event | None = None
    """set when nobody reads results any more"""

    def take(self, count: int) -> None:
        """Wait for room for `count` bytes of the next result; the reader gives them back when it is done."""


class _Done:
    """Ends the results of one item; carries the error that ended them."""

    def __init__(self, error: BaseException | None) -> None:
        self.error = error


class _Worker(WorkerContext, Generic[Result]):
    """One thread's context, and its results on the way to the reader."""

    def __init__(self, budget: Budget, stop: Event) -> None:
        self.stop: Event = stop
        self._budget = budget
        self._results: deque[tuple[Result | _Done, int]] = deque()
        self._taken = 0
        self._first = False
        self._awaited = False
        """the reader has given everything back and waits for a result of this worker"""

    def take(self, count: int) -> None:
        """See `WorkerContext.take`; raises `Stopped` when nobody reads any more."""
        with self._budget.changed:
            while not self._budget.has_room(count, first=self._first):
                if self._awaited and not self._results:
                    break  # without this result nothing moves
                self._wait()
            self._budget.add(count)
            self._taken += count

    def put(self, result: Result | _Done) -> None:
        """Hand a result over; raises `Stopped` when nobody reads any more."""
        with self._budget.changed:
            while len(self._results) >= _AHEAD:
                self._wait()
            self._results.append((result, self._taken))
            self._taken = 0
            self._budget.changed.notify_all()

    def _wait(self) -> None:
        if self.stop.is_set():
            raise Stopped
        self._budget.changed.wait(_POLL)

    def results(self) -> Iterator[Result]:
        """For the reader: results until the work is done. Asking for the next gives the last one back."""
        held = 0
        self._first = True
        while True:
            with self._budget.changed:
                self._budget.add(-held)
                self._awaited = True
                self._budget.changed.notify_all()
                while not self._results:
                    self._budget.changed.wait(_POLL)
                self._awaited = False
                result, held = self._results.popleft()
                self._budget.changed.notify_all()
            if isinstance(result, _Done):
                with self._budget.changed:
                    self._budget.add(-held)
                if result.error is not None:
                    raise result.error
                return
            yield result


def in_order(
    items: Sequence[Item],
    work: Work[Item, Result],
    jobs: int,
    budget: Budget | None = None,
    size: Callable[[Item], int] | None = None,
) -> Generator[Result, None, None]:
    """All results of `work(item, worker)` for one item after the other, computed by up to `jobs` threads.

    Nothing is started that is more than `jobs` items ahead, and no more than `MAX_WORKERS` run at once.
    Memory is bounded where `work` takes from its context before it makes something large. An error surfaces
    where its results would stand; the other workers stop. Closing the iterator stops them too. size: bytes
    of an item; small ones are done by the reader itself, sooner than a thread begins.
    """
    if jobs <= 1 or len(items) <= 1:
        for item in items:
            yield from work(item, WorkerContext())
        return
    most = min(jobs, MAX_WORKERS)
    with _stopping(budget or Budget()) as start:
        waiting: deque[_Worker[Result] | tuple[Item]] = deque()
        following = running = 0
        while waiting or following < len(items):
            while following < len(items) and running < most and len(waiting) < _LISTED:
                item = items[following]
                following += 1
                if size is not None and size(item) <= _SMALL:
                    waiting.append((item,))
                else:
                    waiting.append(start(item, work))
                    running += 1
            one = waiting.popleft()
            if isinstance(one, tuple):
                yield from work(one[0], WorkerContext())
            else:
                yield from one.results()
                running -= 1


@contextmanager
def _stopping(budget: Budget) -> Iterator[Callable[[Item, Work[Item, Result]], _Worker[Result]]]:
    """Gives what starts a thread on an item; in the end all of them are reported to stop."""
    stop = Event()
    threads: list[Thread] = []

    def start(item: Item, work: Work[Item, Result]) -> _Worker[Result]:
        worker: _Worker[Result] = _Worker(budget, stop)
        thread = Thread(target=_run, args=(item, work, worker), daemon=True)
        threads.append(thread)
        thread.start()
        return worker

    try:
        yield start
    finally:
        stop.set()
        with budget.changed:
            budget.changed.notify_all()
        until = time.monotonic() + PATIENCE
        for thread in threads:
            thread.join(max(until - time.monotonic(), 0))


def _run(item: Item, work: Work[Item, Result], worker: _Worker[Result]) -> None:
    try:
        error: BaseException | None = None
        try:
            for result in work(item, worker):
                worker.put(result)
        except Stopped:
            raise
        except BaseException as raised:  # noqa: BLE001 - handed to the reader, who raises it
            error = raised
        worker.put(_Done(error))
    except Stopped:
        return
