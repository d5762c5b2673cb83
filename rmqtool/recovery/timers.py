"""Timers of arbitrary time through a start (`TimerMessageStore#load`, `#recover`, `TimerWheel`; 5.3.3).

A message of the timer topic is put into the timer log once, and a wheel slot leads to it until it is due. The
wheel is made again from the last files of the log only; what lies behind the log's last whole entry is read
from the topic again. A chain of entries ends where the file with the next one is missing (`#dequeue`).
Entries are not compared with their messages, neither here nor by a broker.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from formats.commitlog import BLANK_MAGIC_CODE
from formats.primitives import dtype_of
from formats.timer import (
    TIMER_MAGIC_BITS,
    TIMER_UNIT_SIZE,
    WHEEL_SIZE,
    WHEEL_SPAN,
    TimerUnit,
    WheelSlot,
    parse_timer_check,
)
from rmqtool.broker.consume_queue import ConsumeQueue
from rmqtool.broker.load import load_files, timers_in_use
from rmqtool.broker.mapped_files import MappedFile, MappedFiles
from rmqtool.broker.timer_check import CHECK, TIMERS, Fault, check_faults, holds_timers
from rmqtool.store.holes import data_windows
from rmqtool.store.kinds import FileKind
from rmqtool.store.whole import read_whole

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    from formats.primitives import Container
    from rmqtool.broker.start import AnyQueue, Start
    from rmqtool.store.files import StoreFile

TIMER_HARM = _LOST, _PASSED, _AGAIN = "DR-TIMERS-LOST", "DR-TIMERS-PASSED", "DR-TIMERS-AGAIN"
_DIRECTORY, WHEEL = FileKind.TIMERLOG.value, FileKind.TIMERWHEEL.value
_SLOT, _UNIT = dtype_of(WheelSlot), dtype_of(TimerUnit)


@dataclass(frozen=True, slots=True)
class TimerHarm:
    """What becomes of timers. code: of the consequence. count: of timers, delivered ones included."""

    code: str
    paths: tuple[str, ...]
    count: int


def load_timer_log(start: Start) -> MappedFiles:
    """The files of the timer log. Raises `RefusedError` where the broker ends over them."""
    if not in_use(start):
        return MappedFiles(start.settings.timer_log_size, _DIRECTORY)
    return load_files(
        start.listing.entries(_DIRECTORY), start.settings.timer_log_size, _DIRECTORY, start.traits
    )


def in_use(start: Start) -> bool:
    """See `timers_in_use`."""
    return timers_in_use(start.traits, start.settings)


def timer_harm(start: Start, log: MappedFiles) -> Iterator[TimerHarm]:
    """Timers that are never delivered, or once more, because one of the three files is gone or wrong.

    Or because the broker was down for longer than its wheel looks back.
    """
    queue = start.queues.get(TIMERS)
    if not in_use(start) or queue is None or queue.max_offset <= max(queue.min_offset, 0):
        return
    first = max(queue.min_offset, 0)
    file = start.store.file(CHECK)
    raw = read_whole(file) if file is not None else b""
    check = parse_timer_check(raw)
    filled = holds_timers([one.file for one in log.files])
    last, master = int(check.last_timer_queue_offset), int(check.master_timer_queue_offset)
    taken = min(last, master, queue.max_offset)
    now = int(time.time() * 1000)
    if not filled and taken > first:
        yield TimerHarm(_LOST, (_DIRECTORY,), taken - first)
    for one in check_faults(raw, first, queue.max_offset, now, filled=filled):
        yield TimerHarm(_LOST if one.fault is Fault.AHEAD else _AGAIN, (CHECK,), one.count)
    if filled:
        yield from _passed_over(start, int(check.last_read_time), now)
        yield from _out_of_reach(start, log, check, queue)
        yield from _read_again(log, int(check.last_timer_log_flush_position))


def _passed_over(start: Start, read_time: int, now: int) -> Iterator[TimerHarm]:
    """Timers that were due while no broker ran, for longer than half the wheel (`TIMER_WHEEL_TTL_DAY`)."""
    precision = start.settings.timer_precision
    first = now // precision * precision - WHEEL_SPAN * precision
    wheel = start.store.file(WHEEL)
    if wheel is None or first <= read_time:
        return
    count = 0
    for slots in _waiting(wheel, read_time, precision):
        passed = slots["count"][slots["time"] * precision < first]
        count += int(np.maximum(passed, 1).sum())
    if count:
        yield TimerHarm(_PASSED, (WHEEL,), count)


def _out_of_reach(start: Start, log: MappedFiles, check: Container, queue: AnyQueue) -> Iterator[TimerHarm]:
    """Timers in files to which no slot leads, and those in front of a missing file in the chain of a slot."""
    wheel = start.store.file(WHEEL)
    holes = list(_missing(log, queue))
    if wheel is None or wheel.size == 0:
        unread = unread_files(log, int(check.last_timer_log_flush_position))
        if unread:
            count = len(unread) * (log.size // TIMER_UNIT_SIZE)
            yield TimerHarm(_LOST, (WHEEL, *(one.path for one in unread)), count)
        return
    if not holes:
        return
    starts, ends = np.array(holes, np.int64).T
    changes = np.zeros(len(holes) + 1, np.int64)
    for slots in _waiting(wheel, int(check.last_read_time), start.settings.timer_precision):
        low = np.searchsorted(ends, slots["first"], "right")
        high = np.searchsorted(starts, slots["last"], "right")
        led = low < high
        timers = np.maximum(slots["count"][led], 1)
        np.add.at(changes, low[led], timers)
        np.subtract.at(changes, high[led], timers)
    for (_, end), count in zip(holes, changes.cumsum()[:-1].tolist(), strict=True):
        if count:
            yield TimerHarm(_LOST, (log.path_of(end - log.size),), count)


def _missing(log: MappedFiles, queue: AnyQueue) -> Iterator[tuple[int, int]]:
    """Ranges without a file, in front of the log's end.

    One in front of the first file has expired, unless the topic has a message that is older than its first
    timer: a broker deletes a file when the message of its last entry is gone.
    """
    end = log.files[0].base
    if end and _has_older(queue, _first_message(log.files[0])):
        yield 0, end
    for one in log.files:
        if one.base > end:
            yield end, one.base
        end = one.base + log.size


def _has_older(queue: AnyQueue, offset: int) -> bool:
    first = queue.first_address() if isinstance(queue, ConsumeQueue) else None
    return first is not None and first < offset


def _first_message(file: MappedFile) -> int:
    """Physical offset of the message whose timer is the first in a file."""
    if file.file is None:
        return 0
    with file.file.open("pread") as source:
        return int(TimerUnit.parse(source.window(0, TIMER_UNIT_SIZE).tobytes()).physical_offset)


def _waiting(wheel: StoreFile, read_time: int, precision: int) -> Iterator[npt.NDArray[np.void]]:
    """The slots in use whose time has not come (`TimerWheel#getSlot`)."""
    with wheel.open("pread") as source:
        for _, window in data_windows(source, 0, min(wheel.size, WHEEL_SIZE)):
            slots = window[: len(window) // _SLOT.itemsize * _SLOT.itemsize].view(_SLOT)
            waits = (slots["time"] > 0) & (slots["time"] * precision >= read_time)
            yield slots[waits & (slots["last"] >= 0)]


def _read_again(log: MappedFiles, flushed: int) -> Iterator[TimerHarm]:
    """Timers whose entries lie behind the place where a start ends the log: they are put there once more."""
    end = timers_end(log, flushed)
    if end < flushed:
        yield TimerHarm(_AGAIN, (log.path_of(end - end % log.size),), -(-(flushed - end) // TIMER_UNIT_SIZE))


def timers_end(log: MappedFiles, flushed: int) -> int:
    """Where a start ends the log: at the first thing that is no entry (`#recoverAndRevise`)."""
    passed = {one.base for one in unread_files(log, flushed)}
    end = 0
    for one in log.files:
        if one.base in passed or one.file is None:
            continue
        position, goes_on = entries_end(one.file)
        end = one.base + position
        if not goes_on:
            break
    return end


def entries_end(file: StoreFile) -> tuple[int, bool]:
    """Up to where timers lie in a file, and whether a start goes on with the next one (`TimerLog#append`)."""
    step = TIMER_UNIT_SIZE * (1 << 14)
    with file.open("pread") as source:
        for at in range(0, file.size, step):
            window = source.window(at, min(step, file.size - at))
            units = window[: len(window) // TIMER_UNIT_SIZE * TIMER_UNIT_SIZE].view(_UNIT)
            known = units["magic"] | TIMER_MAGIC_BITS == TIMER_MAGIC_BITS
            right = (units["size"] == TIMER_UNIT_SIZE) & known
            if right.all() and len(units) * TIMER_UNIT_SIZE == len(window):
                continue
            end = at + int(np.argmin(np.append(right, False))) * TIMER_UNIT_SIZE
            magic = source.window(end + 12, 4).tobytes()
            blank = int.from_bytes(magic, "big", signed=True) == BLANK_MAGIC_CODE
            return (file.size if blank else end), blank
    return file.size, True


def unread_files(log: MappedFiles, flush_position: int) -> list[MappedFile]:
    """Files of the timer log that a broker makes no wheel from: it begins one file in front of a position."""
    begin = max(flush_position - log.size, 0)
    bases = [one.base for one in log.files]
    scanned = max((base for base in bases if base <= begin), default=min(bases, default=0))
    return [one for one in log.files if one.base < scanned]
