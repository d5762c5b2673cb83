"""Files of a store that is written are read where they are written: below its root, behind no link."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from rmqtool.errors import StoreIOError, UsageError, VanishedError
from rmqtool.store.access import open_source
from rmqtool.store.kinds import FileKind
from rmqtool.store.names import escape_name
from rmqtool.store.writing import by_descriptor, open_regular

if TYPE_CHECKING:
    from rmqtool.store.access import OpenMode
    from rmqtool.store.bytes import ByteSource

_WRITTEN = (
    FileKind.COMMITLOG,
    FileKind.CONSUMEQUEUE,
    FileKind.BATCHCONSUMEQUEUE,
    FileKind.CONSUMEQUEUE_EXT,
    FileKind.INDEX,
)
_OF_QUEUES = _WRITTEN[1:4]
_QUEUES = 2
"""depth of a queue's directory: topic, number"""
_STATE = ("lock", "checkpoint", "config")


def open_held(path: str, mode: OpenMode = "auto", *, name: str) -> ByteSource:
    """As `open_source`, of a file below a directory that is held (`Folder.here`): no link is followed."""
    try:
        descriptor = open_regular(path)
    except FileNotFoundError as error:
        raise VanishedError(f"{name}: {error.strerror}") from error
    except OSError as error:
        raise StoreIOError(f"{name}: {error.strerror}") from error
    try:
        return open_source(by_descriptor(descriptor), mode, name=name)
    finally:
        os.close(descriptor)


def refuse_odd_places(root: str) -> None:
    """Raises `UsageError` naming a link, or no directory in the place of one, among what is written.

    Nothing was changed then. One that comes later is an error of the system. Raises `StoreIOError`.
    """
    for name in _STATE:
        if os.path.islink(f"{root}/{name}"):
            raise _refusal(root, f"{root}/{name}", "a link")
    for kind in _WRITTEN:
        top = f"{root}/{kind.value}"
        if os.path.islink(top):
            raise _refusal(root, top, "a link")
        if os.path.lexists(top) and not os.path.isdir(top):
            raise _refusal(root, top, "no directory")
        _look_into(root, top, queues=_QUEUES if kind in _OF_QUEUES else 0)


def _look_into(root: str, top: str, queues: int) -> None:
    """queues: the depth below `top` at which a directory is a queue's; 0 for none."""
    waiting = [(top, 1)]
    while waiting:
        path, depth = waiting.pop()
        try:
            with os.scandir(path) as entries:
                for entry in entries:
                    if entry.is_symlink():
                        raise _refusal(root, entry.path, "a link")
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append((entry.path, depth + 1))
                    elif depth == queues and entry.name.isdecimal():
                        raise _refusal(root, entry.path, "no directory")
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as error:
            raise StoreIOError(f"{escape_name(str(error.filename))}: {error.strerror}") from error


def _refusal(root: str, path: str, what: str) -> UsageError:
    shown = escape_name(path[len(root) + 1 :])
    why = "a message store is written behind none; " if what == "a link" else ""
    return UsageError(f"{shown} is {what}: {why}nothing was changed")
