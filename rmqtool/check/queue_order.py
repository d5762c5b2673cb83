"""What is wrong with the units of a queue by themselves: holes, order, meaning, missing files."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from rmqtool.check.findings import finding
from rmqtool.check.index_stream import ascending
from rmqtool.scan.units import INVALID, OK, PRE_BLANK, ZERO, unit_states
from rmqtool.store.names import file_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import numpy.typing as npt

    from rmqtool.check.findings import Finding
    from rmqtool.check.queue_files import QueueUnits, Units
    from rmqtool.scan.kernel_types import Dispatch
    from rmqtool.store.files import StoreFile

    Ints = npt.NDArray[np.int64]


class _Run(NamedTuple):
    """Neighbouring units of a file: number of the first, how many, the offset in the first."""

    first: int
    length: int
    offset: int = 0


def check_units(queue: QueueUnits, kernels: Dispatch) -> Iterator[Finding]:
    """Holes, units without meaning, wrong order, fillers behind data, in all files of a queue.

    kernels: `scan.kernels.dispatch` or its twin.
    """
    highest = -1
    used = [number for number in range(len(queue.files)) if queue.end(number)]
    for number, file in enumerate(queue.files[: used[-1] + 1 if used else 0]):
        end = queue.end(number) // queue.dtype.itemsize
        if number != used[-1]:
            yield from _findings_of(
                "HOLE", queue, file, _readable(queue, number, end, file.size // queue.dtype.itemsize)
            )
        runs: dict[str, list[_Run]] = {what: [] for what in ("HOLE", "INVALID", "PRE-BLANK", "ORDER")}
        done, sound = 0, not queue.batch
        for first, units in queue.parts(number):
            runs["HOLE"] += _readable(queue, number, done, first)
            sound &= done == first
            done = first + len(units)
            if not queue.batch:
                reached = kernels.ascending_units(units.view(np.uint8), highest)
                if reached >= 0:
                    highest = int(reached)
                    continue
            sound = False
            highest = _look(queue, number, first, units, highest, runs)
        if sound and done:
            queue.sound[number] = done
        for what, found in runs.items():
            yield from _findings_of(what, queue, file, _joined(found))
    yield from _missing_files(queue)


def _look(
    queue: QueueUnits, number: int, first: int, units: Units, highest: int, runs: dict[str, list[_Run]]
) -> int:
    """Adds what is wrong with some units of a file to `runs`; the highest offset so far."""
    states = unit_states(units, None)
    offsets = units["physical_offset"].astype(np.int64)
    holes = np.flatnonzero(states == ZERO)
    if len(holes):
        holes = holes[~queue.lost(queue.first_slot(number) + first + holes)]
    started = np.flatnonzero(states == OK)
    late = np.flatnonzero(states == PRE_BLANK)
    behind = late if highest >= 0 else late[late > (started[0] if started.size else len(units))]
    out_of_order = np.zeros(len(started), bool)
    if len(started):
        own = offsets[started]
        out_of_order = _out_of_order(own, highest)
        highest = max([highest, *own[~out_of_order][-1:].tolist()])
    runs["HOLE"] += _runs(holes, first, offsets)
    runs["INVALID"] += _runs(np.flatnonzero(states == INVALID), first, offsets)
    runs["PRE-BLANK"] += _runs(behind, first, offsets)
    runs["ORDER"] += _runs(started[out_of_order], first, offsets)
    return highest


def _readable(queue: QueueUnits, number: int, low: int, high: int) -> list[_Run]:
    """Units `[low, high)` of a file, which are zero, without those that cannot be read."""
    found = []
    for start, end in sorted(queue.lost_in(number)):
        if low < min(start, high):
            found.append(_Run(low, min(start, high) - low))
        low = max(low, end)
    return [*found, _Run(low, high - low)] if low < high else found


def _out_of_order(offsets: Ints, highest: int) -> npt.NDArray[np.bool_]:
    """Units whose offset is not above all before them: as few as possible, of two equal ones the second."""
    # less by one for each unit: an order that stands still is none
    out_of_order, _ = ascending(offsets - np.arange(len(offsets)), highest + 1)
    if out_of_order.any():
        first = np.flatnonzero(out_of_order[:-1] & ~out_of_order[1:] & (offsets[:-1] == offsets[1:]))
        out_of_order[first], out_of_order[first + 1] = False, True
    return out_of_order


def unreadable_units(queue: QueueUnits) -> Iterator[Finding]:
    """Ranges of the files of a queue that could not be read, when all else of it has been looked at."""
    for number, file in enumerate(queue.files):
        for bad in queue.unreadable(number):
            queue.whole = False
            yield finding(
                "DIR-UNREADABLE",
                path=file.display_path,
                position=bad.start,
                length=bad.length,
                found=bad.reason,
                topic=queue.topic,
                queue_id=queue.queue_id,
                queue_offset=queue.first_slot(number) + bad.start // queue.dtype.itemsize,
            )


def _runs(places: npt.NDArray[Any], first: int, offsets: Ints) -> list[_Run]:
    """Runs of neighbouring units; `places` and `offsets` count from unit `first` of the file."""
    if not len(places):
        return []
    starts = np.flatnonzero(np.diff(places, prepend=places[0] - 2) != 1)
    lengths = np.diff(np.append(starts, len(places)))
    begun = places[starts]
    return list(map(_Run, (first + begun).tolist(), lengths.tolist(), offsets[begun].tolist()))


def _joined(runs: list[_Run]) -> Iterator[_Run]:
    """The runs of a file; two that meet are one."""
    last: _Run | None = None
    for one in runs:
        if last is not None and last.first + last.length == one.first:
            last = last._replace(length=last.length + one.length)
            continue
        if last is not None:
            yield last
        last = one
    if last is not None:
        yield last


def _findings_of(what: str, queue: QueueUnits, file: StoreFile, runs: Iterable[_Run]) -> Iterator[Finding]:
    """One finding for each run."""
    size = queue.dtype.itemsize
    for one in runs:
        yield finding(
            f"{'BCQ' if queue.batch else 'CQ'}-{what}",
            path=file.display_path,
            position=one.first * size,
            length=one.length * size,
            physical_offset=one.offset if what == "ORDER" else None,
            found=one.length,
            topic=queue.topic,
            queue_id=queue.queue_id,
            queue_offset=(file.base_offset or 0) // size + one.first,
        )


def _missing_files(queue: QueueUnits) -> Iterator[Finding]:
    """Holes between files; up to the usual size a file is short, which the layout says of it.

    A name inside of a unit leaves that one out: a broker looks for it in front of the file.
    """
    size = queue.dtype.itemsize
    for one in queue.files:
        base = one.base_offset or 0
        if start := base % size:
            yield finding(
                f"{'BCQ' if queue.batch else 'CQ'}-MISSING-FILE",
                path=f"{queue.path}/{file_name(base - start)}",
                position=0,
                length=start,
                expected=base - start,
                found=base,
                topic=queue.topic,
                queue_id=queue.queue_id,
                queue_offset=base // size,
            )
    for before, after in pairwise(queue.files):
        base = before.base_offset or 0
        end = base + before.size
        short = before.size < queue.file_size and (after.base_offset or 0) <= base + queue.file_size
        if (after.base_offset or 0) > end and not short:
            yield finding(
                f"{'BCQ' if queue.batch else 'CQ'}-MISSING-FILE",
                path=f"{queue.path}/{file_name(end)}",
                position=0,
                length=(after.base_offset or 0) - end,
                expected=end,
                found=after.base_offset,
                topic=queue.topic,
                queue_id=queue.queue_id,
                queue_offset=end // queue.dtype.itemsize,
            )
