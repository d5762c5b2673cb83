"""Is a broker running on this store? Asked without taking anything.

`DefaultMessageStore#start` locks byte 0 of `<root>/lock` with a POSIX record lock. Such a lock belongs to
the process, and closing *any* descriptor of the file drops it. Therefore (1) the probe uses F_GETLK, which
changes nothing, on a read-only descriptor, and (2) whoever in this process holds the lock is in the
registry of this module, and nobody else here opens that file.
"""

from __future__ import annotations

import os
import stat
import struct
import sys
import threading
from dataclasses import dataclass
from pathlib import Path

_FLOCK = struct.Struct("hhxxxxqqixxxx")
"""struct flock of 64-bit Linux: l_type, l_whence, padding, l_start, l_len, l_pid, padding."""

_NETWORK = frozenset(
    {"nfs", "nfs4", "cifs", "smb3", "ceph", "glusterfs", "lustre", "9p", "afs", "fuse.sshfs", "virtiofs"}
)

_MOST = (1 << 12) + 1
"""bytes of a `lock` that are read, one more than it may have (`whole.WORDS`): it may be a hole of a TiB"""


@dataclass(frozen=True, slots=True)
class LockState:
    """Answer of `probe`: `held` is None when it cannot be known, `pid` is the holder's if known."""

    held: bool | None
    pid: int | None
    reason: str


@dataclass(frozen=True, slots=True)
class _Held:
    root: str
    descriptor: int
    owner: int


_guard = threading.RLock()
_held: dict[tuple[int, int], _Held] = {}


def _identity(path: str | os.PathLike[str]) -> tuple[int, int] | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _entry(path: str | os.PathLike[str]) -> _Held | None:
    key = _identity(path) if _held else None
    entry = _held.get(key) if key is not None else None
    # A fork copies the registry, but record locks stay with the parent.
    return entry if entry is not None and entry.owner == os.getpid() else None


def register(root: str | os.PathLike[str], descriptor: int) -> None:
    """Notes that this process holds the store `root` through `descriptor`, open on its `lock` file.

    Call it before the lock is taken, so that no probe of another thread can close the file in between. Raises
    `ValueError` when the store is registered already.
    """
    found = os.fstat(descriptor)
    key = (found.st_dev, found.st_ino)
    with _guard:
        existing = _held.get(key)
        if existing is not None and existing.owner == os.getpid():
            raise ValueError(f"this process already holds the store {existing.root}")
        _held[key] = _Held(os.fspath(root), descriptor, os.getpid())


def unregister(descriptor: int) -> None:
    """Forgets what `register` noted; call it before the descriptor is closed."""
    with _guard:
        for key, entry in list(_held.items()):
            if entry.descriptor == descriptor and entry.owner == os.getpid():
                del _held[key]


def held_roots() -> tuple[str, ...]:
    """Roots of the stores whose lock this process holds."""
    with _guard:
        return tuple(sorted(entry.root for entry in _held.values() if entry.owner == os.getpid()))


def held_content(path: str | os.PathLike[str]) -> bytes | None:
    """The first bytes of a `lock` file that this process holds, by its descriptor; None for other files."""
    if not _held:
        return None
    with _guard:
        entry = _entry(path)
        if entry is None:
            return None
        return os.pread(entry.descriptor, _MOST, 0)


def probe(path: str | os.PathLike[str]) -> LockState:
    """Whether some process holds the broker's lock on a store.

    `path` is the store root or its `lock` file. Nothing is locked, created or written, and a lock that this
    process holds itself survives. Never raises: what cannot be known is `held=None` with the reason.
    """
    location = Path(path)
    if os.path.isdir(location):
        location = location / "lock"
    with _guard:
        if _entry(location) is not None:
            return LockState(True, os.getpid(), "held by this process")
        try:
            mode = os.stat(location).st_mode
            if not stat.S_ISREG(mode):
                return LockState(None, None, "lock is not a regular file")
            descriptor = os.open(location, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        except FileNotFoundError:
            return LockState(False, None, "no lock file")
        except OSError as error:
            return LockState(None, None, f"lock file cannot be opened: {error.strerror}")
        try:
            return _ask(descriptor)
        finally:
            os.close(descriptor)


def _ask(descriptor: int) -> LockState:
    if not sys.platform.startswith("linux") or struct.calcsize("P") != 8:
        return LockState(None, None, f"record locks cannot be probed on {sys.platform}")
    import fcntl

    request = _FLOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, 0, 1, 0)
    try:
        answer = fcntl.fcntl(descriptor, fcntl.F_GETLK, request)
    except OSError as error:
        return LockState(None, None, f"record lock cannot be probed: {error.strerror}")
    kind, _, _, _, pid = _FLOCK.unpack(answer)
    if kind != fcntl.F_UNLCK:
        # 0: a process of another pid namespace; -1: an open-file-description lock.
        return LockState(True, pid if pid > 0 else None, "byte 0 of lock is locked")
    network = network_filesystem(descriptor)
    if network is not None:
        return LockState(False, None, f"not locked, but locks of other hosts may be invisible on {network}")
    return LockState(False, None, "not locked")


def network_filesystem(path: str | os.PathLike[str] | int) -> str | None:
    """Type of the network file system that `path` or a descriptor is on, None for a local one."""
    try:
        device = os.stat(path).st_dev
        mounts = Path("/proc/self/mountinfo").read_text("utf-8", "surrogateescape")
    except OSError:
        return None
    wanted = f"{os.major(device)}:{os.minor(device)}"
    for line in mounts.splitlines():
        left, _, right = line.partition(" - ")
        if left.split()[2:3] == [wanted]:
            kind = right.split(" ", 1)[0]
            return kind if kind in _NETWORK else None
    return None
