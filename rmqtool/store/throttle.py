"""Reading no faster than the owner of a live store allows."""

from __future__ import annotations

import time
from threading import Lock
from typing import TYPE_CHECKING

from rmqtool.errors import Stopped
from rmqtool.store.wrapped import WrappedSource

if TYPE_CHECKING:
    from threading import Event

    from rmqtool.store.bytes import ByteSource, Window

_STEPS_PER_SECOND = 10


class RateLimit:
    """Bytes per second, shared by all sources of one command and safe to use from several threads."""

    def __init__(self, bytes_per_second: int) -> None:
        self.bytes_per_second = bytes_per_second
        self._free_at = time.monotonic()
        self._lock = Lock()

    def take(self, count: int, stop: Event | None = None) -> None:
        """Wait until `count` more bytes may be read. Raises `Stopped` as soon as `stop` is set."""
        with self._lock:
            now = time.monotonic()
            self._free_at = max(self._free_at, now) + count / self.bytes_per_second
            wait = self._free_at - now
        if stop is None:
            time.sleep(max(wait, 0))
        elif stop.wait(max(wait, 0)):
            raise Stopped


class ThrottledSource(WrappedSource):
    """A source whose windows wait for their turn, or `stop`. It wraps one that reads when asked, unmapped."""

    def __init__(self, source: ByteSource, limit: RateLimit, stop: Event | None = None) -> None:
        super().__init__(source)
        self._limit = limit
        self._stop = stop
        self._window_bytes = min(source.window_bytes, max(limit.bytes_per_second // _STEPS_PER_SECOND, 4096))

    @property
    def zero_copy(self) -> bool:
        """See `ByteSource.zero_copy`: what is mapped is read when it is touched, unasked."""
        return False

    @property
    def window_bytes(self) -> int:
        """See `ByteSource.window_bytes`: what may be read in a fraction of a second."""
        return self._window_bytes

    def window(self, offset: int, length: int) -> Window:
        """See `ByteSource.window`."""
        window = self._source.window(offset, length)
        self._limit.take(window.size, self._stop)
        return window
