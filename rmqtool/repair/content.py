"""Bytes that a change writes, wherever they come from, never all in memory."""

from __future__ import annotations

import hashlib
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
        view = memoryview(self.data)
        for start in range(0, len(view), CHUNK):
            yield view[start : start + CHUNK]


@dataclass(frozen=True, slots=True)
class FromFile:
    """A range of a file: of a donor, or of what was built beside the store."""

    path: str
    position: int
    size: int

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


def sha256_of(content: Content) -> str:
    """Lower-case hex digest of all bytes."""
    digest = hashlib.sha256()
    for piece in content.chunks():
        digest.update(piece)
    return digest.hexdigest()
