"""Disks that fail, for tests: reads of chosen blocks end with EIO, in the process that the tests run in."""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from pathlib import Path

    import pytest

BLOCK = 4096


def failing_preadv(
    bad: Mapping[Path, Iterable[int]], real: Callable[..., int] = os.preadv
) -> Callable[..., int]:
    """An `os.preadv` that fails for every request that touches one of these blocks of these files.

    Some disks fail a large request as a whole, as this does; the kernel gives the bytes before it.
    """
    blocks = {os.stat(path).st_ino: frozenset(numbers) for path, numbers in bad.items()}

    def preadv(descriptor: int, buffers: Sequence[memoryview], offset: int) -> int:
        length = sum(len(buffer) for buffer in buffers)
        numbers = blocks.get(os.fstat(descriptor).st_ino, frozenset())
        last = (offset + max(length, 1) - 1) // BLOCK
        if any(offset // BLOCK <= number <= last for number in numbers):
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return real(descriptor, buffers, offset)

    return preadv


def synced(patch: pytest.MonkeyPatch, real: Callable[[int], None] = os.fsync) -> set[int]:
    """The inodes for which `os.fsync` is called from now on."""
    found: set[int] = set()

    def fsync(descriptor: int) -> None:
        real(descriptor)
        found.add(os.fstat(descriptor).st_ino)

    patch.setattr(os, "fsync", fsync)
    return found
