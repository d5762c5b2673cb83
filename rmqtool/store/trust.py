"""Who else could change what a path leads to: asked before anything is loaded or obeyed that lies there."""

from __future__ import annotations

import os
import stat
import tempfile
from typing import TYPE_CHECKING

from rmqtool.errors import UsageError
from rmqtool.store.names import escape_name

if TYPE_CHECKING:
    from collections.abc import Iterator

LINKS = 40
"""links that are followed, as many as Linux follows"""
_OTHERS = stat.S_IWGRP | stat.S_IWOTH


def foreign_component(path: str | os.PathLike[str]) -> str | None:
    """The first component on the way to `path` that another user owns or may change, None without one.

    Links are looked at and followed. Root counts as no other user. A directory with the sticky bit on the way
    is none, since in it only owners rename and remove; at the end of the way it is one. What is not there
    ends the way. Raises `OSError` where the way cannot be looked at.
    """
    for here, found, last in _way(path):
        if found is None or changed_by_others(found, last=last):
            return here
    return None


def refuse_foreign_temporary(given: str | None = None) -> None:
    """Raises `UsageError` for root where another user could rename its temporary files, in DIR if `given`."""
    place, what = (tempfile.gettempdir(), "TMPDIR") if given is None else (given, "DIR")
    foreign = foreign_component(os.path.join(place, "any")) if os.geteuid() == 0 else None
    if foreign is not None:
        raise UsageError(
            f"{what} {escape_name(place)}: another user may change {escape_name(foreign)}; as root name a "
            "directory that only root may change, or a sticky one"
        )


def _way(path: str | os.PathLike[str]) -> Iterator[tuple[str, os.stat_result | None, bool]]:
    """Every component on the way to a path, its facts (None: too many links), and whether it is the last."""
    waiting = os.path.abspath(path).split(os.sep)[::-1]
    here, links = os.sep, 0
    while waiting:
        name = waiting.pop()
        if name in {"", os.curdir}:
            continue
        here = os.path.normpath(os.path.join(here, name))
        try:
            found = os.lstat(here)
        except FileNotFoundError:
            return
        yield here, found, not any(waiting)
        if stat.S_ISLNK(found.st_mode):
            links += 1
            if links > LINKS:
                yield here, None, True
                return
            target = os.readlink(here)
            waiting += target.split(os.sep)[::-1]
            here = os.sep if os.path.isabs(target) else os.path.dirname(here)


def changed_by_others(found: os.stat_result, *, last: bool) -> bool:
    """Whether another user owns what was found, or may change it; `last`: not only a directory on a way."""
    if found.st_uid not in {0, os.geteuid()}:
        return True
    return written_by_others(found) and (last or not found.st_mode & stat.S_ISVTX)


def written_by_others(found: os.stat_result) -> bool:
    """Whether its mode lets others than its owner write; that of a link means nothing."""
    open_to = found.st_mode & _OTHERS
    if stat.S_ISLNK(found.st_mode) or (open_to == stat.S_IWGRP and _is_private_group(found.st_gid)):
        return False
    return bool(open_to)


def _is_private_group(group: int) -> bool:
    """Whether a group has only this user, by its name and members, as many systems make one for each user."""
    import grp
    import pwd

    try:
        known, user = grp.getgrgid(group), pwd.getpwuid(os.geteuid())
    except KeyError:
        return False
    return user.pw_gid == group and known.gr_name == user.pw_name and not set(known.gr_mem) - {user.pw_name}
