"""Times of the last records that a scan has passed, the same in whatever windows these were read."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, NamedTuple

from rmqtool.scan.earlier_life import FRONT, Times

if TYPE_CHECKING:
    from collections.abc import Iterable

BELIEVED = 64
"""last records of a run, the newest whole ones of which tell how old what follows may be"""


class Earlier(NamedTuple):
    """A record. own: it lies where it says. sound: its body is not known to be bad."""

    own: bool
    sound: bool
    times: Times


class RecentTimes:
    """What is believed of the last records in front of a gap.

    front: of up to `FRONT` of them whether they lie where they say, and their times. newest: store time of
    the last one, None without any.
    """

    def __init__(self, previous_timestamp: int | None) -> None:
        self.newest = previous_timestamp
        self.front: list[tuple[bool, Times]] = []
        if previous_timestamp is not None:
            self.front.append((True, Times(previous_timestamp, None)))
        self._run: deque[Earlier] = deque(maxlen=BELIEVED)
        """records that follow each other up to here"""
        self._before = self.newest, self.front
        """as they were in front of these"""

    def add(self, records: Iterable[Earlier]) -> None:
        """Records that follow those before. One damaged record does not tell how old the others may be."""
        if not self._run:
            self._before = self.newest, self.front
        self._run.extend(records)
        newest, front = self._before
        found = [one for one in self._run if one.own and one.sound]
        if not found and (newest is None or len(self._run) > 1):  # a segment of another place
            found = [*self._run]
        self.front = [*front, *((one.own, one.times) for one in found)][-FRONT:]
        self.newest = self.front[-1][1].store if found else newest

    def end_run(self) -> None:
        """What follows is no record."""
        self._run.clear()

    def restart(self, newest: int | None, front: list[tuple[bool, Times]]) -> None:
        """These are what was in front of here."""
        self.newest, self.front = newest, front
        self._run.clear()
