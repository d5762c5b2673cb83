"""One byte budget for all workers of a scan: what they make for their reader, and what they work in."""

from __future__ import annotations

from threading import Condition

MAX_WORKERS = 8
"""segments read at once: each works in a window or two, a matrix of rows, and what it inflates (8 MiB)"""

LIMIT = 128 << 20
"""bytes of results that are being made, wait for the reader, or are the last one it was given"""

KEPT_BACK = 72 << 20
"""what of it only the worker may take whose results are next: room for the largest body that is inflated"""


class Budget:
    """Bytes in flight. All members are used under `changed`, which is reported of every change.

    limit: never exceeded, except by a single result that is larger, and then by that one alone. kept_back:
    how much of it is there for the worker that the reader waits for, so that those ahead cannot block it.
    """

    def __init__(self, limit: int = LIMIT, kept_back: int = KEPT_BACK) -> None:
        self.limit = limit
        self.in_flight = 0
        self.peak = 0
        self.changed = Condition()
        self._for_those_ahead = limit - kept_back

    def has_room(self, count: int, *, first: bool) -> bool:
        """May `count` more bytes be made, for the result that is next (`first`) or a later one?"""
        return self.in_flight + count <= (self.limit if first else self._for_those_ahead)

    def add(self, count: int) -> None:
        """Counts bytes in; a negative `count` gives them back."""
        self.in_flight += count
        self.peak = max(self.peak, self.in_flight)
        if count < 0:
            self.changed.notify_all()
