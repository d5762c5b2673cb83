"""What this user may not see of a store: it is not missing, and not damaged."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from rmqtool.errors import StoreIOError, UnfitStoreError
from rmqtool.store.coverage import unopened_entries
from rmqtool.store.kinds import TOP_DIRECTORIES, FileKind
from rmqtool.store.names import escape_name, parse_base_offset

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


def refuse_lost_roots(store: Store) -> None:
    """Raises `UnfitStoreError` for a root of the log that is not there, or lacks segments.

    Its disk is not mounted: what belongs there is perhaps whole, and must not be taken for expired.
    """
    for directory in store.directories:
        if directory.error is not None and directory.location in _places(store) - {str(store.root)}:
            raise UnfitStoreError(
                f"{escape_name(directory.location)}: {directory.error}, where segments belong: mount its "
                "disk, or, where nothing belongs there, leave it out of storePathCommitLog and --commitlog"
            )


def refuse_lost_segments(store: Store) -> None:
    """Raises `UnfitStoreError` for an entry in the place of a segment that is never opened, or a lost root.

    Most often it is a link to a disk that is not mounted: what belongs there is perhaps whole, and queues
    must not be cut to what is left.
    """
    refuse_lost_roots(store)
    places = _places(store)
    for file in unopened_entries(store):
        if os.path.dirname(file.location) in places and parse_base_offset(file.name) is not None:
            raise UnfitStoreError(
                f"{file.display_path}: {file.note or 'not a regular file'}, where a segment belongs: "
                "mount the disk it leads to, or move it away"
            )


def _places(store: Store) -> set[str]:
    """Where segments may lie."""
    return {os.path.join(str(store.root), "commitlog"), *map(str, store.roots)}


def _allowed(location: str, mode: int) -> bool:
    """Also for what is gone meanwhile, which others find out."""
    return os.access(location, mode, effective_ids=True) or not os.path.lexists(location)


def _refused(path: str, verb: str, why: str) -> StoreIOError:
    return StoreIOError(f"{escape_name(path)}: may not be {verb} by this user (Permission denied): {why}")
