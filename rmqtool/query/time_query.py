"""The whole answer of `query-time`."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from rmqtool.broker.get_message import pull
from rmqtool.broker.offset_by_time import Boundary, broker_offset
from rmqtool.query.by_time import exact_offset, places_from
from rmqtool.query.dispatch_position import not_dispatched
from rmqtool.query.message_filter import MessageFilter
from rmqtool.query.queue_damage import queue_damage
from rmqtool.query.select_found import passing
from rmqtool.query.without_unit import without_first_units, without_last_units
from rmqtool.query.wrong_units import QUEUE_COLUMNS, WrongUnits
from rmqtool.scan.options import ReadOptions
from rmqtool.scan.picked import Damaged, Missing, pick
from rmqtool.store.coverage import Incomplete, coverage

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pyarrow as pa

    from rmqtool.broker.queue_view import QueueView
    from rmqtool.query.by_time import ExactOffset
    from rmqtool.query.served_queue import ReadRules
    from rmqtool.store.layout import Store

Row = dict[str, Any]

_INT64_MAX = (1 << 63) - 1


@dataclass
class TimeQuery:
    """One queue, one store time (ms) and a boundary.

    chosen: which message from there on is listed. unread: what of log and queue cannot be opened.
    reading: how the log is searched for what has no unit.
    """

    store: Store
    view: QueueView
    rules: ReadRules
    time: int
    boundary: Boundary = Boundary.LOWER
    chosen: MessageFilter = field(default_factory=MessageFilter)
    unread: Sequence[Row] = ()
    reading: ReadOptions = field(default_factory=ReadOptions)
    missing: list[Missing] = field(default_factory=list)
    damaged: list[Damaged] = field(default_factory=list)
    _nowhere: list[Row] = field(default_factory=list)

    @cached_property
    def exact(self) -> ExactOffset:
        """By the store times of the records."""
        return exact_offset(self.view, self.time, self.boundary)

    @cached_property
    def by_broker(self) -> int:
        """What the release answers."""
        return broker_offset(self.view, self.time, self.boundary)

    @cached_property
    def place(self) -> tuple[int, int] | None:
        """(physical offset, queue offset) of the message that is listed.

        That at the exact offset, or the next one (with UPPER: the one before) that passes `chosen`.
        """
        slot = self.exact.queue_offset
        if slot is None:
            return None
        if self.chosen.selects_all:
            delivered = pull(self.view, slot, 1).delivered
            return (delivered[0].physical_offset, delivered[0].queue_offset) if delivered else None
        for places in places_from(self.view, slot, self.boundary, self._nowhere):
            slots = dict(places)
            found, lost = passing(self.store.segments, list(slots), self._in_time)
            self.missing += lost
            if found:
                return found[0], slots[found[0]]
        return None

    @property
    def _in_time(self) -> MessageFilter:
        """The clock may have gone back: what lies behind the exact offset may be of another time."""
        if self.boundary is Boundary.LOWER:
            return replace(self.chosen, store_from=self.time)
        return replace(self.chosen, store_to=min(self.time + 1, _INT64_MAX))

    def batches(self, columns: Sequence[str]) -> Iterator[tuple[pa.RecordBatch, dict[str, list[Any]]]]:
        """The record that is listed, if there is one."""
        if self.place is None:
            return
        physical_offset, slot = self.place
        for part in pick(self.store.segments, [physical_offset], columns, damaged=self.damaged):
            if isinstance(part, Missing):
                self.missing.append(part)
            else:
                yield part, {"slot": [slot]}

    def summary(self) -> Row:
        """The closing summary."""
        reported: Row = {
            "timestamp": self.time,
            "boundary": str(self.boundary),
            "queue_offset": self.exact.queue_offset,
            "broker_queue_offset": self.by_broker,
            "min_offset": self.view.min_offset,
            "max_offset": self.view.max_offset,
            "monotone": self.exact.monotone,
            "checked": self.exact.checked,
            "unknown_times": self.exact.unknown,
            "version": self.rules.version,
            "version_source": self.rules.source,
        }
        if not self.chosen.selects_all:
            reported["passing_queue_offset"] = self.place[1] if self.place is not None else None
        return reported | coverage(self.not_covered())

    @cached_property
    def _misdirected(self) -> list[Row]:
        """Rows for messages of other queues or queue offsets among those that were asked for their time."""
        slots, wrong = self.exact.misdirected, WrongUnits(self.view)
        for part in pick(self.store.segments, list(slots), QUEUE_COLUMNS):
            if isinstance(part, Missing):
                continue
            own = [slots[one] for one in part["physical_offset"].to_pylist()]
            if found := wrong.rows(part, own):
                return found
        return []

    @cached_property
    def _without_unit(self) -> list[Row]:
        """Rows for messages without a unit; for those behind the last one where they may be meant."""
        rows = list(without_first_units(self.store, self.view, self.reading))
        if self.exact.queue_offset is None or self.boundary is Boundary.UPPER:
            rows += without_last_units(self.store, self.view, self.reading)
        return rows

    def not_covered(self) -> list[Row]:
        """Units whose records are not there to be asked for their time, and a record that cannot be shown."""
        rows: list[Row] = list(self.unread)
        rows += queue_damage(self.view, self.store)
        if self.exact.unknown:
            why = f"{self.exact.unknown} consume queue entries without a record, whose time is not known"
            rows.append({"path": self.view.path, "reason": Incomplete.DAMAGE, "error": why})
        rows += self._expired()
        rows += self._nowhere
        rows += self._misdirected
        rows += self._without_unit
        return [*rows, *map(Missing.row, self.missing), *map(Damaged.row, self.damaged)]

    def _expired(self) -> Iterator[Row]:
        """The row for messages that went before they were asked for their time, where one may be meant.

        They are older than those that are left, so that none of them is the last at or before the time.
        """
        exact = self.exact
        if exact.expired is None or (self.boundary is Boundary.UPPER and exact.queue_offset is not None):
            return
        first, count = exact.expired
        place = {"path": self.view.path, "queue_offset": first, "messages": count}
        yield place | {"reason": Incomplete.UNREADABLE, "error": "expired while the queue was read"}

    def notes(self) -> Iterator[str]:
        """What people should know about the answer. As long as the view is open."""
        exact, broker = self.exact.queue_offset, self.by_broker
        if exact is None:
            side = "after" if self.boundary is Boundary.LOWER else "before"
            yield f"no message in the queue was stored at or {side} that time"
            if self.boundary is Boundary.LOWER:
                waiting = not_dispatched(self.store, self.view, self.reading)
                if waiting is not None:
                    yield f"{waiting}: their times are not looked at"
        elif exact != broker:
            yield f"release {self.rules.version} would answer {broker}, by the records it is {exact}"
        if not self.exact.monotone:
            yield "store times go back in this queue (a clock was set): later messages may be older"
        if self.exact.checked == "edges":
            yield "the queue is long: files were chosen by their first and last message"
