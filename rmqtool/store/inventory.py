"""Closed-world listing: every path below a directory, each with a kind.

Links are followed as the broker follows them (a commitlog on another disk is often one), but never in a
circle, and where no broker looks to each directory once; what leads out of the store is noted, and only
listed where a broker looks.
"""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from rmqtool.store.access import describe_mode
from rmqtool.store.files import StoreDirectory, StoreFile
from rmqtool.store.kinds import ROCKSDB_ROLE, FileKind, Placement, Role, is_looked_into, role_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from contextlib import AbstractContextManager


@dataclass(slots=True)
class Inventory:
    """What a walk found. `notes` are one-line remarks (links not followed, files that vanished)."""

    files: list[StoreFile] = field(default_factory=list)
    directories: list[StoreDirectory] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


_TICK = 1024
"""entries between two calls of `Walker.on_listed`"""

_READ_WRITE = stat.S_IROTH | stat.S_IWOTH
_Identity = tuple[int, int]
"""device and inode"""


@dataclass(frozen=True, slots=True)
class _Place:
    """A directory to be listed. trail: what lies above it, itself included. linked: a link leads there.

    outside: a link out of the store does.
    """

    location: str
    shown: tuple[str, ...]
    parts: tuple[str, ...]
    root: int
    role: Role | None
    trail: tuple[_Identity, ...]
    linked: bool = False
    outside: bool = False


@dataclass(slots=True)
class Walker:
    """Lists one tree.

    boundary: real path of the store root; links that leave it are noted.
    overrides: absolute directory → (role, root index), for commit-log roots that have a name of their own.
    forced: kind that `--as` gives to every file.
    scan: lists a directory in the place of `os.scandir`.
    """

    boundary: str
    found: Inventory
    overrides: Mapping[str, tuple[Role, int]] = field(default_factory=dict)
    forced: FileKind | None = None
    scan: Callable[[str], AbstractContextManager[Iterable[os.DirEntry[str]]]] | None = None
    on_listed: Callable[[int], object] = int
    """called with the number of files found so far, now and then"""
    owner: int | None = None
    """user of the store's directory, None where nobody asks for it"""
    _linked: set[_Identity] = field(default_factory=set)
    """directories that were entered by a link, or below one: links in them may lead to each other"""

    def walk(self, location: str, shown: tuple[str, ...], role_parts: tuple[str, ...], root: int = 0) -> None:
        """Adds everything below `location`.

        `shown` are the path components put before each name, `role_parts` the place in a store that the
        directory stands for (they differ for a folder that was copied away).
        """
        pending: list[_Place] = [_Place(location, shown, role_parts, root, None, (_identity(location),))]
        while pending:
            place = pending.pop()
            here, index, inherited = place.location, place.root, place.role
            override = self.overrides.get(here)
            role: Role | None = inherited
            if override is not None:
                role, index = override
            pending += self._list(place, index, role)

    def _list(self, place: _Place, root: int, role: Role | None) -> list[_Place]:
        """Adds the files of one directory; its sub-directories, with the role that they inherit."""
        location, parts = place.location, place.parts
        path = "/".join(place.shown)
        try:
            with (self.scan or os.scandir)(location) as entries:
                listed = list(entries)
        except OSError as error:
            self.found.directories.append(StoreDirectory(path, location, 0, error.strerror or "unreadable"))
            self.found.notes.append(f"{path or location}: cannot be listed: {error.strerror}")
            return []
        if role is None:
            role = self._role(parts, {entry.name for entry in listed} if len(listed) < 5000 else set())
        self.found.directories.append(
            StoreDirectory(path, location, len(listed), None, role.topic, role.queue_id)
        )
        prefix = path + "/" if path else ""
        inherited = role if role.everything is not None else None
        below: list[_Place] = []
        unlisted = 0
        listed.reverse()
        while listed:
            entry = listed.pop()  # it holds what `stat` found, more than what is kept of it
            if not len(listed) % _TICK:
                self.on_listed(len(self.found.files))
            identity, outside = self._directory(entry, prefix + entry.name)
            linked, outside = place.linked or entry.is_symlink(), place.outside or outside
            name, below_parts = entry.name, (*parts, entry.name)
            there = os.path.join(location, name)
            if identity is not None and outside and self._is_foreign(below_parts, there):
                self.found.directories.append(StoreDirectory(prefix + name, entry.path, 0, foreign=True))
                unlisted += 1
                continue
            again = identity in place.trail or (linked and self._again(identity, below_parts))
            if identity is None or again:
                self._add(entry, prefix + name, role, root)
                continue
            if linked:
                self._linked.add(identity)
            shown, trail = (*place.shown, name), (*place.trail, identity)
            below.append(_Place(there, shown, below_parts, root, inherited, trail, linked, outside))
        if unlisted:
            text = f"sub-directories out of the store, where no broker looks, are not listed: {unlisted}"
            self.found.notes.append(f"{path or location}: {text}")
        return below

    def _again(self, identity: _Identity | None, parts: tuple[str, ...]) -> bool:
        """Whether links led into a directory before, and no broker looks for it here."""
        return identity in self._linked and not is_looked_into(parts)

    def _is_foreign(self, parts: tuple[str, ...], location: str) -> bool:
        """Whether nobody looks for a directory here, and none of the commit-log roots lies in it."""
        within = any((one + "/").startswith(location + "/") for one in self.overrides)
        return not (self.forced is not None or within or is_looked_into(parts))

    def _directory(self, entry: os.DirEntry[str], path: str) -> tuple[_Identity | None, bool]:
        """What a directory, or a link to one, really is, None for anything else; whether it leads out."""
        try:
            if not entry.is_dir():
                return None, False
            found = entry.stat()
        except OSError:
            return None, False
        outside = entry.is_symlink() and self._note_outside(path, os.path.realpath(entry.path))
        return (found.st_dev, found.st_ino), outside

    def _note_outside(self, path: str, target: str) -> bool:
        """Whether what a link leads to is not in the store."""
        outside = not (target + "/").startswith(self.boundary.rstrip("/") + "/")
        if outside:
            self.found.notes.append(f"{path}: is a link out of the store, to {target}")
        return outside

    def _role(self, parts: tuple[str, ...], names: set[str]) -> Role:
        role = role_of(parts)
        known = role.numbered or role.named or role.config or role.rocksdb
        if not known and "CURRENT" in names and any(name.startswith("MANIFEST-") for name in names):
            return ROCKSDB_ROLE
        return role

    def _add(self, entry: os.DirEntry[str], path: str, role: Role, root: int) -> None:
        try:
            found = entry.stat(follow_symlinks=False)
        except FileNotFoundError:
            self.found.notes.append(f"{path}: vanished while it was listed")
            return
        except OSError as error:
            placed = Placement(FileKind.UNKNOWN, note=f"not readable: {error.strerror}")
            self.found.files.append(
                StoreFile(path, entry.path, placed.kind, 0, 0, 0, note=placed.note, regular=False)
            )
            return
        placed = role.place(entry.name).of_size(found.st_size)
        if self.forced is not None:
            placed = Placement(self.forced, placed.base_offset)
        regular = stat.S_ISREG(found.st_mode)
        if not regular:
            found, reason = self._special(entry, path, found)
            regular = reason is None
            if reason is not None:
                placed = Placement(FileKind.UNKNOWN, None, reason)
        self.found.files.append(
            StoreFile(
                path,
                entry.path,
                placed.kind,
                found.st_size if regular else 0,
                found.st_blocks * 512,
                found.st_mtime_ns,
                placed.base_offset,
                role.topic,
                role.queue_id,
                root,
                placed.note,
                regular,
                denied=self.owner is not None and not _may_change(found, self.owner),
            )
        )

    def _special(
        self, entry: os.DirEntry[str], path: str, found: os.stat_result
    ) -> tuple[os.stat_result, str | None]:
        """Why an entry that is not a file or directory is not opened; what a link to a file leads to."""
        if stat.S_ISDIR(found.st_mode):
            return found, "directory to which several links lead, listed elsewhere"
        if not stat.S_ISLNK(found.st_mode):
            return found, describe_mode(found.st_mode)
        try:
            target = os.path.realpath(entry.path, strict=True)
            behind = os.stat(target)
        except OSError as error:
            return found, f"symbolic link that leads nowhere: {error.strerror}"
        if stat.S_ISREG(behind.st_mode):
            self._note_outside(path, target)
            return behind, None
        if stat.S_ISDIR(behind.st_mode):
            reason = f"symbolic link in a circle, or one of several, to {target}, not followed"
            self.found.notes.append(f"{path}: {reason}")
            return found, reason
        return found, f"symbolic link to {describe_mode(behind.st_mode)}"


def owner_of(location: str) -> int | None:
    """User to whom a directory belongs."""
    try:
        return os.stat(location).st_uid
    except OSError:
        return None


def _may_change(found: os.stat_result, user: int) -> bool:
    """Whether a user may read and write a file, by its mode; root always may.

    Which groups a user is in is not known here: a mode that allows it to a group is enough.
    """
    shifts = (6,) if found.st_uid == user else (3, 0)
    return not user or any(found.st_mode >> one & _READ_WRITE == _READ_WRITE for one in shifts)


def _identity(location: str) -> _Identity:
    try:
        found = os.stat(location)
    except OSError:
        return 0, 0
    return found.st_dev, found.st_ino
