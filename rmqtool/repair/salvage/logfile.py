"""Writing a new commit log: segments of full length, holes where nothing was written."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from rmqtool.errors import StoreIOError
from rmqtool.store.names import file_name

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self


class LogWriter:
    """Bytes into the segments of a directory, which must exist. Used as a context manager.

    Segments are synced when the log goes on in another, and get as modification time the store time (ms) of
    their last record: expiry and the 4.x search by time read it. Raises `StoreIOError`.
    """

    def __init__(self, directory: str, size: int) -> None:
        self.directory = directory
        self.written = 0
        self.segments = 0
        self._size = size
        self._base = -1
        self._descriptor = -1
        self._time = 0

    def put(self, physical_offset: int, data: bytes | memoryview, time: int = 0) -> None:
        """Bytes that lie in one segment; `time` is the store time (ms) of the last record in them, or 0."""
        base = physical_offset - physical_offset % self._size
        try:
            if base != self._base:
                self._end()
                self._begin(base)
            view = memoryview(data)
            at = physical_offset - base
            while view:
                done = os.pwrite(self._descriptor, view, at)
                view, at = view[done:], at + done
        except OSError as error:
            raise StoreIOError(f"{self.directory}: {error.strerror}") from error
        self.written += len(data)
        self._time = max(self._time, time)

    def _begin(self, base: int) -> None:
        path = os.path.join(self.directory, file_name(base))
        self._descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
        os.ftruncate(self._descriptor, self._size)
        self._base = base
        self.segments += 1

    def _end(self) -> None:
        if self._descriptor < 0:
            return
        try:
            os.fsync(self._descriptor)
            if self._time > 0:
                os.utime(self._descriptor, ns=(self._time * 1_000_000, self._time * 1_000_000))
        finally:
            os.close(self._descriptor)
            self._descriptor = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self._end()
        except OSError as refused:
            if error is None:
                raise StoreIOError(f"{self.directory}: {refused.strerror}") from refused
