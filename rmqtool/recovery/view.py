"""A store as it would lie there after a change that nobody makes: files left out or with other content."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING

from rmqtool.store.bytes import MemorySource
from rmqtool.store.files import StoreDirectory, StoreFile
from rmqtool.store.kinds import role_of

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from rmqtool.store.access import OpenMode
    from rmqtool.store.bytes import ByteSource
    from rmqtool.store.layout import Store


@dataclass(frozen=True, slots=True)
class ImaginedFile(StoreFile):
    """A file whose bytes are those that `content` gives when it is opened, whatever lies on disk."""

    content: Callable[[], bytes] = bytes

    def open(self, mode: OpenMode = "auto") -> ByteSource:
        """The imagined bytes; `mode` has no meaning in memory."""
        del mode
        return MemorySource(self.content(), self.display_path)


def file_with(store: Store, path: str, size: int, content: Callable[[], bytes]) -> ImaginedFile:
    """A file at `path` with other content than it has, or a new one. size: bytes that `content` gives."""
    known = store.file(path)
    if known is not None:
        values = {one.name: getattr(known, one.name) for one in fields(StoreFile)}
        return ImaginedFile(**{**values, "size": size, "disk_bytes": size}, content=content)
    *parents, name = path.split("/")
    role = role_of(tuple(parents))
    placed = role.place(name)
    return ImaginedFile(
        path,
        str(store.root / path),
        placed.kind,
        size,
        size,
        0,
        placed.base_offset,
        role.topic,
        role.queue_id,
        content=content,
    )


def changed(store: Store, gone: Collection[str] = (), put: Mapping[str, ImaginedFile] | None = None) -> Store:
    """The store without the files `gone` and with the files `put` in their place; nothing is touched.

    A path of `gone` that is a directory goes with everything in it; directories of new files are made.
    """
    placed = put or {}
    without = frozenset(gone)
    files = [one for one in store.files if one.path not in placed and not _is_in(one.path, without)]
    files += placed.values()
    files.sort(key=lambda file: (file.root, file.path))
    directories = {one.path: one for one in store.directories if not _is_in(one.path, without)}
    for path in placed:
        _make_parents(store, path, directories)
    kept = tuple(directories[path] for path in sorted(directories))
    return replace(store, files=tuple(files), directories=kept)


def _is_in(path: str, trees: frozenset[str]) -> bool:
    if not trees:
        return False
    parts = path.split("/")
    return any("/".join(parts[:count]) in trees for count in range(len(parts), 0, -1))


def _make_parents(store: Store, path: str, known: dict[str, StoreDirectory]) -> None:
    parts = path.split("/")[:-1]
    for count in range(1, len(parts) + 1):
        place = "/".join(parts[:count])
        if place not in known:
            role = role_of(tuple(parts[:count]))
            known[place] = StoreDirectory(place, str(store.root / place), 1, None, role.topic, role.queue_id)
