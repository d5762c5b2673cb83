"""Where two logs hold other bytes: block against block, at the speed of reading them."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import islice
from threading import Event
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from rmqtool.errors import Stopped, UnreadableError
from rmqtool.store.coverage import unreadable

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from rmqtool.scan.options import ReadOptions
    from rmqtool.store.bytes import ByteSource, Window
    from rmqtool.store.segments import Segment, SegmentSet

    Span = tuple[int, int]

BLOCK = 1 << 20
"""bytes that are compared together: both stay in a cache"""
_TASK = 64 << 20
_AHEAD = 2
"""tasks for each thread that are under way or done and not asked for"""
_WORD = np.dtype(np.uint64).itemsize


class _Task(NamedTuple):
    """Bytes that lie in one file of each log."""

    a: Segment
    b: Segment
    start: int
    end: int


@dataclass
class Blocks:
    """Compares the physical range that two logs have in common.

    differing: runs of blocks [start, end) that are not the same, in order, neighbours as one. only_a, only_b:
    ranges inside the common one for which the other log has no file. left: rows of `not_covered`.
    """

    a: SegmentSet
    b: SegmentSet
    options: ReadOptions
    differing: list[Span] = field(default_factory=list)
    only_a: list[Span] = field(default_factory=list)
    only_b: list[Span] = field(default_factory=list)
    left: list[dict[str, Any]] = field(default_factory=list)

    def compare(self, start: int, end: int) -> None:
        """The range [start, end). Raises `StoreIOError`, `VanishedError`."""
        stop = Event()
        tasks = self._tasks(start, end)
        with ThreadPoolExecutor(max(self.options.jobs, 1)) as pool:
            try:
                under_way = [pool.submit(self._one, task, stop) for task in islice(tasks, self._ahead)]
                while under_way:
                    task, (spans, missing) = under_way.pop(0).result()
                    under_way += [pool.submit(self._one, one, stop) for one in islice(tasks, 1)]
                    for span in spans:
                        _append(self.differing, span)
                    self.left += missing
                    self.options.done(2 * (task.end - task.start))
            except BaseException:
                stop.set()
                raise

    @property
    def _ahead(self) -> int:
        return max(self.options.jobs, 1) * _AHEAD

    def _tasks(self, start: int, end: int) -> Iterator[_Task]:
        """Pieces of the range. Bytes that no log has are in none."""
        at = start
        while at < end:
            one, other = self.a.locate(at), self.b.locate(at)
            until = self._next(at, end)
            if one is not None and other is not None:
                until = min(until, at + _TASK - at % _TASK)
                yield _Task(one[0], other[0], at, until)
            elif one is not None:
                _append(self.only_a, (at, until))
            elif other is not None:
                _append(self.only_b, (at, until))
            at = until

    def _next(self, at: int, end: int) -> int:
        """Where a file of either log begins or ends next."""
        edges = self._edges
        place = int(np.searchsorted(edges, at, side="right"))
        return min(int(edges[place]), end) if place < len(edges) else end

    def __post_init__(self) -> None:
        every = [edge for segments in (self.a, self.b) for one in segments for edge in (one.base, one.end)]
        self._edges = np.unique(np.array(every, np.int64))

    def _one(self, task: _Task, stop: Event) -> tuple[_Task, tuple[list[Span], list[dict[str, Any]]]]:
        with task.a.open(self.options.access) as one, task.b.open(self.options.access) as other:
            found = self._spans(task, one, other, stop)
            if one.had_fault() or other.had_fault():  # what could not be read was zeros: once more, of copies
                found = self._spans(task, one, other, stop)
        return task, found

    def _spans(
        self, task: _Task, one: ByteSource, other: ByteSource, stop: Event
    ) -> tuple[list[Span], list[dict[str, Any]]]:
        spans: list[Span] = []
        missing: list[dict[str, Any]] = []
        for start in range(task.start, task.end, BLOCK):
            if stop.is_set():
                raise Stopped
            length = min(BLOCK, task.end - start)
            try:
                first = one.window(start - task.a.base, length)
                second = other.window(start - task.b.base, length)
            except UnreadableError as error:
                path = error.path
                missing.append(unreadable(path, str(error), start - task.a.base, length))
                _append(spans, (start, start + length))
                continue
            if not same(first, second):
                _append(spans, (start, start + length))
        return spans, missing


def same(first: Window, second: Window) -> bool:
    """Whether two windows hold the same bytes."""
    if len(first) != len(second):
        return False
    whole = len(first) // _WORD * _WORD
    words = first[:whole].view(np.uint64), second[:whole].view(np.uint64)
    return bool((words[0] == words[1]).all()) and bool((first[whole:] == second[whole:]).all())


def _append(spans: list[Span], one: Span) -> None:
    """Puts a span behind the others, or into the last of them."""
    if spans and spans[-1][1] >= one[0]:
        spans[-1] = (spans[-1][0], max(spans[-1][1], one[1]))
    else:
        spans.append(one)
