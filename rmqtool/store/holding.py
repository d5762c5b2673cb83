"""Taking the lock that a running broker holds, for as long as a store is changed.

The lock is that of `DefaultMessageStore#start`: a POSIX record lock on byte 0 of `<root>/lock`. Its content
is the broker's and stays as it is.
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rmqtool.errors import LockedError, PlanRefusedError, StoreIOError
from rmqtool.store import lock
from rmqtool.store.names import escape_name
from rmqtool.store.writing import Folder, Owner, by_descriptor, way_to

if TYPE_CHECKING:
    from collections.abc import Iterator

_TAKEN = frozenset({errno.EACCES, errno.EAGAIN})
_NO_FILE = frozenset({errno.EEXIST, errno.ELOOP, errno.ENOTDIR})
"""of what lies in the place of the file: a directory, a device, a link that leads nowhere or to itself"""


@dataclass(slots=True)
class Held:
    """A store whose lock this process holds.

    folder: the root. made: there was no lock file; what was made is removed with the lock, as long as it is
    empty (a broker writes four bytes into it). root_mtime_ns: the root's modification time before that.
    """

    root: str
    folder: Folder
    descriptor: int
    made: bool
    root_mtime_ns: int


def refuse_if_held(root: str | os.PathLike[str]) -> None:
    """Raises `LockedError` with the holder's pid when some process holds the store; takes nothing."""
    state = lock.probe(root)
    if state.held:
        raise LockedError(_refusal(os.fspath(root), state))


@contextmanager
def acquire_store_lock(root: str | os.PathLike[str]) -> Iterator[Held]:
    """Holds the lock of the store at `root`; a missing lock file is made with the owner of the root.

    Raises `LockedError` when another process, or this one, holds it, `PlanRefusedError` when what lies there
    is not a file, `UsageError` when root would follow a link to the store that another user may change,
    `StoreIOError` when the file cannot be opened for writing (a read-only file system) or locked.
    """
    held = _take(os.fspath(root))
    try:
        yield held
    finally:
        _release(held)


def _take(root: str) -> Held:
    refuse_if_held(root)  # opening and closing the file would drop a lock that this process holds
    path = os.path.join(root, "lock")
    try:
        folder, missing = way_to(root, "the store")
    except OSError as error:
        raise StoreIOError(f"{escape_name(root)}: {error.strerror}") from error
    if missing:
        folder.close()
        raise StoreIOError(f"{escape_name(root)}: {os.strerror(errno.ENOENT)}")
    mtime_ns = os.fstat(folder.descriptor).st_mtime_ns
    try:
        descriptor, made = _open(folder)
    except OSError as error:
        folder.close()
        if error.errno in _NO_FILE:
            raise PlanRefusedError(
                f"{escape_name(path)}: is not a regular file and cannot be locked: move it away; "
                "nothing was changed"
            ) from None
        raise StoreIOError(f"{escape_name(path)}: cannot be opened for the lock: {error.strerror}") from error
    held = Held(root, folder, descriptor, made, mtime_ns)
    lock.register(root, descriptor)
    try:
        fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, 0)
    except OSError as error:
        lock.unregister(descriptor)
        os.close(descriptor)
        folder.close()
        if error.errno in _TAKEN:
            raise LockedError(_refusal(root, lock.probe(root))) from None
        raise StoreIOError(f"{escape_name(path)}: cannot be locked: {error.strerror}") from error
    return held


def _open(folder: Folder) -> tuple[int, bool]:
    """The lock file, also behind a link, as a broker opens it; nothing else is opened but to be looked at."""
    try:
        found = os.open("lock", os.O_PATH | os.O_CLOEXEC, dir_fd=folder.descriptor)
    except FileNotFoundError:
        descriptor = folder.create("lock", 0o644)
        Owner.of(folder.descriptor).give(descriptor)
        return descriptor, True
    try:
        if not stat.S_ISREG(os.fstat(found).st_mode):
            raise FileExistsError(errno.EEXIST, "is not a regular file")
        return os.open(by_descriptor(found), os.O_RDWR | os.O_CLOEXEC | os.O_NONBLOCK), False
    finally:
        os.close(found)


def _refusal(root: str, state: lock.LockState) -> str:
    holder = f"process {state.pid}" if state.pid else "another process"
    return f"{escape_name(root)} is held by {holder}, a running broker perhaps: stop it first"


def _release(held: Held) -> None:
    # Unlinked while it is held: who opened it meanwhile cannot have got the lock.
    with suppress(OSError):
        if held.made and os.fstat(held.descriptor).st_size == 0:
            os.unlink("lock", dir_fd=held.folder.descriptor)
            found = os.fstat(held.folder.descriptor)
            os.utime(held.folder.here, ns=(found.st_atime_ns, held.root_mtime_ns))
    lock.unregister(held.descriptor)
    os.close(held.descriptor)
    held.folder.close()
