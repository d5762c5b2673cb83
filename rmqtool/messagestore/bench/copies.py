"""Ways to copy one segment: what a broker's mapped files and `sendfile` save on this machine."""

from __future__ import annotations

import mmap
import os
import time
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

_BLOCK = 1 << 20


class Copy(NamedTuple):
    """One way."""

    way: str
    bytes: int
    seconds: float


def copies(root: Path, size: int) -> Iterator[Copy]:
    """Copies a file of `size` bytes, which is in memory, in each way; below an empty directory."""
    data = os.urandom(_BLOCK)
    with open(root / "segment", "xb") as file:
        file.writelines(data for _ in range(max(size // _BLOCK, 1)))
    ways: dict[str, Callable[[int, int, int], None]] = {
        "read_write": _read_write,
        "mmap": _mmap,
        "sendfile": _sendfile,
    }
    source = os.open(root / "segment", os.O_RDONLY)
    try:
        length = os.fstat(source).st_size
        for way, copy in ways.items():
            target = os.open(root / way, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
            try:
                began = time.perf_counter()
                copy(source, target, length)
                yield Copy(way, length, time.perf_counter() - began)
            finally:
                os.close(target)
                os.unlink(root / way)
    finally:
        os.close(source)


def _read_write(source: int, target: int, length: int) -> None:
    for at in range(0, length, _BLOCK):
        os.pwrite(target, os.pread(source, _BLOCK, at), at)


def _mmap(source: int, target: int, length: int) -> None:
    os.ftruncate(target, length)
    with mmap.mmap(source, length, access=mmap.ACCESS_READ) as one, mmap.mmap(target, length) as other:
        for at in range(0, length, _BLOCK):
            other[at : at + _BLOCK] = one[at : at + _BLOCK]


def _sendfile(source: int, target: int, length: int) -> None:
    at = 0
    while at < length:
        at += os.sendfile(target, source, at, length - at)
