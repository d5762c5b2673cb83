"""Memory for windows, used again once nobody holds what was read into it: fresh memory costs page faults."""

from __future__ import annotations

import sys
from threading import Lock
from typing import Any

import numpy as np
import numpy.typing as npt

LEAST = 256 << 10
"""bytes of a buffer that is kept; the allocator keeps smaller ones itself"""
KEPT = 16
"""buffers"""


class Buffers:
    """Arrays of UINT8, some of them kept. A view of one, or of such a view, holds it."""

    def __init__(self) -> None:
        self._kept: list[npt.NDArray[np.uint8]] = [np.empty(0, np.uint8)]
        self._guard = Lock()
        self._idle = self._references(0)
        """references to a buffer that nobody else holds, as they are counted here"""
        self._kept.clear()

    def _references(self, number: int) -> int:
        return sys.getrefcount(self._kept[number])

    def take(self, size: int) -> npt.NDArray[Any]:
        """An array of so many bytes, which have any value."""
        if size < LEAST:
            return np.empty(size, np.uint8)
        with self._guard:
            for number in range(len(self._kept)):
                if self._references(number) == self._idle and len(self._kept[number]) >= size:
                    return self._kept[number][:size]
            made = np.empty(size, np.uint8)
            if len(self._kept) == KEPT:
                self._kept.pop(0)
            self._kept.append(made)
        return made[:]


BUFFERS = Buffers()
