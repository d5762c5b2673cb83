"""Progress of work that may read less than was expected of it, or some of it twice."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rmqtool.scan.options import ReadOptions


class Counted:
    """Counts as what was expected, whatever `reading`, which is given to the work, is told to be done.

    What is expected is told to the reading that was given, unless it was counted before.
    """

    def __init__(self, reading: ReadOptions) -> None:
        self._given = reading
        self._left = 0
        self.reading = replace(reading, advance=self._advance)

    def expect(self, count: int) -> None:
        """`count` bytes more."""
        self._left += count
        self._given.expects(self._left)

    def _advance(self, count: int) -> None:
        done = min(count, self._left)
        self._left -= done
        self._given.done(done)

    def finish(self) -> None:
        """The work is over: what was expected and not read counts as done."""
        self._advance(self._left)
