"""A new timer log, of the timers that wait, from their topic (`TimerMessageStore#doEnqueue`).

For a log that lacks a file, or timers that a broker would pass over. Where a broker makes it itself, from an
older queue offset on, it delivers once more what was delivered behind that.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from formats.timer import TIMER_CHECK_SIZE, TimerCheck, parse_timer_check
from rmqtool.broker.load import RefusedError
from rmqtool.broker.start import Start
from rmqtool.broker.timer_check import CHECK, TIMERS, Fault, check_faults
from rmqtool.broker.timer_log import WHEEL, in_use, load_timer_log
from rmqtool.broker.traits import traits_of
from rmqtool.errors import RmqtoolError
from rmqtool.query.views.topic_records import records_of
from rmqtool.recovery.timers import timer_harm
from rmqtool.repair.content import Inline, Joined, Zeros
from rmqtool.repair.keep.timer_units import COLUMNS, Window, timer_files, timer_units
from rmqtool.repair.plan import Action, Change, Edit
from rmqtool.store.kinds import FileKind
from rmqtool.store.names import file_name
from rmqtool.store.whole import read_whole

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rmqtool.broker.settings import StartSettings
    from rmqtool.repair.keep.timer_units import Units
    from rmqtool.scan.options import ReadOptions
    from rmqtool.store.layout import Store

_DAY = 86_400_000
_DIRECTORY, _WHY = FileKind.TIMERLOG.value, "timer-log"


def timer_log_edits(store: Store, release: str, settings: StartSettings, reading: ReadOptions) -> list[Edit]:
    """Files for the timers that wait, where a start would lose some or deliver others once more.

    store: repaired but for them. Nothing where `config/timercheck` does not tell what was delivered.
    """
    start = Start(store, traits_of(release), settings, reading)
    file = store.file(CHECK)
    if not in_use(start) or file is None:
        return []
    try:
        raw = read_whole(file)
        start.load()
        harm = list(timer_harm(start, load_timer_log(start)))
        queue = start.queues.get(TIMERS)
        if not harm or queue is None or _tells_nothing(raw, queue.max_offset):
            return []
        check = parse_timer_check(raw)
        read_time = int(check.last_read_time)
        taken = min(int(check.last_timer_queue_offset), queue.max_offset)
        today = int(time.time() * 1000) // _DAY * _DAY
        units = _units(store, reading, Window(read_time, settings.timer_precision, today), taken)
    except (RefusedError, RmqtoolError):
        return []
    files = timer_files(units, settings.timer_log_size)
    if files is None:
        return []
    fields = {
        **check,
        "last_timer_log_flush_position": 0,
        "last_timer_queue_offset": taken,
        "master_timer_queue_offset": taken,
    }
    return [*_changes(store, files, settings.timer_log_size), _check(fields, raw)]


def _tells_nothing(raw: bytes, end: int) -> bool:
    now = int(time.time() * 1000)
    faults = {one.fault for one in check_faults(raw, 0, end, now, filled=True)}
    return bool(faults & {Fault.AHEAD, Fault.UNKNOWN}) or parse_timer_check(raw).last_read_time <= 0


def _units(store: Store, reading: ReadOptions, window: Window, taken: int) -> Units:
    """Of the timers that brokers have taken from the topic. Raises `RmqtoolError` for a damaged log."""
    left: list[dict[str, object]] = []
    units = timer_units(records_of(store, [TIMERS[0]], COLUMNS, reading, left), taken, window)
    if left:
        raise RmqtoolError(f"{left[0].get('path')}: damaged")
    return units


def _changes(store: Store, files: list[bytes], size: int) -> Iterator[Edit]:
    message = "made of the messages of timers that wait: a broker delivers each once"
    paths = [f"{_DIRECTORY}/{file_name(number * size)}" for number in range(len(files))]
    if not store.listing.is_directory(_DIRECTORY):
        yield Edit(Change(action=Action.MAKE_DIRECTORY, path=_DIRECTORY, why=_WHY, message=message))
    for path, data in zip(paths, files, strict=True):
        change = Change(action=Action.PUT, path=path, length=size, size=size, why=_WHY, message=message)
        yield Edit(change, Joined((Inline(data), Zeros(size - len(data)))))
    gone = [one.display_path for one in store.of_kind(FileKind.TIMERLOG) if one.display_path not in paths]
    wheel = store.file(WHEEL)
    gone += [] if wheel is None else [wheel.display_path]
    for path in gone:
        message = "moved out: its timers that wait are in the new timer log"
        yield Edit(Change(action=Action.REMOVE, path=path, why=_WHY, message=message))


def _check(fields: dict[str, int], raw: bytes) -> Edit:
    data = TimerCheck.build(fields) + raw[TIMER_CHECK_SIZE:]
    message = "a broker makes the timer wheel of the new timer log, and goes on where the old one ended"
    change = Change(
        action=Action.PUT, path=CHECK, length=len(data), size=len(data), why=_WHY, message=message
    )
    return Edit(change, Inline(data))
