"""How much was stored when, in a bounded number of intervals, whatever times the records state."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from rmqtool.report.shape import Volume

if TYPE_CHECKING:
    import numpy.typing as npt

    Ints = npt.NDArray[np.int64]

SECOND = 1000
MOST = 8192
"""intervals that are kept; with more of them they get twice as long"""
_WAITING = 1 << 16
"""rows of single runs that are kept before they are added up"""
BARS = 120
"""intervals that are drawn at most"""
_OUTLIERS = 1000
"""one message of so many may lie outside of what is drawn, at either end"""


class Timeline:
    """Messages and bytes by time; `seconds` is the length of an interval, a power of two."""

    def __init__(self) -> None:
        self.seconds = 1
        self._parts: list[Volume] = []
        self._waiting = 0

    def add(self, part: Volume) -> None:
        """Adds a run, by seconds."""
        self._parts.append(Volume(part.at // self.seconds, part.messages, part.bytes))
        self._waiting += len(part.at)
        if self._waiting > _WAITING:
            self._merge()

    def _merge(self) -> None:
        """All in one part, in order of time, of at most `MOST` intervals."""
        merged = _summed(self._parts)
        while len(merged.at) > MOST:
            self.seconds *= 2
            merged = _summed([Volume(merged.at // 2, merged.messages, merged.bytes)])
        self._parts, self._waiting = [merged], len(merged.at)

    def document(self) -> dict[str, Any]:
        """What is drawn: at most `BARS` intervals of equal length, and how many messages lie outside.

        `interval_ms`, `from_timestamp` and, for every interval, `messages` and `bytes`. A few records whose
        times are far away from all others do not make one bar of the rest.
        """
        self._merge()
        all_of = self._parts[0]
        total = int(all_of.messages.sum())
        if not total:
            return {"interval_ms": None, "from_timestamp": None, "messages": [], "bytes": [], "outside": 0}
        reached = np.cumsum(all_of.messages)
        allowed = total // _OUTLIERS
        low = int(np.searchsorted(reached, allowed, side="right"))
        high = int(np.searchsorted(reached, total - allowed))
        first, last = int(all_of.at[low]), int(all_of.at[high])
        step = 1
        while last // step - first // step >= BARS:
            step *= 2
        chosen = slice(low, high + 1)
        at = all_of.at[chosen] // step - first // step
        count = last // step - first // step + 1
        messages, size = np.zeros(count, np.int64), np.zeros(count, np.int64)
        np.add.at(messages, at, all_of.messages[chosen])
        np.add.at(size, at, all_of.bytes[chosen])
        interval = self.seconds * step * SECOND
        return {
            "interval_ms": interval,
            "from_timestamp": first // step * interval,
            "messages": messages.tolist(),
            "bytes": size.tolist(),
            "outside": total - int(messages.sum()),
        }


def _summed(parts: list[Volume]) -> Volume:
    empty = np.empty(0, np.int64)
    at, which = np.unique(np.concatenate([empty, *(one.at for one in parts)]), return_inverse=True)
    sums = []
    for name in ("messages", "bytes"):
        total = np.zeros(len(at), np.int64)
        np.add.at(total, which, np.concatenate([empty, *(getattr(one, name) for one in parts)]))
        sums.append(total)
    return Volume(at, *sums)
