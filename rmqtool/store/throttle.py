"""Reading no faster than the owner of a live store allows."""

from __future__ import annotations

import time
from threading import Lock
from typing import TYPE_CHECKING

from rmqtool.errors import Stopped

if TYPE_CHECKING:
    from threading import Event
    from types import TracebackType
    from typing import Self

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


class ThrottledSource:
    """A source whose windows wait for their turn, or for `stop`. It wraps one that reads when asked, no mapping."""

    zero_copy = False

    def __init__(self, source: ByteSource, limit: RateLimit, stop: Event | None = None) -> None:
        self._source = source
        self._limit = limit
        self._stop = stop
        self.window_bytes = min(source.window_bytes, max(limit.bytes_per_second // _STEPS_PER_SECOND, 4096))

    @property
    def size(self) -> int:
        """Length in bytes of what it wraps."""
        return self._source.size

    @property
    def name(self) -> str:
        """Name of what it wraps."""
        return self._source.name

    def next_data(self, offset: int) -> int | None:
        """See `ByteSource.next_data`."""
        return self._source.next_data(offset)

    def size_now(self) -> int:
        """See `ByteSource.size_now`."""
        return self._source.size_now()

    def spoiled(self) -> bool:
        """See `ByteSource.spoiled`."""
        return self._source.spoiled()

    def window(self, offset: int, length: int) -> Window:
        """See `ByteSource.window`."""
        window = self._source.window(offset, length)
        self._limit.take(window.size, self._stop)
        return window

    def close(self) -> None:
        """Closes what it wraps."""
        self._source.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
