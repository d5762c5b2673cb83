"""A remote store as `Store` has it: listed once as a whole, then classified like a directory.

Object stores have no empty directories, no links and no locks; the files are as they are.
"""

from __future__ import annotations

import stat
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rmqtool.errors import NotAStoreError, UsageError
from rmqtool.store.inventory import Inventory, Walker
from rmqtool.store.kinds import FileKind
from rmqtool.store.layout import Store, StoreForm
from rmqtool.store.names import escape_name
from rmqtool.store.remote.address import address_of, failures, file_system, refused
from rmqtool.store.remote.facts import known_files

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator

    from rmqtool.store.config import StoreConfig

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
    """Everything below an address, listed with one call of its file system."""

    def __init__(self, address: str) -> None:
        self.address = address
        self._root = _Entry("", address, _Facts(stat.S_IFDIR, 0))
        system = file_system(address)
        try:
            system.invalidate_cache(address)
            found = system.find(address, detail=True)
            base = str(system._strip_protocol(address)).rstrip("/")  # noqa: SLF001 - fsspec has no other word
        except FileNotFoundError:
            found, base = {}, ""
        except failures() as error:
            raise refused(address, error) from error
        for number, (place, facts) in enumerate(sorted(found.items()), 1):
            parts = str(place)[len(base) :].strip("/").split("/")
            if facts.get("type") == "file" and parts != [""]:
                self._add(parts, facts, number)

    def _add(self, parts: list[str], facts: dict[str, Any], number: int) -> None:
        here = self._root
        for place, name in enumerate(parts[:-1]):
            entry = _Entry(name, f"{here.path}/{name}", _Facts(stat.S_IFDIR, -(number * 64 + place)))
            here = here.below.setdefault(name, entry)
        told = _Facts(stat.S_IFREG, number, int(facts.get("size") or 0), _nanoseconds(facts))
        here.below[parts[-1]] = _Entry(parts[-1], f"{here.path}/{parts[-1]}", told)
        known_files.put(f"{here.path}/{parts[-1]}", facts)

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
    )
