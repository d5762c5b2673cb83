"""Timers: `timerlog/`, `timerwheel`, and `config/timercheck`, where they go on after a start.

docs/format/timer.md; `TimerLog`, `TimerWheel`, `TimerCheckpoint`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import construct as cs

from formats.primitives import Schema, sizeof

if TYPE_CHECKING:
    from formats.primitives import Container

TimerUnit = Schema(
    cs.Struct(
        "size" / cs.Int32sb,
        "previous" / cs.Int64sb,
        "magic" / cs.Int32sb,
        "write_time" / cs.Int64sb,
        "delay" / cs.Int32sb,
        "physical_offset" / cs.Int64sb,
        "record_size" / cs.Int32sb,
        "topic_hash" / cs.Int32sb,
        "reserved" / cs.Int64sb,
    )
)
"""One timer in `timerlog/`, in the chain of its slot."""

TIMER_UNIT_SIZE = sizeof(TimerUnit)
TIMER_MAGIC_BITS = 0xF
"""which bits `magic` can have: set by default, rolled, deleted, and one of no use"""
TIMER_SET, TIMER_ROLLED, TIMER_DELETES = 1, 2, 4
ROLL_TIMES = "TIMER_ROLL_TIMES"
"""property: how often a message was put into the timer topic again, as it was due beyond the wheel"""

TimerBlank = Schema(cs.Struct("size" / cs.Int32sb, "previous" / cs.Int64sb, "magic" / cs.Int32sb))
"""Ends a file: bytes left, and the magic of a blank."""

TIMER_BLANK = sizeof(TimerBlank)
"""bytes that have to be left behind a unit"""

WheelSlot = Schema(
    cs.Struct(
        "time" / cs.Int64sb,
        "first" / cs.Int64sb,
        "last" / cs.Int64sb,
        "count" / cs.Int32sb,
        "magic" / cs.Int32sb,
    )
)
"""The timers of one time, counted in `timerPrecisionMs`: ends of their chain in `timerlog/`."""

WHEEL_SLOTS = 2 * 7 * 24 * 3600
"""two weeks of seconds (`TimerMessageStore`)"""
WHEEL_SPAN = WHEEL_SLOTS // 2 - 60
"""slots that a start looks back, and the most that a timer lies ahead (`TIMER_BLANK_SLOTS`)"""
WHEEL_SIZE = WHEEL_SLOTS * sizeof(WheelSlot)
"""bytes of `timerwheel`"""

TimerCheck = Schema(
    cs.Struct(
        "last_read_time" / cs.Int64sb,
        "last_timer_log_flush_position" / cs.Int64sb,
        "last_timer_queue_offset" / cs.Int64sb,
        "master_timer_queue_offset" / cs.Int64sb,
    )
)
TIMER_CHECK_SIZE = sizeof(TimerCheck)
"""bytes that have a meaning; the file has a page"""


def parse_timer_check(data: bytes) -> Container:
    """The fields of the file; zeros for what a shorter or missing one lacks, as a broker maps it."""
    check: Container = TimerCheck.parse(data[:TIMER_CHECK_SIZE].ljust(TIMER_CHECK_SIZE, b"\0"))
    return check
