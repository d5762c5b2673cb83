"""What STORE means: a root, a commit log, a DLedger directory, a folder inside a store or one file.

The path speaks first (a folder named `consumequeue/T/0` below something that looks like a store), then the
content (numbered files that start like records or units, whatever the directory is called).
"""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from rmqtool.errors import NotAStoreError, UsageError
from rmqtool.store.access import describe_mode, open_source, refused, stat_named
from rmqtool.store.kinds import TOP_DIRECTORIES, FileKind, is_rocksdb_name, role_of
from rmqtool.store.names import escape_name, parse_base_offset
from rmqtool.store.recognise import by_content, list_names, place_of, quiet_names
from rmqtool.store.roots import below, has_known_file, is_dledger, looks_like_root
from rmqtool.store.sniff import by_name, sniff

if TYPE_CHECKING:
    from collections.abc import Iterator

_DEPTH = 6


class StoreForm(StrEnum):
    """What STORE turned out to be."""

    STORE = "store"
    COMMITLOG = "commitlog"
    DLEDGER = "dledger"
    FOLDER = "folder"
    FILE = "file"


@dataclass(frozen=True, slots=True)
class Target:
    """Meaning of STORE.

    root: directory that printed paths are relative to. scope: components from there to STORE. parts: the
    place in a store that STORE stands for, equal to `scope` unless it was copied away. kind: for a single
    file its kind, and for a numbered folder the kind of its files; `how` says what showed it.
    """

    form: StoreForm
    root: str
    scope: tuple[str, ...]
    parts: tuple[str, ...]
    how: str
    kind: FileKind | None = None


def resolve(path: str, forced: FileKind | None = None) -> Target:
    """Finds out what `path` is. `forced` is the kind given by `--as`.

    Raises `UsageError` (no such path, no regular file), `NotAStoreError`, `StoreIOError` (no permission).
    """
    location = os.path.abspath(path)
    shown = escape_name(path)
    mode = stat_named(location, shown).st_mode
    if stat.S_ISDIR(mode):
        return _resolve_directory(location, shown, forced)
    if not stat.S_ISREG(mode):
        raise UsageError(f"{shown} is {describe_mode(mode)}, neither a directory nor a regular file")
    return _resolve_file(location, shown, forced)


def _has_segments(location: str) -> bool:
    """A `commitlog` directory with numbered *files*: a topic of that name would hold directories."""
    return any(not is_dir and parse_base_offset(name) is not None
               for name, is_dir in quiet_names(os.path.join(location, "commitlog")).items())  # fmt: skip


def _splits(location: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    """(store root, place) for every way to read a path's end as a place in a store, longest first."""
    components = [part for part in location.split("/") if part]
    for count in range(min(_DEPTH, len(components)), 0, -1):
        tail = tuple(components[-count:])
        if tail[0] in TOP_DIRECTORIES or tail[0].startswith("dledger-"):
            yield "/" + "/".join(components[:-count]), tail


def _role_matters(parts: tuple[str, ...]) -> bool:
    role = role_of(parts)
    return bool(
        role.numbered or role.named or role.config or role.rocksdb or role.everything or role.topic
    ) or (
        parts in (("consumequeue_ext",), ("batchconsumequeue",), ("transaction",)) or parts[0] == "compaction"
    )


def _inside(location: str, *, directory: bool) -> tuple[tuple[str, tuple[str, ...]] | None, bool]:
    """Best reading of a path as a place in a store, and whether the root there looks like a store."""
    weak = None
    for root, parts in _splits(location):
        container = parts if directory else parts[:-1]
        if not container or not _role_matters(container):
            continue
        others = {name: kind for name, kind in quiet_names(root).items() if name != parts[0]}
        if looks_like_root(root, others) or _has_segments(root):
            return (root, parts), True
        weak = weak or (root, parts)
    return weak, False


def _form(parts: tuple[str, ...]) -> StoreForm:
    if parts[0].startswith("dledger-"):
        return StoreForm.DLEDGER
    return StoreForm.COMMITLOG if parts == ("commitlog",) else StoreForm.FOLDER


def _resolve_directory(location: str, shown: str, forced: FileKind | None) -> Target:
    try:
        names = list_names(location)
    except OSError as error:
        raise refused(error, shown) from error
    if forced is not None:
        return Target(StoreForm.FOLDER, location, (), place_of(forced, 1, location), "given by --as", forced)
    inside, certain = _inside(location, directory=True)
    if inside is not None and certain and not _has_segments(location):
        return Target(_form(inside[1]), inside[0], inside[1], inside[1], "its place in a store")
    if is_dledger(names):
        return Target(StoreForm.DLEDGER, location, (), ("dledger-",), "the names in it")
    if looks_like_root(location, names):
        return Target(StoreForm.STORE, location, (), (), "the names in it")
    if not names:
        raise NotAStoreError(f"{shown} is an empty directory, not a store")
    if inside is not None and _tree_fits(location, inside[1]):
        return Target(_form(inside[1]), inside[0], inside[1], inside[1], "its name")
    found = by_content(location, names)
    if found is None:
        inner = below(location, names)
        raise NotAStoreError(
            f"{shown} is not a RocketMQ store: no commitlog, consumequeue, index or config in it"
            + (f"; the store root is probably {os.path.join(shown, escape_name(inner))}" if inner else "")
        )
    kind, depth = found
    parts = place_of(kind, depth, location)
    form = StoreForm.DLEDGER if kind is FileKind.DLEDGER_DATA else _form(parts)
    return Target(form, location, (), parts, "the content of its files", kind)


def _tree_fits(location: str, parts: tuple[str, ...]) -> bool:
    """Whether at least one file below a directory has a name that fits the place which its path claims."""
    pending = [(location, parts)]
    for _ in range(200):
        if not pending:
            return False
        here, place = pending.pop()
        names = quiet_names(here)
        if has_known_file(place, names):
            return True
        pending.extend(
            (os.path.join(here, name), (*place, name))
            for name, is_dir in names.items()
            if is_dir and _role_matters((*place, name))
        )
    return False


def _resolve_file(location: str, shown: str, forced: FileKind | None) -> Target:
    directory, name = os.path.split(location)
    inside, certain = _inside(location, directory=False)
    if inside is None and looks_like_root(directory):
        inside, certain = (directory, (name,)), True
    root, parts = inside if inside is not None else (directory, (name,))
    if forced is None and inside is not None:
        kind = role_of(parts[:-1]).place(name).kind
        if kind is not FileKind.UNKNOWN:
            return Target(StoreForm.FILE, root, parts, parts, "its place in a store", kind)
    if not certain:
        root, parts = directory, (name,)
    if forced is not None:
        return Target(StoreForm.FILE, root, parts, parts, "given by --as", forced)
    named = by_name(name)
    with open_source(location, "pread", name=shown) as source:
        seen = sniff(source)
        size = source.size
    if named is not None and not (named is FileKind.CHECKPOINT and seen is FileKind.DLEDGER_TEXT):
        return Target(StoreForm.FILE, root, parts, parts, "its name", named)
    if seen is not None:
        return Target(StoreForm.FILE, root, parts, parts, "its content", seen)
    if is_rocksdb_name(name) and "CURRENT" in quiet_names(directory):
        return Target(StoreForm.FILE, root, parts, parts, "its name", FileKind.ROCKSDB)
    if size == 0:
        raise NotAStoreError(
            f"{shown} is empty, and neither its name nor its place says what it was; say it with --as KIND"
        )
    raise NotAStoreError(f"{shown} is not a file of a RocketMQ store; if it is one, say which with --as KIND")
