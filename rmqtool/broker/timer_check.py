"""What `config/timercheck` makes of timers at a start (`TimerMessageStore#recover`; seen with 5.3.3)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from formats.system_topics import TIMER_TOPIC
from formats.timer import TIMER_CHECK_SIZE, TIMER_UNIT_SIZE, parse_timer_check

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rmqtool.store.files import StoreFile

TIMERS = (TIMER_TOPIC, 0)
"""topic and queue that timers are taken from"""
CHECK = "config/timercheck"
_CLOCKS_DIFFER = 3_600_000
"""ms by which that of another machine may be ahead"""


class Fault(StrEnum):
    """Why a start does not go on where the last run stopped."""

    AHEAD = "ahead"
    """the time up to which timers were read has not come: none is looked at until then"""
    UNKNOWN = "unknown"
    """a broker makes the file before its first timer: without it nobody knows what was delivered"""
    MASTER_BEHIND = "master-behind"
    """both queue offsets are the same, but on a slave, which comes no further than its master"""


@dataclass(frozen=True, slots=True)
class CheckFault:
    """count: of timers, delivered ones included."""

    fault: Fault
    count: int


def check_faults(raw: bytes, first: int, end: int, now: int, *, filled: bool) -> Iterator[CheckFault]:
    """What is wrong in the file for a queue with messages of the queue offsets [first, end).

    raw: bytes of the file, none where there is none. now: ms. filled: timers lie in the timer log.
    """
    check = parse_timer_check(raw)
    read, last, master = (
        int(check[name])
        for name in ("last_read_time", "last_timer_queue_offset", "master_timer_queue_offset")
    )
    if read > now + _CLOCKS_DIFFER:
        yield CheckFault(Fault.AHEAD, end - first)
    if len(raw) < TIMER_CHECK_SIZE or (filled and not read and not min(last, master, end)):
        yield CheckFault(Fault.UNKNOWN, end - first)
    elif filled and max(master, first) < min(last, end):
        yield CheckFault(Fault.MASTER_BEHIND, min(last, end) - max(master, first))


def holds_timers(files: Sequence[StoreFile | None]) -> bool:
    """Whether the timer log does not begin with zeros: nothing was put in, or it was lost in a power cut."""
    first = files[0] if files else None
    if first is None:
        return False
    with first.open("pread") as source:
        return bool(source.window(0, TIMER_UNIT_SIZE).any())
