"""The commit log as a writer has it: segments that are made ahead, written at their end, and synced.

Files have their full length from the beginning, as those of a broker, but no room on the disk. Room is taken
some way ahead of the end, so that a full disk is an answer and not the end of the process; then single
records are written through a mapping, and large pieces with `pwrite`. A mapping is guarded
(`rmqtool.store.faults`), so that a segment that another process cuts is an answer as well; where that cannot
be, nothing is mapped.
"""

from __future__ import annotations

import errno
import mmap
import os
import threading
import weakref
from contextlib import suppress
from typing import TYPE_CHECKING

import numpy as np

from formats.commitlog import fits
from rmqtool.broker.encoder import blank
from rmqtool.errors import StoreIOError
from rmqtool.messagestore.held_files import data_behind
from rmqtool.store import faults
from rmqtool.store.holes import STEP
from rmqtool.store.writing import Folder, create_sized, make_directory, open_for_writing, parent_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy.typing as npt

    from rmqtool.broker.files import Bytes
    from rmqtool.broker.mapped_files import MappedFile, MappedFiles
    from rmqtool.messagestore.log_places import LogPlaces
    from rmqtool.messagestore.store_pool import Staged, StorePool
    from rmqtool.messagestore.warm_up import WarmUp

    Data = bytes | npt.NDArray[np.uint8]

_AHEAD = 16 << 20
"""bytes for which room is taken at once"""
_LARGE = 1 << 16
"""bytes that are written without the mapping"""
AHEAD = 2
"""segments that exist behind the one in use (`AllocateMappedFileService#putRequestAndReturnMappedFile`)"""


class _Mapped:
    """The segment that is written. reserved: bytes that have room on the disk. data: None without a guard.

    Raises `OSError` where the file is shorter than `size`.
    """

    def __init__(self, base: int, descriptor: int, size: int) -> None:
        _demand_whole(descriptor, size)
        self.base, self._descriptor, self._size = base, descriptor, size
        self.data: mmap.mmap | None = None
        self._guard: faults.Guard | None = None
        self.reserved = 0
        if faults.installed():
            with suppress(ValueError):  # cut by now
                self._map()

    def _map(self) -> None:
        data = mmap.mmap(self._descriptor, self._size)
        self._guard = faults.guard(np.frombuffer(data, np.uint8).ctypes.data, self._size)
        if self._guard is not None:
            weakref.finalize(data, self._guard.end).atexit = False
            self.data = data

    def put(self, position: int, data: bytes) -> bool:
        """Writes through the mapping; False without one. Raises `OSError` once bytes went nowhere."""
        if self.data is None or self._guard is None:
            return False
        self.data[position : position + len(data)] = data
        if self._guard.faults:
            raise _cut()
        return True

    def reserve(self, end: int) -> None:
        """Takes room for the bytes in front of `end`, and for some that follow. Raises `OSError`."""
        _demand_whole(self._descriptor, self._size)  # what is gone does not come back as zeros
        until = min(end + _AHEAD, self._size)
        os.posix_fallocate(self._descriptor, self.reserved, until - self.reserved)
        self.reserved = until


def _cut() -> OSError:
    return OSError(errno.EIO, "another process cut it, or it cannot be written")


def _demand_whole(descriptor: int, size: int) -> None:
    """Raises `OSError` for a file that is shorter.

    `fstat` asks for the times, too: since Linux 6.13 the next write then makes new ones, and the sync behind
    it writes the inode with the data (150 µs, not 100).
    """
    if os.lseek(descriptor, 0, os.SEEK_END) < size:
        raise _cut()


class LogFiles:
    """Where records are appended. One thread appends at a time; any may ask for `end` and `sync`.

    end: physical offset behind the last byte that was written. committed: up to where the files have it,
    which with a pool is less. last_timestamp: store time (ms) of the last record. on_commit: called behind a
    commit.
    """

    def __init__(
        self,
        places: LogPlaces,
        log: MappedFiles,
        *,
        ahead: bool = True,
        pool: StorePool | None = None,
        warm: WarmUp | None = None,
    ) -> None:
        self._places = places
        self.log = log
        self.log.disk, self.log.directory_for = self, self._directory_for
        self._directories: dict[int, str] = {}
        """by base, of segments that are made or to be made, see `LogPlaces.directory_for`"""
        self.end = self.committed = log.max_offset
        self.last_timestamp = 0
        self.on_commit: Callable[[], object] = int
        self._pool, self._warm = pool, warm
        self._locked: dict[int, mmap.mmap] = {}
        """by base, what keeps warmed segments in memory"""
        self._making = -1
        """base of the segment that the thread makes"""
        self._staged: dict[int, Staged] = {}
        """by base, of segments that are not in their files yet; `_guard` is held over it"""
        self._committing = threading.Lock()
        self._committed_timestamp = 0
        self._mapped: _Mapped | None = None
        self._left: tuple[MappedFile, int, int] | None = None
        """file, position and length of a write that failed"""
        self._descriptors: dict[int, int] = {}
        """by base, of segments that are written or not synced yet"""
        self._made: set[int] = set()
        """bases of segments that were made ahead"""
        self._newest = log.files[-1].base if log.files else None
        """base of the segment in use, which `log` tells a moment later"""
        self._guard = threading.Lock()
        self._syncing = threading.Lock()
        """no descriptor is closed meanwhile"""
        self._wanted = threading.Condition(self._guard)
        self._stopped = False
        self._thread = threading.Thread(target=self._allocate, name="rmqtool-allocate", daemon=True)
        if ahead:
            self._thread.start()

    def clear_tail(self) -> None:
        """What lies behind the last record of a recovered log becomes zeros. Raises `StoreIOError`.

        Brokers leave it; where a new record ends at an old one's place, the next recovery takes that in.
        """
        last = self.log.files[-1] if self.log.files else None
        if last is None:
            return
        try:
            for at, length in data_behind(self._places.at(last.path), last.wrote, name=last.path):
                self._clear(last, at, length)
        except OSError as error:
            raise StoreIOError(f"{last.path}: {error.strerror}") from error

    def _clear(self, file: MappedFile, position: int, length: int) -> None:
        descriptor = self._descriptors.get(file.base)
        if descriptor is None:
            descriptor = self._open(file)
        _demand_whole(descriptor, self.log.size)
        for at in range(position, position + length, STEP):
            os.pwrite(descriptor, bytes(min(STEP, position + length - at)), at)
        os.fdatasync(descriptor)

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
            self._advance(last)
        return self.log.last_for(self.end)

    def begin_at(self, physical_offset: int) -> None:
        """A log without files begins there."""
        self.log.last_for(physical_offset)
        self.end = self.committed = physical_offset

    def append(self, file: MappedFile, data: Data) -> None:
        """Bytes behind the last ones of `file`, from `place_for`. Raises `OSError`; then nothing counts.

        What a write that failed has left is cleared before anything follows in its place, see `clear_tail`.
        """
        mapped, begin, length = self._mapped, file.wrote, len(data)
        end = begin + length
        if (  # most records; `_write_at` does whatever is odd
            mapped is None
            or self._left is not None
            or mapped.base != file.base
            or end > mapped.reserved
            or self._staged
            or length >= _LARGE
            or type(data) is not bytes
            or not mapped.put(begin, data)
        ):
            self._write_at(file, data)
        file.wrote = end
        self._advance(file)

    def _advance(self, file: MappedFile) -> None:
        self.end = file.base + file.wrote
        if not self._staged:
            self.committed = self.end

    @property
    def committed_timestamp(self) -> int:
        """Store time (ms) of the last record that is committed, or of one in front of it."""
        return self.last_timestamp if self._pool is None else self._committed_timestamp

    def commit(self, least_pages: int = 0) -> None:
        """Puts what is in memory into the files (`MappedFileQueue#commit`). Raises `OSError`.

        least_pages: leave a segment that is not full while fewer pages of it wait.
        """
        if self._pool is None:
            return
        with self._committing:
            stamp, written = self.last_timestamp, self.end
            end = written
            with self._guard:
                todo = sorted(self._staged.items())
            for base, staged in todo:
                full = base + self.log.size <= written
                if full or staged.due(least_pages):
                    staged.commit(self._descriptors[base])
                if not full:
                    end = base + staged.committed
                    break
                self._unstage(base)
            if end >= written:
                self._committed_timestamp = stamp
            self.committed = max(self.committed, end)
        self.on_commit()

    def _unstage(self, base: int) -> None:
        with self._guard:
            staged = self._staged.pop(base, None)
            if staged is not None and self._pool is not None:
                self._pool.give_back(staged)

    def _write_at(self, file: MappedFile, data: Data) -> None:
        self.clear_left()
        descriptor = self._descriptors.get(file.base)
        if descriptor is None:
            descriptor = self._open(file)
        mapped = self._mapped
        if mapped is None or mapped.base != file.base:
            mapped = self._mapped = _Mapped(file.base, descriptor, self.log.size)
        end = file.wrote + len(data)
        if end > mapped.reserved:
            mapped.reserve(end)
        staged = self._staged.get(file.base) if self._staged else None
        if staged is not None:
            staged.put(file.wrote, data)
            return
        if isinstance(data, bytes) and len(data) < _LARGE and mapped.put(file.wrote, data):
            return
        _demand_whole(descriptor, self.log.size)
        view, position = memoryview(data), file.wrote  # type: ignore[arg-type]
        self._left = file, position, len(data)
        while view:
            done = os.pwrite(descriptor, view, position)
            if not done:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), file.path)
            view, position = view[done:], position + done
        self._left = None

    def clear_left(self) -> None:
        """What a write that failed has left becomes zeros, see `clear_tail`. Raises `OSError`."""
        if self._left is not None:
            self._clear(*self._left)
            self._left = None

    def _open(self, file: MappedFile) -> int:
        descriptor = open_for_writing(self._places.at(file.path))
        with self._guard:
            self._descriptors[file.base] = descriptor
        return descriptor

    def sync(self, begin: int) -> int:
        """Puts all that is committed from physical offset `begin` on onto the medium; up to where that is.

        Raises `OSError`: then nobody can know what is there, and no later success says so.
        """
        end = self.committed
        with self._syncing:
            with self._guard:
                todo = sorted((base, one) for base, one in self._descriptors.items() if base < end)
            for _, one in todo:
                os.fdatasync(one)
                _demand_whole(one, self.log.size)
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
        if self._pool is not None and not self._pool.left and not self._pool.fails_fast:
            self.commit()  # or a kill leaves this segment behind one that is not there
        with self._guard:
            while self._making == base:
                self._wanted.wait()
            if self._pool is not None and self._pool.fails_fast and not self._pool.left:
                raise OSError(errno.ENOBUFS, "the transient store pool has no buffer left", path)
            try:
                if base in self._made:
                    self._made.discard(base)
                else:
                    self._make(path, size)
            except OSError as error:  # of a nameless file, or of the descriptor on the way to it
                raise OSError(error.errno, error.strerror, path) from error
            finally:
                self._directories.pop(base, None)
            staged = None if self._pool is None else self._pool.take()
            if staged is not None:
                self._staged[base] = staged
            self._newest = base
            for other in [one for one in self._locked if one < base]:
                self._locked.pop(other).close()
            self._wanted.notify_all()

    def remove(self, path: str) -> None:
        """A segment goes. Raises `StoreIOError`."""
        base = int(path.rpartition("/")[2])
        self._unstage(base)
        if base in self._locked:
            self._locked.pop(base).close()
        with self._syncing:
            with self._guard:
                descriptor = self._descriptors.pop(base, None)
            if descriptor is not None:
                os.close(descriptor)
        try:
            with parent_of(self._places.at(path)) as (folder, name), suppress(FileNotFoundError):
                os.unlink(name, dir_fd=folder)
        except OSError as error:
            raise StoreIOError(f"{path}: {error.strerror}") from error

    def _make(self, path: str, size: int) -> None:
        """A new file at its full length, it and its name synced."""
        place = self._places.at(path)
        with suppress(FileExistsError):
            make_directory(os.path.dirname(place), self._places.owner)
        try:
            descriptor = create_sized(place, size, self._places.owner, 0o644)
        except FileExistsError:
            descriptor = open_for_writing(place)
        try:
            os.ftruncate(descriptor, size)
            if self._warm is not None and (locked := self._warm(descriptor, size)) is not None:
                self._locked[int(os.path.basename(path))] = locked
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        with Folder.open(os.path.dirname(place)) as folder:
            folder.sync()

    def _directory_for(self, base: int) -> str:
        return self._directories.setdefault(base, self._places.directory_for(base // self.log.size))

    def _allocate(self) -> None:
        """Keeps the next segments made (`AllocateMappedFileService#mmapOperation`)."""
        while True:
            with self._guard:
                wanted = self._missing()
                while not wanted and not self._stopped:
                    self._wanted.wait()
                    wanted = self._missing()
                if self._stopped:
                    return
                base = self._making = wanted[0]
            error: OSError | None = None
            try:
                self._make(self.log.path_of(base), self.log.size)
            except OSError as one:
                error = one
            with self._guard:
                self._making = -1
                if error is None:
                    self._made.add(base)
                else:
                    self._directories.pop(base, None)
                self._wanted.notify_all()
                if error is not None:  # whoever needs it tries again, and is reported
                    self._wanted.wait(1)

    def _missing(self) -> Sequence[int]:
        if self._newest is None:
            return []
        following = [self._newest + number * self.log.size for number in range(1, AHEAD + 1)]
        return [base for base in following if base not in self._made]

    def close(self) -> None:
        """Lets go of all files; segments that were made ahead and never used go."""
        with self._guard:
            self._stopped = True
            self._wanted.notify_all()
        if self._thread.is_alive():
            self._thread.join()
        for base in sorted(self._made):
            self.remove(self.log.path_of(base))
        for descriptor in self._descriptors.values():
            os.close(descriptor)
        self._descriptors.clear()
        for locked in self._locked.values():
            locked.close()
        self._locked.clear()
