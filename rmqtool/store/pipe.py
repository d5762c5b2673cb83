"""A pipe as a source of bytes, for who reads on and never goes back."""

from __future__ import annotations

import os
import select

import numpy as np

from rmqtool.errors import Stopped, StoreIOError
from rmqtool.store.bytes import WINDOW_BYTES, SourceBase, Window

_UNKNOWN = 1 << 62


class PipeSource(SourceBase):
    """Holds what lies between the last place that was asked for and what was read of a pipe.

    Its size is beyond everything until the pipe has ended. stop: a descriptor that becomes readable when
    nobody wants more. Raises `StoreIOError`, and `Stopped` then.
    """

    def __init__(self, descriptor: int, name: str, stop: int) -> None:
        super().__init__(name, _UNKNOWN)
        self._descriptor, self._stop = descriptor, stop
        self._origin, self._held = 0, b""

    def window(self, offset: int, length: int) -> Window:
        """See `ByteSource.window`; ValueError for a place in front of the one before."""
        if offset < self._origin:
            raise ValueError(f"{offset} is before the bytes that are buffered")
        parts, had = [self._held[offset - self._origin :]], self._origin + len(self._held)
        while had < offset + length and self._size == _UNKNOWN:
            if self._stop in select.select([self._descriptor, self._stop], [], [])[0]:
                raise Stopped
            try:
                part = os.read(self._descriptor, max(min(offset + length - had, WINDOW_BYTES), 1))
            except OSError as error:
                raise StoreIOError(f"{self._name}: {error.strerror}") from error
            if not part:
                self._size = had
            parts.append(part[max(offset - had, 0) :])
            had += len(part)
        self._origin, self._held = offset, b"".join(parts)
        return np.frombuffer(memoryview(self._held)[:length], np.uint8)
