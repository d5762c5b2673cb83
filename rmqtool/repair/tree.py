"""A store copied as a tree: links followed; holes, owner, mode and times of files and directories kept."""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from rmqtool.repair.copying import copy_file
from rmqtool.repair.facts import facts_of, give_owner
from rmqtool.repair.places import Roots
from rmqtool.store.names import unescape_name

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from rmqtool.repair.disk import Disk
    from rmqtool.store.layout import Store


@dataclass(frozen=True, slots=True)
class CopiedFile:
    """One file to be copied: where it lies, its path in the copy, size and blocks on the disk in bytes."""

    location: str
    path: str
    size: int
    blocks: int
    is_link: bool = False
    """a link that leads nowhere: it is copied as a link"""


@dataclass
class Tree:
    """What a copy of a store consists of. skipped: paths that are no files (FIFOs, sockets, devices).

    left_out: links that lead out of the store, which are not followed.
    """

    directories: list[tuple[str, str]] = field(default_factory=list)
    """location and path in the copy, parents first; the first is the root with path """ ""
    files: list[CopiedFile] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)

    @property
    def data_bytes(self) -> int:
        """Bytes on the disk that a copy without shared blocks takes."""
        return sum(min(one.size, one.blocks) for one in self.files)


def tree_of(store: Store, without: Collection[str] = (), *, follow_links: bool = False) -> Tree:
    """Everything in the store, files of further commit-log roots in `commitlog/`; not the paths `without`.

    follow_links: what is behind links out of the store and these roots, too. Raises `OSError` for a directory
    that cannot be listed.
    """
    walk = _Walk(Tree(), frozenset(map(unescape_name, without)), None if follow_links else Roots(store))
    walk.directory(os.path.realpath(store.root), "", frozenset())
    for one in store.files:
        if one.root and one.path not in walk.without:
            walk.file(one.location, f"commitlog/{one.name}")
    return walk.found


@dataclass(frozen=True, slots=True)
class _Walk:
    """roots: what links must not lead out of, None for all links."""

    found: Tree
    without: frozenset[str]
    roots: Roots | None

    def directory(self, location: str, path: str, above: frozenset[str]) -> None:
        real = os.path.realpath(location)
        if real in above:
            self.found.skipped.append(path)  # a link that leads up again
            return
        if self._leads_out(real):
            self.found.left_out.append(path)
            return
        self.found.directories.append((real, path))
        with os.scandir(real) as entries:
            names = sorted(entry.name for entry in entries)
        for name in names:
            inner, shown = os.path.join(real, name), f"{path}/{name}" if path else name
            if os.path.isdir(inner):
                self.directory(inner, shown, above | {real})
            elif shown not in self.without:
                self.file(inner, shown)

    def file(self, location: str, path: str) -> None:
        facts = os.lstat(location)
        if stat.S_ISLNK(facts.st_mode):
            try:
                facts = os.stat(location)
            except OSError:
                self.found.files.append(CopiedFile(location, path, 0, 0, is_link=True))
                return
        location = os.path.realpath(location)
        if self._leads_out(location):
            self.found.left_out.append(path)
        elif stat.S_ISREG(facts.st_mode):
            self.found.files.append(CopiedFile(location, path, facts.st_size, facts.st_blocks * 512))
        else:
            self.found.skipped.append(path)

    def _leads_out(self, real: str) -> bool:
        return self.roots is not None and not self.roots.have(real)


def copy_tree(disk: Disk, tree: Tree, target: str, advance: Callable[[int], object] | None = None) -> None:
    """Copies into the existing directory `target`; owners and times of directories come with `settle`.

    Before, nobody else may change what is in them.
    """
    for _, path in tree.directories:
        place = os.path.join(target, path)
        if path and not os.path.isdir(place):
            disk.make_directory(place)
    for one in tree.files:
        place = os.path.join(target, one.path)
        if one.is_link:
            disk.symlink(os.readlink(one.location), place)
            continue
        facts = facts_of(one.location, follow=True)
        copy_file(disk, one.location, place, advance)
        give_owner(disk, place, facts)
        disk.set_mtime(place, facts.mtime_ns)


def settle(disk: Disk, directories: Sequence[tuple[str, str]], target: str) -> None:
    """Owners and times of `Tree.directories` or some of them, the inner ones first, all synced."""
    for location, path in reversed(directories):
        place = os.path.join(target, path)
        with suppress(FileNotFoundError):  # removed by the plan
            facts = facts_of(location, follow=True)
            give_owner(disk, place, facts)
            disk.set_mtime(place, facts.mtime_ns)
            disk.sync_directory(place)
