"""Read-only windows on bytes, wherever they lie.

Scan, checks and views ask for `window(offset, length)` and never learn whether a mapping, `pread` or memory
answers. A source for remote ranges only needs the same members.
"""

from __future__ import annotations

import contextlib
import errno
import mmap
import os
import stat
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias, runtime_checkable

import numpy as np

from rmqtool.errors import StoreIOError, UnreadableError, UsageError
from rmqtool.store import lock

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self

Window: TypeAlias = "np.ndarray[tuple[int], np.dtype[np.uint8]]"
OpenMode = Literal["auto", "map", "pread"]

BLOCK = 4096
"""Granularity in bytes in which unreadable ranges are reported."""

WINDOW_BYTES = 2 << 20
"""bytes read at once from a source that copies"""

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


def _empty() -> Window:
    nothing = np.empty(0, dtype=np.uint8)
    nothing.flags.writeable = False
    return nothing


class _Source:
    """Name, size, clamping and context management, common to all sources."""

    zero_copy = False
    window_bytes = WINDOW_BYTES

    def __init__(self, name: str, size: int) -> None:
        self._name = name
        self._size = size

    def next_data(self, offset: int) -> int | None:
        """See `ByteSource.next_data`; a source that knows of no holes has data everywhere."""
        return offset if offset < self._size else None

    @property
    def name(self) -> str:
        return self._name

    @property
    def size(self) -> int:
        return self._size

    def _clamp(self, offset: int, length: int, end: int) -> int:
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


class MemorySource(_Source):
    """Bytes that are in memory already (an unwrapped body, a test, a file that must not be opened)."""

    zero_copy = True

    def __init__(self, data: bytes | bytearray | memoryview, name: str = "<memory>") -> None:
        self._data = np.frombuffer(bytes(data), dtype=np.uint8)
        super().__init__(name, len(self._data))

    def window(self, offset: int, length: int) -> Window:
        """See `ByteSource.window`."""
        return self._data[offset : offset + self._clamp(offset, length, self._size)]


class _FileSource(_Source):
    def __init__(self, descriptor: int, name: str) -> None:
        self._descriptor = descriptor
        super().__init__(name, os.fstat(descriptor).st_size)

    def next_data(self, offset: int) -> int | None:
        """See `ByteSource.next_data`: holes of a sparse file are skipped where the file system tells them."""
        if offset >= self._size:
            return None
        try:
            return min(os.lseek(self._descriptor, offset, os.SEEK_DATA), self._size)
        except OSError as error:
            return None if error.errno == errno.ENXIO else offset

    def close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


class PreadSource(_FileSource):
    """Reads with `preadv`: copies, but a bad block or a file that shrinks is an answer, no SIGBUS."""

    def window(self, offset: int, length: int) -> Window:
        """See `ByteSource.window`; a file cut since it was opened gives a shorter window."""
        wanted = self._clamp(offset, length, self._size)
        buffer = np.empty(wanted, dtype=np.uint8)
        view = memoryview(buffer.data)
        done = 0
        while done < wanted:
            count = self._read(view[done:], offset + done)
            if count == 0:
                buffer = buffer[:done]
                break
            done += count
        buffer.flags.writeable = False
        return buffer

    def _read(self, target: memoryview, offset: int) -> int:
        try:
            return os.preadv(self._descriptor, [target], offset)
        except OSError as error:
            if error.errno not in _MEDIA_ERRORS:
                raise StoreIOError(f"{self._name}: {error.strerror}") from error
        # A large request may fail as a whole although its first blocks are sound: ask for the one block at
        # `offset`.
        block = min(BLOCK - offset % BLOCK, len(target))
        try:
            return os.preadv(self._descriptor, [target[:block]], offset)
        except OSError as error:
            raise UnreadableError(self._name, offset, block, error.strerror or "I/O error") from error


class MappedSource(_FileSource):
    """One read-only mapping of the whole file; windows are views of it, nothing is copied.

    The length is asked again before each window, so that a file cut by somebody else gives a short window.
    Between that question and the access a cut or a bad block still ends the process (SIGBUS): for evidence
    on failing media open with `mode="pread"`.
    """

    zero_copy = True

    def __init__(self, descriptor: int, name: str) -> None:
        super().__init__(descriptor, name)
        self._map: mmap.mmap | None = None
        self._data = _empty()
        if self._size > 0:
            self._map = mmap.mmap(descriptor, self._size, access=mmap.ACCESS_READ)
            self._data = np.frombuffer(self._map, dtype=np.uint8)

    def window(self, offset: int, length: int) -> Window:
        """See `ByteSource.window`."""
        now = min(os.fstat(self._descriptor).st_size, self._size) if self._descriptor >= 0 else 0
        return self._data[offset : offset + self._clamp(offset, length, now)]

    def close(self) -> None:
        """Drops the mapping; windows handed out before stay valid, the last of them unmaps the file."""
        self._data = _empty()
        if self._map is not None:
            with contextlib.suppress(BufferError):
                self._map.close()
            self._map = None
        super().close()


def _open_descriptor(path: str, name: str) -> int:
    try:
        found = os.stat(path)
        if stat.S_ISDIR(found.st_mode):
            raise UsageError(f"{name} is a directory, not a file")
        if not stat.S_ISREG(found.st_mode):
            raise UsageError(f"{name} is {describe_mode(found.st_mode)}, not a regular file")
        # O_NONBLOCK: if a FIFO takes the name between the two calls, open must still return at once.
        flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK
        try:
            descriptor = os.open(path, flags | getattr(os, "O_NOATIME", 0))
        except PermissionError:
            descriptor = os.open(path, flags)
    except FileNotFoundError as error:
        raise UsageError(f"{name}: no such file or directory") from error
    except OSError as error:
        raise StoreIOError(f"{name}: {error.strerror}") from error
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise UsageError(f"{name} is not a regular file")
    return descriptor


def describe_mode(mode: int) -> str:
    """English name of a file type that is neither file nor directory, for messages."""
    names = (
        (stat.S_ISFIFO, "a FIFO"),
        (stat.S_ISSOCK, "a socket"),
        (stat.S_ISCHR, "a character device"),
        (stat.S_ISBLK, "a block device"),
        (stat.S_ISLNK, "a symbolic link"),
    )
    return next((text for test, text in names if test(mode)), "a special file")


def open_source(
    path: str | os.PathLike[str], mode: OpenMode = "auto", *, name: str | None = None
) -> ByteSource:
    """Opens a regular file for reading.

    `mode`: `map` (one mapping), `pread` (survives bad blocks and shrinking files), `auto` (a mapping, or
    `pread` where the file system cannot map). `name` is used in messages instead of the path. Raises
    `UsageError` when there is no regular file of that name, `StoreIOError` when it may not be opened.

    A `lock` file that this very process has locked is answered from memory: opening and closing it would
    drop the lock (POSIX record locks, see `rmqtool.store.lock`).
    """
    location = os.fspath(path)
    label = location if name is None else name
    held = lock.held_content(location)
    if held is not None:
        return MemorySource(held, label)
    descriptor = _open_descriptor(location, label)
    if mode == "pread":
        return PreadSource(descriptor, label)
    try:
        return MappedSource(descriptor, label)
    except OSError as error:
        if mode == "auto":
            return PreadSource(descriptor, label)
        os.close(descriptor)
        raise StoreIOError(f"{label}: cannot be mapped: {error.strerror}") from error
    except ValueError as error:
        # The file was cut between fstat and mmap.
        if mode == "auto":
            return PreadSource(descriptor, label)
        os.close(descriptor)
        raise StoreIOError(f"{label}: cannot be mapped: {error}") from error
