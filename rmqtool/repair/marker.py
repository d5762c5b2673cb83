"""The file that keeps a broker from starting on a store that is being changed.

Both release lines refuse a `commitlog` with a file that has no segment's length and no number for a name, and
change nothing (`MappedFileQueue#doLoad`); they do so before the store's lock is asked for.
"""

from __future__ import annotations

import errno
import json
import os
import stat
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rmqtool.errors import PlanRefusedError, StoreIOError
from rmqtool.store.access import describe_mode
from rmqtool.store.names import escape_name
from rmqtool.store.writing import parent_of

if TYPE_CHECKING:
    from rmqtool.repair.disk import Disk

NAME = "rmqtool-apply-in-progress"
SCHEMA = "rmqtool.marker/1"
_PART = ".part"


@dataclass(frozen=True, slots=True)
class Marker:
    """A marker as it was found.

    journal: directory of the journal, None in an unfinished copy; journal_id: which journal it is. torn: it
    was stopped while it was written, so nothing else was changed yet.
    """

    path: str
    journal: str | None
    journal_id: str | None
    torn: bool = False

    def belongs_to(self, journal_id: str) -> bool:
        """Whether it is the marker of this journal, or may be."""
        return self.torn or self.journal_id == journal_id


def find_marker(root: str | os.PathLike[str]) -> Marker | None:
    """The marker in `commitlog/` of the store at `root`.

    Raises `PlanRefusedError` for what has its name and is none, `StoreIOError` when it cannot be read.
    """
    path = os.path.join(root, "commitlog", NAME)
    for place in (path, path + _PART):
        with suppress(OSError):
            if not stat.S_ISREG(mode := os.lstat(place).st_mode):
                what = "a directory" if stat.S_ISDIR(mode) else describe_mode(mode)
                raise PlanRefusedError(f"{escape_name(place)}: is {what}, no file of rmqtool: move it away")
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(descriptor, "rb") as file:
            found = json.loads(file.read(65536))
        return Marker(path, _text(found["journal"]), _text(found["journal_id"]))
    except (FileNotFoundError, NotADirectoryError):
        return Marker(path, None, None, torn=True) if os.path.lexists(path + _PART) else None
    except OSError as error:
        if error.errno == errno.ELOOP and not os.path.lexists(path):  # `commitlog` is a link to itself
            return None
        raise StoreIOError(f"{escape_name(path)}: {error.strerror}") from error
    except (ValueError, KeyError, TypeError, RecursionError):
        raise PlanRefusedError(f"{escape_name(path)}: is not what rmqtool wrote there") from None


def _text(found: object) -> str | None:
    if found is None or isinstance(found, str):
        return found
    raise TypeError


def refuse_without_place(root: str) -> None:
    """Raises `PlanRefusedError` when the marker cannot lie where brokers look: `commitlog` is a file."""
    if os.path.lexists(os.path.join(root, "commitlog")) and not os.path.isdir(
        os.path.join(root, "commitlog")
    ):
        raise PlanRefusedError(
            f"{escape_name(root)}/commitlog is not a directory: move it away, nothing can be kept safe there"
        )


def place_marker(disk: Disk, directory: str, journal: str | None, journal_id: str | None) -> str:
    """Writes the marker into a `commitlog` directory, synced, and returns its path."""
    path = os.path.join(directory, NAME)
    what = "rmqtool is changing this store, or was stopped while it did. Do not start a broker on it."
    next_step = f"rmqtool undo {journal} --apply" if journal else "remove this unfinished copy"
    reported = {
        "schema": SCHEMA,
        "what": what,
        "next": next_step,
        "journal": journal,
        "journal_id": journal_id,
    }
    data = json.dumps(reported, indent=1).encode() + b"\n"
    with os.scandir(directory) as entries:  # DirEntry.is_file raises for a link to itself
        lengths = {entry.stat().st_size for entry in entries if os.path.isfile(entry)}
    while len(data) in lengths:  # a file of a segment's length would be taken for one
        data += b"\n"
    was = os.stat(directory)
    if os.path.lexists(path + _PART):
        disk.unlink(path + _PART)
    try:
        descriptor = disk.create(path + _PART, 0o644)
        try:
            os.fchmod(descriptor, 0o644)  # who may enter the directory is to see why no broker starts
            disk.write(descriptor, data, 0, path)
            disk.sync(descriptor, path)
        finally:
            os.close(descriptor)
        disk.rename(path + _PART, path)
    except BaseException:
        with suppress(OSError), parent_of(path + _PART) as (folder, name):
            os.unlink(name, dir_fd=folder)
            os.utime(os.curdir, ns=(was.st_atime_ns, was.st_mtime_ns), dir_fd=folder)
        raise
    disk.sync_directory(directory)
    return path


def remove_marker(disk: Disk, path: str) -> None:
    """The store may be started again."""
    for name in (path + _PART, path):
        if os.path.lexists(name):
            disk.unlink(name)
            disk.sync_directory(os.path.dirname(name))
