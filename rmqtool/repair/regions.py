"""Which bytes of a file a plan changes, and keeping them as they were."""

from __future__ import annotations

import hashlib
import os
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rmqtool.errors import StoreIOError
from rmqtool.repair.content import CHUNK
from rmqtool.repair.copying import copy_range, data_ranges
from rmqtool.repair.plan import Action
from rmqtool.store.names import INT_MAX, escape_name
from rmqtool.store.writing import open_regular

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from rmqtool.repair.disk import Disk
    from rmqtool.repair.plan import Change


@dataclass(frozen=True, slots=True)
class Region:
    """Bytes from `position` on: `before` of them in the file as it was, `after` in the changed file.

    One of the two is 0 where the file was cut or grew; else they are equal.
    """

    position: int
    before: int
    after: int

    @property
    def end(self) -> int:
        """End of the bytes as they were."""
        return self.position + self.before


def regions_of(changes: Iterable[Change], size: int) -> tuple[Region, ...]:
    """Regions of one file that had `size` bytes, by position; neighbours and repetitions are one."""
    final, ranges = size, []
    for change in changes:
        if change.action is Action.RESIZE and change.size is not None:
            final = change.size
        elif change.action is Action.WRITE:
            start = change.position or 0
            ranges.append((start, start + (change.length or 0)))
    border = min(size, final)
    merged: list[list[int]] = []
    for start, end in sorted(ranges):
        stop = min(end, border)
        if start >= stop:
            continue
        if merged and start <= merged[-1][1]:
            merged[-1][1] = max(merged[-1][1], stop)
        else:
            merged.append([start, stop])
    found = [Region(start, end - start, end - start) for start, end in merged]
    if final != size:
        found.append(Region(border, size - border, final - border))
    return tuple(found)


def edits_by_file(changes: Iterable[Change]) -> dict[str, list[Change]]:
    """Changes that stay inside files (WRITE, RESIZE), by path."""
    found: dict[str, list[Change]] = defaultdict(list)
    for change in changes:
        if change.action in {Action.WRITE, Action.RESIZE}:
            found[change.path].append(change)
    return dict(found)


def set_aside(changes: Iterable[Change]) -> list[tuple[str, Region]]:
    """Paths and regions of which only a copy is made."""
    return [
        (one.path, Region(one.position or 0, one.length or 0, one.length or 0))
        for one in changes
        if one.action is Action.SET_ASIDE
    ]


def save_region(disk: Disk, location: str, region: Region, target: str) -> str:
    """Writes the bytes that a file has in a region into the new file `target`, synced; their sha256."""
    source = open_regular(location)
    try:
        descriptor = disk.create(target)
        try:
            disk.truncate(descriptor, region.before, target)
            whole = (region.position, 0, region.before)
            copy_range(disk, source, descriptor, whole, target, fresh=True)
            disk.sync(descriptor, target)
            return sha256_at(descriptor, 0, region.before)
        finally:
            os.close(descriptor)
    finally:
        os.close(source)


def sha256_at(
    descriptor: int, position: int, length: int, advance: Callable[[int], object] | None = None
) -> str:
    """Digest of a range of a file; of less where the file ends before.

    A range that no file of a broker has may be a hole of a TiB: see `_sha256_of_data`.
    """
    digest = hashlib.sha256()
    if length > INT_MAX:
        return _sha256_of_data(descriptor, position, length)
    while length:
        piece = os.pread(descriptor, min(length, CHUNK), position)
        if not piece:
            break
        digest.update(piece)
        position, length = position + len(piece), length - len(piece)
        if advance is not None:
            advance(len(piece))
    return digest.hexdigest()


def _sha256_of_data(descriptor: int, position: int, length: int) -> str:
    """Digest of the blocks of a range that are not all zero, each behind its place; holes are not read."""
    digest = hashlib.sha256()
    done = position
    for start, end in data_ranges(descriptor, position, position + length):
        first = max(position + (start - position) // CHUNK * CHUNK, done)
        for at in range(first, end, CHUNK):
            done = at + CHUNK
            piece = os.pread(descriptor, min(CHUNK, position + length - at), at)
            if piece.strip(b"\0"):
                digest.update((at - position).to_bytes(8, "big") + piece.rstrip(b"\0"))
    return f"data:{digest.hexdigest()}"


def sha256_of_file(location: str, position: int = 0, length: int | None = None) -> str:
    """Digest of a file, or of a range of it. Raises `StoreIOError` when it cannot be read."""
    try:
        descriptor = os.open(location, os.O_RDONLY | os.O_CLOEXEC)
        try:
            size = os.fstat(descriptor).st_size if length is None else length
            return sha256_at(descriptor, position, size)
        finally:
            os.close(descriptor)
    except OSError as error:
        raise StoreIOError(f"{escape_name(location)}: {error.strerror}") from error


def make_parents(disk: Disk, path: str, top: str = os.sep, mode: int = 0o700) -> None:
    """Makes the directories between `top`, which exists, and `path`."""
    parent = os.path.dirname(path)
    if parent != top and not os.path.isdir(parent):
        make_parents(disk, parent, top, mode)
        disk.make_directory(parent, mode)
