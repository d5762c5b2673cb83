"""Bytes that a change writes, wherever they come from, never all in memory."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from rmqtool.errors import StoreIOError

if TYPE_CHECKING:
    from collections.abc import Iterator

CHUNK = 4 << 20
"""bytes that are in memory at once"""


class Content(Protocol):
    """Bytes to write: `size` of them, in chunks, the same every time they are asked for."""

    @property
    def size(self) -> int:
        """Bytes in all."""
        ...

    def chunks(self) -> Iterator[bytes | memoryview]:
        """The bytes in order, in pieces of at most `CHUNK`. Raises the reading errors of `rmqtool.errors`."""
        ...

    def read(self, position: int, length: int) -> bytes | memoryview:
        """The bytes `[position, position + length)`, which must lie inside. Raises as `chunks` does."""
        ...


def chunks_of(content: Content) -> Iterator[bytes | memoryview]:
    """All bytes in pieces, for a content that answers `read`; see `Content.chunks`."""
    for start in range(0, content.size, CHUNK):
        yield content.read(start, min(CHUNK, content.size - start))


@dataclass(frozen=True, slots=True)
class Inline:
    """Bytes in memory, for what is small: records, units, headers."""

    data: bytes

    @property
    def size(self) -> int:
        """See `Content.size`."""
        return len(self.data)

    def chunks(self) -> Iterator[bytes | memoryview]:
        """See `Content.chunks`."""
        return chunks_of(self)

    def read(self, position: int, length: int) -> memoryview:
        """See `Content.read`."""
        return memoryview(self.data)[position : position + length]


@dataclass(frozen=True, slots=True)
class FromFile:
    """A range of a file: of a donor, or of what was built beside the store.

    movable: it is a whole file that was made for this plan alone; applying may take it away instead of
    copying it.
    """

    path: str
    position: int
    size: int
    movable: bool = False

    def chunks(self) -> Iterator[bytes | memoryview]:
        """See `Content.chunks`. Raises `StoreIOError` when the file has become shorter."""
        with open(self.path, "rb") as file:
            file.seek(self.position)
            left = self.size
            while left:
                piece = file.read(min(left, CHUNK))
                if not piece:
                    raise StoreIOError(f"{os.fspath(self.path)}: {left} bytes less than when it was planned")
                left -= len(piece)
                yield piece

    def read(self, position: int, length: int) -> bytes:
        """See `Content.read`."""
        with open(self.path, "rb") as file:
            file.seek(self.position + position)
            found = file.read(length)
        if len(found) < length:
            raise StoreIOError(
                f"{os.fspath(self.path)}: {length - len(found)} bytes less than when it was planned"
            )
        return found


@dataclass(frozen=True, slots=True)
class Zeros:
    """Zero bytes; in a new file they are a hole."""

    size: int

    def chunks(self) -> Iterator[bytes | memoryview]:
        """See `Content.chunks`."""
        view = memoryview(bytes(min(self.size, CHUNK)))
        for start in range(0, self.size, CHUNK):
            yield view[: min(CHUNK, self.size - start)]

    def read(self, position: int, length: int) -> bytes:
        """See `Content.read`."""
        del position
        return bytes(length)


@dataclass(frozen=True, slots=True)
class Joined:
    """Several contents, one behind the other."""

    parts: tuple[Content, ...]

    @property
    def size(self) -> int:
        """See `Content.size`."""
        return sum(one.size for one in self.parts)

    def chunks(self) -> Iterator[bytes | memoryview]:
        """See `Content.chunks`."""
        for one in self.parts:
            yield from one.chunks()

    def read(self, position: int, length: int) -> bytes:
        """See `Content.read`."""
        found, start, end = [], 0, position + length
        for one in self.parts:
            low, high = max(position - start, 0), min(end - start, one.size)
            if low < high:
                found.append(bytes(one.read(low, high - low)))
            start += one.size
        return b"".join(found)
