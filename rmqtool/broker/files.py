"""Where a broker's rules write: files below a store's root, kept open, or nothing (an overlay in memory)."""

from __future__ import annotations

import os
from collections import OrderedDict
from contextlib import suppress
from typing import TYPE_CHECKING, Protocol

from rmqtool.errors import StoreIOError
from rmqtool.store.writing import open_directory

if TYPE_CHECKING:
    from typing import Self

    import numpy as np
    import numpy.typing as npt

    Bytes = bytes | npt.NDArray[np.uint8]

_MOST_OPEN = 512


class FileWriter(Protocol):
    """What takes the bytes of files."""

    def write(self, path: str, size: int, position: int, data: Bytes, time: int | None = None) -> None:
        """Bytes at a position of a file, which is made with `size` bytes when it is not there.

        time: store timestamp (ms) of the last record in these bytes. Raises `StoreIOError`.
        """
        ...


class Disk(FileWriter, Protocol):
    """Where what a start does to files is carried out."""

    def remove(self, path: str) -> None:
        """A file goes (`MappedFile#destroy`), if it is there. Raises `StoreIOError`."""
        ...


class StoreFiles:
    """Writes files of a store, by path relative to its root. A context manager; nothing is synced by itself.

    No link is followed. Files stay open, the `_MOST_OPEN` used last of them.
    """

    def __init__(self, root: str) -> None:
        self._root = root
        self._open: OrderedDict[str, int] = OrderedDict()
        self._written: set[str] = set()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def write(self, path: str, size: int, position: int, data: Bytes, time: int | None = None) -> None:
        """See `FileWriter.write`; the time of the file is that of the writing, as with a broker."""
        del time
        try:
            descriptor = self._descriptor(path, size)
            view = memoryview(data)  # type: ignore[arg-type]
            while view:
                done = os.pwrite(descriptor, view, position)
                view, position = view[done:], position + done
        except OSError as error:
            raise StoreIOError(f"{path}: {error.strerror}") from error
        self._written.add(path)

    def remove(self, path: str) -> None:
        """A file goes (`MappedFile#destroy`), if it is there. Raises `StoreIOError`."""
        self._let_go(path)
        self._written.discard(path)
        try:
            with self._directory(path) as (folder, name):
                os.unlink(name, dir_fd=folder)
        except FileNotFoundError:
            return
        except OSError as error:
            raise StoreIOError(f"{path}: {error.strerror}") from error

    def sync(self) -> None:
        """All that was written is on the medium. Raises `StoreIOError`."""
        for path in sorted(self._written):
            try:
                os.fsync(self._descriptor(path, 0))
            except OSError as error:
                raise StoreIOError(f"{path}: {error.strerror}") from error
        self._written.clear()

    def close(self) -> None:
        """Lets go of all files."""
        for path in list(self._open):
            self._let_go(path)

    def _descriptor(self, path: str, size: int) -> int:
        if path in self._open:
            self._open.move_to_end(path)
            return self._open[path]
        with self._directory(path, make=True) as (folder, name):
            flags = os.O_WRONLY | os.O_CLOEXEC | os.O_NOFOLLOW
            descriptor = os.open(name, flags | os.O_CREAT, 0o644, dir_fd=folder)
        if os.fstat(descriptor).st_size < size:
            os.ftruncate(descriptor, size)
        self._open[path] = descriptor
        while len(self._open) > _MOST_OPEN:
            os.close(self._open.popitem(last=False)[1])
        return descriptor

    def _directory(self, path: str, *, make: bool = False) -> _Held:
        *names, name = path.split("/")
        folder = open_directory(self._root)
        for one in names:
            if make:
                with suppress(FileExistsError):
                    os.mkdir(one, 0o755, dir_fd=folder)
            try:
                inner = os.open(one, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
            finally:
                os.close(folder)
            folder = inner
        return _Held(folder, name)

    def _let_go(self, path: str) -> None:
        descriptor = self._open.pop(path, None)
        if descriptor is not None:
            os.close(descriptor)


class _Held:
    """A directory's descriptor and a name in it, for the length of a `with`."""

    def __init__(self, folder: int, name: str) -> None:
        self._folder, self._name = folder, name

    def __enter__(self) -> tuple[int, str]:
        return self._folder, self._name

    def __exit__(self, *error: object) -> None:
        os.close(self._folder)
