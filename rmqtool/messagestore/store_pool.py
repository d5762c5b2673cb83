"""The transient store pool: segments are written in memory, and committed to their files in batches.

`TransientStorePool`, `DefaultMappedFile#commit`. What is not committed is in no file: nobody reads it, and a
kill loses it.
"""

from __future__ import annotations

import mmap
import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Data = bytes | npt.NDArray[np.uint8]

_PAGE = 4096


class Staged:
    """A segment in memory. committed: bytes of it that are in the file; filled: those that have to be."""

    def __init__(self, buffer: mmap.mmap) -> None:
        self.buffer = buffer
        self.filled = self.committed = 0

    def put(self, position: int, data: Data) -> None:
        """Bytes behind the last ones."""
        end = position + len(data)
        self.buffer[position:end] = data if isinstance(data, bytes) else data.tobytes()
        self.filled = end

    def commit(self, descriptor: int) -> None:
        """All of it that is not there into the file. Raises `OSError`."""
        end = self.filled
        with memoryview(self.buffer) as view:
            while self.committed < end:
                self.committed += os.pwrite(descriptor, view[self.committed : end], self.committed)

    def due(self, least_pages: int) -> bool:
        """Whether so many pages wait (`DefaultMappedFile#isAbleToCommit`)."""
        if least_pages <= 0:
            return self.filled > self.committed
        return self.filled // _PAGE - self.committed // _PAGE >= least_pages


class StorePool:
    """So many buffers of a segment's length; they take memory when they are written first.

    fails_fast: no segment is begun without a buffer, which else is written to its file at once
    (`fastFailIfNoBufferInStorePool`).
    """

    def __init__(self, count: int, size: int, *, fails_fast: bool) -> None:
        self._left, self._size = count, size
        self._free: list[mmap.mmap] = []
        self.fails_fast = fails_fast

    @property
    def left(self) -> int:
        """Buffers that are free."""
        return self._left + len(self._free)

    def take(self) -> Staged | None:
        """A buffer, None when all are in use (`TransientStorePool#borrowBuffer`)."""
        if self._free:
            return Staged(self._free.pop())
        if not self._left:
            return None
        self._left -= 1
        return Staged(mmap.mmap(-1, self._size))

    def give_back(self, staged: Staged) -> None:
        """Its segment needs it no more."""
        self._free.append(staged.buffer)
