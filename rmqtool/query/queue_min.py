"""Where a queue begins for its consumers: `correctMinOffset` of the releases.

The lowest unit that points into the log. The releases search it differently, and differ where a whole queue
has expired, where fillers stand in front, and where a new first file begins.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from rmqtool.query.queue_view import QueueView


def minimum_4(view: QueueView, log_low: int) -> int:
    """`ConsumeQueue#correctMinOffset` of 4.x, in bytes: a queue without living units stays at 0."""
    if not view.files:
        return 0
    first = view.files[0]
    living = view.first_at(first, log_low)
    return 0 if living is None else first.base + living * view.width


def minimum_5(view: QueueView, log_low: int) -> int:
    """`ConsumeQueue#correctMinOffset` of 5.x, in bytes: a queue without living units begins at its end."""
    if not view.files:
        return 0
    last, first = view.files[-1], view.files[0]
    if last.written < view.width:
        return 0  # nothing, or an empty last file: reading in front of its first unit throws, 0 stays
    end_units = view.units(last, last.written - view.width)
    if len(end_units) and int(end_units[-1]["physical_offset"]) < log_low:
        return last.base + last.written
    offsets = view.column(first, "physical_offset")
    if first.base == 0 and len(offsets) and int(offsets[0]) >= log_low:
        return 0
    position = first_at_or_behind(offsets, log_low)
    return 0 if position is None else first.base + position * view.width


def first_at_or_behind(offsets: Sequence[int] | npt.NDArray[Any], floor: int) -> int | None:
    """Number of the unit at or above `floor` that the search of 5.x settles on, None when it finds none.

    It assumes rising offsets, so that fillers and disorder can lead it elsewhere than to the very first.
    """
    low, high = 0, len(offsets) - 1
    while high - low > 1:
        middle = (low + high) // 2
        value = int(offsets[middle])
        if value == floor:
            low = high = middle
        elif value > floor:
            high = middle
        else:
            low = middle
    return next((place for place in range(low, high + 1) if int(offsets[place]) >= floor), None)


def batch_minimum(view: QueueView, log_low: int) -> int:
    """`BatchConsumeQueue#correctMinOffset`: queue offset behind the dead units in front; -1 without units."""
    if not view.files:
        return -1
    first = view.files[0]
    count = view.first_at(first, log_low)
    if not first.written:
        return -1
    if count == 0:
        return view.unit(first, 0, "base_offset")
    last = (first.written // view.width if count is None else count) - 1
    return view.unit(first, last, "base_offset") + view.unit(first, last, "batch_size")
