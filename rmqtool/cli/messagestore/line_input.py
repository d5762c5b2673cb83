"""Lines of standard input, as many at once as are at hand, so that they share a flush."""

from __future__ import annotations

import io
import os
import select
import sys
from contextlib import suppress
from typing import IO, TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rmqtool.cli.messagestore.engine import Stop

_AT_ONCE = 1 << 20
"""bytes that are read before the lines in them are handed on"""
_MARK = b"\xef\xbb\xbf"

Line = tuple[int, bytes | None]
"""number of the first line of it, and the text; None for one that is too long, which is not waited for"""


class LineInput:
    """Lines up to the end of standard input, or until `stop` is asked for.

    longest: bytes of a line that is taken. quoted: a line feed between quotation marks ends no line (CSV).
    """

    def __init__(self, stop: Stop, longest: int, *, quoted: bool = False) -> None:
        self._stop, self._longest, self._quoted = stop, longest, quoted
        self._stream: IO[bytes] = io.BytesIO() if sys.stdin is None else sys.stdin.buffer
        self._descriptor: int | None = None
        with suppress(OSError):
            self._descriptor = self._stream.fileno()
        self.size: int | None = None
        if self._descriptor is not None:
            self.size = os.fstat(self._descriptor).st_size or None
        self.read = 0
        """bytes"""
        self._number = 1
        self._parts: list[bytes] = []
        self._kept, self._lines, self._odd = 0, 0, False

    def batches(self) -> Iterator[list[Line]]:
        """Lines that were at hand, without their ends."""
        while data := self._more():
            if not self.read:
                data = data.removeprefix(_MARK)
            self.read += len(data)
            if found := self._split(data):
                yield found
        last: list[Line] = []
        if (self._lines or self._parts) and not self._stop.asked:
            self._end(last)
        if last:
            yield last

    def _more(self) -> bytes:
        """At least one byte, and what else is there; nothing at the end, or when it has to stop."""
        if self._stop.asked:
            return b""
        if self._descriptor is None:
            return self._stream.read(_AT_ONCE)
        parts: list[bytes] = []
        size = 0
        while size < _AT_ONCE:
            ready = select.select([self._descriptor, self._stop.descriptor], [], [], 0 if parts else None)[0]
            if self._descriptor not in ready or self._stop.asked:
                break
            data = os.read(self._descriptor, _AT_ONCE - size)
            if not data:
                break
            parts.append(data)
            size += len(data)
        return b"".join(parts)

    def _split(self, data: bytes) -> list[Line]:
        found: list[Line] = []
        pieces = data.split(b"\n")
        for piece in pieces[:-1]:
            self._take(piece, found)
            self._lines += 1
            if self._odd:
                self._take(b"\n", found)
            else:
                self._end(found)
        self._take(pieces[-1], found)
        return found

    def _take(self, piece: bytes, found: list[Line]) -> None:
        was_longer = self._kept > self._longest
        self._kept += len(piece)
        if self._kept <= self._longest:
            if piece:
                self._parts.append(piece)
        elif not was_longer:  # said at once: its end may never come
            self._parts.clear()
            found.append((self._number, None))
        if self._quoted and piece.count(b'"') % 2:
            self._odd = not self._odd

    def _end(self, found: list[Line]) -> None:
        if self._kept <= self._longest:
            found.append((self._number, b"".join(self._parts).removesuffix(b"\r")))
        self._number += self._lines
        self._parts.clear()
        self._kept, self._lines, self._odd = 0, 0, False
