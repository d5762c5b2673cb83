"""Writing where it was meant: in directories that are held by a descriptor, behind no link.

Whoever owns a directory on the way may put a link or another directory in any place of it, at any time, and
root must not write behind it. So directories are opened one in the other and held. A directory that was made
for this user alone is out of everyone else's reach while it is held, whatever becomes of its name:
`Folder.here` leads into it for what takes paths.
"""

from __future__ import annotations

import errno
import os
import re
import stat
from contextlib import contextmanager, suppress
from itertools import count
from secrets import token_hex
from typing import TYPE_CHECKING, NamedTuple

from rmqtool.errors import RmqtoolError, UsageError
from rmqtool.store.modes import mask
from rmqtool.store.names import escape_name
from rmqtool.store.trust import LINKS, changed_by_others, written_by_others

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import TracebackType
    from typing import Self

_HELD = "/proc/self/fd/"
_FOLDER = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_ITSELF = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC
_NO_NAMELESS = frozenset({errno.EOPNOTSUPP, errno.EISDIR, errno.EINVAL, errno.ENOENT})
"""what file systems answer that make no file without a name"""
_NEW_FILE = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
_OLD_FILE = os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK


class Owner(NamedTuple):
    """User and group of a store, whose is what is made in it."""

    uid: int
    gid: int

    @classmethod
    def of(cls, descriptor: int) -> Owner:
        """Those of what was opened."""
        found = os.fstat(descriptor)
        return cls(found.st_uid, found.st_gid)

    def give(self, descriptor: int) -> None:
        """What was opened becomes theirs; who is not root keeps what it may, as `cp -p` does."""
        if Owner.of(descriptor) != self:
            with suppress(PermissionError):
                os.chown(by_descriptor(descriptor), *self)


class Folder:
    """A directory that stays the one that was opened. A context manager; errors from inside have its path.

    path: where it lay then. here: a path into it by its descriptor, good while it is open: until `close`, or
    the last reference to it goes. Names may lead through directories in it, of which nobody else may change
    any. Methods raise `OSError`.
    """

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor
        self._user: int | None = None
        self.here = f"{_HELD}{descriptor}"
        self.path = os.readlink(self.here)

    @classmethod
    def open(cls, path: str) -> Folder:
        """An absolute directory to which no link leads."""
        return cls(open_directory(path))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(error, RmqtoolError):
            error.args = tuple(self.named(one) if isinstance(one, str) else one for one in error.args)
        elif isinstance(error, OSError) and isinstance(error.filename, str):
            error.filename = self.named(error.filename)
        self.close()

    def close(self) -> None:
        """Lets go of it; may be called again."""
        descriptor, self.descriptor = self.descriptor, -1  # first: no interrupt makes it be closed again
        if descriptor >= 0:
            self.here = f"{_HELD}-1"  # the number may be that of another directory by now
            os.close(descriptor)

    __del__ = close

    def named(self, text: str) -> str:
        """The text with the directory's path where `here` stands in it."""
        return re.sub(rf"{self.here}(?!\d)", lambda _: self.path, text)

    def at(self, name: str) -> str:
        """A path into it, good as `here` is."""
        return f"{self.here}/{name}"

    def names(self) -> list[str]:
        """What lies in it."""
        return os.listdir(self.here)

    def has(self, name: str) -> bool:
        """Whether something of this name lies in it, a link that leads nowhere too."""
        return os.path.lexists(f"{self.here}/{name}")

    def create(self, name: str, mode: int = 0o666) -> int:
        """A descriptor of a new empty file."""
        return os.open(name, _NEW_FILE, mode, dir_fd=self.descriptor)

    def again(self, name: str) -> int:
        """A descriptor for going on with a file that this user made and nobody else may write."""
        descriptor = os.open(name, os.O_RDWR | _OLD_FILE, dir_fd=self.descriptor)
        found = os.fstat(descriptor)
        if stat.S_ISREG(found.st_mode) and found.st_nlink == 1 and self._is_own(found):
            return descriptor
        os.close(descriptor)
        raise PermissionError(errno.EPERM, "is not what this user left there", name)

    def write(self, name: str, data: bytes) -> None:
        """A new file with this content, synced."""
        with open(self.create(name), "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())

    def make(self, name: str, mode: int = 0o700) -> Folder:
        """A new directory, empty and this user's alone."""
        os.mkdir(name, mode, dir_fd=self.descriptor)
        made = Folder(os.open(name, _FOLDER, dir_fd=self.descriptor))
        if made._is_own(os.fstat(made.descriptor), mode) and not made.names():
            return made
        made.close()
        raise FileExistsError(errno.EEXIST, "something else was put in its place", name)

    def enter(self, name: str) -> Folder:
        """A directory in it that this user made and nobody else may change."""
        inner = Folder(os.open(name, _FOLDER, dir_fd=self.descriptor))
        if inner.is_own():
            return inner
        inner.close()
        raise PermissionError(errno.EPERM, "is not what this user left there", name)

    def is_own(self) -> bool:
        """Whether this user made it and nobody else may change it."""
        return self._is_own(os.fstat(self.descriptor))

    def _is_own(self, found: os.stat_result, mode: int = 0o700) -> bool:
        """Whether this user made it, and no other may write it unless `mode` says so.

        Asked of a file that is made for it, since a network file system may not give root what root makes.
        """
        if not mode & 0o022 and written_by_others(found):
            return False
        if found.st_uid == os.geteuid():
            return True
        if self._user is None:
            trial = f".rmqtool-trial-{token_hex(8)}"
            descriptor = self.create(trial, 0o600)
            try:
                self._user = os.fstat(descriptor).st_uid
            finally:
                os.close(descriptor)
                os.unlink(trial, dir_fd=self.descriptor)
        return found.st_uid == self._user

    def rename(self, name: str, target: str, *, into: Folder | None = None) -> None:
        """`name` becomes `target`, in place of what was there, here or in another folder."""
        there = into or self
        os.rename(name, target, src_dir_fd=self.descriptor, dst_dir_fd=there.descriptor)

    def link(self, name: str, target: str, *, into: Folder | None = None) -> None:
        """`target` is a further name of the file `name`, here or in another folder."""
        there = into or self
        os.link(name, target, src_dir_fd=self.descriptor, dst_dir_fd=there.descriptor, follow_symlinks=False)

    def remove(self, name: str) -> None:
        """A file, link or empty directory goes; nothing where there is none."""
        try:
            os.unlink(name, dir_fd=self.descriptor)
        except FileNotFoundError:
            return
        except IsADirectoryError:
            os.rmdir(name, dir_fd=self.descriptor)

    def remove_held(self, name: str, inner: Folder) -> None:
        """The directory `inner`, which had this name in it, goes with all that is in it.

        Another one that was put in its place stays, unless it is empty.
        """
        inner.clear()
        with suppress(FileNotFoundError):
            os.rmdir(name, dir_fd=self.descriptor)

    def remove_made(self, name: str, mark: str) -> None:
        """A directory goes that is empty or has `mark` in it, that very one; or there is none."""
        if not self.has(name):
            return
        with Folder(os.open(name, _FOLDER, dir_fd=self.descriptor)) as inner:
            if inner.names() and not inner.has(mark):
                raise FileExistsError(errno.EEXIST, f"has no {mark} and is not replaced", name)
            self.remove_held(name, inner)

    def clear(self) -> None:
        """All that is in it goes, however deep it is: inner directories move up first, which is linear."""
        waiting = self.names()
        taken, fresh = frozenset(waiting), count()
        while waiting:
            name = waiting.pop()
            try:
                os.unlink(name, dir_fd=self.descriptor)
                continue
            except IsADirectoryError:
                pass
            with Folder(os.open(name, _FOLDER, dir_fd=self.descriptor)) as inner:
                for below in inner.names():
                    try:
                        os.unlink(below, dir_fd=inner.descriptor)
                    except IsADirectoryError:
                        waiting.append(next(one for one in map(str, fresh) if one not in taken))
                        inner.rename(below, waiting[-1], into=self)
            os.rmdir(name, dir_fd=self.descriptor)

    def sync(self) -> None:
        """The names in it are on the medium."""
        descriptor = os.open(os.curdir, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=self.descriptor)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def set_mode(self, mode: int) -> None:
        """Its own permissions."""
        os.chmod(self.here, mode)

    def show(self) -> None:
        """Permissions as of any directory that this process makes."""
        self.set_mode(0o777 & ~mask())


def way_to(path: str | os.PathLike[str], option: str) -> tuple[Folder, list[str]]:
    """The innermost directory on the way to `path` that is there, and the names behind it that are not.

    Links are followed, each looked at and followed in one go. Raises `UsageError`, which names the `option`,
    for what is not a directory, and when root would follow a link that another user may change; `OSError`.
    """
    here, names = _begin(os.path.abspath(path))
    waiting, links, open_to_others = names[::-1], 0, False
    try:
        while waiting:
            name = waiting.pop()
            try:
                inner = os.open(name, _ITSELF, dir_fd=here)
            except FileNotFoundError:
                return Folder(os.dup(here)), [name, *waiting[::-1]]
            found = os.fstat(inner)
            if not stat.S_ISLNK(found.st_mode):
                os.close(here)
                here, open_to_others = inner, changed_by_others(found, last=False)
                if not stat.S_ISDIR(found.st_mode):
                    raise UsageError(
                        f"{option} {escape_name(os.fspath(path))}: a part of it is not a directory"
                    )
                continue
            place, target = os.readlink(f"{_HELD}{here}"), os.readlink("", dir_fd=inner)
            os.close(inner)
            links += 1
            foreign = open_to_others or changed_by_others(found, last=False)
            if links > LINKS or (foreign and os.geteuid() == 0):
                raise UsageError(
                    f"{option} {escape_name(os.fspath(path))}: {escape_name(os.path.join(place, name))} "
                    "is a link that another user may change"
                )
            waiting += [one for one in target.split(os.sep)[::-1] if one not in {"", os.curdir}]
            if os.path.isabs(target):
                os.close(here)
                here, open_to_others = os.open(os.sep, _FOLDER), False
        return Folder(os.dup(here)), []
    finally:
        os.close(here)


def way_to_own(path: str, option: str) -> Folder:
    """A directory that is there, held; for root one of its own that nobody else may change.

    Raises `UsageError` as `way_to`, and `OSError`: ENOENT without a directory, EPERM for another user's.
    """
    folder, missing = way_to(path, option)
    if missing:
        folder.close()
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
    if os.geteuid() == 0 and not folder.is_own():
        folder.close()
        raise PermissionError(errno.EPERM, "another user may change this directory", path)
    return folder


@contextmanager
def parent_of(path: str) -> Iterator[tuple[int, str]]:
    """A descriptor of the directory that `path` lies in, and the name in it; no link on the way is followed.

    Raises `OSError`: ELOOP where a link lies on the way.
    """
    _demand_inside(path)
    folder, name = os.path.split(path.rstrip(os.sep))
    if folder == _HELD.rstrip(os.sep):
        folder, name = path, os.curdir
    descriptor = open_directory(folder)
    try:
        yield descriptor, name
    finally:
        os.close(descriptor)


def open_directory(path: str) -> int:
    """A descriptor (O_PATH) of a directory to which no link leads from the root, or from a held one.

    Raises `OSError`.
    """
    here, names = _begin(path)
    for name in names:
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


def _demand_inside(path: str) -> None:
    """Raises `OSError` for a path with `.` or `..` in it, or one that the system does not take."""
    if not {os.curdir, os.pardir}.isdisjoint(path.split(os.sep)) or "\0" in path:
        raise OSError(errno.EINVAL, "has . or .. in it, or a NUL", path)


def _begin(path: str) -> tuple[int, list[str]]:
    """Where a path begins, the root or a held directory, and the names on it; none leads back."""
    _demand_inside(path)
    names = [name for name in path.split(os.sep) if name]
    if path.startswith(_HELD):
        return os.dup(int(names[3])), names[4:]
    return os.open(os.sep, _FOLDER), names


def make_directory(path: str, owner: Owner) -> None:
    """A new directory; no link on the way is followed. Raises `OSError`, `FileExistsError` where one is."""
    with parent_of(path) as (above, name), Folder(os.dup(above)) as folder, folder.make(name, 0o777) as made:
        owner.give(made.descriptor)


def make_directories(path: str, option: str, owner: Owner | None = None) -> None:
    """A directory, and those on the way to it that are not there. Raises as `way_to`."""
    here, missing = way_to(path, option)
    for name in missing:
        with here as above:
            here = above.make(name, 0o777)
        if owner is not None:
            owner.give(here.descriptor)
    here.close()


def create(path: str, mode: int = 0o666) -> int:
    """A descriptor of a new empty file; no link on the way is followed."""
    with parent_of(path) as (folder, name):
        return os.open(name, _NEW_FILE, mode, dir_fd=folder)


def create_sized(
    path: str, size: int, owner: Owner, mode: int = 0o666, head: memoryview | bytes = b""
) -> int:
    """A descriptor of a new file of zeros that has its length (bytes) from the moment it has its name.

    So nobody who is killed leaves a shorter one, where the file system can make files without a name; there
    it is the owner's and begins with `head` by then, too, which the caller writes all the same.
    """
    with parent_of(path) as (folder, name):
        named = False
        try:
            descriptor = os.open(os.curdir, os.O_TMPFILE | os.O_RDWR | os.O_CLOEXEC, mode, dir_fd=folder)
        except OSError as error:
            if error.errno not in _NO_NAMELESS:
                raise
            descriptor, named = os.open(name, _NEW_FILE, mode, dir_fd=folder), True
        try:
            owner.give(descriptor)
            os.ftruncate(descriptor, size)
            if not named:
                if head:
                    os.pwrite(descriptor, head, 0)
                os.link(by_descriptor(descriptor), name, dst_dir_fd=folder, follow_symlinks=True)
        except OSError:
            os.close(descriptor)
            raise
        return descriptor


def open_for_writing(path: str) -> int:
    """A descriptor of an existing file, nothing is changed yet; no link is followed.

    EPERM for a further name of a file that is not the directory's owner's, in a directory that is not root's:
    who owns a directory may give any file a name in it, where the system does not forbid it.
    """
    with parent_of(path) as (folder, name):
        descriptor = os.open(name, os.O_RDWR | _OLD_FILE, dir_fd=folder)
        further = is_name_of_another(os.fstat(descriptor), os.fstat(folder))
    if not further:
        return descriptor
    os.close(descriptor)
    raise PermissionError(errno.EPERM, "is a hard link to a file of another user", path)


def is_name_of_another(found: os.stat_result, folder: os.stat_result) -> bool:
    """Whether a file has further names, and this one may be of another user, who owns the directory."""
    return found.st_nlink > 1 and folder.st_uid not in {0, found.st_uid}


def open_regular(path: str) -> int:
    """A descriptor for reading a regular file to which no link leads. Raises `OSError`."""
    with parent_of(path) as (folder, name):
        descriptor = os.open(name, os.O_RDONLY | _OLD_FILE, dir_fd=folder)
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        return descriptor
    os.close(descriptor)
    raise OSError(errno.EINVAL, "is not a regular file", path)


def open_itself(path: str) -> int:
    """A descriptor (O_PATH) of whatever lies there, a link itself; no link on the way is followed."""
    with parent_of(path) as (folder, name):
        return os.open(name, _ITSELF, dir_fd=folder)


def by_descriptor(descriptor: int) -> str:
    """A path for calls that take no descriptor with O_PATH: it leads to the very file, a link itself."""
    return f"{_HELD}{descriptor}"


def shown_path(path: str) -> str:
    """A path below `Folder.here` as people know it, any other as it is."""
    if not path.startswith(_HELD):
        return path
    number, slash, rest = path[len(_HELD) :].partition(os.sep)
    with suppress(OSError):
        return os.readlink(_HELD + number) + slash + rest
    return path


def resolved(path: str | os.PathLike[str]) -> str:
    """The absolute path with the links of its directory resolved, not one at its end."""
    folder, name = os.path.split(os.path.abspath(path))
    return os.path.join(os.path.realpath(folder), name)
