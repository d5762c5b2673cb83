"""A store as it lies on disk: what STORE is, and every path in it with its kind."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from rmqtool.errors import NotAStoreError, StoreIOError
from rmqtool.store.contents import Queue, StoreContents
from rmqtool.store.empty_roots import without_segments
from rmqtool.store.files import StoreDirectory, StoreFile
from rmqtool.store.inventory import Inventory, Walker, owner_of
from rmqtool.store.kinds import FileKind, role_of
from rmqtool.store.listing import Listing
from rmqtool.store.names import escape_name
from rmqtool.store.opening import add_file, extra_roots, is_listed, kind_of, named_roots, relative_to
from rmqtool.store.partial import add_what_is_missing
from rmqtool.store.remote.address import refuse_address
from rmqtool.store.resolve import StoreForm, resolve

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from rmqtool.store.config import StoreConfig
    from rmqtool.store.geometry import FileSize, IndexGeometry
    from rmqtool.store.release import Release

__all__ = ["FileKind", "Queue", "Store", "StoreDirectory", "StoreFile", "StoreForm"]


@dataclass(frozen=True)
class Store(StoreContents):
    """A store, or the part of one that was asked for, with what is inferred. Make it with `open`."""

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str],
        *,
        commitlog_roots: Iterable[str | os.PathLike[str]] = (),
        config: StoreConfig | None = None,
        as_kind: FileKind | str | None = None,
        on_listed: Callable[[int], object] = int,
    ) -> Store:
        """Lists and classifies STORE without opening more than it must.

        path: store root, commitlog or DLedger directory, folder inside a store, or one file (also copied
        away). commitlog_roots: more directories with commit log files (multi-path store). config: sizes and
        switches; its own commit-log paths are used only when STORE is its `storePathRootDir`. as_kind: what
        the file, or the files of the directory, are, against all evidence. on_listed: called now
        and then with how many files were found.

        Raises `UsageError` (no such path, an address, bad kind), `NotAStoreError`, `StoreIOError` (no
        permission), `UnfitStoreError` (a copy whose list of files is damaged).
        """
        refuse_address(os.fspath(path))
        forced = kind_of(as_kind)
        target = resolve(os.fspath(path), forced)
        extra = extra_roots(target, commitlog_roots, config)
        inventory = Inventory()
        boundary = os.path.realpath(target.root)
        overrides = {place: (role_of(("commitlog",)), number) for number, place in enumerate(extra, 1)}
        whole = target.form is not StoreForm.FOLDER
        walker = Walker(
            boundary,
            inventory,
            overrides,
            None if whole else forced,
            on_listed=on_listed,
            owner=owner_of(boundary),
        )
        location = os.path.join(target.root, *target.scope)
        if target.form is StoreForm.FILE:
            add_file(inventory, target, location)
        else:
            walker.walk(location, target.scope, target.parts)
        for place in extra:
            if not is_listed(inventory, place):
                walker.walk(place, relative_to(place, target.root), ("commitlog",))
        if target.form is not StoreForm.FILE:
            add_what_is_missing(inventory, target.root, target.scope)
        inventory.files.sort(key=lambda file: (file.root, file.path))
        inventory.directories.sort(key=lambda directory: directory.path)
        store = cls(
            given=Path(path),
            root=Path(target.root),
            form=target.form,
            scope="/".join(target.scope),
            how=target.how,
            files=tuple(inventory.files),
            directories=tuple(inventory.directories),
            roots=(Path(target.root), *map(Path, extra)),
            config=config,
            notes=tuple(escape_name(note) for note in inventory.notes),
        )
        store._refuse_nothing()
        return store._with(without_segments(store, named_roots(target, extra, config)))

    def _with(self, empty: Mapping[str, str]) -> Store:
        """empty: why a directory counts as one that cannot be listed, by its place."""
        if not empty:
            return self
        directories, notes = [], list(self.notes)
        for one in self.directories:
            error = empty.get(one.location) if one.error is None else None
            if error is not None:
                notes.append(f"{escape_name(one.path or one.location)}: {error}")
            directories.append(one if error is None else replace(one, error=error))
        return replace(self, directories=tuple(directories), notes=tuple(notes))

    def _refuse_nothing(self) -> None:
        """A whole store may be empty; anything else without one known file is a mistake of the caller."""
        if self.form is StoreForm.STORE or any(file.kind is not FileKind.UNKNOWN for file in self.files):
            return
        shown = escape_name(str(self.given))
        unreadable = next((one for one in self.directories if one.error), None)
        if unreadable is not None:
            raise StoreIOError(f"{shown}: {unreadable.error}")
        if not self.files and self.form is StoreForm.COMMITLOG:
            return
        if not self.files:
            raise NotAStoreError(f"{shown} holds no file")
        raise NotAStoreError(f"{shown} is not a RocketMQ store: none of its {len(self.files)} files is known")

    @cached_property
    def sizes(self) -> Mapping[FileKind, FileSize]:
        """File size of every mapped-file queue in the store and how it is known (`geometry.file_sizes`)."""
        from rmqtool.store.geometry import file_sizes

        return file_sizes(self)

    @cached_property
    def index_geometry(self) -> Mapping[str, IndexGeometry]:
        """Slots and items of every index file, by path (`geometry.index_geometries`)."""
        from rmqtool.store.geometry import index_geometries

        return index_geometries(self)

    @cached_property
    def listing(self) -> Listing:
        """What lies directly in each directory, as a broker lists it."""
        return Listing(self)

    @cached_property
    def release(self) -> Release:
        """Releases that may have written the store, with the evidence (`release.infer_release`)."""
        from rmqtool.store.release import infer_release

        return infer_release(self)
