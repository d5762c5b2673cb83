"""What the directory says about a path: kind, size, time, owner. Taken before a change, restored by undo."""

from __future__ import annotations

import errno
import os
import stat
from contextlib import suppress
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

if TYPE_CHECKING:
    from rmqtool.repair.disk import Disk

Kind = Literal["absent", "file", "directory", "link", "other"]
Length = Annotated[int, Field(ge=0, lt=1 << 63)]
"""a position in a file, or a number of bytes"""
_Id = Annotated[int, Field(ge=0, lt=(1 << 32) - 1)]
_SECONDS = 1_000_000_000 << 63
Time = Annotated[int, Field(ge=-_SECONDS, lt=_SECONDS)]
"""nanoseconds: some file systems count seconds in 64 bits"""


class Facts(BaseModel):
    """One path as it was. target: where a link points to. All but `kind` are 0 when it is absent."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: Kind = "absent"
    size: Length = 0
    mtime_ns: Time = 0
    uid: _Id = 0
    gid: _Id = 0
    mode: Annotated[int, Field(ge=0, le=0o7777)] = 0
    target: str | None = None

    @property
    def exists(self) -> bool:
        """Something is there."""
        return self.kind != "absent"


def facts_of(path: str, *, follow: bool = False) -> Facts:
    """The facts of a path; of what a link points to with `follow`. Raises `OSError` but for absence.

    Behind a link that leads to itself is nothing.
    """
    try:
        found = os.stat(path, follow_symlinks=follow)
        return _facts(found, os.readlink(path) if stat.S_ISLNK(found.st_mode) else None)
    except (FileNotFoundError, NotADirectoryError):
        return Facts()
    except OSError as error:
        if error.errno != errno.ELOOP:
            raise
        return Facts()


def facts_at(descriptor: int) -> Facts:
    """The facts of what was opened. Raises `OSError`."""
    return _facts(os.fstat(descriptor), None)


def _facts(found: os.stat_result, target: str | None) -> Facts:
    kind = _kind(found.st_mode)
    return Facts(
        kind=kind,
        size=found.st_size if kind == "file" else 0,
        mtime_ns=found.st_mtime_ns,
        uid=found.st_uid,
        gid=found.st_gid,
        mode=stat.S_IMODE(found.st_mode),
        target=target,
    )


def _kind(mode: int) -> Kind:
    if stat.S_ISREG(mode):
        return "file"
    if stat.S_ISDIR(mode):
        return "directory"
    return "link" if stat.S_ISLNK(mode) else "other"


def give_owner(disk: Disk, descriptor: int, facts: Facts, path: str) -> None:
    """Owner, group and mode of what was opened; who is not root keeps what it may, as `cp -p` does.

    No file becomes set-uid.
    """
    with suppress(PermissionError):
        disk.set_owner(descriptor, facts.uid, facts.gid, path)
    if facts.kind != "link":
        disk.set_mode(descriptor, facts.mode & (0o3777 if facts.kind == "directory" else 0o777), path)
