"""The front of a file as if it ended there: what lies behind is not looked at."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rmqtool.store.wrapped import WrappedSource

if TYPE_CHECKING:
    from rmqtool.store.bytes import ByteSource, Window


class TruncatedSource(WrappedSource):
    """A source that ends at `size`, or where it ends by itself.

    window_bytes: how much to ask for at once, for who reads little; default: what the source likes.
    """

    def __init__(self, source: ByteSource, size: int, window_bytes: int | None = None) -> None:
        super().__init__(source)
        self._size = min(source.size, size)
        self._window_bytes = source.window_bytes if window_bytes is None else window_bytes

    @property
    def size(self) -> int:
        """See `ByteSource.size`."""
        return self._size

    @property
    def zero_copy(self) -> bool:
        """See `ByteSource.zero_copy`: windows go to the end of the file, so it is not for mapped ones."""
        return False

    @property
    def window_bytes(self) -> int:
        """See `ByteSource.window_bytes`."""
        return self._window_bytes

    def size_now(self) -> int:
        """See `ByteSource.size_now`."""
        return min(self._source.size_now(), self._size)

    def next_data(self, offset: int) -> int | None:
        """See `ByteSource.next_data`."""
        found = self._source.next_data(offset)
        return None if found is None or found >= self._size else found

    def window(self, offset: int, length: int) -> Window:
        """See `ByteSource.window`."""
        return self._source.window(offset, max(min(length, self._size - offset), 0))
