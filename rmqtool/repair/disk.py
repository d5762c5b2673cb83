"""Every change that an apply or undo makes to a disk goes through one object, one step at a time."""

from __future__ import annotations

import fcntl
import os
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_FICLONE = 0x40049409
"""ioctl of Linux: the whole file shares the blocks of another one (btrfs, xfs, bcachefs)"""
_NEW_FILE = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW


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
            if error.filename is None:
                error.filename = path
            raise

    def create(self, path: str, mode: int = 0o600) -> int:
        """A descriptor of a new empty file."""
        with self._step("create", path):
            return os.open(path, _NEW_FILE, mode)

    def open(self, path: str) -> int:
        """A descriptor for writing into an existing file; nothing is changed yet."""
        try:
            return os.open(path, os.O_RDWR | os.O_CLOEXEC)
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
        with self._step("sync", path):
            descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)

    def rename(self, path: str, target: str) -> None:
        """`path` becomes `target`, in place of what was there."""
        with self._step("rename", path):
            os.rename(path, target)

    def link(self, path: str, target: str) -> None:
        """`target` is a further name of the file `path`."""
        with self._step("link", path):
            os.link(path, target, follow_symlinks=False)

    def symlink(self, target: str, path: str) -> None:
        """`path` is a link to `target`."""
        with self._step("symlink", path):
            os.symlink(target, path)

    def unlink(self, path: str) -> None:
        """The name goes."""
        with self._step("unlink", path):
            os.unlink(path)

    def make_directory(self, path: str, mode: int = 0o700) -> None:
        """An empty directory."""
        with self._step("mkdir", path):
            os.mkdir(path, mode)

    def remove_directory(self, path: str) -> None:
        """An empty directory goes."""
        with self._step("rmdir", path):
            os.rmdir(path)

    def set_owner(self, path: str, uid: int, gid: int) -> None:
        """Owner and group; of a link itself."""
        with self._step("chown", path):
            os.chown(path, uid, gid, follow_symlinks=False)

    def set_mode(self, path: str, mode: int) -> None:
        """Permissions; not of links."""
        with self._step("chmod", path):
            os.chmod(path, mode)

    def set_mtime(self, path: str, mtime_ns: int) -> None:
        """Modification time; of a link itself. The time of access stays."""
        with self._step("utime", path):
            found = os.stat(path, follow_symlinks=False)
            os.utime(path, ns=(found.st_atime_ns, mtime_ns), follow_symlinks=False)
