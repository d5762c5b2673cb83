"""The front of a file as if it ended there: what lies behind is not looked at."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self

    from rmqtool.store.bytes import ByteSource, Window


class CutSource:
    """A source that ends at `size`, or where it ends by itself.

    window_bytes: how much to ask for at once, for who reads little; default: what the source likes.
    """

    def __init__(self, source: ByteSource, size: int, window_bytes: int | None = None) -> None:
        self._source = source
        self.size = min(source.size, size)
        self.window_bytes = source.window_bytes if window_bytes is None else window_bytes

    @property
    def name(self) -> str:
        """Name of what it wraps."""
        return self._source.name

    @property
    def zero_copy(self) -> bool:
        """See `ByteSource.zero_copy`: windows go to the end of the file, so it is not for mapped ones."""
        return False

    def size_now(self) -> int:
        """See `ByteSource.size_now`."""
        return min(self._source.size_now(), self.size)

    def spoiled(self) -> bool:
        """See `ByteSource.spoiled`."""
        return self._source.spoiled()

    def next_data(self, offset: int) -> int | None:
        """See `ByteSource.next_data`."""
        found = self._source.next_data(offset)
        return None if found is None or found >= self.size else found

    def window(self, offset: int, length: int) -> Window:
        """See `ByteSource.window`."""
        return self._source.window(offset, max(min(length, self.size - offset), 0))

    def close(self) -> None:
        """Closes what it wraps."""
        self._source.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
