"""Which memory is a mapped file: a page that cannot be read is an answer then, not the end of the process.

A mapped page behind the end of a file that was cut, or on a bad block, raises SIGBUS in the thread that
touches it. `rmqtool.scan.kernels.faulting` has the handler: it looks for the address in the table here, puts
a page of zeros in its place, counts the fault, and the thread goes on. Whoever used the bytes asks for the
count afterwards and reads again with `pread` when it has grown. Addresses that are not in the table end the
process as ever.
"""

from __future__ import annotations

import ctypes
import mmap
import sys
from threading import RLock

SLOTS = 1024
"""mappings at once; a file beyond that is read with `pread`"""

PAGE_SIZE, USED, PREVIOUS, TOTAL = range(4)
"""int64 places in the table: page size, slots in use, address of what SIGBUS did before, or 0, all faults"""

FIRST_SLOT = 8
START, END, FAULTS, WIDTH = 0, 1, 2, 4
"""int64 places in a slot"""

_SIGBUS = 7
_SA_SIGINFO, _SA_RESTART = 4, 0x10000000
_SIGACTION_SIZE = 152
"""`struct sigaction` of 64-bit Linux: handler, 128 bytes of mask, int flags, restorer"""

_table = (ctypes.c_int64 * (FIRST_SLOT + SLOTS * WIDTH))()
_previous = ctypes.create_string_buffer(_SIGACTION_SIZE)
_lock = RLock()  # the garbage collector may call `end` in the middle of `guard`
_owners: dict[int, object] = {}


def supported() -> bool:
    """Whether the layouts that the handler relies on are those of this system."""
    return sys.platform == "linux" and ctypes.sizeof(ctypes.c_void_p) == 8


def table_address() -> int:
    """Where the table lies in memory, for as long as the process lives."""
    return ctypes.addressof(_table)


def install(handler: int) -> None:
    """Make the function at this address answer SIGBUS; once in a process."""
    with _lock:
        if installed() or not supported():
            return
        _table[PAGE_SIZE] = mmap.PAGESIZE
        action = ctypes.create_string_buffer(_SIGACTION_SIZE)
        ctypes.c_uint64.from_buffer(action, 0).value = handler
        ctypes.c_int.from_buffer(action, 136).value = _SA_SIGINFO | _SA_RESTART
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.sigaction(_SIGBUS, None, _previous) == 0:
            _table[PREVIOUS] = ctypes.addressof(_previous)
            libc.sigaction(_SIGBUS, action, None)


def installed() -> bool:
    """Whether mappings are guarded in this process."""
    return _table[PREVIOUS] != 0


def total() -> int:
    """Faults in all mappings so far."""
    return _table[TOTAL]


class Guard:
    """The entry of one mapping. `faults`: pages of it that could not be read and were taken as zeros."""

    def __init__(self, slot: int) -> None:
        self._slot = slot
        self._at = _place(slot) + FAULTS
        self._last = 0

    @property
    def faults(self) -> int:
        """Faults so far, also after `end`."""
        found = _table[self._at]
        if _owners.get(self._slot) is self:  # behind the look, so that it was this one's place
            return found
        with _lock:
            if _owners.get(self._slot) is self:
                self._last = _table[_place(self._slot) + FAULTS]
        return self._last

    def end(self) -> None:
        """The mapping is gone; ending twice is harmless."""
        with _lock:
            if _owners.get(self._slot) is self:
                self._last = _table[_place(self._slot) + FAULTS]
                _release(self._slot)


def guard(start: int, length: int) -> Guard | None:
    """Enter the mapping of `length` bytes at address `start`; None when the table is full."""
    with _lock:
        for slot in list(_owners):  # of a mapping that is gone, whose end has not been reported yet
            at = _place(slot)
            if _table[at + START] < start + length and start < _table[at + END]:
                _release(slot)
        free = next((slot for slot in range(SLOTS) if slot not in _owners), None)
        if free is None:
            return None
        at = _place(free)
        _table[at + FAULTS] = 0
        _table[at + START] = start
        _table[at + END] = start + length
        _table[USED] = max(_table[USED], free + 1)
        entry = Guard(free)
        _owners[free] = entry
        return entry


def _place(slot: int) -> int:
    return FIRST_SLOT + slot * WIDTH


def _release(slot: int) -> None:
    _table[_place(slot) + END] = 0
    _table[_place(slot) + START] = 0
    _owners.pop(slot, None)
