"""Directories of a store as the broker lists them, whatever their entries are."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from rmqtool.store.kinds import CONFIG_NAMES, FileKind
from rmqtool.store.names import parse_queue_id

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from rmqtool.store.contents import StoreContents
    from rmqtool.store.files import StoreDirectory, StoreFile

ROOT_DIRECTORIES = ("commitlog", "consumequeue", "batchconsumequeue", "index", "config", "timerlog")
_QUEUES = (FileKind.CONSUMEQUEUE.value, FileKind.BATCHCONSUMEQUEUE.value)


@dataclass(frozen=True, slots=True)
class Entry:
    """One name in a directory; `file` is None for a directory. path: printable, relative to the root."""

    name: str
    path: str
    size: int
    file: StoreFile | None = None

    @property
    def order(self) -> bytes:
        """Java compares names by UTF-16 units."""
        return self.name.encode("utf-16-be", "surrogatepass")


@dataclass(frozen=True)
class Listing:
    """What lies directly in each directory."""

    store: StoreContents

    def entries(self, path: str) -> list[Entry]:
        """Entries of a directory (path relative to the root), in name order; none when there is none."""
        return self._by_parent.get(path, [])

    def commit_log(self) -> list[Entry]:
        """Entries of all commit log directories together, in name order (`MultiPathMappedFileQueue#load`)."""
        return self._commit_log

    @cached_property
    def _commit_log(self) -> list[Entry]:
        roots = {str(root) for root in self.store.roots[1:]}
        paths = [one.path for one in self.store.directories if one.location in roots]
        if not paths:
            return self.entries("commitlog")
        found = [entry for path in ["commitlog", *paths] for entry in self.entries(path)]
        return sorted(found, key=lambda entry: entry.order)

    def is_directory(self, path: str) -> bool:
        """Whether a directory has this path."""
        return path in self._directories

    def exists(self, path: str) -> bool:
        """Whether anything has this path."""
        return path in self._directories or self.store.file(path) is not None

    def is_blocked(self, path: str) -> bool:
        """Whether something else than a directory has this path."""
        return path not in self._directories and self.store.file(path) is not None

    def unsavable(self) -> Iterator[tuple[str, str]]:
        """Directories where brokers write a configuration table or its `.bak`: their paths, the table's name.

        Neither can be replaced then (`MixAll#string2File`, `ConfigManager#persist`).
        """
        for entry in self.entries("config"):
            table = entry.name.removesuffix(".bak")
            if entry.file is None and table in CONFIG_NAMES:
                yield entry.path, table

    def blocked(self, topics: Collection[str]) -> Iterator[StoreFile]:
        """What lies where a broker needs a directory, for files of any kind, and is none.

        It cannot make files below them. topics: whose queues it may have to make; a topic's own entry in
        `consumequeue` is looked at only for these, others are foreign files.
        """
        paths = list(ROOT_DIRECTORIES)
        for kind in _QUEUES:
            paths += [f"{kind}/{entry.name}" for entry in self.entries(kind) if entry.name in topics]
            for topic in self.entries(kind):
                inside = self.entries(f"{kind}/{topic.name}")
                paths += [
                    f"{kind}/{topic.name}/{one.name}"
                    for one in inside
                    if parse_queue_id(one.name) is not None
                ]
        found = (self.store.file(path) for path in paths if path not in self._directories)
        return (one for one in found if one is not None)

    def unlistable(self) -> Iterator[StoreDirectory]:
        """Directories that could not be listed."""
        return (one for one in self.store.directories if one.error)

    @cached_property
    def _directories(self) -> frozenset[str]:
        return frozenset(one.path for one in self.store.directories)

    @cached_property
    def _by_parent(self) -> dict[str, list[Entry]]:
        found: dict[str, list[Entry]] = {}
        for file in self.store.files:
            parent, _, name = file.path.rpartition("/")
            found.setdefault(parent, []).append(Entry(name, file.display_path, file.size, file))
        for one in self.store.directories:
            if one.path:
                parent, _, name = one.path.rpartition("/")
                found.setdefault(parent, []).append(Entry(name, one.path, -1))
        for entries in found.values():
            entries.sort(key=lambda entry: entry.order)
        return found
