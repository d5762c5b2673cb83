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

from rmqtool.errors import LockedError, StoreIOError
from rmqtool.store import lock
from rmqtool.store.names import escape_name

if TYPE_CHECKING:
    from collections.abc import Iterator

_TAKEN = frozenset({errno.EACCES, errno.EAGAIN})


@dataclass(slots=True)
class Held:
    """A store whose lock this process holds.

    made: there was no lock file; what was made is removed with the lock, as long as it is empty (a broker
    writes four bytes into it). root_mtime_ns: the root's modification time before that.
    """

    root: str
    descriptor: int
    made: bool
    root_mtime_ns: int


def refuse_if_held(root: str | os.PathLike[str]) -> None:
    """Raises `LockedError` with the holder's pid when some process holds the store; takes nothing."""
    state = lock.probe(root)
    if state.held:
        raise LockedError(_refusal(os.fspath(root), state))


@contextmanager
def hold(root: str | os.PathLike[str]) -> Iterator[Held]:
    """Holds the lock of the store at `root`; a missing lock file is made with the owner of the root.

    Raises `LockedError` when another process, or this one, holds it, `StoreIOError` when the file cannot be
    opened for writing (a read-only file system) or locked.
    """
    held = _take(os.fspath(root))
    try:
        yield held
    finally:
        _release(held)


def _take(root: str) -> Held:
    refuse_if_held(root)  # opening and closing the file would drop a lock that this process holds
    path = os.path.join(root, "lock")
    found = _facts(root)
    descriptor, made = _open(path, found)
    held = Held(root, descriptor, made, found.st_mtime_ns)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise StoreIOError(f"{escape_name(path)}: is no regular file, it cannot be locked")
    lock.register(root, descriptor)
    try:
        fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, 0)
    except OSError as error:
        lock.unregister(descriptor)
        os.close(descriptor)
        if error.errno in _TAKEN:
            raise LockedError(_refusal(root, lock.probe(root))) from None
        raise StoreIOError(f"{escape_name(path)}: cannot be locked: {error.strerror}") from error
    return held


def _facts(root: str) -> os.stat_result:
    try:
        return os.stat(root)
    except OSError as error:
        raise StoreIOError(f"{escape_name(root)}: {error.strerror}") from error


def _open(path: str, root: os.stat_result) -> tuple[int, bool]:
    flags = os.O_RDWR | os.O_CLOEXEC | os.O_NONBLOCK
    try:
        try:
            return os.open(path, flags), False
        except FileNotFoundError:
            descriptor = os.open(path, flags | os.O_CREAT | os.O_EXCL, 0o644)
            with suppress(PermissionError):  # not root: then the owner is right, or nobody could be
                os.fchown(descriptor, root.st_uid, root.st_gid)
            return descriptor, True
    except OSError as error:
        raise StoreIOError(f"{escape_name(path)}: cannot be opened for the lock: {error.strerror}") from error


def _refusal(root: str, state: lock.LockState) -> str:
    holder = f"process {state.pid}" if state.pid else "another process"
    return f"{escape_name(root)} is held by {holder}, a running broker perhaps: stop it first"


def _release(held: Held) -> None:
    # Unlinked while it is held: who opened it meanwhile cannot have got the lock.
    if held.made and os.fstat(held.descriptor).st_size == 0:
        with suppress(OSError):
            os.unlink(os.path.join(held.root, "lock"))
            found = os.stat(held.root)
            os.utime(held.root, ns=(found.st_atime_ns, held.root_mtime_ns))
    lock.unregister(held.descriptor)
    os.close(held.descriptor)
