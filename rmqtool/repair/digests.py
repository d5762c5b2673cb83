"""SHA-256 of what plans and journals speak of, at a cost that grows with the data and not with the holes.

An index file of 20 MB may hold one item. What is long has a digest of its blocks that are not all zero, each
behind its place, written `data:…`: it tells contents apart, not whether zeros are a hole.
"""

from __future__ import annotations

import hashlib
import os
from typing import TYPE_CHECKING

from rmqtool.errors import StoreIOError
from rmqtool.repair.content import CHUNK, FromFile, Joined, Zeros
from rmqtool.repair.copying import data_ranges
from rmqtool.store.names import escape_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rmqtool.repair.content import Content

OF_DATA = "data:"
_BLOCK = 1 << 16
"""bytes that are left out together where all are zero"""
_LONG = 1 << 20
"""bytes up to which everything is digested as it is"""


def sha256_of(content: Content) -> str:
    """Of bytes that a change writes: the same whenever the same bytes are planned."""
    if content.size > _LONG:
        return _of_data(content.size, _ranges_of(content), content.read)
    return _of_all(content.chunks())


def sha256_of_file(
    location: str, position: int = 0, length: int | None = None, like: str | None = None
) -> str:
    """Of a file, or of a range of it, less what lies behind its end. Raises `StoreIOError`.

    like: the digest that it will be compared with, whose form it gets. Of its own a file has a digest of its
    data where most of it is holes.
    """
    try:
        descriptor = os.open(location, os.O_RDONLY | os.O_CLOEXEC)
        try:
            return _at(descriptor, position, length, like)
        finally:
            os.close(descriptor)
    except OSError as error:
        raise StoreIOError(f"{escape_name(location)}: {error.strerror}") from error


def _at(descriptor: int, position: int, length: int | None, like: str | None) -> str:
    facts = os.fstat(descriptor)
    size = max(min(facts.st_size - position, facts.st_size if length is None else length), 0)
    of_data = size > _LONG and facts.st_blocks * 512 * 2 < facts.st_size
    if like is not None:
        of_data = like.startswith(OF_DATA)

    def read(start: int, count: int) -> bytes:
        return os.pread(descriptor, count, position + start)

    if not of_data:
        return _of_all(read(at, min(CHUNK, size - at)) for at in range(0, size, CHUNK))
    there = data_ranges(descriptor, position, position + size)
    return _of_data(size, ((start - position, end - position) for start, end in there), read)


def _of_all(pieces: Iterator[bytes | memoryview]) -> str:
    digest = hashlib.sha256()
    for piece in pieces:
        digest.update(piece)
    return digest.hexdigest()


def _of_data(
    size: int, ranges: Iterator[tuple[int, int]], read: Callable[[int, int], bytes | memoryview]
) -> str:
    """ranges: all that may be other than zero, in order."""
    digest = hashlib.sha256(size.to_bytes(8, "big"))
    done = 0
    for start, end in ranges:
        first = max(start // _BLOCK * _BLOCK, done)
        done = max(min(-(-end // _BLOCK) * _BLOCK, size), done)
        for at in range(first, done, CHUNK):
            piece = bytes(read(at, min(CHUNK, done - at)))
            for low in range(0, len(piece), _BLOCK):
                data = piece[low : low + _BLOCK].rstrip(b"\0")
                if data:
                    digest.update((at + low).to_bytes(8, "big") + len(data).to_bytes(8, "big") + data)
    return OF_DATA + digest.hexdigest()


def _ranges_of(content: Content) -> Iterator[tuple[int, int]]:
    """Where in a content there may be something other than zeros, in order."""
    if isinstance(content, Joined):
        at = 0
        for one in content.parts:
            yield from ((at + start, at + end) for start, end in _ranges_of(one))
            at += one.size
    elif isinstance(content, FromFile):
        with open(content.path, "rb") as file:
            there = data_ranges(file.fileno(), content.position, content.position + content.size)
            for start, end in there:
                yield start - content.position, end - content.position
    elif not isinstance(content, Zeros):
        yield 0, content.size
