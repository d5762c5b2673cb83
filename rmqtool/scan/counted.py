"""Progress of work that may read less than was expected of it, or some of it twice."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace
from threading import Lock
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from rmqtool.scan.options import ReadOptions
    from rmqtool.store.segments import Segment


class Counted:
    """Counts as what was expected, whatever `reading`, which is given to the work, is told to be done.

    What is expected is told to the reading that was given, unless it was counted before. Of work in stages
    all that are known are announced before the first, so that the total is.
    """

    def __init__(self, reading: ReadOptions) -> None:
        self._given = reading
        self._left = self._ahead = 0
        """bytes of the stage that is open, and of those announced"""
        self._lock = Lock()
        self.reading = replace(reading, advance=self._advance, expect=None)

    def expect(self, count: int) -> None:
        """`count` bytes more, of the stage that is open."""
        with self._lock:
            self._left += count
        self._given.expects(self._left + self._ahead)

    def announce(self, count: int) -> None:
        """`count` bytes of a stage that comes later."""
        self._ahead += count
        self._given.expects(self._left + self._ahead)

    @contextmanager
    def stage(self, count: int) -> Iterator[ReadOptions]:
        """What was announced begins; whatever it reads, it counts as `count` bytes in the end."""
        self._ahead -= count
        with self._lock:
            self._left += count
        yield self.reading
        self.finish()

    def _advance(self, count: int) -> None:
        with self._lock:
            done = min(count, self._left)
            self._left -= done
        self._given.done(done)

    def finish(self) -> None:
        """The work is over: what was expected and not read counts as done."""
        self._advance(self._left)


@contextmanager
def counting(
    reading: ReadOptions, segments: Iterable[Segment], offsets: tuple[int, int]
) -> Iterator[ReadOptions]:
    """How to read what lies at physical offsets [start, end), which is expected when this begins."""
    start, end = offsets
    counted = Counted(reading)
    counted.expect(sum(max(min(one.end, end) - max(one.base, start), 0) for one in segments))
    yield counted.reading
    counted.finish()
