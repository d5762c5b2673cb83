"""`config/timercheck`, where timers go on after a start.

docs/format/checkpoint.md; `TimerCheckpoint`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import construct as cs

from formats.primitives import Schema, sizeof

if TYPE_CHECKING:
    from formats.primitives import Container

_HEAD = cs.Struct(
    "last_read_time" / cs.Int64sb,
    "last_timer_log_flush_position" / cs.Int64sb,
    "last_timer_queue_offset" / cs.Int64sb,
    "master_timer_queue_offset" / cs.Int64sb,
)
TIMER_UNIT_SIZE = 52
"""bytes of an entry in `timerlog/` (`TimerLog#UNIT_SIZE`)"""

TimerCheck = Schema(_HEAD)
TIMER_CHECK_SIZE = sizeof(_HEAD)
"""bytes that have a meaning; the file has a page"""


def parse_timer_check(data: bytes) -> Container:
    """The fields of the file; zeros for what a shorter or missing one lacks, as a broker maps it."""
    check: Container = TimerCheck.parse(data[:TIMER_CHECK_SIZE].ljust(TIMER_CHECK_SIZE, b"\0"))
    return check
