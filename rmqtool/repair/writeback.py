"""Built files on their way to the disk while their content is checked: syncing them has less to wait for."""

from __future__ import annotations

import ctypes
import os
from contextlib import suppress
from threading import Thread
from typing import TYPE_CHECKING

from rmqtool.repair.content import FromFile

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rmqtool.repair.plan import Edit

_WRITE = 2
"""`SYNC_FILE_RANGE_WRITE`: begins, waits for nothing, and takes no error away from who syncs later"""


def begin_writeback(edits: Iterable[Edit]) -> None:
    """Starts to write what was built for these edits and will be moved to its place."""
    built = [one.content.path for one in edits if isinstance(one.content, FromFile) and one.content.movable]
    Thread(target=_write, args=(built,), daemon=True).start()


def _write(paths: list[str]) -> None:
    with suppress(AttributeError, OSError):  # a system without the call, or without the file
        write = ctypes.CDLL(None).sync_file_range
        write.argtypes = [ctypes.c_int, ctypes.c_int64, ctypes.c_int64, ctypes.c_uint]
        for path in paths:
            descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            try:
                write(descriptor, 0, 0, _WRITE)
            finally:
                os.close(descriptor)
