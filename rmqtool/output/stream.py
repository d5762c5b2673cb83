"""Standard output as bytes, in large blocks."""

from __future__ import annotations

import io
import sys
from typing import IO, TYPE_CHECKING

from rmqtool.output.text import is_terminal

if TYPE_CHECKING:
    from collections.abc import Callable

    from typing_extensions import Buffer

BLOCK = 256 * 1024


class ByteOut:
    """Collects bytes and hands them to the stream in blocks; on a terminal with every write.

    `before_write` runs before bytes reach the stream (there the progress bar leaves the screen). A closed
    pipe is a `BrokenPipeError` at whichever write meets it.
    """

    def __init__(
        self, stream: IO[bytes] | None = None, before_write: Callable[[], None] | None = None
    ) -> None:
        self._stream = sys.stdout.buffer if stream is None else stream
        self._before_write = before_write
        self._eager = is_terminal(self._stream)
        self._parts: list[bytes] = []
        self._size = 0

    def write(self, data: bytes) -> None:
        """Takes `data`; it is written at the latest by `flush`."""
        if len(data) >= BLOCK:
            self._write_parts()  # what is large goes out as it is, not copied behind the others
        self._parts.append(data)
        self._size += len(data)
        if self._eager or self._size >= BLOCK:
            self.flush()

    def flush(self) -> None:
        """Writes what was collected."""
        self._write_parts()
        self._stream.flush()

    def _write_parts(self) -> None:
        if self._parts:
            data = b"".join(self._parts)
            self._parts.clear()
            self._size = 0
            if self._before_write is not None:
                self._before_write()
            self._stream.write(data)


def as_file(out: ByteOut) -> io.RawIOBase:
    """The same for libraries that want a file, which cannot be read or moved about in."""
    return _OutFile(out)


class _OutFile(io.RawIOBase):
    def __init__(self, out: ByteOut) -> None:
        self._out = out

    def writable(self) -> bool:
        return True

    def write(self, data: Buffer, /) -> int:
        raw = bytes(data)
        self._out.write(raw)
        return len(raw)
