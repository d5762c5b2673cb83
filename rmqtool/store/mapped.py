"""Files as read-only mappings: nothing is copied while all bytes can be read."""

from __future__ import annotations

import contextlib
import mmap
import weakref
from typing import TYPE_CHECKING

import numpy as np

from rmqtool.store import faults
from rmqtool.store.bytes import FileSource

if TYPE_CHECKING:
    from rmqtool.store.bytes import Window


def _empty() -> Window:
    nothing = np.empty(0, dtype=np.uint8)
    nothing.flags.writeable = False
    return nothing


class MappedSource(FileSource):
    """One read-only mapping of the whole file; windows are views of it, nothing is copied.

    The length is asked again before each window, so that a file cut by somebody else gives a short window.
    Where bytes are touched that are gone by then, or lie on a bad block, they read as zeros (`store.faults`,
    once the compiled kernels are loaded; without them the process ends by SIGBUS, so `auto` does not map).
    `had_fault` tells it, and from then on windows are read with `pread`.

    Raises ValueError when the file is shorter than it was a moment ago, OSError when it cannot be mapped.
    """

    def __init__(self, descriptor: int, name: str) -> None:
        super().__init__(descriptor, name)
        self._map: mmap.mmap | None = None
        self._data = _empty()
        self._guard: faults.Guard | None = None
        self._copies = False
        if self._size > 0:
            self._map = mmap.mmap(descriptor, self._size, access=mmap.ACCESS_READ)
            self._data = np.frombuffer(self._map, dtype=np.uint8)
            self._guard = faults.guard(self._data.ctypes.data, self._size)
            if self._guard is not None:
                weakref.finalize(self._map, self._guard.end).atexit = False

    @property
    def guarded(self) -> bool:
        """Whether a byte that cannot be read is an answer."""
        return self._size == 0 or (faults.installed() and self._guard is not None)

    @property
    def mapping(self) -> mmap.mmap | None:
        """What windows are views of: a slice of it is a copy. It lasts as long as they; None of no bytes."""
        return self._map

    @property
    def zero_copy(self) -> bool:  # type: ignore[override]
        """See `ByteSource.zero_copy`; False after the first fault."""
        return not self._copies

    def maps(self, end: int) -> bool:
        """Whether bytes up to `end` can be read from the mapping, as far as is known."""
        return not self._copies and self.size_now() >= end

    def had_fault(self) -> bool:
        """See `ByteSource.had_fault`; in the last page of a file, what is cut is zeros without a fault."""
        if self._copies or self._guard is None:
            return False
        if not self._guard.faults and (self._descriptor < 0 or self.size_now() >= self._size):
            return False
        self._copies = True
        return True

    def window(self, offset: int, length: int) -> Window:
        """See `ByteSource.window`."""
        if self._copies:
            return self.copied(offset, length)
        end = min(self.size_now(), self._size)
        if length == end == self._size and not offset:
            return self._data
        return self._data[offset : offset + self.clamp(offset, length, end)]

    def close(self) -> None:
        """Drops the mapping; windows handed out before stay valid, the last of them unmaps the file."""
        self._data = _empty()
        if self._map is not None:
            with contextlib.suppress(BufferError):
                self._map.close()
                if self._guard is not None:
                    self._guard.end()
            self._map = None
        super().close()
