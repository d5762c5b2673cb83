"""Closed-world listing: every path below a directory, each with a kind, nothing followed out of the store."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from rmqtool.store.bytes import describe_mode
from rmqtool.store.files import StoreDirectory, StoreFile
from rmqtool.store.kinds import ROCKSDB_ROLE, FileKind, Placement, Role, role_of

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(slots=True)
class Inventory:
    """What a walk found. `notes` are one-line remarks (links not followed, files that vanished)."""

    files: list[StoreFile] = field(default_factory=list)
    directories: list[StoreDirectory] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


@dataclass(slots=True)
class Walker:
    """Lists one tree.

    boundary: real path of the store root; links are followed only to regular files below it.
    overrides: absolute directory → (role, root index), for commit-log roots that have a name of their own.
    forced: kind that `--as` gives to every file.
    """

    boundary: str
    found: Inventory
    overrides: Mapping[str, tuple[Role, int]] = field(default_factory=dict)
    forced: FileKind | None = None

    def walk(self, location: str, shown: tuple[str, ...], role_parts: tuple[str, ...], root: int = 0) -> None:
        """Adds everything below `location`.

        `shown` are the path components put before each name, `role_parts` the place in a store that the
        directory stands for (they differ for a folder that was copied away).
        """
        pending = [(location, shown, role_parts, root, None)]
        while pending:
            here, shown_here, parts, index, inherited = pending.pop()
            override = self.overrides.get(here)
            role: Role | None = inherited
            if override is not None:
                role, index = override
            for name, below in self._list(here, shown_here, parts, index, role):
                pending.append(
                    (os.path.join(here, name), (*shown_here, name), (*parts, name), index, below)  # type: ignore[arg-type]
                )

    def _list(
        self, location: str, shown: tuple[str, ...], parts: tuple[str, ...], root: int, role: Role | None
    ) -> list[tuple[str, Role | None]]:
        """Adds the files of one directory; returns its sub-directories with the role they inherit."""
        path = "/".join(shown)
        try:
            with os.scandir(location) as entries:
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
        below: list[tuple[str, Role | None]] = []
        for entry in listed:
            if entry.is_dir(follow_symlinks=False):
                below.append((entry.name, inherited))
            else:
                self._add(entry, prefix + entry.name, role, root)
        return below

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
        placed = role.place(entry.name)
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
            )
        )

    def _special(
        self, entry: os.DirEntry[str], path: str, found: os.stat_result
    ) -> tuple[os.stat_result, str | None]:
        """Why an entry that is no file or directory is not opened; what a link to a file leads to."""
        if not stat.S_ISLNK(found.st_mode):
            return found, describe_mode(found.st_mode)
        try:
            target = os.path.realpath(entry.path, strict=True)
            behind = os.stat(target)
        except OSError as error:
            return found, f"symbolic link that leads nowhere: {error.strerror}"
        inside = (target + "/").startswith(self.boundary.rstrip("/") + "/")
        if inside and stat.S_ISREG(behind.st_mode):
            return behind, None
        what = "directory" if stat.S_ISDIR(behind.st_mode) else "file"
        where = "inside" if inside else "outside"
        reason = f"symbolic link to a {what} {where} the store ({target}), not followed"
        self.found.notes.append(f"{path}: {reason}")
        return found, reason
