"""Where a broker's rules write: files below a store's root, kept open, or nothing (an overlay in memory)."""

from __future__ import annotations

import errno
import os
import stat
from collections import OrderedDict
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Protocol

from rmqtool.errors import StoreIOError
from rmqtool.store.names import escape_name
from rmqtool.store.writing import Folder, Owner, create_sized, make_directory, open_for_writing, parent_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Self

    import numpy as np
    import numpy.typing as npt

    Bytes = bytes | npt.NDArray[np.uint8]

MOST_OPEN = 512


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

    What it makes is the owner's of the root.
    at: gives a path into a held directory for each, where some lie elsewhere.

    No link is followed, neither to the root nor below it. Files stay open, the `most_open` used last of
    them. Raises `StoreIOError`.
    """

    def __init__(self, root: str, most_open: int = MOST_OPEN, at: Callable[[str], str] | None = None) -> None:
        try:
            self._root = Folder.open(root)
        except OSError as error:
            raise StoreIOError(f"{root}: {error.strerror}") from error
        self._most_open, self._at = most_open, at or self._below
        self._owner = Owner.of(self._root.descriptor)
        self._open: OrderedDict[str, int] = OrderedDict()
        self._written: set[str] = set()
        self._renamed: set[str] = set()
        """directories in which names came or went"""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def write(self, path: str, size: int, position: int, data: Bytes, time: int | None = None) -> None:
        """See `FileWriter.write`; the time of the file is that of the writing, as with a broker."""
        del time
        with _named(path):
            view = memoryview(data)  # type: ignore[arg-type]
            descriptor = self._descriptor(path, size, b"" if position else view)
            while view:
                done = os.pwrite(descriptor, view, position)
                view, position = view[done:], position + done
        self._written.add(path)

    def remove(self, path: str) -> None:
        """A file goes (`MappedFile#destroy`), if it is there. Raises `StoreIOError`."""
        self._let_go(path)
        self._written.discard(path)
        with _named(path), suppress(FileNotFoundError), parent_of(self._at(path)) as (folder, name):
            os.unlink(name, dir_fd=folder)
            self._renamed.add(os.path.dirname(path))

    def sync(self) -> None:
        """All that was written is on the medium, and the names that came or went."""
        for path in sorted(self._written):
            with _named(path):
                os.fsync(self._descriptor(path, 0))
        self._written.clear()
        for path in sorted(self._renamed):
            with _named(path), Folder.open(self._at(path)) as folder:
                folder.sync()
        self._renamed.clear()

    def close(self) -> None:
        """Lets go of all files."""
        for path in list(self._open):
            self._let_go(path)
        self._root.close()

    def _below(self, path: str) -> str:
        return f"{self._root.here}/{path}"

    def _descriptor(self, path: str, size: int, head: memoryview | bytes = b"") -> int:
        if path in self._open:
            self._open.move_to_end(path)
            return self._open[path]
        try:
            descriptor = open_for_writing(self._at(path))
        except FileNotFoundError:
            descriptor = self._create(path, size, head)
        self._open[path] = descriptor
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            self._let_go(path)
            raise OSError(errno.EINVAL, "is not a regular file", path)
        if found.st_size < size:
            os.ftruncate(descriptor, size)
        while len(self._open) > self._most_open:
            os.close(self._open.popitem(last=False)[1])
        return descriptor

    def _create(self, path: str, size: int, head: memoryview | bytes) -> int:
        folders = path.split("/")[:-1]
        for depth in range(1, len(folders) + 1):
            with suppress(FileExistsError):
                make_directory(self._at("/".join(folders[:depth])), self._owner)
                self._renamed.add("/".join(folders[: depth - 1]))
        descriptor = create_sized(self._at(path), size, self._owner, head=head)
        self._renamed.add("/".join(folders))
        return descriptor

    def _let_go(self, path: str) -> None:
        descriptor = self._open.pop(path, None)
        if descriptor is not None:
            os.close(descriptor)


@contextmanager
def _named(path: str) -> Iterator[None]:
    """Errors of the system have the path of the store's file."""
    try:
        yield
    except OSError as error:
        raise StoreIOError(f"{escape_name(path)}: {error.strerror}") from error
