"""Who else could change what a path leads to: asked before anything is loaded or obeyed that lies there."""

from __future__ import annotations

import os
import stat

_LINKS = 40
"""links that are followed, as many as Linux follows"""
_OTHERS = stat.S_IWGRP | stat.S_IWOTH


def foreign_component(path: str | os.PathLike[str]) -> str | None:
    """The first component on the way to `path` that another user owns or may change, None without one.

    Links are looked at and followed. Root counts as no other user. A directory with the sticky bit on the way
    is none, since in it only owners rename and remove; at the end of the way it is one. What is not there
    ends the way. Raises `OSError` where the way cannot be looked at.
    """
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
            return None
        if stat.S_ISLNK(found.st_mode):
            links += 1
            if links > _LINKS or found.st_uid not in {0, os.geteuid()}:
                return here
            target = os.readlink(here)
            waiting += target.split(os.sep)[::-1]
            here = os.sep if os.path.isabs(target) else os.path.dirname(here)
        elif changed_by_others(found, last=not any(waiting)):
            return here
    return None


def changed_by_others(found: os.stat_result, *, last: bool) -> bool:
    """Whether another user owns what was found, or may change it; `last`: not only a directory on a way."""
    if found.st_uid not in {0, os.geteuid()}:
        return True
    open_to = found.st_mode & _OTHERS
    if open_to == stat.S_IWGRP and _is_private_group(found.st_gid):
        return False
    return bool(open_to) and (last or not found.st_mode & stat.S_ISVTX)


def _is_private_group(group: int) -> bool:
    """Whether a group has only this user, by its name and members, as many systems make one for each user."""
    import grp
    import pwd

    try:
        known, user = grp.getgrgid(group), pwd.getpwuid(os.geteuid())
    except KeyError:
        return False
    return user.pw_gid == group and known.gr_name == user.pw_name and not set(known.gr_mem) - {user.pw_name}
