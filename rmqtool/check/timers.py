"""Timers: what `config/timercheck` says of them, and whether slots of the wheel lead to those that wait."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from formats.primitives import offset_of
from formats.timer import TIMER_CHECK_SIZE, WHEEL_SIZE, TimerCheck, parse_timer_check
from rmqtool.broker.mapped_files import MappedFile, MappedFiles
from rmqtool.broker.settings import settings_of
from rmqtool.broker.timer_chains import TimerFiles
from rmqtool.broker.timer_check import CHECK, Fault, check_faults, holds_timers
from rmqtool.broker.timer_log import DIRECTORY, wheel_of
from rmqtool.check.findings import finding
from rmqtool.errors import RmqtoolError
from rmqtool.store.kinds import FileKind
from rmqtool.store.live import is_live
from rmqtool.store.whole import read_whole

if TYPE_CHECKING:
    from collections.abc import Iterator

    from formats.primitives import Container
    from rmqtool.check.findings import Finding
    from rmqtool.check.topics import QueueEnds
    from rmqtool.scan.options import ReadOptions
    from rmqtool.store.files import StoreFile
    from rmqtool.store.layout import Store

_LONG = 8
_FIELDS = {
    Fault.AHEAD: ("CP-TIMERS-AHEAD", "last_read_time"),
    Fault.MASTER_BEHIND: ("CP-TIMERS-BEHIND", "master_timer_queue_offset"),
}


def check_timers(store: Store, ends: QueueEnds | None, reading: ReadOptions) -> Iterator[Finding]:
    """By the rules that `doctor` has of a start. ends: of the queue of the timer topic."""
    log = _files(store)
    file = store.file(CHECK)
    if ends is None or ends.max_offset <= ends.min_offset or (file is None and not log):
        return
    path = CHECK if file is None else file.display_path
    try:
        raw = b"" if file is None else read_whole(file)
        filled = holds_timers(log)
        check = parse_timer_check(raw)
        first, now = max(ends.min_offset, 0), int(time.time() * 1000)
        for one in check_faults(raw, first, ends.max_offset, now, filled=filled):
            if one.fault is Fault.UNKNOWN:
                found = "there is no timer check" if file is None else "the timer check tells nothing"
                yield finding("CP-TIMERS-UNKNOWN", path=path, expected=one.count, found=found)
                continue
            code, part = _FIELDS[one.fault]
            yield finding(
                code,
                path=path,
                position=offset_of(TimerCheck, part),
                length=_LONG,
                part=part,
                expected=one.count,
                found=int(check[part]),
            )
    except RmqtoolError as error:
        yield finding("CP-UNREADABLE", path=path, found=str(error))
        return
    if checks_wheel(store):
        yield from _unreached(store, check, ends.max_offset - first, reading)


def checks_wheel(store: Store) -> bool:
    """Whether slots can be held against the timer log: of a store at rest, in files of the usual lengths.

    And where `config/timercheck` says which timers wait.
    """
    log, wheel, check = _files(store), wheel_of(store), store.file(CHECK)
    if not log or check is None or check.size < TIMER_CHECK_SIZE or is_live(store):
        return False
    if wheel is not None and wheel.size != WHEEL_SIZE:
        return False
    size = settings_of(store).timer_log_size
    if any(one.base_offset is None or one.base_offset % size or one.size != size for one in log):
        return False
    try:
        return parse_timer_check(read_whole(check)).last_read_time > 0 and holds_timers(log)
    except RmqtoolError:
        return False


def _files(store: Store) -> list[StoreFile]:
    return sorted(store.of_kind(FileKind.TIMERLOG), key=lambda one: one.base_offset or 0)


def _unreached(store: Store, check: Container, most: int, reading: ReadOptions) -> Iterator[Finding]:
    """most: timers that can be lost."""
    settings = settings_of(store)
    log = MappedFiles(settings.timer_log_size, DIRECTORY)
    for one in _files(store):
        log.files.append(MappedFile(one.base_offset or 0, log.size, one.path, one))
    flushed, precision = int(check.last_timer_log_flush_position), settings.timer_precision
    files = TimerFiles(log, wheel_of(store), flushed, log.min_offset, precision, reading)
    try:
        lost = files.unreached(int(check.last_read_time))
    except RmqtoolError as error:
        yield finding("DIR-UNREADABLE", path=DIRECTORY, found=str(error))
        return
    for path, count in sorted(lost.items()):
        yield finding("TMR-UNREACHED", path=path, expected=min(count, most))
