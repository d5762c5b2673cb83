"""Delayed messages: they wait in the queue of their level, and are stored again when they are due.

`ScheduleMessageService`; what it has delivered is in `delayOffset.json`, and behind a crash in the log itself
(`services.delivered`), so that nothing is delivered twice.
"""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING, Any

import numpy as np

from formats.consumequeue import EXT_MAX_ADDRESS
from formats.system_topics import HALF_TOPIC
from formats.tags_code import SCHEDULE_TOPIC, deliver_time, parse_delay_levels
from rmqtool.errors import RmqtoolError, UsageError
from rmqtool.messagestore.appending import NotAppendedError
from rmqtool.messagestore.messages import IllegalMessageError, PutStatus
from rmqtool.messagestore.records import further_properties
from rmqtool.messagestore.services.bulk import LEAST, columns_of, few, near
from rmqtool.messagestore.services.copying import copy_of, delayed_place, properties_of, real_place
from rmqtool.messagestore.services.delivered import delivered_until
from rmqtool.messagestore.services.tables import Table
from rmqtool.store.consumer_offsets import stored_delay_offsets
from rmqtool.store.names import names_directory

if TYPE_CHECKING:
    from rmqtool.broker.encoder import MessageColumns
    from rmqtool.messagestore.messages import Message, StoredMessage
    from rmqtool.messagestore.services.bulk import Key
    from rmqtool.messagestore.services.engine import Copy, Engine, Ints, Units

_LOG = logging.getLogger(__name__)
_AT_ONCE = 1 << 14
"""messages of one append"""
_DROPPED = ("TIMER_DELIVER_MS", "TIMER_DELAY_SEC", "TIMER_DELAY_MS")
"""properties that a delay level takes the place of (`HookUtils#checkIfTimerMessage`)"""


class Schedule:
    """Delivers what is due. Each call of `deliver` does all levels; only one does so at a time."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.delays = parse_delay_levels(engine.settings.config.message_delay_level)
        """ms by level"""
        self.most_level = max(self.delays)
        self._turn = threading.Lock()
        self._offsets: dict[int, int] = {}
        self._table = Table(engine, "delayOffset.json", self._document, versioned=engine.of_5)
        self._refused: dict[int, int] = {}
        """queue offset by level of what could not be put the last time"""
        for level, offset, _ in stored_delay_offsets(engine.stored):
            self._offsets[level] = offset
        self._begun = False
        self.halted = False
        """a delivery under way ends soon"""

    def waiting(
        self, message: Message, place: tuple[str, int], level: int
    ) -> tuple[tuple[str, int], dict[str, str]]:
        """Where a message for `place` waits, its properties. Raises `UsageError`, `IllegalMessageError`."""
        if level <= 0:
            raise UsageError(f"delay level {level} is not between 1 and {self.most_level}")
        given = {name: one for name, one in further_properties(message).items() if name not in _DROPPED}
        return delayed_place(place, given, level, self.most_level)

    def deliver(self) -> int:
        """Stores all messages again that are due now, of those that are dispatched; how many they were.

        Raises `StoreIOError`, `UnreadableError`, `StoreClosedError`.
        """
        with self._turn:
            if not self._begun:
                self._begin()
            return sum(self._deliver_level(level) for level in self.delays)

    def offset(self, level: int) -> int:
        """Queue offset of the next message of a level."""
        return self._offsets.get(level, 0)

    def save(self) -> None:
        """Writes the offsets, if they have changed, behind what they say to be delivered.

        Raises `StoreIOError`.
        """
        with self._turn:
            if not self._begun and not self._engine.clean:
                self._begin()  # or the next one who opens it delivers twice what a crash hid
            if self._begun and self._table.changed and self._engine.flush():
                self._table.save()

    def _begin(self) -> None:
        """Offsets are in their queues (`#correctDelayOffset`), and behind what a crash left delivered."""
        self._engine.catch_up()
        for level, offset in list(self._offsets.items()):
            low, high = self._engine.offsets(SCHEDULE_TOPIC, level - 1)
            if level in self.delays and high:
                self._move(level, min(max(offset, low), high))
        if not self._engine.clean:
            waiting = {level: self._due_places(level) for level in self.delays}
            for level, offset in delivered_until(self._engine, waiting).items():
                self._move(level, offset)
        self._begun = True

    def _due_places(self, level: int) -> list[tuple[int, int, int]]:
        """Queue offset, physical offset and time of what is due and not known to be delivered."""
        found: list[tuple[int, int, int]] = []
        at, end = self.offset(level), self._engine.offsets(SCHEDULE_TOPIC, level - 1)[1]
        while at < end:
            units = self._engine.units(SCHEDULE_TOPIC, level - 1, at, _AT_ONCE)
            count = 0 if units is None else self._count_due(level, units)
            if units is None or not count:
                break
            numbers = range(units.first, units.first + count)
            times = self._times_of(level, units)[:count].tolist()
            found += zip(numbers, units.physical_offsets[:count].tolist(), times, strict=True)
            at = units.first + count
            if count < len(units.codes):
                break
        return found

    def _deliver_level(self, level: int) -> int:
        low, high = self._engine.offsets(SCHEDULE_TOPIC, level - 1)
        delivered, at = 0, max(self.offset(level), low)
        while at < high:
            units = self._engine.units(SCHEDULE_TOPIC, level - 1, at, _AT_ONCE)
            count = 0 if units is None else self._count_due(level, units)
            if units is None or not count:
                break
            done, stored = self._deliver(level, units.part(0, count))
            delivered += stored
            if not done:
                break
            at = units.first + done
            self._move(level, at)
        return delivered

    def _count_due(self, level: int, units: Units) -> int:
        """How many of the first units are due; a time too far ahead is none (`#correctDeliverTimestamp`)."""
        now, delay = self._engine.clock(), self.delays[level]
        codes = self._times_of(level, units)
        early = (codes > now) & (codes <= now + delay)
        return int(np.argmax(early)) if early.any() else len(codes)

    def _times_of(self, level: int, units: Units) -> Ints:
        """Times of delivery; where units lead to an extension file, by the records."""
        found = units.codes
        for number in np.flatnonzero(found <= EXT_MAX_ADDRESS).tolist():
            (message,) = self._engine.records([int(units.physical_offsets[number])])
            stamp = 0 if message is None else message.store_timestamp
            found[number] = deliver_time(level, stamp, self.delays)
        return found

    def _deliver(self, level: int, units: Units) -> tuple[int, int]:
        """Units that are due: how many are behind us now, and how many messages were stored."""
        behind = delivered = 0
        while behind < len(units.codes) and not self.halted:
            rest = units.part(behind, len(units.codes))
            wanted = near(rest, self._engine.log.segment_size)
            columns = columns_of(self._engine, rest, wanted) if wanted >= LEAST else None
            if columns is None:
                wanted = few(rest)
                done, stored = self._deliver_each(level, rest.part(0, wanted))
            else:
                done, stored = self._deliver_columns(*columns)
            behind, delivered = behind + done, delivered + stored
            if done < wanted:
                break
        return behind, delivered

    def _deliver_columns(self, columns: MessageColumns, keys: list[Key], which: Ints) -> tuple[int, int]:
        writer = self._engine.writer
        physical, status, why = writer.put_columns(columns, keys, which)
        stored = int((physical >= 0).sum())
        if stored:
            writer.flush_appended(keys)
        illegal = stored < len(physical) and status is PutStatus.MESSAGE_ILLEGAL
        if illegal:
            _LOG.warning("a delayed message for topic %s: %s; passed over", keys[which[stored]][0], why)
        return stored + illegal, stored

    def _deliver_each(self, level: int, units: Units) -> tuple[int, int]:
        count, messages = len(units.codes), self._engine.records(units.physical_offsets.tolist())
        copies: list[Copy] = []
        places: list[int] = []
        for number, message in enumerate(messages):
            copy = None if message is None else self._copy(message, level, units.first + number)
            if copy is not None:
                copies.append(copy)
                places.append(number)
        try:
            found = self._engine.append(copies) if copies else []
        except IllegalMessageError:
            return places[0] if places else count, 0
        stored = 0
        for number, place in zip(places, found, strict=True):
            if not isinstance(place, NotAppendedError):
                stored += 1
            elif place.status is PutStatus.MESSAGE_ILLEGAL:
                _LOG.warning(
                    "delay level %d: message %d: %s; passed over", level, units.first + number, place
                )
            else:
                return number, stored
        return count, stored

    def _copy(self, message: StoredMessage, level: int, offset: int) -> Copy | None:
        """The record to deliver; None for what can be delivered nowhere, which a broker stops at or drops."""
        properties = properties_of(message)
        place = real_place(properties)
        why = None
        if place is None or not names_directory(place[0]):
            why = "names no topic and queue"
        elif place[0] == HALF_TOPIC:
            why = "claims to be a half message"
        else:
            try:
                return copy_of(self._engine.maker, message, place, properties)
            except IllegalMessageError as error:
                why = f"cannot be stored: {error}"
        _LOG.warning("delay level %d: message %d %s; passed over", level, offset, why)
        return None

    def _move(self, level: int, offset: int) -> None:
        if self._offsets.get(level) != offset:
            self._offsets[level] = offset
            self._table.touch()

    def _document(self) -> dict[str, Any]:
        return {"offsetTable": dict(sorted(self._offsets.items()))}


class ScheduleThread:
    """Delivers in the background, first after a second, then ten times a second, as a broker does."""

    FIRST, PAUSE, PERIOD = 1.0, 0.1, 10.0
    """seconds; the last one behind an error"""

    def __init__(self, schedule: Schedule) -> None:
        self._schedule, self._stop = schedule, threading.Event()
        self.error: RmqtoolError | None = None
        """why the last delivery failed"""
        self._thread = threading.Thread(target=self._run, name="rmqtool-schedule", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        pause = self.FIRST
        while not self._stop.wait(pause):
            pause = self.PAUSE
            try:
                self._schedule.deliver()
                self.error = None
            except RmqtoolError as error:
                self.error, pause = error, self.PERIOD
                _LOG.warning("delayed messages are not delivered: %s", error)

    def close(self) -> None:
        """Ends it behind the messages that it stores."""
        self._stop.set()
        self._schedule.halted = True
        self._thread.join()
