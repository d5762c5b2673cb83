"""The store as a plan would leave it, as a store that can be read."""

from __future__ import annotations

import os
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any

from rmqtool.repair.content import FromFile
from rmqtool.repair.keep.overlay import OverlayFile, Patch
from rmqtool.repair.keep.segments import Whole
from rmqtool.repair.places import further_roots
from rmqtool.repair.plan import Action
from rmqtool.store.cut import TruncatedSource
from rmqtool.store.files import StoreDirectory, StoreFile
from rmqtool.store.kinds import role_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rmqtool.repair.plan import Change, Edit
    from rmqtool.store.access import OpenMode
    from rmqtool.store.bytes import ByteSource
    from rmqtool.store.layout import Store


@dataclass(frozen=True, slots=True)
class _CutFile(StoreFile):
    """The first `size` bytes of another file."""

    below: StoreFile | None = None

    def open(self, mode: OpenMode = "auto") -> ByteSource:
        """The bytes up to the cut."""
        if self.below is None:
            raise ValueError(f"{self.display_path}: a cut of nothing")
        return TruncatedSource(self.below.open(mode), self.size)


@dataclass
class _Draft:
    """One file while the edits are gone through. below: None for nothing but zeros."""

    model: StoreFile
    below: StoreFile | None
    size: int
    patches: list[Patch] = field(default_factory=list)
    mtime_ns: int | None = None

    def resize(self, size: int) -> None:
        if size < self.size:
            self.below = self.file() if self.patches else self.below
            self.patches = []
            if self.below is not None and self.below.size > size:
                self.below = _CutFile(**_values(self.below, size), below=self.below)
        self.size = size

    def file(self) -> StoreFile:
        """As it would lie there."""
        time = self.model.mtime_ns if self.mtime_ns is None else self.mtime_ns
        below = self.below
        if below is not None and not self.patches and below.size == self.size and type(below) is StoreFile:
            lies = {"location": below.location, "disk_bytes": below.disk_bytes}
            return StoreFile(**_values(self.model, self.size) | lies | {"mtime_ns": time})
        values = _values(self.model, self.size) | {"mtime_ns": time}
        return OverlayFile(**values, below=below, patches=tuple(self.patches))


def store_with(store: Store, edits: Sequence[Edit]) -> Store:
    """The store after all edits in their order. Nothing is touched, bytes are read when asked for."""
    files = {one.display_path: one for one in store.files}
    drafts: dict[str, _Draft] = {}
    directories = {one.path: one for one in store.directories}
    for edit in edits:
        change = edit.change
        path = change.path
        if change.action is Action.REMOVE:
            files.pop(path, None)
            drafts.pop(path, None)
        elif change.action is Action.REMOVE_DIRECTORY:
            directories.pop(path, None)
        elif change.action is Action.MAKE_DIRECTORY:
            directories[path] = _directory(store, path)
        elif change.action is not Action.SET_ASIDE:
            _edit(store, edit, files, drafts)
    files |= {path: draft.file() for path, draft in drafts.items()}
    return replace(
        store,
        files=tuple(sorted(files.values(), key=lambda one: (one.root, one.path))),
        directories=tuple(directories[path] for path in sorted(directories)),
        at_rest=True,
    )


def moved_files(store: Store, edits: Sequence[Edit]) -> dict[str, tuple[str, int]]:
    """Segments of the result with the bytes of a file of the store, by path: its path, and the shift."""
    found: dict[str, tuple[str, int]] = {}
    for edit in edits:
        below = edit.content.below if isinstance(edit.content, Whole) else None
        if below is not None and below.base_offset is not None:
            base = (store.file(edit.change.path) or _new_file(store, edit.change)).base_offset or 0
            found[edit.change.path] = below.display_path, base - below.base_offset
    return found


def _edit(store: Store, edit: Edit, files: dict[str, StoreFile], drafts: dict[str, _Draft]) -> None:
    change = edit.change
    known = files.get(change.path)
    if change.action is Action.PUT:
        drafts[change.path] = _put(store, edit, known)
        return
    if known is None and change.path not in drafts:
        raise ValueError(f"{change.path}: {change.action} of a file that is not there")
    if change.path not in drafts and known is not None:
        drafts[change.path] = _Draft(known, known, known.size)
    draft = drafts[change.path]
    if change.action is Action.RESIZE and change.size is not None:
        draft.resize(change.size)
    elif edit.content is not None:
        draft.patches.append(Patch(change.position or 0, edit.content))
    draft.mtime_ns = change.mtime_ns if change.mtime_ns is not None else draft.mtime_ns


def _put(store: Store, edit: Edit, known: StoreFile | None) -> _Draft:
    content, change = edit.content, edit.change
    model = known if known is not None and known.regular else _new_file(store, change)
    size = content.size if content is not None else 0
    draft = _Draft(model, None, size, mtime_ns=change.mtime_ns)
    if isinstance(content, Whole):
        draft.below, draft.patches = content.below, list(content.patches)
    elif isinstance(content, FromFile) and content.position == 0:
        # most of a new queue or index file is a hole, which nobody reads
        lies = {"location": content.path, "disk_bytes": 512 * os.stat(content.path).st_blocks}
        draft.below = StoreFile(**_values(model, size) | lies)
    elif content is not None:
        draft.patches.append(Patch(0, content))
    return draft


def _new_file(store: Store, change: Change) -> StoreFile:
    *parents, name = change.path.split("/")
    further = list(further_roots(store))
    root = further.index("/".join(parents)) + 1 if "/".join(parents) in further else 0
    role = role_of(("commitlog",) if root else tuple(parents))
    placed = role.place(name)
    location = str(store.root / change.path)
    return StoreFile(
        change.path, location, placed.kind, 0, 0, 0, placed.base_offset, role.topic, role.queue_id, root=root
    )


def _directory(store: Store, path: str) -> StoreDirectory:
    role = role_of(tuple(path.split("/")))
    return StoreDirectory(path, str(store.root / path), 1, None, role.topic, role.queue_id)


def _values(file: StoreFile, size: int) -> dict[str, Any]:
    values = {one.name: getattr(file, one.name) for one in fields(StoreFile)}
    return values | {"size": size, "disk_bytes": min(size, file.disk_bytes or size)}
