"""Work on several segments at once, results in order."""

from __future__ import annotations

from contextlib import contextmanager
from queue import Empty, Full, Queue
from threading import Event, Thread
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Iterator, Sequence

Item = TypeVar("Item")
Result = TypeVar("Result")

_AHEAD = 4
"""results that a worker may be ahead of its reader; bounds memory"""
_POLL = 0.1


class _Done:
    """Closes the queue of one item; carries the error that ended it."""

    def __init__(self, error: BaseException | None) -> None:
        self.error = error


def in_order(
    items: Sequence[Item], work: Callable[[Item], Iterable[Result]], jobs: int
) -> Generator[Result, None, None]:
    """All results of `work(item)` for one item after the other, computed by up to `jobs` threads.

    Nothing is started that is more than `jobs` items ahead. An error surfaces where its results would stand;
    the other workers stop. Closing the iterator stops them too.
    """
    if jobs <= 1 or len(items) <= 1:
        for item in items:
            yield from work(item)
        return
    stop = Event()
    with _stopping(stop) as threads:
        waiting: list[Queue[Result | _Done]] = []
        following = iter(items)
        for item in following:
            waiting.append(_start(item, work, stop, threads))
            if len(waiting) == jobs:
                break
        while waiting:
            yield from _drain(waiting.pop(0))
            for item in following:
                waiting.append(_start(item, work, stop, threads))
                break


@contextmanager
def _stopping(stop: Event) -> Iterator[list[Thread]]:
    threads: list[Thread] = []
    try:
        yield threads
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def _start(
    item: Item, work: Callable[[Item], Iterable[Result]], stop: Event, threads: list[Thread]
) -> Queue[Result | _Done]:
    queue: Queue[Result | _Done] = Queue(_AHEAD)
    thread = Thread(target=_run, args=(item, work, stop, queue), daemon=True)
    threads.append(thread)
    thread.start()
    return queue


def _run(
    item: Item, work: Callable[[Item], Iterable[Result]], stop: Event, queue: Queue[Result | _Done]
) -> None:
    error: BaseException | None = None
    try:
        for result in work(item):
            if not _put(queue, result, stop):
                return
    except BaseException as raised:  # noqa: BLE001 - handed to the reader, who raises it
        error = raised
    _put(queue, _Done(error), stop)


def _put(queue: Queue[Result | _Done], entry: Result | _Done, stop: Event) -> bool:
    while not stop.is_set():
        try:
            queue.put(entry, timeout=_POLL)
        except Full:
            continue
        return True
    return False


def _drain(queue: Queue[Result | _Done]) -> Iterator[Result]:
    while True:
        try:
            # a bounded wait, so that an interrupt reaches the main thread
            entry = queue.get(timeout=_POLL)
        except Empty:
            continue
        if isinstance(entry, _Done):
            if entry.error is not None:
                raise entry.error
            return
        yield entry
