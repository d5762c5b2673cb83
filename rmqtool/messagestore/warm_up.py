"""Segments that are warmed before they are used: their pages are there, and stay in memory.

`DefaultMappedFile#warmMappedFile`, `#mlock`. Nothing here is needed for what is stored, so that a system that
refuses is a warning.
"""

from __future__ import annotations

import ctypes
import logging
import mmap
import os

import numpy as np

_LOG = logging.getLogger(__name__)
_PAGE = 4096


class WarmUp:
    """forced_pages: under SYNC_FLUSH, after how many pages the file is forced (0: never)."""

    def __init__(self, forced_pages: int) -> None:
        self._forced_pages = forced_pages
        self._warned: set[str] = set()

    def __call__(self, descriptor: int, size: int) -> mmap.mmap | None:
        """Warms a new file of zeros; what keeps its pages in memory until it is closed. Raises `OSError`."""
        os.posix_fallocate(descriptor, 0, size)
        for number, position in enumerate(range(0, size, _PAGE), 1):
            os.pwrite(descriptor, b"\0", position)
            if self._forced_pages and number % self._forced_pages == 0:
                os.fdatasync(descriptor)
        if self._forced_pages:
            os.fdatasync(descriptor)
        return self._lock(descriptor, size)

    def _lock(self, descriptor: int, size: int) -> mmap.mmap | None:
        try:
            mapped = mmap.mmap(descriptor, size)
        except (OSError, ValueError) as error:
            self._warn("mmap", str(error))
            return None
        place = ctypes.c_void_p(np.frombuffer(mapped, np.uint8).ctypes.data)
        if libc().mlock(place, ctypes.c_size_t(size)):
            self._warn("mlock", os.strerror(ctypes.get_errno()))
        try:
            mapped.madvise(mmap.MADV_WILLNEED)
        except OSError as error:
            self._warn("madvise", str(error))
        return mapped

    def _warn(self, call: str, why: str) -> None:
        if call not in self._warned:
            self._warned.add(call)
            _LOG.warning("warmMapedFileEnable: %s: %s; the store works without it", call, why)


def libc() -> ctypes.CDLL:
    """The C library of this process."""
    return ctypes.CDLL(None, use_errno=True)
