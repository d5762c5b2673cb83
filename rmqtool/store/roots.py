"""What a store root is.

A root holds `commitlog`, `consumequeue`, `index`, `config`, `checkpoint`, `abort` or `lock`. Names alone are
not enough: a topic may be called `config`, and other programs keep an `index` or a `lock`, too.
"""

from __future__ import annotations

import os
import stat
from itertools import islice

from rmqtool.store.kinds import TOP_DIRECTORIES, FileKind, role_of
from rmqtool.store.names import parse_base_offset, parse_queue_id
from rmqtool.store.recognise import quiet_names

_QUEUES = ("consumequeue", "batchconsumequeue", "consumequeue_ext")
_SURE = ("commitlog", *_QUEUES)
"""directories that no other program calls so, empty ones included"""
_CHECKPOINT = 4096
_PROBES = 64


def looks_like_root(location: str, names: dict[str, bool] | None = None) -> bool:
    """Whether a directory is a store root. names: what counts of its content, name → is a directory."""
    names = quiet_names(location) if names is None else names
    return any(
        _is_directory_of_root(location, name, names) if is_dir else _is_file_of_root(location, name)
        for name, is_dir in names.items()
    )


def _is_directory_of_root(location: str, name: str, beside: dict[str, bool]) -> bool:
    place = os.path.join(location, name)
    if name.startswith("dledger-"):
        return "data" in quiet_names(place)
    if name not in TOP_DIRECTORIES:
        return False
    inside = quiet_names(place)
    if _is_topic(place, inside):
        return False
    empty = not inside and name in ("index", "config") and not is_dledger(beside)
    return name in _SURE or empty or has_known_file((name,), inside)


def _is_file_of_root(location: str, name: str) -> bool:
    """The three files of a root, by their size, and what lies where a directory of its own should.

    `lock` holds a word, `abort` nothing or a process number; a `checkpoint` that was never written is empty.
    """
    if name in _SURE:
        return True
    most = {"checkpoint": _CHECKPOINT, "abort": 20, "lock": 4}.get(name)
    place = os.path.join(location, name)
    if most is None:
        return False
    try:
        found = os.stat(place)
    except OSError:
        return False
    if not stat.S_ISREG(found.st_mode):
        return False
    size = found.st_size
    return size in (0, most) if name == "checkpoint" else size <= most


def _is_topic(location: str, inside: dict[str, bool]) -> bool:
    """Whether queues lie directly in a directory: a topic that is called as if it belonged to a root."""
    queues = (name for name, is_dir in inside.items() if is_dir and parse_queue_id(name) is not None)
    return any(_has_numbered(os.path.join(location, name)) for name in islice(queues, _PROBES))


def _has_numbered(location: str) -> bool:
    return any(
        not is_dir and parse_base_offset(name) is not None for name, is_dir in quiet_names(location).items()
    )


def is_dledger(names: dict[str, bool]) -> bool:
    """A DLedger directory under another name: its `index` must not pass for that of a store."""
    store = ("commitlog", "consumequeue", "config")
    return bool(names.get("data") and ("currterm" in names or names.get("index"))) and not any(
        names.get(name) for name in store
    )


def has_known_file(parts: tuple[str, ...], names: dict[str, bool]) -> bool:
    """Whether a file with one of the names, in the directory `parts` of a store, is one that a store has."""
    role = role_of(parts)
    if parts == ("compaction",) and "compactionLog" in names:
        return True
    return any(not is_dir and role.place(name).kind is not FileKind.UNKNOWN for name, is_dir in names.items())


def below(location: str, names: dict[str, bool]) -> str | None:
    """A directory in this one that is a store root: what a path that is none probably meant."""
    inner = (name for name, is_dir in sorted(names.items()) if is_dir)
    return next(
        (name for name in islice(inner, _PROBES) if looks_like_root(os.path.join(location, name))), None
    )
