"""Calls of the system that fail or are watched, in the process that the tests run in."""

from __future__ import annotations

import errno
import os
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from pathlib import Path

    import pytest

BLOCK = 4096
WRITES = ("open", "pwrite", "copy_file_range", "ftruncate", "mkdir", "rename", "link", "fsync", "chown")
"""calls with which room is asked for, or what was written is made last"""


ENGINE = (*WRITES, "fdatasync", "posix_fallocate", "unlink")
"""those of a store that is open for writing"""
_FRAMES = 4


def replace(patch: pytest.MonkeyPatch, call: str, made: Callable[..., Any]) -> None:
    """Puts `made` in the place of `os.CALL`: tests replace calls of the system here and nowhere else."""
    patch.setattr(os, call, made)


def refuse(
    patch: pytest.MonkeyPatch,
    call: str,
    number: int = errno.EACCES,
    when: Callable[..., bool] = lambda *_: True,
) -> None:
    """`os.CALL` ends with this error number `when` its arguments are such; root may do all otherwise.

    Arguments: a path as text, or a descriptor, and the others that stand by position.
    """
    real = getattr(os, call)

    def refusing(first: Any = ".", *rest: Any, **more: Any) -> Any:
        if when(first if isinstance(first, int) else os.fspath(first), *rest):
            raise OSError(number, os.strerror(number), *([] if isinstance(first, int) else [first]))
        return real(first, *rest, **more)

    replace(patch, call, refusing)


def break_blocks(patch: pytest.MonkeyPatch, bad: Mapping[Path, Iterable[int]]) -> list[int]:
    """Reads that touch one of these blocks of these files end with EIO; gives the offsets asked for.

    Some disks fail a large request as a whole, as this does; the kernel gives the bytes before it.
    """
    blocks = {os.stat(path).st_ino: frozenset(numbers) for path, numbers in bad.items()}
    real, failed = os.preadv, list[int]()

    def preadv(descriptor: int, buffers: Sequence[memoryview], offset: int) -> int:
        length = sum(len(buffer) for buffer in buffers)
        numbers = blocks.get(os.fstat(descriptor).st_ino, frozenset())
        last = (offset + max(length, 1) - 1) // BLOCK
        if any(offset // BLOCK <= number <= last for number in numbers):
            failed.append(offset)
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return real(descriptor, buffers, offset)

    replace(patch, "preadv", preadv)
    return failed


def fails_at(patch: pytest.MonkeyPatch, number: int, error: int) -> list[str]:
    """Of all calls that write, the one with this number ends with `error`; gives the names of calls so far.

    A file that is opened for writing, cut or given its length, renamed or removed counts, too.
    """
    made: list[str] = []

    def counted(call: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def calling(*given: Any, **more: Any) -> Any:
            if call != "open" or given[1] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT):
                made.append(call)
                if len(made) == number + 1:
                    raise OSError(error, os.strerror(error))
            return real(*given, **more)

        return calling

    for call in WRITES:
        replace(patch, call, counted(call, getattr(os, call)))
    return made


def synced(patch: pytest.MonkeyPatch, real: Callable[[int], None] = os.fsync) -> set[int]:
    """The inodes for which `os.fsync` is called from now on."""
    found: set[int] = set()

    def fsync(descriptor: int) -> None:
        real(descriptor)
        found.add(os.fstat(descriptor).st_ino)

    replace(patch, "fsync", fsync)
    return found


def fails_where(
    patch: pytest.MonkeyPatch, error: int, fails: Callable[[str], bool], calls: Iterable[str] = ENGINE
) -> list[str]:
    """Of all calls that write, those end with `error` of which `fails` says so by where they come from.

    That is the call and the functions of rmqtool around it, innermost first; gives all that there were.
    """
    made: list[str] = []

    def counted(call: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def calling(*given: Any, **more: Any) -> Any:
            if call != "open" or given[1] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT):
                made.append(f"{call} {_callers()}")
                if fails(made[-1]):
                    raise OSError(error, os.strerror(error))
            return real(*given, **more)

        return calling

    for call in calls:
        replace(patch, call, counted(call, getattr(os, call)))
    return made


def _callers() -> str:
    frame, names = sys._getframe(2), list[str]()
    while frame is not None and len(names) < _FRAMES:
        if "/rmqtool/" in frame.f_code.co_filename:
            names.append(frame.f_code.co_name)
        frame = frame.f_back  # type: ignore[assignment]
    return " < ".join(names)
