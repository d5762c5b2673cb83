"""Timers of arbitrary time through a start (`TimerMessageStore#load`, `#recover`, `TimerWheel`; 5.3.3).

A message of the timer topic is put into the timer log once. What lies behind the log's last whole entry is
read from the topic once more. Entries are not compared with their messages, neither here nor by a broker.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from formats.timer import (
    TIMER_UNIT_SIZE,
    WHEEL_SPAN,
    TimerUnit,
    parse_timer_check,
)
from rmqtool.broker.consume_queue import ConsumeQueue
from rmqtool.broker.timer_chains import TimerFiles
from rmqtool.broker.timer_check import CHECK, TIMERS, Fault, check_faults, holds_timers
from rmqtool.broker.timer_log import DIRECTORY, WHEEL, in_use, timers_end, wheel_of
from rmqtool.store.whole import read_whole

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rmqtool.broker.mapped_files import MappedFile, MappedFiles
    from rmqtool.broker.start import AnyQueue, Start

TIMER_HARM = _LOST, _PASSED, _AGAIN = "DR-TIMERS-LOST", "DR-TIMERS-PASSED", "DR-TIMERS-AGAIN"


@dataclass(frozen=True, slots=True)
class TimerHarm:
    """What becomes of timers. code: of the consequence. count: of timers, delivered ones included."""

    code: str
    paths: tuple[str, ...]
    count: int


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
        yield TimerHarm(_LOST, (DIRECTORY,), taken - first)
    for one in check_faults(raw, first, queue.max_offset, now, filled=filled):
        yield TimerHarm(_LOST if one.fault is Fault.AHEAD else _AGAIN, (CHECK,), one.count)
    if filled:
        flushed = int(check.last_timer_log_flush_position)
        files = _timer_files(start, log, queue, flushed)
        read_time, looked = max(int(check.last_read_time), 0), _first_looked_at(now, files.precision)
        passed = files.due_between(read_time, looked)
        if passed:
            yield TimerHarm(_PASSED, (WHEEL,), passed)
        lost = files.unreached(max(read_time, looked))
        if lost:
            yield TimerHarm(_LOST, tuple(sorted(lost)), min(lost.total(), queue.max_offset - first))
        yield from _read_again(log, flushed)


def _first_looked_at(now: int, precision: int) -> int:
    """Due time (ms) in front of which a start passes over timers (`TIMER_WHEEL_TTL_DAY`)."""
    return now // precision * precision - WHEEL_SPAN * precision


def _timer_files(start: Start, log: MappedFiles, queue: AnyQueue, flushed: int) -> TimerFiles:
    """Timer log and wheel of a start. queue: of the topic. flushed: position in `config/timercheck`.

    What lies in front of the first file has expired, unless the topic has a message that is older than its
    first timer: a broker deletes a file when the message of its last entry is gone.
    """
    begin = log.files[0].base
    if begin and _has_older(queue, _first_message(log.files[0])):
        begin = 0
    precision = start.settings.timer_precision
    return TimerFiles(log, wheel_of(start.store), flushed, begin, precision, start.reading)


def _has_older(queue: AnyQueue, offset: int) -> bool:
    first = queue.first_address() if isinstance(queue, ConsumeQueue) else None
    return first is not None and first < offset


def _first_message(file: MappedFile) -> int:
    """Physical offset of the message whose timer is the first in a file."""
    if file.file is None:
        return 0
    with file.file.open("pread") as source:
        return int(TimerUnit.parse(source.window(0, TIMER_UNIT_SIZE).tobytes()).physical_offset)


def _read_again(log: MappedFiles, flushed: int) -> Iterator[TimerHarm]:
    """Timers whose entries lie behind the place where a start ends the log: they are put there once more."""
    end = timers_end(log, flushed)
    if end < flushed:
        yield TimerHarm(_AGAIN, (log.path_of(end - end % log.size),), -(-(flushed - end) // TIMER_UNIT_SIZE))
