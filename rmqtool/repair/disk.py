"""Every change that an apply or undo makes to a disk goes through one object, one step at a time.

Paths are absolute and resolved before: no step follows a link, neither at the end of a path nor on the way.
Whoever owns a directory on the way may put a link there at any time, and root must not write behind it.
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_FICLONE = 0x40049409
"""ioctl of Linux: the whole file shares the blocks of another one (btrfs, xfs, bcachefs)"""
_NEW_FILE = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
_OLD_FILE = os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
_FOLDER = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


@contextmanager
def parent_of(path: str) -> Iterator[tuple[int, str]]:
    """A descriptor of the directory that `path` lies in, and the name in it; no link on the way is followed.

    Raises `OSError`: ELOOP where a link lies on the way.
    """
    folder, name = os.path.split(path.rstrip(os.sep))
    descriptor = open_directory(folder)
    try:
        yield descriptor, name
    finally:
        os.close(descriptor)


def open_directory(path: str) -> int:
    """A descriptor (O_PATH) of an absolute directory to which no link leads. Raises `OSError`."""
    here = os.open(os.sep, _FOLDER)
    for name in filter(None, path.split(os.sep)):
        try:
            inner = os.open(name, _FOLDER, dir_fd=here)
        except NotADirectoryError:
            if not stat.S_ISLNK(os.stat(name, dir_fd=here, follow_symlinks=False).st_mode):
                raise
            raise OSError(errno.ELOOP, "a link lies on the way", path) from None
        finally:
            os.close(here)
        here = inner
    return here


def open_regular(path: str) -> int:
    """A descriptor for reading a regular file to which no link leads. Raises `OSError`."""
    with parent_of(path) as (folder, name):
        descriptor = os.open(name, os.O_RDONLY | _OLD_FILE, dir_fd=folder)
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        return descriptor
    os.close(descriptor)
    raise OSError(errno.EINVAL, "is no regular file", path)


def resolved(path: str | os.PathLike[str]) -> str:
    """The absolute path with the links of its directory resolved, not one at its end."""
    folder, name = os.path.split(os.path.abspath(path))
    return os.path.join(os.path.realpath(folder), name)


class Disk:
    """The operating system. `before` runs ahead of every step; tests fail or end the process there.

    All methods raise `OSError` with the path in it.
    """

    def before(self, what: str, path: str) -> None:
        """Called ahead of every step with its name and the path; does nothing."""

    @contextmanager
    def _step(self, what: str, path: str) -> Iterator[None]:
        try:
            self.before(what, path)
            yield
        except OSError as error:
            error.filename = path  # of the system it has the last name alone
            raise

    def create(self, path: str, mode: int = 0o600) -> int:
        """A descriptor of a new empty file."""
        with self._step("create", path), parent_of(path) as (folder, name):
            return os.open(name, _NEW_FILE, mode, dir_fd=folder)

    def open(self, path: str) -> int:
        """A descriptor for writing into an existing file; nothing is changed yet."""
        try:
            with parent_of(path) as (folder, name):
                return os.open(name, os.O_RDWR | _OLD_FILE, dir_fd=folder)
        except OSError as error:
            error.filename = path
            raise

    def write(self, descriptor: int, data: bytes | memoryview, position: int, path: str) -> None:
        """All of `data` at `position`."""
        view = memoryview(data)
        while view:
            with self._step("write", path):
                done = os.pwrite(descriptor, view, position)
            view, position = view[done:], position + done

    def copy_range(
        self, source: int, descriptor: int, count: int, source_position: int, position: int, path: str
    ) -> int:
        """At most `count` bytes inside the kernel; how many were copied, 0 at the end of the source."""
        with self._step("write", path):
            return os.copy_file_range(source, descriptor, count, source_position, position)

    def clone(self, source: int, descriptor: int, path: str) -> bool:
        """The whole content by sharing blocks; False where the file system cannot."""
        with self._step("write", path):
            try:
                fcntl.ioctl(descriptor, _FICLONE, source)
            except OSError:
                return False
            return True

    def truncate(self, descriptor: int, size: int, path: str) -> None:
        """The file gets this size: cut, or with a hole at its end."""
        with self._step("truncate", path):
            os.ftruncate(descriptor, size)

    def sync(self, descriptor: int, path: str) -> None:
        """Content and facts of a file are on the medium."""
        with self._step("sync", path):
            os.fsync(descriptor)

    def sync_directory(self, path: str) -> None:
        """The names in a directory are on the medium."""
        with self._step("sync", path), parent_of(os.path.join(path, os.curdir)) as (folder, name):
            descriptor = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=folder)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)

    def rename(self, path: str, target: str) -> None:
        """`path` becomes `target`, in place of what was there."""
        with self._step("rename", path), parent_of(path) as (folder, name), parent_of(target) as (there, new):
            os.rename(name, new, src_dir_fd=folder, dst_dir_fd=there)

    def link(self, path: str, target: str) -> None:
        """`target` is a further name of the file `path`."""
        with self._step("link", path), parent_of(path) as (folder, name), parent_of(target) as (there, new):
            os.link(name, new, src_dir_fd=folder, dst_dir_fd=there, follow_symlinks=False)

    def symlink(self, target: str, path: str) -> None:
        """`path` is a link to `target`."""
        with self._step("symlink", path), parent_of(path) as (folder, name):
            os.symlink(target, name, dir_fd=folder)

    def unlink(self, path: str) -> None:
        """The name goes."""
        with self._step("unlink", path), parent_of(path) as (folder, name):
            os.unlink(name, dir_fd=folder)

    def make_directory(self, path: str, mode: int = 0o700) -> None:
        """An empty directory."""
        with self._step("mkdir", path), parent_of(path) as (folder, name):
            os.mkdir(name, mode, dir_fd=folder)

    def remove_directory(self, path: str) -> None:
        """An empty directory goes."""
        with self._step("rmdir", path), parent_of(path) as (folder, name):
            os.rmdir(name, dir_fd=folder)

    def set_owner(self, path: str, uid: int, gid: int) -> None:
        """Owner and group; of a link itself."""
        with self._step("chown", path), parent_of(path) as (folder, name):
            os.chown(name, uid, gid, dir_fd=folder, follow_symlinks=False)

    def set_mode(self, path: str, mode: int) -> None:
        """Permissions; not of links."""
        with self._step("chmod", path), parent_of(path) as (folder, name):
            descriptor = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
            try:
                if stat.S_ISLNK(os.fstat(descriptor).st_mode):
                    raise OSError(errno.ELOOP, "a link lies there")
                os.chmod(f"/proc/self/fd/{descriptor}", mode)  # fchmod refuses what was opened with O_PATH
            finally:
                os.close(descriptor)

    def set_mtime(self, path: str, mtime_ns: int) -> None:
        """Modification time; of a link itself. The time of access stays."""
        with self._step("utime", path), parent_of(path) as (folder, name):
            found = os.stat(name, dir_fd=folder, follow_symlinks=False)
            os.utime(name, ns=(found.st_atime_ns, mtime_ns), dir_fd=folder, follow_symlinks=False)
