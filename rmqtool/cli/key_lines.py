"""Keys out of a file, one a line, any number of them."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from typing import IO, TYPE_CHECKING

from rmqtool.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator

_BLOCK = 4 << 20
"""bytes that are read at once"""
_LONGEST = 1 << 20
"""bytes of a line, at least, that no key is in: a record has less than 32 KiB of properties"""


def key_lines(name: str) -> Iterator[str]:
    """The keys in a file or FIFO, `-` is standard input; blanks around a key and empty lines do not count.

    Raises `UsageError` where it cannot be read, is not UTF-8 text, or holds no key.
    """
    none = True
    try:
        for block in _blocks(name):
            for line in block.decode("utf-8").splitlines():
                key = line.strip()
                if key:
                    none = False
                    yield key
    except OSError as error:
        raise UsageError(f"--keys-file: {name} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"--keys-file: {name} is not UTF-8 text") from error
    if none:
        raise UsageError(f"--keys-file: {name} holds no key")


def _blocks(name: str) -> Iterator[bytes]:
    """Whole lines, some at a time."""
    from rmqtool.store.access import open_stream

    stream: IO[bytes]
    with ExitStack() as stack:
        if name == "-":
            stream = sys.stdin.buffer
        else:
            stream = stack.enter_context(open_stream(name, f"--keys-file: {name}", pipes=True))
        while block := stream.read(_BLOCK):
            rest = stream.readline(_LONGEST)
            if len(rest) == _LONGEST:
                raise UsageError(f"--keys-file: {name} has a line of more than {_LONGEST} bytes")
            yield block + rest
