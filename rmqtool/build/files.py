"""Files below a directory, each with its full length from the start, holes where nothing was written."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from rmqtool.errors import StoreIOError

if TYPE_CHECKING:
    from pathlib import Path

    from rmqtool.broker.files import Bytes


@dataclass
class DerivedFiles:
    """Writes derived files below `root`, which must exist and be nobody else's.

    times: store timestamp (ms) of the last record in each file, by path relative to the store with `/`; what
    has no record has none. flat: all files lie in one directory, under numbers, as making two directories for
    each of many queues costs more than their files. Files are not synced.
    """

    root: Path
    times: dict[str, int | None] = field(default_factory=dict)
    flat: bool = False
    _numbers: dict[str, int] = field(default_factory=dict)

    def place(self, path: str) -> Path:
        """Where a file lies, or will."""
        if not self.flat:
            return self.root / path
        return self.root / str(self._numbers.setdefault(path, len(self._numbers)))

    def write(self, path: str, size: int, position: int, data: Bytes, time: int | None = None) -> None:
        """Bytes at a position of a file, which is made with `size` bytes when it is not there.

        time: store timestamp of the last record in these bytes. Raises `StoreIOError`.
        """
        try:
            descriptor = self._open(path, size)
            try:
                view = memoryview(data)  # type: ignore[arg-type]
                while view:
                    done = os.pwrite(descriptor, view, position)
                    view, position = view[done:], position + done
            finally:
                os.close(descriptor)
        except OSError as error:
            raise StoreIOError(f"{self.place(path)}: {error.strerror}") from error
        if time is not None:
            self.times[path] = time

    def adopt(self, made: Path, path: str, time: int | None) -> None:
        """Takes a file that others have written on the same file system. Raises `StoreIOError`."""
        place = self.place(path)
        try:
            os.makedirs(place.parent, exist_ok=True)
            os.rename(made, place)
        except OSError as error:
            raise StoreIOError(f"{place}: {error.strerror}") from error
        self.times[path] = time

    def remove(self, path: str) -> None:
        """Takes a file away that was written."""
        self.place(path).unlink()
        del self.times[path]

    def _open(self, path: str, size: int) -> int:
        place = self.place(path)
        if path in self.times:
            return os.open(place, os.O_WRONLY | os.O_CLOEXEC)
        if not self.flat:
            os.makedirs(place.parent, exist_ok=True)
        descriptor = os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
        os.ftruncate(descriptor, size)
        self.times[path] = None
        return descriptor
