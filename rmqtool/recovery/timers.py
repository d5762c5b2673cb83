"""Timers of arbitrary time through a start (`TimerMessageStore#load`, `#recover`, `TimerWheel`; 5.3.3).

A message of the timer topic is put into the timer log once, and a wheel slot leads to it until it is due. The
wheel is made again from the last files of the log only; what lies behind the log's last whole entry is read
from the topic again. Entries are not compared with their messages, neither here nor by a broker.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from formats.timer import TIMER_UNIT_SIZE, parse_timer_check
from rmqtool.broker.load import load_files, timers_in_use
from rmqtool.broker.mapped_files import MappedFile, MappedFiles
from rmqtool.store.whole import read_whole

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rmqtool.broker.start import Start

TIMERS = ("rmq_sys_wheel_timer", 0)
TIMER_HARM = _LOST, _AGAIN = "DR-TIMERS-LOST", "DR-TIMERS-AGAIN"
_DIRECTORY, WHEEL, CHECK = "timerlog", "timerwheel", "config/timercheck"


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
    """Timers that are never delivered, or once more, because one of the three files is gone."""
    queue = start.queues.get(TIMERS)
    if not in_use(start) or queue is None or queue.max_offset <= max(queue.min_offset, 0):
        return
    first = max(queue.min_offset, 0)
    file = start.store.file(CHECK)
    check = parse_timer_check(read_whole(file) if file is not None else b"")
    filled = bool(log.files) and not _starts_blank(log)
    taken = min(int(check.last_timer_queue_offset), int(check.master_timer_queue_offset), queue.max_offset)
    if not filled and taken > first:
        yield TimerHarm(_LOST, (_DIRECTORY,), taken - first)
    # a broker makes the file before its first timer: without it nobody knows what was delivered
    if (filled or file is None) and not check.last_read_time and not taken:
        yield TimerHarm(_AGAIN, (CHECK,), queue.max_offset - first)
    wheel = start.store.file(WHEEL)
    if filled and (wheel is None or wheel.size == 0):
        unread = unread_files(log, int(check.last_timer_log_flush_position))
        if unread:
            count = len(unread) * (log.size // TIMER_UNIT_SIZE)
            yield TimerHarm(_LOST, (WHEEL, *(one.path for one in unread)), count)


def unread_files(log: MappedFiles, flush_position: int) -> list[MappedFile]:
    """Files of the timer log that a broker makes no wheel from: it begins one file in front of a position."""
    begin = max(flush_position - log.size, 0)
    bases = [one.base for one in log.files]
    scanned = max((base for base in bases if base <= begin), default=min(bases, default=0))
    return [one for one in log.files if one.base < scanned]


def _starts_blank(log: MappedFiles) -> bool:
    """The first file begins with zeros: nothing was put into it, or it was lost in a power cut."""
    first = log.files[0]
    if first.file is None:
        return True
    with first.file.open("pread") as source:
        return not source.window(0, TIMER_UNIT_SIZE).any()
