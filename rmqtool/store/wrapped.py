"""A source around another one: what it does not change is what the other one says."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self

    from rmqtool.store.bytes import ByteSource, Window


class WrappedSource:
    """Every member of `ByteSource`, passed on; a context manager that closes what it wraps."""

    def __init__(self, source: ByteSource) -> None:
        self._source = source

    @property
    def size(self) -> int:
        """See `ByteSource.size`."""
        return self._source.size

    @property
    def name(self) -> str:
        """See `ByteSource.name`."""
        return self._source.name

    @property
    def zero_copy(self) -> bool:
        """See `ByteSource.zero_copy`."""
        return self._source.zero_copy

    @property
    def window_bytes(self) -> int:
        """See `ByteSource.window_bytes`."""
        return self._source.window_bytes

    def size_now(self) -> int:
        """See `ByteSource.size_now`."""
        return self._source.size_now()

    def had_fault(self) -> bool:
        """See `ByteSource.had_fault`."""
        return self._source.had_fault()

    def next_data(self, offset: int) -> int | None:
        """See `ByteSource.next_data`."""
        return self._source.next_data(offset)

    def window(self, offset: int, length: int) -> Window:
        """See `ByteSource.window`."""
        return self._source.window(offset, length)

    def close(self) -> None:
        """Closes what it wraps."""
        self._source.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
