"""Every change that an apply or undo makes to a disk goes through one object, one step at a time.

Paths are absolute and resolved before, or lead into a held `Folder`: no step follows a link, neither at the
end of a path nor on the way. Whoever owns a directory may put something else in the place of a file at any
time, so owner and mode are given to a descriptor of what was made, never to a name.
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING

from rmqtool.store.writing import by_descriptor, create, open_for_writing, open_itself, parent_of, shown_path

if TYPE_CHECKING:
    from collections.abc import Iterator

FICLONE = 0x40049409
"""ioctl of Linux: the whole file shares the blocks of another one (btrfs, xfs, bcachefs)"""

Identity = tuple[int, int]
"""device and inode of a file or directory"""


class Disk:
    """The operating system. `before` runs ahead of every step; tests fail or end the process there.

    All methods raise `OSError` with the path in it.
    """

    def before(self, what: str, path: str) -> None:
        """Called ahead of every step with its name and the path; does nothing."""

    @contextmanager
    def _step(self, what: str, path: str) -> Iterator[None]:
        try:
            self.before(what, shown_path(path))
            yield
        except OSError as error:
            error.filename = shown_path(path)  # of the system it has the last name alone
            raise

    def create(self, path: str, mode: int = 0o600) -> int:
        """A descriptor of a new empty file."""
        with self._step("create", path):
            return create(path, mode)

    def open(self, path: str) -> int:
        """A descriptor for writing into an existing file; nothing is changed yet."""
        try:
            return open_for_writing(path)
        except OSError as error:
            error.filename = shown_path(path)
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
                fcntl.ioctl(descriptor, FICLONE, source)
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

    def sync_directory(self, path: str, descriptor: int | None = None) -> None:
        """The names in a directory are on the medium. descriptor: of the directory, where it was `opened`."""
        with self._step("sync", path), nullcontext(descriptor) if descriptor else self.opened(path) as folder:
            readable = os.open(os.curdir, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=folder)
            try:
                os.fsync(readable)
            finally:
                os.close(readable)

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

    def make_directory(self, path: str, mode: int = 0o700) -> Identity:
        """An empty directory; which one it is, for `opened`."""
        with self._step("mkdir", path):
            with parent_of(path) as (folder, name):
                os.mkdir(name, mode, dir_fd=folder)
            with self.opened(path) as made:
                if os.listdir(by_descriptor(made)):
                    raise OSError(errno.EEXIST, "something else was put in its place")
                return _identity(made)

    def remove_directory(self, path: str) -> None:
        """An empty directory goes."""
        with self._step("rmdir", path), parent_of(path) as (folder, name):
            os.rmdir(name, dir_fd=folder)

    @contextmanager
    def opened(self, path: str, known: Identity | None = None) -> Iterator[int]:
        """A descriptor (O_PATH) of what lies there, a link itself. known: what it must be, else ESTALE."""
        descriptor = open_itself(path)
        try:
            if known is not None and _identity(descriptor) != known:
                raise OSError(errno.ESTALE, "something else was put in its place", shown_path(path))
            yield descriptor
        finally:
            os.close(descriptor)

    def set_owner(self, descriptor: int, uid: int, gid: int, path: str) -> None:
        """Owner and group of what was opened; of a link itself."""
        with self._step("chown", path):
            os.chown(by_descriptor(descriptor), uid, gid)

    def set_mode(self, descriptor: int, mode: int, path: str) -> None:
        """Permissions of what was opened; not of links."""
        with self._step("chmod", path):
            if stat.S_ISLNK(os.fstat(descriptor).st_mode):
                raise OSError(errno.ELOOP, "a link lies there")
            os.chmod(by_descriptor(descriptor), mode)

    def set_mtime(self, path: str, mtime_ns: int, descriptor: int | None = None) -> None:
        """Modification time; of a link itself. The time of access stays. descriptor: where it is open."""
        if descriptor is not None:
            with self._step("utime", path):
                os.utime(by_descriptor(descriptor), ns=(os.fstat(descriptor).st_atime_ns, mtime_ns))
            return
        with self._step("utime", path), parent_of(path) as (folder, name):
            found = os.stat(name, dir_fd=folder, follow_symlinks=False)
            os.utime(name, ns=(found.st_atime_ns, mtime_ns), dir_fd=folder, follow_symlinks=False)


def _identity(descriptor: int) -> Identity:
    found = os.fstat(descriptor)
    return found.st_dev, found.st_ino
