"""Read-only windows on bytes, wherever they lie.

Scan, checks and views ask for `window(offset, length)` and never learn whether a mapping, `pread` or memory
answers. A source for remote ranges only needs the same members.
"""

from __future__ import annotations

import contextlib
import errno
import os
import weakref
from typing import TYPE_CHECKING, Protocol, TypeAlias, runtime_checkable

import numpy as np

from rmqtool.errors import StoreIOError, UnreadableError
from rmqtool.store.buffers import BUFFERS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import TracebackType
    from typing import Self

Window: TypeAlias = "np.ndarray[tuple[int], np.dtype[np.uint8]]"

BLOCK = 4096
"""Granularity in bytes in which unreadable ranges are reported."""

WINDOW_BYTES = 2 << 20
"""bytes read at once from a source that copies: few enough that the allocator reuses the memory"""

_MEDIA_ERRORS = frozenset(
    {errno.EIO, errno.ENODATA, errno.ETIMEDOUT, errno.ESTALE, errno.EREMOTEIO, errno.EBADMSG}
)


@runtime_checkable
class ByteSource(Protocol):
    """Random access to the bytes of one file; nothing in it can write.

    It is a context manager that closes itself.
    """

    @property
    def size(self) -> int:
        """Length in bytes when the source was opened."""
        ...

    @property
    def name(self) -> str:
        """What messages call it."""
        ...

    @property
    def zero_copy(self) -> bool:
        """Windows are views, so that a whole file is as cheap as a part of it."""
        ...

    @property
    def window_bytes(self) -> int:
        """How much to ask for at once when reading on from one place."""
        ...

    def next_data(self, offset: int) -> int | None:
        """Where bytes that may not be zero begin, at or after `offset`; None when only holes are left."""
        ...

    def size_now(self) -> int:
        """Length in bytes at this moment."""
        ...

    def had_fault(self) -> bool:
        """Whether windows handed out since the last question may show zeros in place of unreadable bytes.

        Whoever has worked on a window asks this before the result counts. After True, reported once, the
        source copies (`zero_copy` is False): no window from before is good, ask again and repeat the work.
        """
        ...

    def window(self, offset: int, length: int) -> Window:
        """Bytes `[offset, offset + length)` as a read-only uint8 array, shorter only where the file ends.

        Raises `UnreadableError` with the bad range when the medium refuses, `ValueError` for negative
        arguments.
        """
        ...

    def close(self) -> None:
        """Gives back what the source holds."""
        ...

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


_LARGE = 8 << 20
"""bytes of a window in which holes are looked for"""


class SourceBase:
    """Name, size, clamping and context management, common to all sources."""

    zero_copy = False
    window_bytes = WINDOW_BYTES

    def __init__(self, name: str, size: int) -> None:
        self._name = name
        self._size = size

    def next_data(self, offset: int) -> int | None:
        """See `ByteSource.next_data`; a source that knows of no holes has data everywhere."""
        return offset if offset < self._size else None

    def size_now(self) -> int:
        """See `ByteSource.size_now`."""
        return self._size

    def had_fault(self) -> bool:
        """See `ByteSource.had_fault`; a copy cannot change any more."""
        return False

    @property
    def name(self) -> str:
        """See `ByteSource.name`."""
        return self._name

    @property
    def size(self) -> int:
        """See `ByteSource.size`."""
        return self._size

    def clamp(self, offset: int, length: int, end: int) -> int:
        """How many of the wanted bytes lie before `end`."""
        if offset < 0 or length < 0:
            raise ValueError(f"negative window: offset {offset}, length {length}")
        return max(min(length, end - offset), 0)

    def close(self) -> None:
        """Gives back what the source holds; closing twice is harmless."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class MemorySource(SourceBase):
    """Bytes that are in memory already (an unwrapped body, a test, a file that must not be opened)."""

    zero_copy = True

    def __init__(self, data: bytes | bytearray | memoryview, name: str = "<memory>") -> None:
        self._data = np.frombuffer(bytes(data), dtype=np.uint8)
        super().__init__(name, len(self._data))

    def window(self, offset: int, length: int) -> Window:
        """See `ByteSource.window`."""
        return self._data[offset : offset + self.clamp(offset, length, self._size)]


class FileSource(SourceBase):
    """A file by its descriptor, which it closes in the end."""

    _last: weakref.finalize[..., FileSource] | None = None

    def __init__(self, descriptor: int, name: str) -> None:
        """Raises `StoreIOError`, with the descriptor closed."""
        try:
            size = os.fstat(descriptor).st_size
        except OSError as error:
            os.close(descriptor)
            raise StoreIOError(f"{name}: {error.strerror}") from error
        self._descriptor = descriptor
        super().__init__(name, size)

    def size_now(self) -> int:
        """See `ByteSource.size_now`; 0 once closed."""
        try:
            # a quarter of what `fstat` takes, and nobody reads from where the descriptor stands
            return os.lseek(self._descriptor, 0, os.SEEK_END) if self._descriptor >= 0 else 0
        except OSError as error:
            raise StoreIOError(f"{self._name}: {error.strerror}") from error

    def next_data(self, offset: int) -> int | None:
        """See `ByteSource.next_data`: holes of a sparse file are skipped where the file system tells them."""
        if offset >= self._size:
            return None
        try:
            return min(os.lseek(self._descriptor, offset, os.SEEK_DATA), self._size)
        except OSError as error:
            return None if error.errno == errno.ENXIO else offset

    def copied(self, offset: int, length: int) -> Window:
        """A window read with `preadv`; shorter where the file was cut since it was opened.

        Holes in a large one take neither time nor memory.
        """
        wanted = self.clamp(offset, length, self._size)
        if wanted <= _LARGE:
            buffer = BUFFERS.take(wanted)
            buffer = buffer[: self._fill(memoryview(buffer.data), offset)]
        else:
            buffer = np.zeros(wanted, dtype=np.uint8)
            view = memoryview(buffer.data)
            for start, end in self._extents(offset, offset + wanted):
                self._fill(view[start - offset : end - offset], start)
            buffer = buffer[: self.clamp(offset, wanted, self.size_now())]
        buffer.flags.writeable = False
        return buffer

    def _fill(self, target: memoryview, offset: int) -> int:
        """Reads what `target` has room for; how much there was."""
        done = 0
        while done < len(target):
            count = self._read(target[done:], offset + done)
            if count == 0:
                break
            done += count
        return done

    def _extents(self, start: int, end: int) -> Iterator[tuple[int, int]]:
        """Ranges in `[start, end)` that are not holes, as far as the file system tells."""
        at: int | None = start
        while at is not None and at < end and (at := self.next_data(at)) is not None and at < end:
            try:
                hole = os.lseek(self._descriptor, at, os.SEEK_HOLE)
            except OSError:
                hole = end
            yield at, min(hole, end)
            at = max(hole, at + 1)

    def _read(self, target: memoryview, offset: int) -> int:
        """At least one block of what is wanted.

        A large request may fail as a whole although its first blocks are sound. Halves of it are asked for,
        down to one block, so that a bad block is met a few times only: a disk may take seconds over each.
        """
        length = len(target)
        while True:
            try:
                return os.preadv(self._descriptor, [target[:length]], offset)
            except OSError as error:
                if error.errno not in _MEDIA_ERRORS:
                    raise StoreIOError(f"{self._name}: {error.strerror}") from error
                block = min(BLOCK - offset % BLOCK, length)
                if length == block:
                    reason = error.strerror or "I/O error"
                    raise UnreadableError(self._name, offset, block, reason) from error
                half = (offset + length // 2) // BLOCK * BLOCK - offset
                length = max(half, block)

    def close_when_dropped(self) -> None:
        """Gives back the descriptor with the last reference: of threads that share it none can call `close`.

        Another that has just asked whether it is open would use a descriptor that is closed, or by then a
        different file's.
        """
        self._last = weakref.finalize(self, os.close, self._descriptor)
        self._last.atexit = False

    def close(self) -> None:
        """Gives back the descriptor; closing twice is harmless."""
        if self._descriptor >= 0:
            if self._last is None:
                os.close(self._descriptor)
            else:
                self._last()
            self._descriptor = -1


class PreadSource(FileSource):
    """Reads with `preadv`: copies, but a bad block or a file that shrinks is an answer, no SIGBUS.

    drop_behind: what was read is dropped from the page cache when the next window is asked for, so that
    reading a whole store does not push a running broker's pages out.
    """

    def __init__(self, descriptor: int, name: str, *, drop_behind: bool = False) -> None:
        super().__init__(descriptor, name)
        self._drop_behind = drop_behind
        self._behind = (0, 0)

    def window(self, offset: int, length: int) -> Window:
        """See `ByteSource.window`; a file cut since it was opened gives a shorter window."""
        window = self.copied(offset, length)
        if self._drop_behind:
            self._drop()
            self._behind = (offset, window.size)
        return window

    def _drop(self) -> None:
        start, length = self._behind
        if length and self._descriptor >= 0:
            with contextlib.suppress(OSError):
                os.posix_fadvise(self._descriptor, start, length, os.POSIX_FADV_DONTNEED)

    def close(self) -> None:
        """Gives back the descriptor, and the pages of the last window."""
        if self._drop_behind:
            self._drop()
        super().close()
