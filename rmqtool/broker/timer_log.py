"""What a start reads of the timer log (`TimerMessageStore#recoverAndRevise`; 5.3.3).

Its last files: for the place where it goes on, and for slots of the wheel, which lead to the last entry of
their time there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from formats.commitlog import BLANK_MAGIC_CODE
from formats.primitives import dtype_of
from formats.timer import TIMER_MAGIC_BITS, TIMER_UNIT_SIZE, TimerUnit
from rmqtool.broker.load import load_files, timers_in_use
from rmqtool.broker.mapped_files import MappedFiles
from rmqtool.store.holes import data_windows
from rmqtool.store.kinds import FileKind

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    from rmqtool.broker.mapped_files import MappedFile
    from rmqtool.broker.start import Start
    from rmqtool.store.bytes import ByteSource
    from rmqtool.store.files import StoreFile
    from rmqtool.store.layout import Store

    Ints = npt.NDArray[np.int64]
    Flags = npt.NDArray[np.bool_]
    Units = npt.NDArray[np.void]

DIRECTORY, WHEEL = FileKind.TIMERLOG.value, FileKind.TIMERWHEEL.value
_UNIT = dtype_of(TimerUnit)
_STEP = TIMER_UNIT_SIZE * (1 << 14)
"""bytes of a file that are looked at together"""


def in_use(start: Start) -> bool:
    """See `timers_in_use`."""
    return timers_in_use(start.traits, start.settings)


def load_timer_log(start: Start) -> MappedFiles:
    """The files of the timer log. Raises `RefusedError` where the broker ends over them."""
    if not in_use(start):
        return MappedFiles(start.settings.timer_log_size, DIRECTORY)
    return load_files(
        start.listing.entries(DIRECTORY), start.settings.timer_log_size, DIRECTORY, start.traits
    )


def wheel_of(store: Store) -> StoreFile | None:
    """The file of the timer wheel, None where a start makes it new (`TimerWheel#TimerWheel`)."""
    file = store.file(WHEEL)
    return file if file is not None and file.size else None


def unread_files(log: MappedFiles, flush_position: int) -> list[MappedFile]:
    """Files of the timer log that a broker makes no wheel from: it begins one file in front of a position."""
    begin = max(flush_position - log.size, 0)
    bases = [one.base for one in log.files]
    scanned = max((base for base in bases if base <= begin), default=min(bases, default=0))
    return [one for one in log.files if one.base < scanned]


def timers_end(log: MappedFiles, flushed: int) -> int:
    """Where a start ends the log: at the first thing that is no entry."""
    return max((one.base + end for one, end in read_files(log, flushed)), default=0)


def read_files(log: MappedFiles, flushed: int) -> Iterator[tuple[MappedFile, int]]:
    """Files from which a start makes a wheel, and up to which position."""
    passed = {one.base for one in unread_files(log, flushed)}
    for one in log.files:
        if one.base in passed or one.file is None:
            continue
        end, goes_on = entries_end(one.file)
        yield one, end
        if not goes_on:
            break


def entries_end(file: StoreFile) -> tuple[int, bool]:
    """Up to where timers lie in a file, and whether a start goes on with the next one (`TimerLog#append`)."""
    with file.open("pread") as source:
        for at in range(0, file.size, _STEP):
            window = source.window(at, min(_STEP, file.size - at))
            right = _are_entries(units := _units(window))
            if right.all() and len(units) * TIMER_UNIT_SIZE == len(window):
                continue
            end = at + int(np.argmin(np.append(right, False))) * TIMER_UNIT_SIZE
            magic = source.window(end + 12, 4).tobytes()
            blank = int.from_bytes(magic, "big", signed=True) == BLANK_MAGIC_CODE
            return (file.size if blank else end), blank
    return file.size, True


def entries_of(source: ByteSource, end: int) -> Iterator[tuple[Ints, Units]]:
    """Entries in the first bytes of a file: positions in it, and the entries, some at a time."""
    for at, window in data_windows(source, 0, min(end, source.size), _STEP):
        right = np.flatnonzero(_are_entries(units := _units(window)))
        yield at + right * TIMER_UNIT_SIZE, units[right]


def _units(window: npt.NDArray[np.uint8]) -> Units:
    return window[: len(window) // TIMER_UNIT_SIZE * TIMER_UNIT_SIZE].view(_UNIT)


def _are_entries(units: Units) -> Flags:
    magic, size = units["magic"], units["size"]
    right: Flags = np.equal(magic | TIMER_MAGIC_BITS, TIMER_MAGIC_BITS) & np.equal(size, TIMER_UNIT_SIZE)
    return right
