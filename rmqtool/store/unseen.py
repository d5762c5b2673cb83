"""What this user may not see of a store: it is not missing, and not damaged."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from rmqtool.errors import StoreIOError
from rmqtool.store.kinds import TOP_DIRECTORIES, FileKind
from rmqtool.store.names import escape_name

if TYPE_CHECKING:
    from collections.abc import Collection

    from rmqtool.store.layout import Store

_KNOWN = frozenset(FileKind) - {FileKind.UNKNOWN}
TABLES = frozenset({FileKind.CONFIG, FileKind.CONFIG_BAK, FileKind.CHECKPOINT})


def refuse_unseen(store: Store, why: str, kinds: Collection[FileKind] = _KNOWN) -> None:
    """Raises `StoreIOError` where a directory may not be listed, or a file of `kinds` may not be read.

    why: the end of the message. A medium that fails is another matter: what it does not give is damaged.
    """
    for directory in store.directories:
        own = not directory.path or directory.path.split("/")[0] in TOP_DIRECTORIES
        if directory.error is not None and own and not _allowed(directory.location, os.R_OK | os.X_OK):
            raise _refused(directory.path or ".", "listed", why)
    for file in store.of_kind(*kinds):
        if file.regular and not _allowed(file.location, os.R_OK):
            raise _refused(file.path, "read", why)


def _allowed(location: str, mode: int) -> bool:
    """Also for what is gone meanwhile, which others find out."""
    return os.access(location, mode, effective_ids=True) or not os.path.lexists(location)


def _refused(path: str, verb: str, why: str) -> StoreIOError:
    return StoreIOError(f"{escape_name(path)}: may not be {verb} by this user (Permission denied): {why}")
