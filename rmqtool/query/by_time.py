"""The queue offset that belongs to a point in time, by the store times of the records themselves."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from rmqtool.broker.offset_by_time import Boundary
from rmqtool.query.queue_damage import skipped
from rmqtool.scan.multi import LMQ_PREFIX
from rmqtool.scan.units import pre_blanks

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    from rmqtool.broker.queue_view import QueueView, Units, ViewedFile

    Ints = npt.NDArray[np.int64]
    Row = dict[str, Any]

ALL_UNITS = 5_000_000
"""units of a queue up to which every store time is read; beyond, files are chosen by their edges"""

_CHUNK = 1024
"""messages that are judged together"""
MOST_MISDIRECTED = 4096
"""units that are kept of those of a plain queue that seem to lead to messages of other places"""


@dataclass(frozen=True, slots=True)
class ExactOffset:
    """queue_offset: None when no message answers.

    monotone: do store times never go back in what was read? checked: `all` units, or the `edges` of files
    and one file in full. unknown: units whose record is not there to be asked. misdirected: queue offset by
    physical offset, of records that name another queue or queue offset as their own, and of units that go
    back in the log; the first of them. In a light queue all that were looked at: records name another queue
    there, and which of them are wrong says `wrong_units.misdirected`. expired: queue offset of the first
    message whose segment went before it was asked, and how many these are; not `unknown`.
    """

    queue_offset: int | None
    monotone: bool
    checked: str
    unknown: int
    misdirected: dict[int, int]
    expired: tuple[int, int] | None = None


def exact_offset(view: QueueView, time: int, boundary: Boundary, all_units: int = ALL_UNITS) -> ExactOffset:
    """The first queue offset with a store time at or after `time` (ms), or the last at or before it.

    Not by bisection: where the clock went back, several offsets can look like the answer, and only the
    outermost is. all_units: up to so many are all looked at.
    """
    files = [file for file in view.files if file.written]
    total = sum(file.written for file in files) // view.width
    every = total <= all_units
    asked = _TimeRequest(view, time, boundary)
    for file in files if every else _by_edges(view, files, time, boundary):
        asked.look_at(file)
    checked = "all" if every else "edges"
    return ExactOffset(
        asked.queue_offset, asked.monotone, checked, asked.unknown, asked.misdirected, asked.expired
    )


@dataclass
class _TimeRequest:
    """The answer as far as units have been looked at, in their order, some at once.

    Units at the beginning may outlive their records by whole files; one below the first segment further
    behind is wrong.
    """

    view: QueueView
    time: int
    boundary: Boundary
    queue_offset: int | None = None
    monotone: bool = True
    unknown: int = 0
    misdirected: dict[int, int] = field(default_factory=dict)
    expired: tuple[int, int] | None = None
    _expired: bool = True
    """all units so far led to what lay in front of the log"""
    _latest: int = -1
    """store time of the last record that has one"""
    _furthest: int = -(1 << 63)
    """greatest physical offset so far"""

    def look_at(self, file: ViewedFile) -> None:
        """Units of one more file."""
        for first, end, units in self.view.parts(file):
            if units is not None:
                self._judge(*_messages(self.view, file, first, units))
            self._hole(file, first + (0 if units is None else len(units)), end)

    def _hole(self, file: ViewedFile, first: int, end: int) -> None:
        """Units [first, end) of a file, all zeros or cut off: they lead to no record."""
        view = self.view
        if first >= end or (self._expired and view.log.low > 0):
            return
        self._expired, self._furthest = False, max(self._furthest, 0)
        if view.batch:
            self.unknown += end - first if view.min_offset <= 0 else 0
        else:
            self.unknown += max(end - max(first, view.min_offset - file.base // view.width), 0)

    def _judge(self, slots: Ints, units: Units) -> None:
        view, offsets = self.view, units["physical_offset"].astype(np.int64)
        kept = slots >= view.min_offset
        if self._expired:
            expired = np.logical_and.accumulate(offsets < view.log.low)
            self._expired = bool(expired.all())
            kept &= ~expired
        slots, units, offsets = slots[kept], units[kept], offsets[kept]
        if not len(slots):
            return
        times = unit_times(view, units)
        known = times >= 0
        self._choose(slots, known & (times >= self.time if self._forward else times <= self.time))
        gone = ~known & view.log.have_expired(offsets)
        if gone.any():
            first, count = self.expired or (int(slots[gone][0]), 0)
            self.expired = first, count + int(gone.sum())
        self.unknown += int(len(known) - known.sum() - gone.sum())
        timed = times[known]
        if len(timed):
            self.monotone &= bool(timed[0] >= self._latest and (np.diff(timed) >= 0).all())
            self._latest = int(timed[-1])
        self._misdirect(known, slots, units, offsets)

    @property
    def _forward(self) -> bool:
        return self.boundary is Boundary.LOWER

    def _choose(self, slots: Ints, passing: npt.NDArray[np.bool_]) -> None:
        """With LOWER the first that passes, with UPPER the last."""
        places = np.flatnonzero(passing)
        if places.size and not (self._forward and self.queue_offset is not None):
            self.queue_offset = int(slots[places[0 if self._forward else -1]])

    def _misdirect(self, known: npt.NDArray[np.bool_], slots: Ints, units: Units, offsets: Ints) -> None:
        """Notes units of other queues or queue offsets, and such as go back in the log."""
        before = np.maximum.accumulate(np.concatenate([[self._furthest], offsets]))
        self._furthest = int(before[-1])
        other = known & (~_of_queue(self.view, units, slots) | (offsets <= before[:-1]))
        light = self.view.name[0].startswith(LMQ_PREFIX)
        some = np.flatnonzero(other)[: None if light else MOST_MISDIRECTED - len(self.misdirected)]
        self.misdirected |= zip(offsets[some].tolist(), slots[some].tolist(), strict=True)


def _of_queue(view: QueueView, units: Units, slots: Ints) -> npt.NDArray[np.bool_]:
    """Which units lead to a record that names queue and queue offset as its own."""
    topic, queue_id = view.name
    return view.log.of_queue(
        units["physical_offset"].astype(np.int64),
        units["size"].astype(np.int64),
        topic,
        queue_id,
        None if view.batch else slots,
    )


def _messages(view: QueueView, file: ViewedFile, first: int, units: Units) -> tuple[Ints, Units]:
    """Queue offset and unit of every message among units of a file. first: number of the first of them."""
    if view.batch:
        numbers = units["base_offset"].astype(np.int64)
    else:
        numbers = file.base // view.width + first + np.arange(len(units), dtype=np.int64)
    messages = ~pre_blanks(units)
    return numbers[messages], units[messages]


def places_from(
    view: QueueView, slot: int, boundary: Boundary, lost: list[Row]
) -> Iterator[list[tuple[int, int]]]:
    """(physical offset, queue offset) of messages from `slot` on, or with UPPER back from it, in chunks.

    lost: gets rows of `not_covered` for units among them that lead nowhere.
    """
    step = 1 if boundary is Boundary.LOWER else -1
    for file in [file for file in view.files if file.written][::step]:
        for first, end, some in view.parts(file, backwards=step < 0):
            if some is None:
                number = 0 if view.batch else file.base // view.width
                low = max(number + first, slot if step > 0 else view.min_offset)
                high = number + end if step > 0 else min(number + end, slot + 1)
                lost += [skipped(view, low, high - low)] if low < high else []
                continue
            slots, units = _messages(view, file, first, some)
            offsets = units["physical_offset"]
            back = (slots <= slot) & (slots >= view.min_offset) & (offsets >= view.log.low)
            kept = (slots >= slot) if step > 0 else back
            pairs = list(zip(offsets[kept].tolist(), slots[kept].tolist(), strict=True))[::step]
            for start in range(0, len(pairs), _CHUNK):
                yield pairs[start : start + _CHUNK]


def unit_times(view: QueueView, units: Units) -> Ints:
    """Store time (ms) of each unit's record, -1 where there is none; batch units hold their own."""
    if view.batch:
        return np.where(units["size"] > 0, units["store_timestamp"].astype(np.int64), -1)
    return view.log.store_timestamps(
        units["physical_offset"].astype(np.int64), units["size"].astype(np.int64)
    )


def _by_edges(view: QueueView, files: list[ViewedFile], time: int, boundary: Boundary) -> list[ViewedFile]:
    """The file that holds the answer when files follow each other in time, and its neighbours."""
    firsts = [_edge(view, file) for file in files]
    later = [index for index, first in enumerate(firsts) if first >= time]
    at = later[0] if later else len(files)
    return files[max(at - 2, 0) : at + (1 if boundary is Boundary.LOWER else 2)]


def _edge(view: QueueView, file: ViewedFile) -> int:
    return int(unit_times(view, view.units(file, 0, view.width))[0])
