r"""A copy of a store that lacks some of its files, and says so by a list of what the original has.

The list lies in the copy's root. `rmqtool info --what-to-copy` writes it, and so does `find` in the root of
the original: `find -L . -type f -printf '%s %T@ %P\0'`. That is for each file its size in bytes, its
modification time in seconds, its path, and a NUL. A file that is listed and not there, or shorter than
listed, is a part of the store that cannot be read.
"""

from __future__ import annotations

import os
import re
from dataclasses import replace
from typing import TYPE_CHECKING

from rmqtool.errors import UnfitStoreError
from rmqtool.store.files import StoreDirectory, StoreFile
from rmqtool.store.kinds import FileKind, role_of
from rmqtool.store.names import INT_MAX, escape_name
from rmqtool.store.whole import within

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from rmqtool.store.contents import StoreContents
    from rmqtool.store.inventory import Inventory

NAME = "rmqtool-manifest"
LONGEST = 64 << 20
"""bytes of a list that is read"""
MOST = 1 << 19
"""files that a list names: a store of ten thousand queues has a tenth of them"""
_LARGEST = 1 << 40
"""bytes of one file; those of the log are smaller anyway"""
_LONGEST_PATH = 4096
_SECOND = 1_000_000_000
_ITEM = re.compile(rb"(\d{1,13}) (-?\d{1,12})(?:\.(\d{1,9})\d*)? (.+)", re.DOTALL)
NOT_COPIED = "was not copied"


def listing_of(files: Iterable[StoreFile]) -> Iterator[bytes]:
    """The list itself, an item for each file."""
    for one in files:
        if one.regular:
            seconds, rest = divmod(one.mtime_ns, _SECOND)
            yield b"%d %d.%09d %s\0" % (one.size, seconds, rest, os.fsencode(one.path))


def add_what_is_missing(found: Inventory, root: str, scope: tuple[str, ...]) -> None:
    """Adds what the list in `root` names and the copy lacks below `scope`; it is itself no file of the store.

    Raises `UnfitStoreError` for a list that is damaged, and what reading raises.
    """
    place = next((at for at, one in enumerate(found.files) if one.path == NAME and one.regular), None)
    if place is not None:
        manifest = found.files.pop(place)
    elif scope and os.path.isfile(location := os.path.join(root, NAME)):
        manifest = StoreFile(NAME, location, FileKind.UNKNOWN, 0, 0, 0)
    else:
        return
    with manifest.open("pread") as source:
        listed = _parsed(within(source, LONGEST, "a list of files"))
    there = {one.path: at for at, one in enumerate(found.files) if not one.root}
    known = {one.path for one in found.directories}
    inside = "/".join((*scope, ""))
    bytes_left = files_left = 0
    for path, (size, mtime_ns) in listed.items():
        if not path.startswith(inside) or path == NAME:
            continue
        at = there.get(path)
        if at is None:
            found.files.append(_missing(path, size, mtime_ns, root))
            found.directories += _above(path, root, inside, known)
        elif found.files[at].size < size:
            short = f"was copied in part: {found.files[at].size} of {size} bytes"
            found.files[at] = replace(found.files[at], size=size, absent=short)
        else:
            continue
        files_left, bytes_left = files_left + 1, bytes_left + size
    if files_left:
        found.notes.append(
            f"this is a copy that lacks {files_left} of the {len(listed)} files of its store ({bytes_left} "
            f"bytes), as {NAME} says"
        )


def refuse_partial(store: StoreContents) -> None:
    """Nothing is planned, written or served on a copy that lacks files. Raises `UnfitStoreError`."""
    if store.absent:
        raise UnfitStoreError(
            f"{escape_name(str(store.given))} is a copy that lacks {len(store.absent)} of its store's files "
            f"(the first: {store.absent[0].display_path}); this needs all of them"
        )


def _parsed(data: bytes) -> dict[str, tuple[int, int]]:
    """Path → size, modification time in ns."""
    if data.count(b"\0") > MOST:
        raise UnfitStoreError(f"{NAME} names more than {MOST} files")
    *items, rest = data.split(b"\0")
    if rest or not items:
        raise UnfitStoreError(f"{NAME} is {'cut' if rest else 'empty'}: make it again, and copy it whole")
    found = {}
    for item in items:
        parts = _ITEM.fullmatch(item)
        if parts is None or int(parts[1]) > _LARGEST or len(parts[4]) > _LONGEST_PATH:
            raise UnfitStoreError(f"{NAME} is not a list of files with their sizes")
        path = os.fsdecode(parts[4])
        if any(one in {"", ".", ".."} for one in path.split("/")):
            raise UnfitStoreError(f"{NAME} names a path that cannot be in a store")
        found[path] = int(parts[1]), int(parts[2]) * _SECOND + int((parts[3] or b"0").ljust(9, b"0"))
    return found


def _missing(path: str, size: int, mtime_ns: int, root: str) -> StoreFile:
    *above, name = path.split("/")
    role = role_of(tuple(above))
    placed = role.place(name).of_size(size)
    length = min(size, INT_MAX) if placed.kind is FileKind.COMMITLOG else size
    return StoreFile(
        path,
        os.path.join(root, *above, name),
        placed.kind,
        length,
        length,
        mtime_ns,
        placed.base_offset,
        role.topic,
        role.queue_id,
        note=placed.note,
        absent=NOT_COPIED,
    )


def _above(path: str, root: str, inside: str, known: set[str]) -> Iterator[StoreDirectory]:
    """The directories above a path that the copy lacks too."""
    parts = path.split("/")[:-1]
    for count in range(len(parts), 0, -1):
        above = "/".join(parts[:count])
        if above in known or not above.startswith(inside):
            return
        known.add(above)
        role = role_of(tuple(parts[:count]))
        yield StoreDirectory(above, os.path.join(root, above), 0, None, role.topic, role.queue_id)
