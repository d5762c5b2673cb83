"""How a file is opened: by mapping or with `pread`, how fast, and what stays in the page cache."""

from __future__ import annotations

import ctypes
import errno
import os
import stat
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Literal, TypeAlias

from rmqtool.errors import RmqtoolError, StoreIOError, UsageError, VanishedError
from rmqtool.store import lock
from rmqtool.store.bytes import MemorySource, PreadSource
from rmqtool.store.mapped import MappedSource
from rmqtool.store.names import escape_name
from rmqtool.store.remote.address import is_remote

if TYPE_CHECKING:
    from threading import Event

    from rmqtool.store.bytes import ByteSource
    from rmqtool.store.remote.source import Version
    from rmqtool.store.throttle import RateLimit

Mode = Literal["auto", "map", "pread"]


@dataclass(frozen=True, slots=True)
class Access:
    """How the files of one command are opened.

    mode: `map` (one mapping), `pread`, or `auto` (a mapping where one is possible and guarded, see
    `store.faults`, else `pread`). limit: reading rate, which excludes mappings. drop_behind: leave no page
    in the cache that was not there before, as far as the system follows (`pread` only). stop: once set, who
    waits for the rate ends with `Stopped`.
    """

    mode: Mode = "auto"
    limit: RateLimit | None = None
    drop_behind: bool = False
    stop: Event | None = None

    @classmethod
    def of(cls, bytes_per_second: int | None, *, careful: bool, live: bool) -> Access:
        """One rate for all files of a command; a live store is copied, and so is what is read carefully."""
        from rmqtool.store.throttle import RateLimit

        limit = RateLimit(bytes_per_second) if bytes_per_second else None
        return cls("pread" if careful or live else "auto", limit, drop_behind=live)


OpenMode: TypeAlias = Mode | Access


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
        raise refused(error, name) from error
    except OSError as error:
        raise StoreIOError(f"{name}: {error.strerror}") from error
    try:
        regular = stat.S_ISREG(os.fstat(descriptor).st_mode)
    except OSError as error:
        os.close(descriptor)
        raise StoreIOError(f"{name}: {error.strerror}") from error
    if not regular:
        os.close(descriptor)
        raise UsageError(f"{name} is not a regular file")
    return descriptor


def open_stream(path: str, name: str, *, pipes: bool) -> IO[bytes]:
    """A file that is read once from its start, with `name` in messages.

    pipes: the user named it, so that a FIFO, such as the shell makes of `<(zcat keys.gz)`, is read as well;
    it waits for who writes into it. Raises `UsageError` for what is neither, `OSError`.
    """

    def opener(path: str, flags: int) -> int:
        waits = pipes and stat.S_ISFIFO(os.stat(path).st_mode)
        return os.open(path, flags | (0 if waits else os.O_NONBLOCK))

    if not (stat.S_ISREG(mode := os.stat(path).st_mode) or (pipes and stat.S_ISFIFO(mode))):
        what = "a directory" if stat.S_ISDIR(mode) else describe_mode(mode)
        raise UsageError(
            f"{name} is {what}, {'neither a file nor a pipe' if pipes else 'not a regular file'}"
        )
    return open(path, "rb", opener=opener)


def stat_named(path: str | os.PathLike[str], shown: str) -> os.stat_result:
    """Facts of what the user named; `shown` is what messages call it.

    Raises `VanishedError` when nothing is there, `UsageError` for what cannot be a path, `StoreIOError`.
    """
    try:
        return os.stat(path)
    except OSError as error:
        raise refused(error, shown) from error


def refused(error: OSError, shown: str) -> RmqtoolError:
    """What an error of the system says about a path that the user named."""
    if isinstance(error, FileNotFoundError):
        return VanishedError(f"{shown}: no such file or directory")
    if isinstance(error, NotADirectoryError):
        return UsageError(f"{shown}: a part of the path is not a directory")
    kind = UsageError if error.errno in (errno.ELOOP, errno.ENAMETOOLONG) else StoreIOError
    return kind(f"{shown}: {error.strerror}")


def in_words(error: BaseException | None) -> str:
    """An error of the operating system with its path and without its number, any other as it says itself."""
    if not isinstance(error, OSError):
        return str(error)
    where = f"{escape_name(os.fsdecode(error.filename))}: " if error.filename else ""
    return f"{where}{error.strerror}"


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


_TMPFS = 0x01021994
_STATFS_BYTES = 256
"""more than `struct statfs` has; its first field is a long, the kind of the file system"""


def _lies_in_memory(descriptor: int) -> bool:
    """Whether it is a file of tmpfs, where a hole that a mapping shows takes memory and stays."""
    found = ctypes.create_string_buffer(_STATFS_BYTES)
    failed: int = ctypes.CDLL(None).fstatfs(descriptor, found)
    return not failed and ctypes.c_long.from_buffer(found).value == _TMPFS


def open_source(
    path: str | os.PathLike[str],
    mode: OpenMode = "auto",
    *,
    name: str | None = None,
    sparse: bool = False,
    version: Version | None = None,
) -> ByteSource:
    """Opens a regular file for reading, or an address; `name` is used in messages instead of the path.

    sparse: there are holes in it, so that `auto` maps it only where reading them adds nothing to the file.
    version: of an address, the one that was listed (`remote.source.open_remote`).

    Raises `UsageError` when there is no regular file of that name (`VanishedError` when there is nothing),
    `StoreIOError` when it may not be opened, or not mapped with `map`.

    A `lock` file that this very process has locked is answered from memory: opening and closing it would
    drop the lock (POSIX record locks, see `rmqtool.store.lock`).
    """
    how = mode if isinstance(mode, Access) else Access(mode)
    location = os.fspath(path)
    label = location if name is None else name
    if is_remote(location):
        from rmqtool.store.remote.source import open_remote

        return open_remote(location, label, version)
    held = lock.held_content(location)
    if held is not None:
        return MemorySource(held, label)
    descriptor = _open_descriptor(location, label)
    grows = how.mode == "auto" and sparse and _lies_in_memory(descriptor)
    if how.mode == "pread" or how.limit is not None or grows:
        return _copying(descriptor, label, how)
    try:
        mapped = MappedSource(descriptor, label)
    except (OSError, ValueError) as error:  # ValueError: the file was cut between fstat and mmap
        if how.mode == "auto":
            return _copying(descriptor, label, how)
        os.close(descriptor)
        reason = error.strerror if isinstance(error, OSError) else error
        raise StoreIOError(f"{label}: cannot be mapped: {reason}") from error
    if how.mode == "auto" and not mapped.guarded:
        again = os.dup(descriptor)
        mapped.close()
        return _copying(again, label, how)
    return mapped


def _copying(descriptor: int, label: str, how: Access) -> ByteSource:
    source = PreadSource(descriptor, label, drop_behind=how.drop_behind)
    if how.limit is None:
        return source
    from rmqtool.store.throttle import ThrottledSource

    return ThrottledSource(source, how.limit, how.stop)
