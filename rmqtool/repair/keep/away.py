"""Whole directories out of the store: every file in them first, the deepest directories before the others."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from rmqtool.repair.plan import Action, Change, Edit
from rmqtool.store.names import escape_name

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rmqtool.store.layout import Store


def directory_away(store: Store, path: str, why: str, message: str) -> Iterator[Edit]:
    """Removals of a directory and all that is in it; none where a link leads out of it.

    path: as listed. What is behind a link belongs to somebody else, and so does what was not listed.
    """
    inside = path + "/"
    below = [one for one in store.directories if one.path.startswith(inside)]
    own = [one for one in store.directories if one.path == path] + below
    if any(os.path.islink(one.location) or (one.foreign and not _is_empty(one.location)) for one in own):
        return
    for file in store.files:
        if file.path.startswith(inside):
            yield Edit(Change(action=Action.REMOVE, path=file.display_path, why=why, message=message))
    for one in sorted(own, key=lambda one: one.path.count("/"), reverse=True):
        yield Edit(
            Change(action=Action.REMOVE_DIRECTORY, path=escape_name(one.path), why=why, message=message)
        )


def _is_empty(location: str) -> bool:
    try:
        with os.scandir(location) as entries:
            return next(entries, None) is None
    except OSError:
        return False
