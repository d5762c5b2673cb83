"""Timer files with which a broker starts and knows all timers (`TimerMessageStore#recover`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from formats.primitives import dtype_of
from formats.timer import (
    TIMER_CHECK_SIZE,
    WHEEL_SIZE,
    WHEEL_SLOTS,
    TimerCheck,
    WheelSlot,
    parse_timer_check,
)
from rmqtool.broker.java import parse_long
from rmqtool.broker.load import RefusedError, refused_by_timers
from rmqtool.broker.timer_chains import TimerFiles
from rmqtool.broker.timer_check import CHECK
from rmqtool.broker.timer_log import (
    WHEEL,
    entries_end,
    in_use,
    load_timer_log,
    unread_files,
)
from rmqtool.errors import RmqtoolError
from rmqtool.repair.content import Inline
from rmqtool.repair.plan import Action, Change, Edit
from rmqtool.store.holes import data_windows
from rmqtool.store.whole import read_whole

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from rmqtool.broker.mapped_files import MappedFile
    from rmqtool.broker.start import Start
    from rmqtool.store.files import StoreFile
    from rmqtool.store.layout import Store

_SLOT = dtype_of(WheelSlot)


def timer_edits(start: Start) -> Iterator[Edit]:
    """What the timer log, the wheel and its checkpoint need; nothing where no such thing is in the way."""
    if not in_use(start):
        return
    yield from _log(start)
    wheel = start.store.file(WHEEL)
    refusal = refused_by_timers(start.store, start.traits, start.settings)
    made = wheel is None or not wheel.size
    if refusal is not None and refusal.code == "timer-wheel-length" and refusal.path is not None:
        change = _wheel(start.store, refusal.path)
        yield Edit(change)
        made = change.action is Action.REMOVE
    if made:
        yield from _from_the_first_file(start)


def _log(start: Start) -> Iterator[Edit]:
    """Files of the timer log get the length that brokers demand; what is not an entry ends their scan."""
    size = start.settings.timer_log_size
    found = [one for one in start.listing.entries("timerlog") if one.file is not None]
    for entry in found:
        left = not entry.size and entry is found[-1] and start.traits.deletes_empty_last_file
        if entry.size != size and not left and parse_long(entry.name) is not None:
            message = "of another length than brokers take: timers behind its last entry are read again"
            change = Change(
                action=Action.RESIZE, path=entry.path, size=size, why="timer-log", message=message
            )
            yield Edit(change)


def _wheel(store: Store, path: str) -> Change:
    """A wheel that is whole in front of its surplus keeps its slots: not all timers are in the log's end."""
    file = store.file(path)
    if file is not None and file.regular and file.size > WHEEL_SIZE and _slots_fit(file):
        message = "longer than brokers take: what lies behind its last slot is cut"
        return Change(action=Action.RESIZE, path=path, size=WHEEL_SIZE, why="timer-wheel", message=message)
    message = "of another length than brokers take: it is rebuilt from the timer log"
    return Change(action=Action.REMOVE, path=path, why="timer-wheel", message=message)


def _slots_fit(file: StoreFile) -> bool:
    """Whether each slot in use lies where its time puts it (`TimerWheel#getSlotIndex`)."""
    try:
        with file.open("pread") as source:
            for at, window in data_windows(source, 0, WHEEL_SIZE):
                slots = window.view(_SLOT)
                used = np.flatnonzero(slots["time"])
                if (slots["time"][used] % WHEEL_SLOTS != at // _SLOT.itemsize + used).any():
                    return False
    except RmqtoolError:
        return False
    return True


def _from_the_first_file(start: Start) -> Iterator[Edit]:
    """A new wheel is made from the end of the log only, or from all of it where the checkpoint says so.

    Not where a broker would stop in front of that end: what lies behind is delivered once more.
    """
    file = start.store.file(CHECK)
    try:
        log = load_timer_log(start)
        raw = b"" if file is None else read_whole(file)
    except (RefusedError, RmqtoolError):
        return
    check = parse_timer_check(raw)
    flushed = int(check.last_timer_log_flush_position)
    unread = unread_files(log, flushed)
    if len(raw) < TIMER_CHECK_SIZE or not _are_whole(unread):
        return
    # the wheel is made new, whatever lies there now
    files = TimerFiles(log, None, flushed, log.min_offset, start.settings.timer_precision, start.reading)
    if not files.unreached(int(check.last_read_time)):
        return
    fields = {**check, "last_timer_log_flush_position": unread[0].base + log.size}
    data = TimerCheck.build(fields) + raw[TIMER_CHECK_SIZE:]
    change = Change(
        action=Action.PUT,
        path=CHECK,
        length=len(data),
        size=len(data),
        why="timer-check",
        message="the timer wheel is rebuilt from all files of the timer log, not from its last ones",
    )
    yield Edit(change, Inline(data))


def _are_whole(files: Iterable[MappedFile]) -> bool:
    """Whether each holds timers up to its blank (`TimerLog#append`)."""
    try:
        return all(one.file is not None and entries_end(one.file)[1] for one in files)
    except RmqtoolError:
        return False
