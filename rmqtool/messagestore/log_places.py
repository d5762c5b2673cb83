"""Where the segments of the log lie: in `commitlog`, or in the directories that the settings name.

`CommitLog#CommitLog`, `MultiPathMappedFileQueue`. Each of them is held by a descriptor; links that lead to
them are followed as `store.writing.way_to` follows them, none below.
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING

from rmqtool.errors import NotAStoreError, StoreIOError, UsageError
from rmqtool.store.config import PATH_SPLITTER, split_paths
from rmqtool.store.names import escape_name
from rmqtool.store.opening import relative_to
from rmqtool.store.writing import Folder, Owner, make_directories, way_to

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from typing import Self

    from rmqtool.store.config import StoreConfig
    from rmqtool.store.layout import Store

OWN = "commitlog"


class LogPlaces:
    """The log's directories, held, by the path that the store's listing has for each. A context manager.

    writable: those in which segments are made, in the order of their names. full: of these, those whose disks
    are; none is made there while there is another. owner: of the store, whose segments are wherever they lie.
    """

    def __init__(self, root: Folder, held: dict[str, Folder], writable: list[str]) -> None:
        self._root, self.held, self.writable = root, held, writable
        self.owner = Owner.of(root.descriptor)
        self.full: frozenset[str] = frozenset()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        for folder in (self._root, *self.held.values()):
            folder.close()

    def at(self, path: str) -> str:
        """A path into a held directory, for a path below the store."""
        if path in self.held:
            return self.held[path].here
        directory, _, name = path.rpartition("/")
        folder = self.held.get(directory)
        return f"{self._root.here}/{path}" if folder is None else f"{folder.here}/{name}"

    def elsewhere(self, root: Path) -> list[str]:
        """Absolute directories besides `commitlog`, as `Store.open` takes them."""
        return [os.path.normpath(os.path.join(root, name)) for name in self.held if name != OWN]

    def check(self, store: Store) -> None:
        """Raises `UsageError` where `store` has not listed each directory of the log as such."""
        listed = {one.path for one in store.directories}
        for name in self.held:
            if name not in listed:
                raise UsageError(f"{escape_name(name)}: is not a directory of segments alone")

    def directory_for(self, number: int) -> str:
        """Where segment `number` is made: in turn (`MultiPathMappedFileQueue#tryCreateMappedFile`)."""
        left = [one for one in self.writable if one not in self.full] or self.writable
        return left[number % len(left)]


def log_directories(root: Path, config: StoreConfig) -> tuple[list[str], list[str]]:
    """Absolute directories in which segments are made, in the order of their names, and others of the log.

    Raises `UsageError` for settings by which a broker has another log than they say, or another store's.
    """
    if not config.is_set("store_path_commit_log") or not config.store_path_commit_log:
        if config.is_set("read_only_commit_log_store_paths"):
            raise UsageError("readOnlyCommitLogStorePaths: has no effect without storePathCommitLog")
        return [str(root / OWN)], []
    if config.root is not None and not config.is_root(root):
        raise UsageError(f"storePathCommitLog is that of {escape_name(config.root)}, which is another store")
    given = config.store_path_commit_log
    read_only = len(split_paths(config.read_only_commit_log_store_paths or ""))
    if read_only and PATH_SPLITTER not in given:
        raise UsageError(
            f"readOnlyCommitLogStorePaths: brokers ignore it where storePathCommitLog has no {PATH_SPLITTER}"
        )
    places = config.commit_log_roots()
    kept = places[len(places) - read_only :] if read_only else []
    writable = sorted({*places} - {*kept})
    if not writable:
        raise UsageError("storePathCommitLog names no directory that is not in readOnlyCommitLogStorePaths")
    return writable, sorted({*kept})


def make_missing(root: Path, config: StoreConfig, *, create: bool) -> None:
    """Directories in which segments are made come to be, in a store that is there or is made.

    Raises `UsageError`, `NotAStoreError`, `StoreIOError`.
    """
    writable, others = log_directories(root, config)
    if not create and not any(map(os.path.isdir, [*writable, *others])):
        raise NotAStoreError(f"{escape_name(str(root))} has no commit log")
    for place in writable:
        if os.path.lexists(place):
            continue  # `open_places` says whether it is a directory
        try:
            with Folder.open(str(root)) as folder:
                make_directories(place, "the commit log", Owner.of(folder.descriptor))
        except OSError as error:
            raise StoreIOError(f"{escape_name(place)}: {error.strerror}") from error


def open_places(root: Path, config: StoreConfig) -> LogPlaces:
    """Holds the log's directories. Raises `UsageError`, `StoreIOError`."""
    writable, others = log_directories(root, config)
    own = root / OWN
    names: dict[str, str] = {}
    held: dict[str, Folder] = {}
    try:
        above = Folder.open(str(root))
        for place in [*writable, *others]:
            names[place] = _name(root, place)
            folder = _held(place, writable=place in writable)
            if folder is not None:
                held.setdefault(names[place], folder)
    except OSError as error:
        raise StoreIOError(f"{escape_name(str(root))}: {error.strerror}") from error
    if OWN not in held and os.path.isdir(own) and any(_names(own)):
        raise UsageError(f"{OWN} holds files, and storePathCommitLog does not name it")
    return LogPlaces(above, held, [names[place] for place in writable])


def _held(place: str, *, writable: bool) -> Folder | None:
    try:
        folder, missing = way_to(place, "the commit log")
    except OSError as error:
        raise StoreIOError(f"{escape_name(place)}: {error.strerror}") from error
    if not missing:
        return folder
    folder.close()
    if writable:
        raise StoreIOError(f"{escape_name(place)}: {os.strerror(2)}")
    return None


def _names(place: Path) -> Iterator[str]:
    with suppress(OSError), os.scandir(place) as entries:
        yield from (one.name for one in entries)


def _name(root: Path, place: str) -> str:
    """As `Store.open` lists it."""
    if os.path.realpath(place) == os.path.realpath(root / OWN):
        return OWN
    return "/".join(relative_to(place, str(root)))
