"""A new timer log, of the timers that wait, from their topic (`TimerMessageStore#doEnqueue`).

For a log that lacks a file, or timers that a broker would pass over. Where a broker makes it itself, from an
older queue offset on, it delivers once more what was delivered behind that.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from formats.commitlog import BLANK_MAGIC_CODE
from formats.java import java_hash, java_parse_int
from formats.primitives import dtype_of
from formats.properties import REAL_TOPIC, TIMER_DEL_UNIQKEY, TIMER_OUT_MS
from formats.timer import (
    ROLL_TIMES,
    TIMER_BLANK,
    TIMER_CHECK_SIZE,
    TIMER_DELETES,
    TIMER_ROLLED,
    TIMER_SET,
    TIMER_UNIT_SIZE,
    WHEEL_SPAN,
    TimerBlank,
    TimerCheck,
    TimerUnit,
    parse_timer_check,
)
from rmqtool.broker.load import RefusedError
from rmqtool.broker.start import Start
from rmqtool.broker.timer_check import CHECK, TIMERS, Fault, check_faults
from rmqtool.broker.traits import traits_of
from rmqtool.errors import RmqtoolError
from rmqtool.query.views.topic_records import property_of, records_of
from rmqtool.recovery.timers import WHEEL, in_use, load_timer_log, timer_harm
from rmqtool.repair.content import Inline, Joined, Zeros
from rmqtool.repair.plan import Action, Change, Edit
from rmqtool.store.kinds import FileKind
from rmqtool.store.names import file_name
from rmqtool.store.whole import read_whole

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from rmqtool.broker.settings import StartSettings
    from rmqtool.scan.options import ReadOptions
    from rmqtool.store.layout import Store

_DAY = 86_400_000
_UNIT = dtype_of(TimerUnit)
_COLUMNS = (
    "physical_offset", "store_size", "queue_id", "queue_offset", "store_timestamp", "born_timestamp",
    "body_crc", "uniq_key", "properties",
)  # fmt: skip
_DIRECTORY, _WHY = FileKind.TIMERLOG.value, "timer-log"


class _Timer(NamedTuple):
    """A message of the timer topic. due: ms. rolled: how often it was put there again for being far off."""

    queue_offset: int
    physical_offset: int
    size: int
    stored: int
    due: int
    deletes: bool
    topic_hash: int
    rolled: int
    message: tuple[object, ...]
    """what is the same whenever it is put there again"""


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
        found = list(_timers(store, reading, taken))
    except (RefusedError, RmqtoolError):
        return []
    step = settings.timer_precision
    window = _Window(read_time, step, int(time.time() * 1000) // _DAY * _DAY)
    files = _files(window.units(found), settings.timer_log_size)
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
    return bool(faults & {Fault.AHEAD, Fault.UNKNOWN}) or not parse_timer_check(raw).last_read_time


def _timers(store: Store, reading: ReadOptions, taken: int) -> Iterator[_Timer]:
    """Those that brokers have taken from the topic, in its order. Raises `RmqtoolError` for a damaged log."""
    left: list[dict[str, object]] = []
    for batch in records_of(store, [TIMERS[0]], _COLUMNS, reading, left):
        named = {name: property_of(batch, name) for name in _PROPERTIES}
        rows = zip(*(batch[name].to_pylist() for name in _COLUMNS[:-1]), *named.values(), strict=True)
        for at, size, queue, slot, stored, born, crc, key, due, topic, deletes, rolled in rows:
            when = java_parse_int(due or "", 64)
            if queue != TIMERS[1] or slot >= taken or when is None:
                continue
            topic_hash = 0 if topic is None else java_hash(topic)
            times = java_parse_int(rolled or "0") or 0
            message = (born, crc, key, when, topic, deletes)
            yield _Timer(slot, at, size, stored, when, deletes is not None, topic_hash, times, message)
    if left:
        raise RmqtoolError(f"{left[0].get('path')}: damaged")


_PROPERTIES = (TIMER_OUT_MS, REAL_TOPIC, TIMER_DEL_UNIQKEY, ROLL_TIMES)


@dataclass(frozen=True, slots=True)
class _Window:
    """read_time: up to which timers were delivered. today: its begin, for plans of a day to be the same.

    What was due before is delivered as if it were due then: a start passes over what is older than a week.
    """

    read_time: int
    precision: int
    today: int

    def units(self, timers: Iterable[_Timer]) -> list[dict[str, int]]:
        """What the log gets: what waits, and the last one that was taken, behind which brokers go on."""
        known = sorted(timers)
        again = {(one.message, one.rolled) for one in known}
        waits = [
            one
            for one in known
            if self._slot(one.due) >= self.read_time and (one.message, one.rolled + 1) not in again
        ]
        units = [self._unit(one) for one in waits]
        if known and (not waits or waits[-1] is not known[-1]):
            units.append(self._unit(known[-1], self.read_time - self.precision))
        return units

    def _slot(self, when: int) -> int:
        return when // self.precision * self.precision

    def _unit(self, one: _Timer, when: int | None = None) -> dict[str, int]:
        due, magic = when, TIMER_SET | (TIMER_DELETES if one.deletes else 0)
        if due is None:
            due = max(self._slot(one.due), self._slot(self.today) if one.due < self.today else 0)
            furthest = self._slot(max(self.today, self.read_time)) + WHEEL_SPAN * self.precision
            if due > furthest:
                due, magic = furthest, magic | TIMER_ROLLED
        written = self._slot(min(one.stored, due))
        written = max(written, due - (1 << 30))  # the rest is an int
        return {
            "size": TIMER_UNIT_SIZE,
            "magic": magic,
            "write_time": written,
            "delay": due - written,
            "physical_offset": one.physical_offset,
            "record_size": one.size,
            "topic_hash": one.topic_hash,
        }


def _files(units: list[dict[str, int]], size: int) -> list[bytes] | None:
    """As a broker appends them (`TimerLog#append`); None where a file has no room for any."""
    each = (size - TIMER_BLANK) // TIMER_UNIT_SIZE
    if each < 1:
        return None
    data = np.zeros(len(units), _UNIT)
    heads: dict[int, int] = {}
    for number, unit in enumerate(units):
        position = number // each * size + number % each * TIMER_UNIT_SIZE
        due = unit["write_time"] + unit["delay"]
        for name, value in unit.items():
            data[name][number] = value
        data["previous"][number] = heads.get(due, -1)
        heads[due] = position
    files = [data[first : first + each].tobytes() for first in range(0, len(units), each)]
    for number in range(len(files) - 1):
        rest = {"size": size - len(files[number]), "previous": 0, "magic": BLANK_MAGIC_CODE}
        files[number] += TimerBlank.build(rest)
    return files


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
