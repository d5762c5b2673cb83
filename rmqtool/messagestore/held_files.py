"""Files of a store that is written are read where they are written: below its root, behind no link."""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any, TypeVar

from rmqtool.broker.java import parse_long
from rmqtool.errors import RmqtoolError, StoreIOError, UsageError, VanishedError
from rmqtool.scan.legal import may_be_topic
from rmqtool.store.access import open_source
from rmqtool.store.bytes import FileSource
from rmqtool.store.files import StoreFile
from rmqtool.store.holes import TAIL_STEP, data_windows, last_in
from rmqtool.store.kinds import FileKind
from rmqtool.store.names import escape_name
from rmqtool.store.writing import by_descriptor, open_regular

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from rmqtool.store.access import OpenMode
    from rmqtool.store.bytes import ByteSource, Window
    from rmqtool.store.layout import Store
    from rmqtool.store.writing import Folder

    Made = TypeVar("Made")

_WRITTEN = (
    FileKind.CONSUMEQUEUE,
    FileKind.BATCHCONSUMEQUEUE,
    FileKind.CONSUMEQUEUE_EXT,
    FileKind.INDEX,
)
_OF_QUEUES = _WRITTEN[:3]
_QUEUES = 2
"""depth of a queue's directory: topic, number"""
_LOCK = "lock"
_STATE_FILES = ("abort", "checkpoint", _LOCK, "config/topics.json", "config/topics.json.bak")


def open_held(path: str, mode: OpenMode = "auto", *, name: str, sparse: bool = False) -> ByteSource:
    """As `open_source`, of a file below a directory that is held (`Folder.here`): no link is followed."""
    try:
        descriptor = open_regular(path)
    except FileNotFoundError as error:
        raise VanishedError(f"{name}: {error.strerror}") from error
    except OSError as error:
        raise StoreIOError(f"{name}: {error.strerror}") from error
    try:
        return open_source(by_descriptor(descriptor), mode, name=name, sparse=sparse)
    finally:
        os.close(descriptor)


class HeldFile(StoreFile):
    """A file below a directory that is held; no link is followed."""

    __slots__ = ()

    def open(self, mode: OpenMode = "auto") -> ByteSource:
        """See `StoreFile.open`."""
        return open_held(self.location, mode, name=self.display_path, sparse=self.disk_bytes < self.size)


def held_store(store: Store, at: Callable[[str], str]) -> Store:
    """A store whose files are read where `at` leads, whatever takes their places.

    Not `lock`: who opens and closes it in this process loses the lock, and nobody reads more than its name.
    """
    files = [
        one if one.path == _LOCK else HeldFile(**{**_fields(one), "location": at(one.path)})
        for one in store.files
    ]
    return replace(store, files=tuple(files))


def _fields(file: StoreFile) -> dict[str, Any]:
    return {one.name: getattr(file, one.name) for one in fields(file)}


def data_behind(path: str, position: int, *, name: str) -> list[tuple[int, int]]:
    """Windows (position, length) with anything but zeros from a position on. Raises as `open_held`."""
    with open_held(path, "pread", name=name) as source:
        windows = data_windows(source, position, source.size, TAIL_STEP)
        return [(at, len(window)) for at, window in windows if last_in(window) >= 0]


class HeldFiles:
    """Files that stay mapped for reading, the `most` used last. Windows stay good while they are referenced.

    What another process cuts under a mapping shows zeros there, and shortens what is read later: `retried`
    repeats the work then, and whoever misses bytes raises `cut`. at: gives a path into a held directory.
    """

    def __init__(self, at: Callable[[str], str], most: int) -> None:
        self._at, self._most = at, most
        self._sources: OrderedDict[str, ByteSource] = OrderedDict()
        self._guard = threading.Lock()
        self._faults = 0
        """mappings that have shown zeros so far"""

    def window(self, path: str, position: int, length: int) -> Window:
        """Bytes of a file, shorter where it ends.

        Raises `VanishedError`, `StoreIOError`, `UnreadableError`.
        """
        with self._guard:
            return self._source(path).window(position, length)

    def copy(self, path: str, position: int, length: int) -> bytes:
        """The bytes of `window`, without zeros in the place of any. Raises as that."""
        while True:
            with self._guard:
                source = self._source(path)
                mapped, window = source.zero_copy, source.window(position, length)
            found = window.tobytes()
            if not mapped:
                return found
            with self._guard:
                self._faults += source.had_fault()
            if source.zero_copy:
                return found

    def mapped(self, path: str) -> Window | None:
        """All bytes of a file, None where they would have to be copied. Raises as `window`."""
        with self._guard:
            source = self._source(path)
            return source.window(0, source.size) if source.zero_copy else None

    def source(self, path: str) -> ByteSource | None:
        """A file that is mapped, open as long as it is referenced; None as `mapped`. Raises as `window`."""
        with self._guard:
            source = self._source(path)
            return source if source.zero_copy else None

    def size(self, path: str) -> int:
        """Bytes of a file when it was opened. Raises as `window`."""
        with self._guard:
            return self._source(path).size

    def retried(self, work: Callable[[], Made], paths: Iterable[str] | None = None) -> Made:
        """What `work` makes of windows of some files, all by default.

        It is made again where one of them showed zeros meanwhile, and also where `work` raised an error over
        them; from then on that one is copied.
        """
        while True:
            before = self._faults
            try:
                made = work()
            except RmqtoolError:
                if not self._had_fault(paths) and before == self._faults:
                    raise
                continue
            if not self._had_fault(paths) and before == self._faults:
                return made

    def without_fault(self, work: Callable[[], object], path: str) -> bool:
        """Does `work` once; whether no window of a file showed zeros meanwhile. Errors over them are none."""
        before = self._faults
        try:
            work()
        except RmqtoolError:
            if not self._had_fault([path]) and before == self._faults:
                raise
            return False
        return not self._had_fault([path]) and before == self._faults

    def _had_fault(self, paths: Iterable[str] | None) -> bool:
        with self._guard:
            sources, found = self._sources, 0
            for one in sources if paths is None else paths:
                source = sources.get(one)
                if source is not None and source.had_fault():
                    found += 1
            self._faults += found
        return found > 0

    def _source(self, path: str) -> ByteSource:
        """With the guard held."""
        found = self._sources.get(path)
        if found is None:
            found = self._sources[path] = open_held(self._at(path), name=path)
            if isinstance(found, FileSource):
                found.close_when_dropped()
            while len(self._sources) > self._most:
                self._sources.popitem(last=False)
        else:
            self._sources.move_to_end(path)
        return found

    def release(self, path: str) -> None:
        """Lets go of a file that is gone."""
        with self._guard:
            self._sources.pop(path, None)

    def close(self) -> None:
        """Lets go of all files."""
        with self._guard:
            self._sources.clear()


def cut(path: str) -> StoreIOError:
    """A file has not the bytes that were written to it."""
    return StoreIOError(f"{path}: another process cut it")


def refuse_odd_places(root: str, logs: Mapping[str, Folder]) -> None:
    """Raises `UsageError` naming a link, or no directory or file in the place of one, among what is written.

    Two files that begin at the same offset are refused as well: written would be one, and read the other.

    logs: directories of the log, by path; links to them are followed.

    Nothing was changed then. One that comes later is an error of the system. Raises `StoreIOError`.
    """
    for name in (*_STATE_FILES, "config", *_WRITTEN):
        place = f"{root}/{name}"
        if os.path.islink(place):
            raise _refusal(root, place, "a link")
        is_file = name in _STATE_FILES
        if os.path.lexists(place) and not (os.path.isfile if is_file else os.path.isdir)(place):
            raise _refusal(root, place, "not a file" if is_file else "not a directory")
    for kind in _WRITTEN:
        _look_into(root, f"{root}/{kind.value}", files=_QUEUES + 1 if kind in _OF_QUEUES else 1)
    segments: dict[int, str] = {}
    for path, folder in logs.items():
        _look_into(folder.here, folder.here, files=1, above=f"{path}/", bases=segments)


def _look_into(root: str, top: str, files: int, above: str = "", bases: dict[int, str] | None = None) -> None:
    """files: depth below `top` at which files with data lie. above: in front of names.

    bases: of segments, by their offsets those that were seen.
    """
    waiting = [(top, 1)]
    while waiting:
        path, depth = waiting.pop()
        try:
            seen = {} if bases is None else bases
            with os.scandir(path) as entries:
                for entry in entries:
                    if entry.is_symlink():
                        raise _refusal(root, entry.path, "a link", above)
                    if entry.is_dir(follow_symlinks=False):
                        if depth == files and entry.name.isdecimal():
                            raise _refusal(root, entry.path, "not a file", above)
                        waiting.append((entry.path, depth + 1))
                    elif depth < files:
                        is_queue = depth == files - 1
                        if entry.name.isdecimal() if is_queue else may_be_topic(entry.name):
                            raise _refusal(root, entry.path, "not a directory")  # brokers pass over others
                    elif depth == files and (files > 1 or bases is not None):
                        _refuse_twice(root, entry, above, seen)
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as error:
            raise StoreIOError(f"{escape_name(str(error.filename))}: {error.strerror}") from error


def _refuse_twice(root: str, entry: os.DirEntry[str], above: str, seen: dict[int, str]) -> None:
    base, shown = parse_long(entry.name), above + entry.path[len(root) + 1 :]
    if base is None:
        return
    if base in seen:
        places = " and ".join(map(escape_name, sorted((seen[base], shown))))
        raise UsageError(f"{places} begin at the same offset: nothing was changed")
    seen[base] = shown


def _refusal(root: str, path: str, what: str, above: str = "") -> UsageError:
    shown = escape_name(above + path[len(root) + 1 :])
    why = "a message store is written behind none; " if what == "a link" else ""
    return UsageError(f"{shown} is {what}: {why}nothing was changed")
