"""Sliding windows over a source, so that a scan never holds more of a file than it needs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rmqtool.errors import Stopped, UnreadableError

if TYPE_CHECKING:
    from threading import Event

    import numpy as np
    import numpy.typing as npt

    from rmqtool.store.bytes import ByteSource


class Windows:
    """The last window read, and the next one when a position leaves it; none once `stop` is set.

    until: position behind which no more is copied than is needed, while the windows begin in front of it.
    window_bytes: of windows that are copied, what the source likes unless given.
    """

    def __init__(
        self,
        source: ByteSource,
        stop: Event | None = None,
        until: int | None = None,
        window_bytes: int | None = None,
    ) -> None:
        self._source = source
        self._stop = stop
        self._until = source.size if until is None else until
        self._window_bytes = source.window_bytes if window_bytes is None else window_bytes
        self._window: npt.NDArray[np.uint8] | None = None
        self._origin = 0
        self._mapped = False

    def forget(self) -> None:
        """The next window is read again, even where the last one would do."""
        self._window = None

    def had_fault(self) -> bool:
        """Whether the last window may be wrong (`ByteSource.had_fault`); the next one is read again then."""
        if not self._source.had_fault():
            return False
        self.forget()
        return True

    def at(self, position: int, need: int = 0) -> tuple[npt.NDArray[np.uint8], int]:
        """A window that holds `need` bytes from `position` on, as far as the file goes; where it begins.

        Raises `Stopped` when the reader has left, `UnreadableError` where the medium gives less.
        """
        if self._stop is not None and self._stop.is_set():
            raise Stopped
        if self._mapped and not self._source.zero_copy:
            self._window = None  # of no use, as somebody else has been reported
        if self._window is not None:
            end = self._origin + self._window.size
            inside = self._origin <= position and position + max(need, 1) <= end
            if inside or (self._origin <= position <= end == self._source.size):
                return self._window, self._origin
        self._window = None  # one less in memory while the next is read
        whole = self._source.zero_copy
        origin = 0 if whole else position
        most = self._window_bytes
        if position < self._until:
            most = min(most, self._until - position)
        length = self._source.size if whole else max(most, need)
        window = self._source.window(origin, length)
        wanted = min(max(need, 1), self._source.size - position)
        if origin + window.size < position + wanted:
            raise UnreadableError(
                self._source.name, position, wanted, "the file became shorter while it was read"
            )
        self._window, self._origin, self._mapped = window, origin, whole
        return window, origin
