"""The queue offset that belongs to a point in time, by the store times of the records themselves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from formats.consumequeue import PRE_BLANK_SIZE
from rmqtool.broker.offset_by_time import Boundary
from rmqtool.scan.multi import LMQ_PREFIX

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    from rmqtool.broker.queue_view import QueueView, Units, ViewedFile

    Ints = npt.NDArray[np.int64]

ALL_UNITS = 5_000_000
"""units of a queue up to which every store time is read; beyond, files are chosen by their edges"""

_CHUNK = 1024
"""messages that are judged together"""


@dataclass(frozen=True, slots=True)
class ExactOffset:
    """queue_offset: None when no message answers.

    monotone: do store times never go back in what was read? checked: `all` units, or the `edges` of files
    and one file in full. unknown: units whose record is not there to be asked. misdirected: queue offset by
    physical offset, of records that name another queue or queue offset as their own, and of units that go
    back in the log.
    """

    queue_offset: int | None
    monotone: bool
    checked: str
    unknown: int
    misdirected: dict[int, int]


def exact_offset(view: QueueView, time: int, boundary: Boundary, all_units: int = ALL_UNITS) -> ExactOffset:
    """The first queue offset with a store time at or after `time` (ms), or the last at or before it.

    Not by bisection: where the clock went back, several offsets can look like the answer, and only the
    outermost is. all_units: up to so many are all looked at.
    """
    files = [file for file in view.files if file.written]
    total = sum(file.written for file in files) // view.width
    every = total <= all_units
    chosen = files if every else _by_edges(view, files, time, boundary)
    slots, times, units = _columns(view, chosen)
    known = times >= 0
    passing = known & (times >= time if boundary is Boundary.LOWER else times <= time)
    places = np.flatnonzero(passing)
    monotone = bool((np.diff(times[known]) >= 0).all())
    unknown = int(len(known) - known.sum())
    place = None if not places.size else places[0] if boundary is Boundary.LOWER else places[-1]
    other = known & (~_of_queue(view, units, slots) | _goes_back(units))
    return ExactOffset(
        None if place is None else int(slots[place]),
        monotone,
        "all" if every else "edges",
        unknown,
        dict(zip(units["physical_offset"][other].tolist(), slots[other].tolist(), strict=True)),
    )


def _goes_back(units: Units) -> npt.NDArray[np.bool_]:
    """Which units lead to a record that is not behind those of all earlier units."""
    offsets = units["physical_offset"].astype(np.int64)
    back = np.zeros(len(offsets), np.bool_)
    back[1:] = offsets[1:] <= np.maximum.accumulate(offsets)[:-1]
    return back


def _of_queue(view: QueueView, units: Units, slots: Ints) -> npt.NDArray[np.bool_]:
    """Which units lead to a record that names queue and queue offset as its own; all in a light queue.

    Which of the others are wrong says `wrong_units.misdirected`.
    """
    topic, queue_id = view.name
    if topic.startswith(LMQ_PREFIX):
        return np.ones(len(units), np.bool_)
    return view.log.of_queue(
        units["physical_offset"].astype(np.int64),
        units["size"].astype(np.int64),
        topic,
        queue_id,
        None if view.batch else slots,
    )


def _columns(view: QueueView, files: list[ViewedFile]) -> tuple[Ints, Ints, Units]:
    """Queue offset, time and unit of every message that has not expired, as far as units tell.

    Units at the beginning may outlive their records by whole files; one below the first segment further
    behind is wrong.
    """
    slots: list[Ints] = [np.empty(0, np.int64)]
    found: list[Units] = [np.empty(0, view.dtype)]
    for file in files:
        numbers, units = _messages(view, file)
        slots.append(numbers)
        found.append(units)
    numbers, units = np.concatenate(slots), np.concatenate(found)
    expired = np.logical_and.accumulate(units["physical_offset"] < view.log.low)
    kept = (numbers >= view.min_offset) & ~expired
    return numbers[kept], unit_times(view, units[kept]), units[kept]


def _messages(view: QueueView, file: ViewedFile) -> tuple[Ints, Units]:
    """Queue offset and unit of every message of a file."""
    units = view.units(file)
    if view.batch:
        numbers = units["base_offset"].astype(np.int64)
    else:
        numbers = file.base // view.width + np.arange(len(units), dtype=np.int64)
    messages = units["size"] != PRE_BLANK_SIZE
    return numbers[messages], units[messages]


def places_from(view: QueueView, slot: int, boundary: Boundary) -> Iterator[list[tuple[int, int]]]:
    """(physical offset, queue offset) of messages from `slot` on, or with UPPER back from it, in chunks."""
    step = 1 if boundary is Boundary.LOWER else -1
    for file in [file for file in view.files if file.written][::step]:
        slots, units = _messages(view, file)
        offsets = units["physical_offset"]
        back = (slots <= slot) & (slots >= view.min_offset) & (offsets >= view.log.low)
        kept = (slots >= slot) if step > 0 else back
        pairs = list(zip(offsets[kept].tolist(), slots[kept].tolist(), strict=True))[::step]
        for start in range(0, len(pairs), _CHUNK):
            yield pairs[start : start + _CHUNK]


def unit_times(view: QueueView, units: Units) -> Ints:
    """Store time (ms) of each unit's record, -1 where there is none; batch units hold their own."""
    if view.batch:
        return np.asarray(units["store_timestamp"].astype(np.int64))
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
