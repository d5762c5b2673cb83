"""What is wrong with the units of a queue by themselves: holes, order, meaning, missing files."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from rmqtool.check.findings import finding
from rmqtool.check.index_stream import ascending
from rmqtool.scan.units import INVALID, OK, PRE_BLANK, ZERO, unit_states

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import ModuleType

    import numpy.typing as npt

    from rmqtool.check.findings import Finding
    from rmqtool.check.queue_files import QueueUnits, Units
    from rmqtool.store.files import StoreFile

    Ints = npt.NDArray[np.int64]


def check_units(queue: QueueUnits, kernels: ModuleType) -> Iterator[Finding]:
    """Holes, units without meaning, wrong order, fillers behind data, in all files of a queue.

    kernels: `scan.kernels.dispatch` or its twin.
    """
    highest = -1
    used = [number for number in range(len(queue.files)) if queue.end(number)]
    for number, file in enumerate(queue.files[: used[-1] + 1 if used else 0]):
        units = queue.units(number)
        last = number == used[-1]
        behind_end = queue.end(number) // queue.dtype.itemsize, file.size // queue.dtype.itemsize
        if not last and behind_end[0] < behind_end[1]:
            rest = np.arange(*behind_end)
            rest = rest[~queue.lost(queue.first_slot(number) + rest)]
            yield from _runs("HOLE", queue, file, rest, None)
        if not queue.batch and len(units):
            reached = kernels.ascending_units(units.view(np.uint8), highest)
            if reached >= 0:
                highest, queue.sound[number] = int(reached), len(units)
                continue
        states = unit_states(units, None)
        offsets = units["physical_offset"].astype(np.int64)
        real = states == OK
        holes = np.flatnonzero(states == ZERO)
        if len(holes):
            holes = holes[~queue.lost(queue.first_slot(number) + holes)]
        yield from _runs("HOLE", queue, file, holes, units)
        yield from _runs("INVALID", queue, file, np.flatnonzero(states == INVALID), units)
        started = np.flatnonzero(real)
        late = np.flatnonzero(states == PRE_BLANK)
        behind = late[late > (started[0] if started.size else len(units))]
        if highest >= 0:
            behind = late
        yield from _runs("PRE-BLANK", queue, file, behind, units)
        own = offsets[started]
        if len(own):
            astray = _out_of_order(own, highest)
            yield from _runs("ORDER", queue, file, started[astray], units)
            highest = max([highest, *own[~astray][-1:].tolist()])
    yield from _missing_files(queue)


def _out_of_order(offsets: Ints, highest: int) -> npt.NDArray[np.bool_]:
    """Units whose offset is not above all before them: as few as possible, of two equal ones the second."""
    # less by one for each unit: an order that stands still is none
    astray, _ = ascending(offsets - np.arange(len(offsets)), highest + 1)
    if astray.any():
        first = np.flatnonzero(astray[:-1] & ~astray[1:] & (offsets[:-1] == offsets[1:]))
        astray[first], astray[first + 1] = False, True
    return astray


def unreadable_units(queue: QueueUnits) -> Iterator[Finding]:
    """Ranges of the files of a queue that could not be read, when all else of it has been looked at."""
    for number, file in enumerate(queue.files):
        for bad in queue.unreadable(number):
            queue.whole = False
            yield finding(
                "DIR-UNREADABLE",
                path=file.shown,
                position=bad.start,
                length=bad.length,
                found=bad.reason,
                topic=queue.topic,
                queue_id=queue.queue_id,
                queue_offset=queue.first_slot(number) + bad.start // queue.dtype.itemsize,
            )


def _runs(
    what: str, queue: QueueUnits, file: StoreFile, places: npt.NDArray[Any], units: Units | None
) -> Iterator[Finding]:
    """One finding for each run of neighbouring units."""
    if not len(places):
        return
    breaks = np.flatnonzero(np.diff(places) != 1) + 1
    for run in np.split(places, breaks):
        first = int(run[0])
        size = queue.dtype.itemsize
        offset = None if units is None else int(units[first]["physical_offset"])
        yield finding(
            f"{'BCQ' if queue.batch else 'CQ'}-{what}",
            path=file.shown,
            position=first * size,
            length=len(run) * size,
            physical_offset=offset if what == "ORDER" else None,
            found=len(run),
            topic=queue.topic,
            queue_id=queue.queue_id,
            queue_offset=(file.base_offset or 0) // size + first,
        )


def _missing_files(queue: QueueUnits) -> Iterator[Finding]:
    """Holes between files; up to the usual size a file is short, which the layout says of it."""
    for before, after in pairwise(queue.files):
        base = before.base_offset or 0
        end = base + before.size
        short = before.size < queue.file_size and (after.base_offset or 0) <= base + queue.file_size
        if (after.base_offset or 0) > end and not short:
            yield finding(
                f"{'BCQ' if queue.batch else 'CQ'}-MISSING-FILE",
                path=f"{queue.path}/{end:020d}",
                position=0,
                length=(after.base_offset or 0) - end,
                expected=end,
                found=after.base_offset,
                topic=queue.topic,
                queue_id=queue.queue_id,
                queue_offset=end // queue.dtype.itemsize,
            )
