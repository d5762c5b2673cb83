"""A store copied as a tree: links followed; holes, owner, mode and times of files and directories kept."""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from rmqtool.repair.copying import copy_file
from rmqtool.repair.facts import facts_of, give_owner
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
    """What a copy of a store consists of. skipped: paths that are no files (FIFOs, sockets, devices)."""

    directories: list[tuple[str, str]] = field(default_factory=list)
    """location and path in the copy, parents first; the first is the root with path """ ""
    files: list[CopiedFile] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)

    @property
    def data_bytes(self) -> int:
        """Bytes on the disk that a copy without shared blocks takes."""
        return sum(min(one.size, one.blocks) for one in self.files)


def tree_of(store: Store, without: Collection[str] = ()) -> Tree:
    """Everything in the store, files of further commit-log roots in `commitlog/`; not the paths `without`.

    Raises `OSError` for a directory that cannot be listed.
    """
    found = Tree()
    left_out = frozenset(map(unescape_name, without))
    _walk(os.path.realpath(store.root), "", found, left_out, frozenset())
    for one in store.files:
        if one.root and one.path not in left_out:
            _take(one.location, f"commitlog/{one.name}", found)
    return found


def _walk(location: str, path: str, found: Tree, left_out: frozenset[str], above: frozenset[str]) -> None:
    real = os.path.realpath(location)
    if real in above:
        found.skipped.append(path)  # a link that leads up again
        return
    found.directories.append((real, path))
    with os.scandir(real) as entries:
        names = sorted(entry.name for entry in entries)
    for name in names:
        inner, shown = os.path.join(real, name), f"{path}/{name}" if path else name
        if os.path.isdir(inner):
            _walk(inner, shown, found, left_out, above | {real})
        elif shown not in left_out:
            _take(inner, shown, found)


def _take(location: str, path: str, found: Tree) -> None:
    facts = os.lstat(location)
    if stat.S_ISLNK(facts.st_mode):
        try:
            facts = os.stat(location)
            location = os.path.realpath(location)
        except OSError:
            found.files.append(CopiedFile(location, path, 0, 0, is_link=True))
            return
    if stat.S_ISREG(facts.st_mode):
        found.files.append(CopiedFile(location, path, facts.st_size, facts.st_blocks * 512))
    else:
        found.skipped.append(path)


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
