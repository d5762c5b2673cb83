"""Is there room for what an apply writes? Asked before the first byte."""

from __future__ import annotations

import fcntl
import os
import tempfile
from typing import TYPE_CHECKING

from rmqtool.errors import StoreIOError
from rmqtool.repair.content import FromFile
from rmqtool.repair.disk import FICLONE
from rmqtool.repair.plan import Action
from rmqtool.store.names import escape_name

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rmqtool.repair.plan import Edit


def existing_above(path: str) -> str:
    """The nearest directory that exists: `path` itself, or the first one above it."""
    place = os.path.abspath(path)
    while not os.path.isdir(place):
        place = os.path.dirname(place)
    return place


def free_bytes(directory: str) -> int:
    """Bytes that this process may still write on the file system of a directory, or of where it will be."""
    found = os.statvfs(existing_above(directory))
    return (found.f_bfree if os.geteuid() == 0 else found.f_bavail) * found.f_frsize


def shares_blocks(source: str, directory: str) -> bool:
    """Whether a file in `directory` can share the blocks of `source`: tried with a file of no name."""
    try:
        with open(source, "rb") as original, tempfile.TemporaryFile(dir=directory) as trial:
            fcntl.ioctl(trial.fileno(), FICLONE, original.fileno())
    except OSError:
        return False
    return True


def written_bytes(edits: Iterable[Edit], device: int | None = None) -> int:
    """Bytes that the new files of a plan take; those that can be moved on this device take none."""
    total = 0
    for edit in edits:
        content = edit.content
        if content is None or edit.change.action is not Action.PUT:
            continue
        movable = isinstance(content, FromFile) and content.movable
        if movable and isinstance(content, FromFile) and _device(content.path) == device:
            continue
        total += content.size
    return total


def demand_room(directory: str, needed: int) -> None:
    """Raises `StoreIOError` when the file system of `directory` has less than `needed` bytes."""
    free = free_bytes(directory)
    if free < needed:
        raise StoreIOError(
            f"{escape_name(directory)}: {needed} bytes are needed there and {free} are free; "
            "nothing was changed"
        )


def _device(path: str) -> int | None:
    try:
        return os.stat(path).st_dev
    except OSError:
        return None
