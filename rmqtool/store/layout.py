"""A store as it lies on disk: what STORE is, and every path in it with its kind."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from rmqtool.errors import NotAStoreError, StoreIOError
from rmqtool.store.files import StoreDirectory, StoreFile
from rmqtool.store.inventory import Inventory, Walker
from rmqtool.store.kinds import QUEUE_KINDS, FileKind, role_of
from rmqtool.store.listing import Listing
from rmqtool.store.names import escape_name
from rmqtool.store.opening import add_file, extra_roots, is_listed, kind_of, relative_to
from rmqtool.store.resolve import StoreForm, resolve
from rmqtool.store.segments import SegmentSet

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from rmqtool.store.config import StoreConfig
    from rmqtool.store.config_json import ConfigPair, TopicConfig
    from rmqtool.store.geometry import FileSize, IndexGeometry
    from rmqtool.store.release import Release

__all__ = ["FileKind", "Queue", "Store", "StoreDirectory", "StoreFile", "StoreForm"]


@dataclass(frozen=True, slots=True)
class Queue:
    """Files of one queue, by base offset; an empty queue directory is a queue too.

    `topic` and `queue_id` are None only for a queue directory that was copied away.
    """

    kind: FileKind
    topic: str | None
    queue_id: int | None
    files: tuple[StoreFile, ...]


@dataclass(frozen=True)
class Store:
    """A store, or the part of one that was asked for. Make it with `Store.open`.

    given: the argument. root: what paths are relative to. form: what the argument is, `how` says what told
    it. scope: path of the argument relative to root, "" for a whole store. files: every path that is no
    directory, sorted by root, then path. directories: every directory. config: settings given by the user,
    None when sizes are to be inferred. notes: remarks for people, one line each. at_rest: nobody can be
    writing: a view of what a change would leave, or a store that this process holds.
    """

    given: Path
    root: Path
    form: StoreForm
    scope: str
    how: str
    files: tuple[StoreFile, ...]
    directories: tuple[StoreDirectory, ...]
    roots: tuple[Path, ...]
    config: StoreConfig | None = None
    notes: tuple[str, ...] = field(default=())
    at_rest: bool = False

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
        the file, or the files of the directory, are, against all evidence. on_listed: told now and then how
        many files were found.

        Raises `UsageError` (no such path, bad kind), `NotAStoreError`, `StoreIOError` (no permission).
        """
        forced = kind_of(as_kind)
        target = resolve(os.fspath(path), forced)
        extra = extra_roots(target, commitlog_roots, config)
        inventory = Inventory()
        boundary = os.path.realpath(target.root)
        overrides = {place: (role_of(("commitlog",)), number) for number, place in enumerate(extra, 1)}
        whole = target.form is not StoreForm.FOLDER
        walker = Walker(boundary, inventory, overrides, None if whole else forced, on_listed=on_listed)
        location = os.path.join(target.root, *target.scope)
        if target.form is StoreForm.FILE:
            add_file(inventory, target, location)
        else:
            walker.walk(location, target.scope, target.parts)
        for place in extra:
            if not is_listed(inventory, place):
                walker.walk(place, relative_to(place, target.root), ("commitlog",))
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
        return store

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
    def _by_kind(self) -> Mapping[FileKind, tuple[StoreFile, ...]]:
        groups: dict[FileKind, list[StoreFile]] = {}
        for file in self.files:
            groups.setdefault(file.kind, []).append(file)
        return {kind: tuple(files) for kind, files in groups.items()}

    def of_kind(self, *kinds: FileKind | str) -> tuple[StoreFile, ...]:
        """Files of these kinds, in the order of `files`."""
        return tuple(file for kind in kinds for file in self._by_kind.get(FileKind(kind), ()))

    def file(self, path: str) -> StoreFile | None:
        """The file with this path relative to the root, None when there is none."""
        return self._by_path.get(path)

    @cached_property
    def _by_path(self) -> Mapping[str, StoreFile]:
        return {file.path: file for file in self.files}

    @cached_property
    def segments(self) -> SegmentSet:
        """The commit log files of all roots as one address space."""
        return SegmentSet.of_files(self.of_kind(FileKind.COMMITLOG))

    @cached_property
    def dledger_segments(self) -> SegmentSet:
        """The DLedger data files as one address space (it continues that of `segments` in mixed mode)."""
        return SegmentSet.of_files(self.of_kind(FileKind.DLEDGER_DATA))

    def queues(self, kind: FileKind | str = FileKind.CONSUMEQUEUE) -> tuple[Queue, ...]:
        """Queues of one kind (consume queue, batch consume queue or extension), by topic and queue number.

        Queue directories without files are queues too; directories whose name is no number are not (the
        broker ignores them as well).
        """
        return self._queues.get(FileKind(kind), ())

    @cached_property
    def _queues(self) -> Mapping[FileKind, tuple[Queue, ...]]:
        found: dict[tuple[FileKind, str | None, int | None], list[StoreFile]] = {}
        for directory in self.directories:
            if directory.queue_id is not None and directory.path.split("/", 1)[0] in QUEUE_KINDS:
                found[FileKind(directory.path.split("/", 1)[0]), directory.topic, directory.queue_id] = []
        for file in self.of_kind(*QUEUE_KINDS):
            found.setdefault((file.kind, file.topic, file.queue_id), []).append(file)
        grouped: dict[FileKind, list[Queue]] = {}
        for (kind, topic, queue_id), files in found.items():
            files.sort(key=lambda file: (file.base_offset or 0, file.path))
            grouped.setdefault(kind, []).append(Queue(kind, topic, queue_id, tuple(files)))
        return {
            kind: tuple(
                sorted(
                    queues, key=lambda one: (one.topic or "", -1 if one.queue_id is None else one.queue_id)
                )
            )
            for kind, queues in grouped.items()
        }

    def index_files(self) -> tuple[StoreFile, ...]:
        """Index files in name order, the order in which the broker loads them."""
        return tuple(sorted(self.of_kind(FileKind.INDEX), key=lambda file: file.name))

    def config_pair(self, name: str) -> ConfigPair:
        """`config/<name>` and its `.bak`, and which of them a broker would load."""
        from rmqtool.store.config_json import chosen_of, load_config_pair, read_listed

        if self.form is not StoreForm.STORE:
            return load_config_pair(self.root / "config" / name)
        path = f"config/{name}"
        return chosen_of(*(read_listed(self.file(one))[0] for one in (path, f"{path}.bak")))

    @cached_property
    def topics(self) -> Mapping[str, TopicConfig]:
        """Topic settings as a broker would load them, empty without readable `topics.json` or `.bak`."""
        from rmqtool.store.config_json import topics_of

        return topics_of(self.config_pair("topics.json").data)

    @property
    def lock_path(self) -> Path:
        """Where the broker's lock file is, whether it exists or not."""
        return self.root / "lock"

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
