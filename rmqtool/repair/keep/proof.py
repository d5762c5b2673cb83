"""Which units of consume queues may speak for records that are gone.

The name of a directory proves nothing: it may be a copy, or hold the files of another queue. What proves a
unit is its neighbours, those of the records on both sides of what the queue misses there: if they point at
these records, the file is the queue's own, and not shifted. A queue without a record in the log has
none; its units say something as long as none of them points at a whole record, which is another queue's.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from formats.commitlog import MESSAGE_MAGIC_CODES
from rmqtool.check.queue_files import OpenFiles
from rmqtool.repair.keep.frames import queues_there
from rmqtool.repair.keep.headers import SMALLEST_RECORD
from rmqtool.repair.keep.model import Trust
from rmqtool.scan.legal import may_be_topic
from rmqtool.store.access import Access

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Sequence

    import numpy.typing as npt

    from rmqtool.check.queue_files import QueueUnits
    from rmqtool.repair.keep.counted import Ahead
    from rmqtool.repair.keep.logbytes import LogBytes
    from rmqtool.repair.keep.model import Frame, QueueKey, Run, Survey
    from rmqtool.repair.keep.order import Order
    from rmqtool.store.layout import Store

    Ints = npt.NDArray[np.int64]

_LOOKS = 64
"""units of a queue without records that are held against the log"""


def foreign_queues(store: Store, survey: Survey, order: Order, log: LogBytes) -> set[QueueKey]:
    """Queues without a record in the log, with a unit for one: their files are another queue's.

    So are those of a topic whose name none can have: a directory that somebody copied and renamed.
    """
    found = set()
    starts = np.array([one.start for one in survey.holes], np.int64)
    ends = np.array([one.end for one in survey.holes], np.int64)
    files = OpenFiles(Access("pread"))
    try:
        for key, queue in queues_there(store, files):
            if order.chosen.get(key) or survey.is_light(key):
                continue
            units = _outside(queue, survey, starts, ends)
            if not may_be_topic(key[0]) or any(_is_record(log, *unit) for unit in units):
                found.add(key)
    finally:
        files.close()
    return found


def _outside(queue: QueueUnits, survey: Survey, starts: Ints, ends: Ints) -> list[tuple[int, int]]:
    """Offset and size of some units that point into the log, but into no hole."""
    found: list[tuple[int, int]] = []
    for units in (units for number in range(len(queue.files)) for _, units in queue.parts(number)):
        offsets, sizes = units["physical_offset"].astype(np.int64), units["size"].astype(np.int64)
        inside = (
            (offsets >= survey.segments[0].base) & (offsets < survey.data_end) & (sizes >= SMALLEST_RECORD)
        )
        if len(starts):
            at = np.maximum(np.searchsorted(starts, offsets, "right") - 1, 0)
            inside &= (offsets < starts[at]) | (offsets >= ends[at])
        places = np.flatnonzero(inside)
        few = places[:: max(len(places) // _LOOKS, 1)][:_LOOKS]
        found += zip(offsets[few].tolist(), sizes[few].tolist(), strict=True)
    return found[:: max(len(found) // _LOOKS, 1)]


def _is_record(log: LogBytes, start: int, size: int) -> bool:
    head = log.read(start, 8)
    return (
        int.from_bytes(head[:4], "big") == size
        and int.from_bytes(head[4:], "big", signed=True) in MESSAGE_MAGIC_CODES
    )


def weigh(
    store: Store,
    survey: Survey,
    order: Order,
    frames: Iterable[Frame],
    foreign: Collection[QueueKey],
    skipping: Ahead,
) -> None:
    """Sets `Frame.trust` of frames that units tell; `survey.light` has the places in light queues.

    skipping: of queues that skip queue offsets, whose frames have those that their records stated.
    """
    by_key: dict[QueueKey, list[Frame]] = defaultdict(list)
    for frame in frames:
        if frame.key is not None:
            by_key[frame.key].append(frame)
    files = OpenFiles(Access("pread"))
    try:
        for key, queue in queues_there(store, files):
            light = survey.light.get(key) if survey.is_light(key) else None
            chosen = light or order.chosen.get(key) or []
            own = by_key.get(key, ())
            if own and chosen and not queue.batch:
                _by_neighbours(queue, own, chosen, light or survey.runs[key], partial(skipping.at, key))
            for frame in own:
                if not chosen:
                    frame.trust = Trust.REFUTED if key in foreign else Trust.ALONE
    finally:
        files.close()


def _by_neighbours(
    queue: QueueUnits,
    frames: Sequence[Frame],
    chosen: Sequence[Run],
    runs: Sequence[Run],
    ahead: Callable[[int], int],
) -> None:
    """ahead: by how much the record at a physical offset states more than the place of its unit."""
    firsts, lasts = [one.first for one in chosen], [one.last for one in chosen]
    edges: dict[int, set[int]] = defaultdict(set)
    for run in runs:
        edges[run.first].add(run.start)
        edges[run.last].add(run.last_start)
    sides: list[list[int]] = []
    for frame in frames:
        slot = frame.slot or 0
        before, behind = bisect_left(lasts, slot), bisect_right(firsts, slot)
        sides.append([*lasts[max(before - 1, 0) : before], *firsts[behind : behind + 1]])
    slots = np.array(sorted({slot for side in sides for slot in side if slot in edges}), np.int64)
    states: dict[int, bool] = {}
    if len(slots):
        places = [slot - ahead(min(edges[slot])) for slot in slots.tolist()]
        offsets = queue.gather(np.array(places, np.int64))[0]
        for slot, offset in zip(slots.tolist(), offsets.tolist(), strict=True):
            if offset >= 0:
                states[slot] = offset in edges[slot]
    for frame, side in zip(frames, sides, strict=True):
        reported = {states[slot] for slot in side if slot in states}
        if reported:
            # where only one side is right the file lost a unit between, and nobody can say where
            frame.trust = Trust.REFUTED if False in reported else Trust.PROVEN
