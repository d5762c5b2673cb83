"""The commit log as a writer has it: segments that are made ahead, written at their end, and synced.

Files have their full length from the beginning, as those of a broker, but no room on the disk. Room is taken
some way ahead of the end, so that a full disk is an answer and not the end of the process; then single
records are written through a mapping, and large pieces with `pwrite`.
"""

from __future__ import annotations

import errno
import mmap
import os
import threading
from contextlib import suppress
from typing import TYPE_CHECKING

from formats.commitlog import fits
from rmqtool.broker.encoder import blank
from rmqtool.broker.java import file_name
from rmqtool.errors import StoreIOError
from rmqtool.store.writing import Folder, create_sized, open_for_writing, parent_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    import numpy.typing as npt

    from rmqtool.broker.files import Bytes
    from rmqtool.broker.mapped_files import MappedFile, MappedFiles

    Data = bytes | npt.NDArray[np.uint8]

_AHEAD = 16 << 20
"""bytes for which room is taken at once"""
_LARGE = 1 << 16
"""bytes that are written without the mapping"""
AHEAD = 2
"""segments that exist behind the one in use (`AllocateMappedFileService#putRequestAndReturnMappedFile`)"""


class _Mapped:
    """The segment that is written. reserved: bytes that have room on the disk."""

    def __init__(self, base: int, descriptor: int, size: int) -> None:
        self.base, self._descriptor, self._size = base, descriptor, size
        self.data = mmap.mmap(descriptor, size)
        self.reserved = 0

    def reserve(self, end: int) -> None:
        """Takes room for the bytes in front of `end`, and for some that follow. Raises `OSError`."""
        until = min(end + _AHEAD, self._size)
        os.posix_fallocate(self._descriptor, self.reserved, until - self.reserved)
        self.reserved = until


class LogFiles:
    """Where records are appended. One thread appends at a time; any may ask for `end` and `sync`.

    end: physical offset behind the last byte that was written. last_timestamp: store time (ms) of the last
    record.
    """

    def __init__(self, root: str, log: MappedFiles, *, ahead: bool = True) -> None:
        self._root = Folder.open(root)
        self.log = log
        self.log.disk = self
        self.end = log.max_offset
        self.last_timestamp = 0
        self._mapped: _Mapped | None = None
        self._descriptors: dict[int, int] = {}
        """by base, of segments that are written or not synced yet"""
        self._made: set[int] = set()
        """bases of segments that were made ahead"""
        self._guard = threading.Lock()
        self._syncing = threading.Lock()
        """no descriptor is closed meanwhile"""
        self._wanted = threading.Condition(self._guard)
        self._stopped = False
        self._thread = threading.Thread(target=self._allocate, name="rmqtool-allocate", daemon=True)
        if ahead:
            self._thread.start()

    @property
    def free(self) -> int:
        """Bytes left in the segment in use; 0 where there is none."""
        last = self.log.files[-1] if self.log.files else None
        return 0 if last is None else self.log.size - last.wrote

    def place_for(self, length: int) -> MappedFile:
        """The segment that the next `length` bytes go to; one that has no room for them is closed.

        `CommitLog#doAppend`. Raises `OSError` where none can be made or closed.
        """
        last = self.log.files[-1] if self.log.files else None
        if last is not None and fits(length, self.log.size - last.wrote):
            return last
        if last is not None and last.wrote < self.log.size:
            free = self.log.size - last.wrote
            self._write_at(last, blank(free))
            last.wrote = self.log.size
            self.end = last.base + last.wrote
        return self.log.last_for(self.end)

    def append(self, file: MappedFile, data: Data) -> None:
        """Bytes behind the last ones of `file`, from `place_for`. Raises `OSError`; then nothing counts."""
        self._write_at(file, data)
        file.wrote += len(data)
        self.end = file.base + file.wrote

    def _write_at(self, file: MappedFile, data: Data) -> None:
        descriptor = self._descriptors.get(file.base)
        if descriptor is None:
            descriptor = self._open(file)
        mapped = self._mapped
        if mapped is None or mapped.base != file.base:
            mapped = self._mapped = _Mapped(file.base, descriptor, self.log.size)
        end = file.wrote + len(data)
        if end > mapped.reserved:
            mapped.reserve(end)
        if isinstance(data, bytes) and len(data) < _LARGE:
            mapped.data[file.wrote : end] = data
            return
        view = memoryview(data)  # type: ignore[arg-type]
        done = os.pwrite(descriptor, view, file.wrote)
        if done < len(data):
            while done < len(data):
                more = os.pwrite(descriptor, view[done:], file.wrote + done)
                if not more:
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), file.path)
                done += more

    def _open(self, file: MappedFile) -> int:
        descriptor = open_for_writing(f"{self._root.here}/{file.path}")
        with self._guard:
            self._descriptors[file.base] = descriptor
        return descriptor

    def sync(self, begin: int) -> int:
        """Puts all that was written from physical offset `begin` on onto the medium; up to where that is.

        Raises `OSError`: then nobody can know what is there, and no later success says so.
        """
        end = self.end
        with self._syncing:
            with self._guard:
                todo = sorted((base, one) for base, one in self._descriptors.items() if base < end)
            for _, one in todo:
                os.fdatasync(one)
            with self._guard:
                last = self.log.files[-1].base if self.log.files else 0
                for base, one in todo:
                    if base + self.log.size <= end and base != last:
                        os.close(self._descriptors.pop(base, one))
        return max(end, begin)

    def write(self, path: str, size: int, position: int, data: Bytes, time: int | None = None) -> None:
        """A segment is made (`MappedFiles.last_for`), or was ahead. Raises `OSError`."""
        del position, data, time
        base = int(path.rpartition("/")[2])
        with self._guard:
            if base in self._made:
                self._made.discard(base)
            else:
                self._make(path, size)
            self._wanted.notify()

    def remove(self, path: str) -> None:
        """A segment goes. Raises `StoreIOError`."""
        base = int(path.rpartition("/")[2])
        with self._syncing:
            with self._guard:
                descriptor = self._descriptors.pop(base, None)
            if descriptor is not None:
                os.close(descriptor)
        try:
            with parent_of(f"{self._root.here}/{path}") as (folder, name), suppress(FileNotFoundError):
                os.unlink(name, dir_fd=folder)
        except OSError as error:
            raise StoreIOError(f"{path}: {error.strerror}") from error

    def _make(self, path: str, size: int) -> None:
        """A new file at its full length, it and its name synced."""
        place = f"{self._root.here}/{path}"
        with suppress(FileExistsError), parent_of(os.path.dirname(place)) as (above, name):
            os.mkdir(name, dir_fd=above)
        try:
            descriptor = create_sized(place, size, 0o644)
        except FileExistsError:
            descriptor = open_for_writing(place)
            os.ftruncate(descriptor, size)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        with Folder.open(os.path.dirname(place)) as folder:
            folder.sync()

    def _allocate(self) -> None:
        """Keeps the next segments made (`AllocateMappedFileService#mmapOperation`)."""
        while True:
            with self._wanted:
                wanted = self._missing()
                while not wanted and not self._stopped:
                    self._wanted.wait()
                    wanted = self._missing()
                if self._stopped:
                    return
                base = wanted[0]
                try:
                    self._make(f"{self.log.directory}/{file_name(base)}", self.log.size)
                except OSError:  # whoever needs it tries again, and is told
                    self._wanted.wait(1)
                    continue
                self._made.add(base)

    def _missing(self) -> Sequence[int]:
        if not self.log.files:
            return []
        last = self.log.files[-1].base
        following = [last + number * self.log.size for number in range(1, AHEAD + 1)]
        return [base for base in following if base not in self._made]

    def close(self) -> None:
        """Lets go of all files; segments that were made ahead and never used go."""
        with self._guard:
            self._stopped = True
            self._wanted.notify_all()
        if self._thread.is_alive():
            self._thread.join()
        for base in sorted(self._made):
            self.remove(f"{self.log.directory}/{file_name(base)}")
        for descriptor in self._descriptors.values():
            os.close(descriptor)
        self._descriptors.clear()
        self._root.close()
