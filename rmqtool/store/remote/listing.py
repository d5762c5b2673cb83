"""A remote store as `Store` has it: listed once as a whole, then classified like a directory.

Object stores have no empty directories, no links and no locks; the files are as they are.
"""

from __future__ import annotations

import stat
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rmqtool.errors import NotAStoreError, UsageError
from rmqtool.store.files import StoreFile
from rmqtool.store.inventory import Inventory, Walker
from rmqtool.store.kinds import FileKind
from rmqtool.store.layout import Store, StoreForm
from rmqtool.store.names import escape_name
from rmqtool.store.remote.address import (
    VERSION,
    address_of,
    failures,
    file_system,
    refuse_ambiguous,
    refused,
)
from rmqtool.store.remote.facts import known_files
from rmqtool.store.remote.source import version_of

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator

    from rmqtool.store.config import StoreConfig
    from rmqtool.store.remote.source import Version

_ROOTS = frozenset(
    {"commitlog", "consumequeue", "batchconsumequeue", "consumequeue_ext", "config", "index", "checkpoint"}
)
_BLOCK = 512


@dataclass
class _Facts:
    """What `os.stat` would tell."""

    st_mode: int
    st_ino: int
    st_size: int = 0
    st_mtime_ns: int = 0
    st_dev: int = -1

    @property
    def st_blocks(self) -> int:
        return -(-self.st_size // _BLOCK)


@dataclass
class _Entry:
    """What `os.scandir` would yield."""

    name: str
    path: str
    facts: _Facts
    below: dict[str, _Entry] = field(default_factory=dict)

    def is_dir(self) -> bool:
        return stat.S_ISDIR(self.facts.st_mode)

    def is_symlink(self) -> bool:
        return False

    def stat(self, *, follow_symlinks: bool = True) -> Any:  # noqa: ARG002 - there are no links
        return self.facts


class RemoteTree:
    """Everything below an address, listed with one call of its file system.

    versions: location → which content of a file was listed. strange: path → why the object there is no file:
    an object store has any text for a key; a file system has neither the names "", "." and "..", nor a file
    where a directory is.
    """

    def __init__(self, address: str) -> None:
        refuse_ambiguous(address)
        self.address = address
        self.strange: dict[str, str] = {}
        self.versions: dict[str, Version] = {}
        self._root = _Entry("", address, _Facts(stat.S_IFDIR, 0))
        system = file_system(address)
        try:
            system.invalidate_cache(address)
            found = system.find(address, detail=True)
            base = str(system._strip_protocol(address)).rstrip("/") + "/"  # noqa: SLF001 - there is no other
        except FileNotFoundError:
            found, base = {}, ""
        except failures() as error:
            raise refused(address, error) from error
        objects = {
            str(place)[len(base) :]: facts
            for place, facts in found.items()
            if facts.get("type") == "file" and str(place).startswith(base)
        }
        # an object without bytes whose key ends in a slash marks a directory: consoles make them
        marked = {
            key.rstrip("/") for key, facts in objects.items() if key.endswith("/") and not facts["size"]
        }
        directories = marked.union(above for key in objects for above in _above(key))
        for number, (key, facts) in enumerate(sorted(objects.items()), 1):
            path = key.rstrip("/") if key.rstrip("/") in marked else key
            names = path.split("/")
            if not path:
                continue
            if {"", ".", ".."} & set(names) or VERSION in path:
                self.strange[path] = "its key is not a path of a file system: not read"
            elif path not in directories:
                self._add(names, facts, number)
            else:
                self._directory(names, number)
                if facts["size"]:
                    self.strange[path] = "is an object and a directory: the object is not read"

    def _directory(self, names: list[str], number: int) -> _Entry:
        here = self._root
        for place, name in enumerate(names):
            entry = _Entry(name, f"{here.path}/{name}", _Facts(stat.S_IFDIR, -(number * 64 + place)))
            here = here.below.setdefault(name, entry)
        return here

    def _add(self, names: list[str], facts: dict[str, Any], number: int) -> None:
        here = self._directory(names[:-1], number)
        reported = _Facts(stat.S_IFREG, number, int(facts.get("size") or 0), _nanoseconds(facts))
        location = f"{here.path}/{names[-1]}"
        here.below[names[-1]] = _Entry(names[-1], location, reported)
        self.versions[location] = version_of(facts)
        known_files.put(location, facts)

    @property
    def names(self) -> dict[str, bool]:
        """Names at the top → whether it is a directory."""
        return {name: entry.is_dir() for name, entry in self._root.below.items()}

    @contextmanager
    def scan(self, location: str) -> Iterator[Iterator[Any]]:
        """Stands in for `os.scandir`."""
        here = self._root
        for name in location[len(self.address) :].strip("/").split("/"):
            here = here.below[name] if name else here
        yield iter(here.below.values())


def _above(path: str) -> Iterator[str]:
    """The directories that a path leads through."""
    place = path.find("/")
    while place >= 0:
        yield path[:place]
        place = path.find("/", place + 1)


def _nanoseconds(facts: dict[str, Any]) -> int:
    """The time of the last change, which file systems call by different names; 0 without one."""
    names = ("LastModified", "mtime", "modified", "created")
    found = next((facts[name] for name in names if facts.get(name)), 0)
    if isinstance(found, datetime):
        zoned = found if found.tzinfo is not None else found.replace(tzinfo=UTC)
        return int(zoned.timestamp() * 1000) * 1_000_000
    return int(found * 1e9) if isinstance(found, int | float) else 0


def open_remote_store(place: str | os.PathLike[str], config: StoreConfig | None = None) -> Store:
    """The store at an address: a whole store, or its commit log alone in a directory `commitlog`.

    Raises `UsageError` where nothing lies there, `NotAStoreError`, `StoreIOError`.
    """
    address = address_of(place)
    tree = RemoteTree(address)
    if not tree.names:
        raise UsageError(f"{escape_name(address)}: no such file or directory")
    root, scope, form = address, "", StoreForm.STORE
    if not _ROOTS & set(tree.names):
        above, _, name = address.rpartition("/")
        if name != "commitlog":
            shown = escape_name(address)
            raise NotAStoreError(f"{shown} is not a RocketMQ store: no commitlog or config in it")
        root, scope, form = above, name, StoreForm.COMMITLOG
    inventory = Inventory()
    parts = (scope,) if scope else ()
    Walker(root, inventory, scan=tree.scan).walk(address, parts, parts)
    inventory.files = [replace(file, version=tree.versions.get(file.location)) for file in inventory.files]
    for path, reason in tree.strange.items():
        place = "/".join((*parts, path))
        inventory.notes.append(f"{place}: {reason}")
        inventory.files.append(
            StoreFile(place, f"{address}/{path}", FileKind.UNKNOWN, 0, 0, 0, note=reason, regular=False)
        )
    inventory.files.sort(key=lambda file: (file.root, file.path))
    inventory.directories.sort(key=lambda directory: directory.path)
    if all(file.kind is FileKind.UNKNOWN for file in inventory.files):
        raise NotAStoreError(f"{escape_name(address)} is not a RocketMQ store: none of its files is known")
    return Store(
        given=Path(address),
        root=Path(root),
        form=form,
        scope=scope,
        how="the names in it",
        files=tuple(inventory.files),
        directories=tuple(inventory.directories),
        roots=(Path(root),),
        config=config,
        notes=tuple(escape_name(note) for note in inventory.notes),
        at_rest=True,
    )
