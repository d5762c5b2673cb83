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
    link: str | None = None
    """what a link leads to that is copied as one: nowhere, or to a directory that is copied already"""


@dataclass
class Tree:
    """What a copy of a store consists of. skipped: paths that are not files (FIFOs, sockets, devices).

    left_out: links that lead out of the store, which are not followed, and what no broker looks for there.
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
    known = frozenset(one.path for one in store.directories if not one.foreign)
    foreign = frozenset(one.path for one in store.directories if one.foreign)
    roots = None if follow_links else Roots(store)
    walk = _Walk(Tree(), frozenset(map(unescape_name, without)), known, foreign, roots)
    walk.directories(os.path.realpath(store.root))
    for one in store.files:
        if one.root and one.path not in walk.without:
            walk.file(one.location, f"commitlog/{one.name}")
    return walk.found


@dataclass(frozen=True, slots=True)
class _Walk:
    """known: directories that the inventory lists: links lead into no others, since they may multiply.

    foreign: those that it does not list, as no broker looks there. roots: what links must not lead out of,
    None for all links.
    """

    found: Tree
    without: frozenset[str]
    known: frozenset[str]
    foreign: frozenset[str]
    roots: Roots | None

    def directories(self, root: str) -> None:
        """The root and everything below it."""
        entered: dict[str, str] = {}
        again: list[tuple[str, str]] = []
        waiting = [(root, "", False)]
        while waiting:
            real, path, linked = waiting.pop()
            if linked and (path in self.foreign or self._leads_out(real)):
                self.found.left_out.append(path)
                continue
            if linked and path not in self.known:
                again.append((real, path))
                continue
            entered.setdefault(real, path)
            self.found.directories.append((real, path))
            with os.scandir(real) as entries:
                listed = sorted(entries, key=lambda entry: entry.name, reverse=True)
            for entry in listed:
                shown = f"{path}/{entry.name}" if path else entry.name
                if not os.path.isdir(entry.path):  # unlike `entry.is_dir`, also of a link to itself
                    if shown not in self.without:
                        self.file(entry.path, shown)
                elif entry.is_symlink():
                    waiting.append((os.path.realpath(entry.path), shown, True))
                else:
                    waiting.append((entry.path, shown, linked))
        for real, path in again:
            self._link(path, entered.get(real))

    def _link(self, path: str, target: str | None) -> None:
        """A link to a directory that is copied at `target`."""
        if target is None:
            self.found.skipped.append(path)
        else:
            there = os.path.relpath(target or os.curdir, os.path.dirname(path) or os.curdir)
            self.found.files.append(CopiedFile("", path, 0, 0, link=there))

    def file(self, location: str, path: str) -> None:
        """Anything but a directory."""
        facts = os.lstat(location)
        if stat.S_ISLNK(facts.st_mode):
            try:
                facts = os.stat(location)
            except OSError:
                self.found.files.append(CopiedFile(location, path, 0, 0, link=os.readlink(location)))
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
    """Copies into the existing directory `target`.

    Owners and times of directories come with `set_directory_facts`; before, nobody else may change what is in
    them.
    """
    for _, path in tree.directories:
        place = os.path.join(target, path)
        if path and not os.path.isdir(place):
            disk.make_directory(place)
    for one in tree.files:
        place = os.path.join(target, one.path)
        if one.link is not None:
            disk.symlink(one.link, place)
            continue
        copy_file(disk, one.location, place, advance)


def set_directory_facts(disk: Disk, directories: Sequence[tuple[str, str]], target: str) -> None:
    """Owners and times of `Tree.directories` or some of them, the inner ones first, all synced."""
    for location, path in reversed(directories):
        place = os.path.join(target, path)
        with suppress(FileNotFoundError):  # removed by the plan
            facts = facts_of(location, follow=True)
            with disk.opened(place) as descriptor:
                give_owner(disk, descriptor, facts, place)
            disk.set_mtime(place, facts.mtime_ns)
            disk.sync_directory(place)
