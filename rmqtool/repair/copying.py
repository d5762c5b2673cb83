"""Copies of files and ranges: holes stay holes, blocks are shared where the file system can."""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING

from rmqtool.errors import StoreIOError
from rmqtool.repair.content import CHUNK
from rmqtool.repair.facts import facts_at, give_owner
from rmqtool.store.names import escape_name
from rmqtool.store.writing import open_regular, shown_path

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rmqtool.repair.disk import Disk

_NOT_IN_KERNEL = frozenset({errno.EXDEV, errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP, errno.ETXTBSY})
TEMPORARY = ".rmqtool-part-"
_ZEROS = bytes(1 << 20)


def data_ranges(descriptor: int, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Parts `[from, to)` of a range that are not known to be holes, in order."""
    while start < end:
        try:
            first = os.lseek(descriptor, start, os.SEEK_DATA)
        except OSError as error:
            if error.errno == errno.ENXIO:
                return
            yield start, end  # the file system knows no holes
            return
        if first >= end:
            return
        last = min(os.lseek(descriptor, first, os.SEEK_HOLE), end)
        yield first, last
        start = last


def copy_range(
    disk: Disk,
    source: int,
    target: int,
    where: tuple[int, int, int],
    path: str,
    *,
    fresh: bool,
    advance: Callable[[int], object] | None = None,
) -> None:
    """Copies `where` = (position in source, position in target, length).

    fresh: the target is a hole there, so that holes of the source need not be written. Raises `OSError`, and
    `StoreIOError` when the source has become shorter.
    """
    from_position, to_position, length = where
    shift = to_position - from_position
    done = from_position
    for start, end in data_ranges(source, from_position, from_position + length):
        if not fresh:
            _write_zeros(disk, target, done + shift, start + shift, path)
        _copy_data(disk, source, target, (start, end, shift), path, advance)
        done = end
    if not fresh:
        _write_zeros(disk, target, done + shift, to_position + length, path)


def _copy_data(
    disk: Disk,
    source: int,
    target: int,
    where: tuple[int, int, int],
    path: str,
    advance: Callable[[int], object] | None,
) -> None:
    at, end, shift = where
    in_kernel = True
    while at < end:
        count = min(end - at, CHUNK * 4)
        if in_kernel:
            try:
                done = disk.copy_range(source, target, count, at, at + shift, path)
            except OSError as error:
                if error.errno not in _NOT_IN_KERNEL:
                    raise
                in_kernel = False
                continue
        else:
            piece = os.pread(source, min(count, CHUNK), at)
            disk.write(target, piece, at + shift, path)
            done = len(piece)
        if done == 0:
            shown = escape_name(shown_path(path))
            raise StoreIOError(f"{shown}: the source became shorter while it was copied")
        at += done
        if advance is not None:
            advance(done)


def _write_zeros(disk: Disk, target: int, start: int, end: int, path: str) -> None:
    while start < end:
        count = min(end - start, len(_ZEROS))
        disk.write(target, memoryview(_ZEROS)[:count], start, path)
        start += count


def temporary_of(location: str) -> str:
    """Where the content of a new file grows before it gets its name."""
    return os.path.join(os.path.dirname(location), TEMPORARY + os.path.basename(location))


def copy_file(disk: Disk, source: str, target: str, advance: Callable[[int], object] | None = None) -> None:
    """A new file `target` with content, owner, mode and modification time of `source`, synced.

    No link leads to either. Raises `OSError`, and `StoreIOError` when the source became shorter.
    """
    from_descriptor = open_regular(source)
    try:
        descriptor = disk.create(target)
        try:
            facts = facts_at(from_descriptor)
            if not disk.clone(from_descriptor, descriptor, target):
                disk.truncate(descriptor, facts.size, target)
                whole = (0, 0, facts.size)
                copy_range(disk, from_descriptor, descriptor, whole, target, fresh=True, advance=advance)
            elif advance is not None:
                advance(facts.size)
            give_owner(disk, descriptor, facts, target)
            disk.set_mtime(target, facts.mtime_ns, descriptor)
            disk.sync(descriptor, target)
        finally:
            os.close(descriptor)
    finally:
        os.close(from_descriptor)


def move_or_copy(disk: Disk, source: str, target: str, *, keep_source: bool) -> None:
    """`target` gets the file `source`: as a further name or by renaming where that is possible.

    keep_source: `source` stays. A copy has the owner, mode and time of its source.
    """
    try:
        if keep_source:
            disk.link(source, target)
        else:
            disk.rename(source, target)
    except OSError as error:
        if error.errno not in {errno.EXDEV, errno.EPERM, errno.EMLINK, errno.EOPNOTSUPP}:
            raise
    else:
        return
    temporary = temporary_of(target)
    if os.path.lexists(temporary):
        disk.unlink(temporary)
    copy_file(disk, source, temporary)
    disk.rename(temporary, target)
    if not keep_source:
        disk.sync_directory(os.path.dirname(target))
        disk.unlink(source)
