"""What the files of a directory are when neither its name nor its place tell."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from rmqtool.errors import RmqtoolError
from rmqtool.store.access import open_source
from rmqtool.store.kinds import CONFIG_NAMES, FileKind, is_rocksdb_name
from rmqtool.store.names import parse_base_offset, parse_queue_id
from rmqtool.store.sniff import sniff

if TYPE_CHECKING:
    from collections.abc import Iterable

_PROBES = 16


def list_names(location: str) -> dict[str, bool]:
    """Name → is a directory (links followed), for everything in `location`; raises OSError."""
    with os.scandir(location) as entries:
        return {entry.name: _is_dir(entry) for entry in entries}


def _is_dir(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:
        return False


def quiet_names(location: str) -> dict[str, bool]:
    """`list_names`, empty when the directory cannot be listed."""
    try:
        return list_names(location)
    except OSError:
        return {}


_QUEUE_PLACES = {
    FileKind.CONSUMEQUEUE: "consumequeue",
    FileKind.BATCHCONSUMEQUEUE: "batchconsumequeue",
    FileKind.CONSUMEQUEUE_EXT: "consumequeue_ext",
}
_PLACES: dict[FileKind, tuple[str, ...]] = {
    FileKind.COMMITLOG: ("commitlog",),
    FileKind.INDEX: ("index",),
    FileKind.TIMERLOG: ("timerlog",),
    FileKind.DLEDGER_DATA: ("dledger-", "data"),
    FileKind.DLEDGER_INDEX: ("dledger-", "index"),
    FileKind.CONFIG: ("config",),
    FileKind.ROCKSDB: ("kvStore",),
}


def place_of(kind: FileKind, depth: int, location: str) -> tuple[str, ...]:
    """Place that a directory stands for when files of `kind` lie `depth` levels below it."""
    top = _QUEUE_PLACES.get(kind)
    if top is None:
        place = _PLACES.get(kind, ())
        return place[: max(len(place) - depth + 1, 0)] if kind is FileKind.DLEDGER_DATA else place
    # The topic is the name of a directory that holds queue directories; that of a lone queue directory is
    # not known.
    name = os.path.basename(location)
    queue = name if parse_queue_id(name) is not None else ""
    return {1: (top, "", queue), 2: (top, name)}.get(depth, (top,))


def by_content(location: str, names: dict[str, bool]) -> tuple[FileKind, int] | None:
    """Kind of the numbered files in a directory and how deep they lie (1 = directly in it)."""
    if sum(name in CONFIG_NAMES for name in names):
        return FileKind.CONFIG, 1
    if "CURRENT" in names and all(is_rocksdb_name(name) for name in names):
        return FileKind.ROCKSDB, 1
    level = [location]
    for depth in (1, 2, 3):
        kind = _sniff_numbered(level)
        if kind is not None:
            fits = depth == 1 or kind in _QUEUE_PLACES or (kind is FileKind.DLEDGER_DATA and depth == 2)
            return (kind, depth) if fits else None
        level = [
            os.path.join(here, name)
            for here in level[:_PROBES]
            for name, is_dir in sorted(quiet_names(here).items())
            if is_dir
        ]
    return None


def _sniff_numbered(directories: Iterable[str]) -> FileKind | None:
    probes = 0
    for here in directories:
        for name, is_dir in sorted(quiet_names(here).items()):
            if is_dir or parse_base_offset(name) is None or not os.path.isfile(os.path.join(here, name)):
                continue
            probes += 1
            if probes > _PROBES:
                return None
            try:
                with open_source(os.path.join(here, name), "pread") as source:
                    kind = sniff(source)
            except RmqtoolError:
                continue
            if kind in _QUEUE_PLACES or kind in _PLACES:
                return kind
    return None
