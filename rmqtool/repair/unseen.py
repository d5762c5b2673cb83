"""What this user may not see of a store: nothing is planned over it as if it were missing or damaged."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from rmqtool.errors import StoreIOError
from rmqtool.store.kinds import TOP_DIRECTORIES, FileKind
from rmqtool.store.names import escape_name

if TYPE_CHECKING:
    from rmqtool.store.layout import Store


def refuse_unseen(store: Store) -> None:
    """Raises `StoreIOError` for a directory that may not be listed, or a file that may not be read.

    A medium that fails is another matter: what it does not give is damaged.
    """
    for directory in store.directories:
        own = not directory.path or directory.path.split("/")[0] in TOP_DIRECTORIES
        if directory.error is not None and own and not _allowed(directory.location, os.R_OK | os.X_OK):
            raise _refused(directory.path or ".", "listed")
    for file in store.files:
        if file.regular and file.kind is not FileKind.UNKNOWN and not _allowed(file.location, os.R_OK):
            raise _refused(file.shown, "read")


def _allowed(location: str, mode: int) -> bool:
    """Also for what is gone meanwhile, which others find out."""
    return os.access(location, mode, effective_ids=True) or not os.path.lexists(location)


def _refused(path: str, verb: str) -> StoreIOError:
    return StoreIOError(
        f"{escape_name(path)}: may not be {verb} by this user (Permission denied): no plan is made without it"
    )
