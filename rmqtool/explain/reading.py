"""Where log lines come from: words, files (also compressed and rotated ones), directories, a pipe."""

from __future__ import annotations

import gzip
import re
import zlib
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, cast

from rmqtool.errors import UsageError
from rmqtool.store.access import open_stream

if TYPE_CHECKING:
    import io
    from collections.abc import Callable, Iterator, Sequence

BLOCK = 4 << 20
_LONGEST_LINE = 1 << 16
_HEAD = 4096
_LOG_NAME = re.compile(r".*\.(log|out)([.-][\w.-]+)?(\.gz)?|.*\.log\.gz")
_PATH = re.compile(r"(~|\.{0,2}/|[A-Za-z]:\\)\S*|\S+\.(log|gz|txt|out)(\.\d+)?|\S+/\S*")
_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")
_CONTROLS = bytes(set(range(32)) - {9, 10, 12, 13, 27})


@dataclass(frozen=True)
class Source:
    """One input. name: how places in it are shown. path: None for `text` or a stream.

    named: the user gave the path, so that it may be a FIFO; others were found in a directory.
    """

    name: str
    path: Path | None = None
    named: bool = False
    text: str | None = None
    stream: IO[bytes] | None = None

    @property
    def size(self) -> int:
        """Bytes on disk, 0 for others."""
        return self.path.stat().st_size if self.path else 0

    def blocks(self, advance: Callable[[int], None], size: int = BLOCK) -> Iterator[bytes]:
        """Whole lines in blocks of about `size` bytes. `advance` is called with bytes on disk.

        Raises one of `READ_ERRORS` where a file cannot be read on, `UsageError` when it is not
        text, or not a file. A line longer than two blocks is cut.
        """
        if self.text is not None:
            yield self.text.encode("utf-8", "surrogateescape") + b"\n"
        elif self.stream is not None:
            yield from _whole_lines(self.stream, _no_place, advance, size)
        else:
            with open_stream(str(self.path), self.name, pipes=self.named) as raw, ExitStack() as stack:
                stream, head = raw, _head(raw)
                if head.startswith(b"\x1f\x8b"):
                    stream = stack.enter_context(cast("IO[bytes]", gzip.GzipFile(fileobj=raw)))
                    head = _head(stream)
                _require_text(head, self.name)
                yield from _whole_lines(stream, raw.tell if raw.seekable() else _no_place, advance, size)


def _head(stream: IO[bytes]) -> bytes:
    """What the stream begins with, 4 KiB at most, which stays in it."""
    return cast("io.BufferedReader", stream).peek(_HEAD)[:_HEAD]


READ_ERRORS = (OSError, EOFError, zlib.error)
"""what `Source.blocks` raises when bytes cannot be read"""


def sources_of(words: Sequence[str], stdin: IO[bytes] | None) -> list[Source]:
    """What arguments mean: an existing file, FIFO or directory is read, `-` is the pipe, the rest are lines.

    Without arguments the pipe. Raises `UsageError` for what is plainly a path and does not exist.
    """
    if not words:
        if stdin is None:
            raise UsageError("nothing to explain: give log lines, files, or pipe a log in")
        return [Source("-", stream=stdin)]
    found: list[Source] = []
    for number, word in enumerate(words, 1):
        if word == "-":
            if stdin is None:
                raise UsageError("-: nothing is piped in")
            found.append(Source("-", stream=stdin))
        elif (path := _existing(word)) is not None:
            found += _files_of(path)
        elif _PATH.fullmatch(word):
            raise UsageError(f"{word}: no such file or directory")
        else:
            found.append(Source(f"argument {number}", text=word))
    return found


def _existing(word: str) -> Path | None:
    if _ADDRESS.match(word):  # no directory of this machine
        return None
    try:
        path = Path(word)
        return path if path.exists() else None
    except (OSError, ValueError):  # too long for a name, or a NUL in it: a line
        return None


def _files_of(path: Path) -> list[Source]:
    if not path.is_dir():
        return [Source(str(path), path, named=True)]
    logs = sorted(one for one in path.rglob("*") if _LOG_NAME.fullmatch(one.name) and one.is_file())
    if not logs:
        raise UsageError(f"{path}: no log file in this directory")
    return [Source(str(one), one) for one in logs]


def _require_text(head: bytes, name: str) -> None:
    controls = len(head) - len(head.translate(None, _CONTROLS))
    if controls * 10 > len(head) * 3:
        raise UsageError(f"{name} is not a log: it holds binary data (rmqtool dump shows store files)")


def _no_place() -> int:
    return 0


def _whole_lines(
    stream: IO[bytes], place: Callable[[], int], advance: Callable[[int], None], size: int
) -> Iterator[bytes]:
    """Cuts where a line with a time begins, if possible, so that a stack trace stays with its line.

    What could be read before an error is given before the error is raised.
    """
    rest, done, cutting = b"", 0, False
    for data in _pieces(stream, size):
        advance(place() - done)
        done = place()
        kept = data
        if cutting:
            _, end_of_line, kept = data.partition(b"\n")
            cutting = not end_of_line
        rest += kept
        end = _cut(rest)
        if end:
            yield rest[:end]
            rest = rest[end:]
        elif len(rest) > 2 * size:
            yield rest[:_LONGEST_LINE] + b"\n"
            rest, cutting = b"", True
    if rest:
        yield rest


def _pieces(stream: IO[bytes], least: int) -> Iterator[bytes]:
    """The stream in pieces of `least` bytes or more, the last smaller, also when reading ends in an error."""
    read: Callable[[int], bytes] = getattr(stream, "read1", stream.read)
    parts, size = list[bytes](), 0
    try:
        while data := read(least):
            parts.append(data)
            size += len(data)
            if size >= least:
                yield b"".join(parts)
                parts, size = [], 0
    except READ_ERRORS as error:
        yield b"".join(parts)
        raise error from None
    if parts:
        yield b"".join(parts)


def _cut(data: bytes) -> int:
    """Where the last entry begins, else behind the last whole line, else 0."""
    entry = data.rfind(b"\n2")
    return (entry if entry > len(data) // 2 else data.rfind(b"\n")) + 1
