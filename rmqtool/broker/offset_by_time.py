"""The queue offset that a broker answers for a point in time, by the search of each release.

`ConsumeQueue#getOffsetInQueueByTime`, `BatchConsumeQueue#getOffsetInQueueByTime`. A time is milliseconds.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Any, Protocol

from rmqtool.broker.queue_bounds import LogStart, QueueBounds

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    Units = npt.NDArray[Any]


class TimedLog(LogStart, Protocol):
    """What the search asks of the log; `broker.log_view.LogView` says what each answers."""

    def store_timestamp(self, physical_offset: int, size: int) -> int:
        """Store time (ms) of a record, -1 for one that is not served."""
        ...


class TimedFile(Protocol):
    """A queue file."""

    @property
    def base(self) -> int:
        """Offset of its first byte in the queue."""
        ...

    @property
    def written(self) -> int:
        """Bytes up to the read position."""
        ...


class TimedQueue(QueueBounds, Protocol):
    """What the search asks of a queue; `broker.queue_view.QueueView` says what each answers."""

    @property
    def files(self) -> Sequence[TimedFile]:
        """Only the queue looks into them further."""
        ...

    @property
    def log(self) -> TimedLog:
        """The log that units lead to."""
        ...

    @property
    def batch(self) -> bool:
        """Whether units are of 46 bytes."""
        ...

    @property
    def min_logic_offset(self) -> int:
        """`minLogicOffset`: bytes in a plain queue, a queue offset in a batch queue."""
        ...

    def units(self, file: Any, start: int = 0, end: int | None = None) -> Units:
        """Units of a file between two positions (bytes)."""
        ...

    def unit(self, file: Any, number: int, name: str) -> int:
        """One field of one unit of a file."""
        ...

    def column(self, file: Any, name: str) -> Sequence[int]:
        """One field of all units of a file, each read when it is asked for."""
        ...

    def modified(self) -> list[int]:
        """Modification times (ms) of the files."""
        ...


class Boundary(StrEnum):
    """`BoundaryType`: the first offset at or after a time, or the last at or before it."""

    LOWER = "lower"
    UPPER = "upper"


def broker_offset(view: TimedQueue, time: int, boundary: Boundary) -> int:
    """What the broker answers.

    Releases differ in how they choose the file, whether they know boundaries, and whether the answer lies in
    the queue's range (`Traits.time_boundaries`, `Traits.time_in_range`).
    """
    if view.batch:
        found = _batch(view, time, boundary)
    elif view.traits.time_boundaries:
        found = _with_boundary(view, time, boundary)
    else:
        found = _by_modification_time(view, time)
    if view.traits.time_in_range:
        return max(view.min_offset, min(found, view.max_offset))
    return found


class _Times:
    """Store times of the units of one file."""

    def __init__(self, view: TimedQueue, file: TimedFile) -> None:
        self._log = view.log
        self._offsets = view.column(file, "physical_offset")
        self._sizes = view.column(file, "size")

    def __len__(self) -> int:
        return len(self._offsets)

    def offset(self, index: int) -> int:
        """Physical offset of a unit."""
        return self._offsets[index]

    def at(self, index: int) -> int:
        """Time of a unit, -1 when its record is not served."""
        return self._log.store_timestamp(self._offsets[index], self._sizes[index])


def _with_boundary(view: TimedQueue, time: int, boundary: Boundary) -> int:
    file = _file_by_records(view, time, boundary)
    if file is None:
        return 0
    times, width = _Times(view, file), view.width
    if not len(times):
        return file.base // width
    first = file.base // width
    floor = max(view.min_logic_offset - file.base, 0) // width
    ceiling = len(times) - 1
    if times.at(ceiling) < time:
        return first + ceiling + 1 if boundary is Boundary.LOWER else first + ceiling
    if times.at(min(floor, ceiling)) > time:
        return first if boundary is Boundary.LOWER else 0
    return _bisect_bounded(view, times, time, boundary, (first, floor, ceiling))


def _bisect_bounded(
    view: TimedQueue, times: _Times, time: int, boundary: Boundary, place: tuple[int, int, int]
) -> int:
    first, floor, ceiling = place
    low, high = floor, ceiling
    left: int | None = None
    right: int | None = None
    while high >= low:
        middle = (low + high) // 2
        if times.offset(middle) < view.log.low:
            low, left = middle + 1, middle
            continue
        value = times.at(middle)
        if value < 0:
            return 0
        if value == time:
            return first + _run_end(times, time, middle, boundary, floor, ceiling)
        if value > time:
            high, right = middle - 1, middle
        else:
            low, left = middle + 1, middle
    found = right if boundary is Boundary.LOWER else left
    return _before_first(view, first) if found is None else first + found


def _before_first(view: TimedQueue, first: int) -> int:
    """Java's division of (base - 1 byte) by the unit size rounds towards zero."""
    return max(first * view.width - 1, 0) // view.width


def _run_end(times: _Times, time: int, at: int, boundary: Boundary, floor: int, ceiling: int) -> int:
    """Among units of the same time the outermost on the side that the boundary asks for."""
    step, end = (-1, floor) if boundary is Boundary.LOWER else (1, ceiling)
    while at != end and times.at(at + step) == time:
        at += step
    return at


def _file_by_records(view: TimedQueue, time: int, boundary: Boundary) -> TimedFile | None:
    """`MappedFileQueue#getConsumeQueueMappedFileByTime`."""
    if not view.files:
        return None
    if boundary is Boundary.LOWER:
        for file in view.files[:-1]:
            if _edge_time(view, file, -1) >= time:
                return file
        return view.files[-1]
    for file in reversed(view.files):
        if _edge_time(view, file, 0) <= time:
            return file
    return None


def _edge_time(view: TimedQueue, file: TimedFile, index: int) -> int:
    units = view.units(file, 0, view.width) if index == 0 else view.units(file, file.written - view.width)
    if not len(units):
        return -1
    return view.log.store_timestamp(int(units[index]["physical_offset"]), int(units[index]["size"]))


def _by_modification_time(view: TimedQueue, time: int) -> int:
    """The search up to 5.1.0: the nearest unit in the first file that was not modified before."""
    if not view.files:
        return 0
    stamps = zip(view.files, view.modified(), strict=True)
    file = next((one for one, at in stamps if at >= time), view.files[-1])
    times, first = _Times(view, file), file.base // view.width
    low = max(view.min_logic_offset - file.base, 0) // view.width
    high = len(times) - 1
    left, right, left_time, right_time = -1, -1, -1, -1
    while high >= low:
        middle = (low + high) // 2
        if times.offset(middle) < view.log.low:
            low, left = middle + 1, middle
            continue
        value = times.at(middle)
        if value < 0:
            return 0
        if value == time:
            return first + middle
        if value > time:
            high, right, right_time = middle - 1, middle, value
        else:
            low, left, left_time = middle + 1, middle, value
    return first + _nearer(time, (left, left_time), (right, right_time))


def _nearer(time: int, left: tuple[int, int], right: tuple[int, int]) -> int:
    if left[1] == -1:
        return right[0]
    if right[1] == -1:
        return left[0]
    return right[0] if abs(time - left[1]) > abs(time - right[1]) else left[0]


def _batch(view: TimedQueue, time: int, boundary: Boundary) -> int:
    """`BatchConsumeQueue#getOffsetInQueueByTime`: times stand in the units."""
    filled = [file for file in view.files if file.written >= view.width]
    if not filled:
        return -1
    firsts = (view.unit(file, 0, "store_timestamp") for file in reversed(filled))
    before = zip(reversed(filled), firsts, strict=True)
    file = next((one for one, first in before if first <= time), filled[0])
    stamps = view.column(file, "store_timestamp")
    if time >= stamps[-1]:
        return view.unit(file, len(stamps) - 1, "base_offset")
    found = _binary_search_right(stamps, time, boundary)
    return -1 if found < 0 else view.unit(file, found, "base_offset")


def _binary_search_right(stamps: Sequence[int], time: int, boundary: Boundary) -> int:
    left, right = 0, len(stamps) - 1
    while left <= right:
        middle = (left + right) // 2
        value = stamps[middle]
        if middle == right:
            return middle if value >= time else -1
        if middle == left:
            if value >= time:
                return middle
            left = middle + 1
        elif boundary is Boundary.LOWER:
            left, right = (middle + 1, right) if value < time else (left, middle)
        else:
            left, right = (middle, right) if value <= time else (left, middle - 1)
    return -1
