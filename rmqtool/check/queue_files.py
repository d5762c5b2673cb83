"""The units of consume queues, reached by slot, and what is wrong with them by themselves."""

from __future__ import annotations

from collections import OrderedDict
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from rmqtool.check.findings import finding
from rmqtool.check.index_stream import ascending
from rmqtool.errors import RmqtoolError
from rmqtool.scan.units import (
    BATCH_UNIT,
    INVALID,
    OK,
    PRE_BLANK,
    UNIT,
    ZERO,
    data_end,
    unit_states,
)
from rmqtool.store.layout import FileKind

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    from rmqtool.check.findings import Finding
    from rmqtool.store.bytes import ByteSource, OpenMode
    from rmqtool.store.files import StoreFile
    from rmqtool.store.layout import Queue, Store

    Units = npt.NDArray[Any]
    Ints = npt.NDArray[np.int64]

_OPEN = 200
"""queue files that are open at once; a store may have more than a process may open"""


class OpenFiles:
    """Sources of many files, the least recently used closed first."""

    def __init__(self, mode: OpenMode) -> None:
        self._mode = mode
        self._open: OrderedDict[str, ByteSource] = OrderedDict()

    def get(self, file: StoreFile) -> ByteSource:
        """The open source of a file."""
        source = self._open.pop(file.location, None) or file.open(self._mode)
        self._open[file.location] = source
        if len(self._open) > _OPEN:
            self._open.popitem(last=False)[1].close()
        return source

    def close(self) -> None:
        """Closes all."""
        for source in self._open.values():
            source.close()
        self._open.clear()


class QueueUnits:
    """One queue: its files in order, and how many of their units are known to be right."""

    def __init__(self, queue: Queue, files: OpenFiles) -> None:
        self.topic = queue.topic or ""
        self.queue_id = queue.queue_id or 0
        self.batch = queue.kind is FileKind.BATCHCONSUMEQUEUE
        self.dtype = BATCH_UNIT if self.batch else UNIT
        self.files = tuple(file for file in queue.files if file.regular and file.base_offset is not None)
        self._files = files
        bases = np.array([file.base_offset or 0 for file in self.files], np.int64)
        self._bases = bases // self.dtype.itemsize
        self._ends: dict[int, int] = {}
        self.unreadable: dict[int, str] = {}
        """files that cannot be read, with the reason; they count as full of units that nobody knows"""
        self.matched = np.zeros(len(self.files), np.int64)

    @property
    def path(self) -> str:
        """Directory of the queue, as far as files tell."""
        return self.files[0].shown.rpartition("/")[0] if self.files else ""

    def units(self, number: int) -> Units:
        """All units of a file up to its last that is not zero; none when it cannot be read."""
        try:
            source = self._files.get(self.files[number])
            window = source.window(0, self.end(number))
        except RmqtoolError as error:
            self.unreadable[number] = str(error)
        if number in self.unreadable:
            return np.zeros(0, self.dtype)
        return window[: len(window) // self.dtype.itemsize * self.dtype.itemsize].view(self.dtype)

    def end(self, number: int) -> int:
        """Bytes of a file up to the end of its last unit that is not zero."""
        if number not in self._ends:
            try:
                self._ends[number] = data_end(self._files.get(self.files[number]), self.dtype.itemsize)
            except RmqtoolError as error:
                self.unreadable[number] = str(error)
                self._ends[number] = self.files[number].size
        return self._ends[number]

    def first_slot(self, number: int) -> int:
        """Queue offset of a file's first unit."""
        return int(self._bases[number])

    @property
    def next_slot(self) -> int:
        """Slot behind the last unit; files made in advance do not count."""
        for number in reversed(range(len(self.files))):
            if self.end(number):
                return self.first_slot(number) + self.end(number) // self.dtype.itemsize
        return self.first_slot(0) if self.files else 0

    def ends(self) -> tuple[int, int]:
        """Queue offsets of the first message that has a unit and behind the last one."""
        units = [self._real(number) for number in range(len(self.files))]
        used = [(number, places) for number, places in enumerate(units) if len(places)]
        if not used:
            return self.next_slot, self.next_slot
        (low, first), (high, last) = used[0], used[-1]
        if not self.batch:
            return self.first_slot(low) + int(first[0]), self.first_slot(high) + int(last[-1]) + 1
        begin, end = self.units(low)[first[0]], self.units(high)[last[-1]]
        return int(begin["base_offset"]), int(end["base_offset"]) + int(end["batch_size"])

    def _real(self, number: int) -> Ints:
        return np.flatnonzero(unit_states(self.units(number), None) == OK)

    def gather(self, slots: Ints) -> tuple[Ints, Ints, Ints]:
        """Offset, size, tags code of the units at `slots`; offset -1 where there is none."""
        offsets = np.full(len(slots), -1, np.int64)
        sizes, codes = np.zeros(len(slots), np.int64), np.zeros(len(slots), np.int64)
        numbers = np.searchsorted(self._bases, slots, side="right") - 1
        for number in np.unique(numbers):
            if number < 0:
                continue
            units = self.units(int(number))
            chosen = np.flatnonzero(numbers == number)
            places = slots[chosen] - self._bases[number]
            inside = places < len(units)
            chosen, places = chosen[inside], places[inside]
            found = units[places]
            offsets[chosen], sizes[chosen], codes[chosen] = (
                found["physical_offset"],
                found["size"],
                found["tags_code"],
            )
        return offsets, sizes, codes

    def count_matched(self, slots: Ints) -> None:
        """These slots hold the unit of their record."""
        numbers = np.searchsorted(self._bases, slots, side="right") - 1
        self.matched += np.bincount(numbers, minlength=len(self.files))

    def doubtful(self, number: int) -> bool:
        """Does the file hold units that no record was matched with?"""
        states = unit_states(self.units(number), None)
        return int((states == OK).sum()) != int(self.matched[number])


def all_queues(store: Store, files: OpenFiles) -> dict[tuple[str, int], QueueUnits]:
    """Every plain queue of the store that can hold units, by topic and number."""
    return {
        (queue.topic, queue.queue_id): QueueUnits(queue, files)
        for queue in store.queues(FileKind.CONSUMEQUEUE)
        if queue.topic is not None and queue.queue_id is not None
    }


def batch_queues(store: Store, files: OpenFiles) -> dict[tuple[str, int], QueueUnits]:
    """Every 46-byte queue of the store, by topic and number."""
    return {
        (queue.topic, queue.queue_id): QueueUnits(queue, files)
        for queue in store.queues(FileKind.BATCHCONSUMEQUEUE)
        if queue.topic is not None and queue.queue_id is not None
    }


def check_units(queue: QueueUnits) -> Iterator[Finding]:
    """Holes, units without meaning, wrong order, fillers behind data, in all files of a queue."""
    highest = -1
    used = [number for number in range(len(queue.files)) if queue.end(number)]
    for number, file in enumerate(queue.files[: used[-1] + 1 if used else 0]):
        units = queue.units(number)
        states = unit_states(units, None)
        offsets = units["physical_offset"].astype(np.int64)
        real = states == OK
        last = number == used[-1]
        yield from _runs("HOLE", queue, file, np.flatnonzero(states == ZERO), units)
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
        if not last and queue.end(number) < file.size // queue.dtype.itemsize * queue.dtype.itemsize:
            rest = np.arange(queue.end(number) // queue.dtype.itemsize, file.size // queue.dtype.itemsize)
            yield from _runs("HOLE", queue, file, rest, None)
    yield from _missing_files(queue)
    for number, reason in sorted(queue.unreadable.items()):
        yield finding(
            "DIR-UNREADABLE",
            path=queue.files[number].shown,
            position=0,
            length=queue.files[number].size,
            found=reason,
            topic=queue.topic,
            queue_id=queue.queue_id,
            queue_offset=None if queue.batch else queue.first_slot(number),
        )


def _out_of_order(offsets: Ints, highest: int) -> npt.NDArray[np.bool_]:
    """Units whose offset is not above all before them: as few as possible, of two equal ones the second."""
    # less by one for each unit: an order that stands still is none
    astray, _ = ascending(offsets - np.arange(len(offsets)), highest + 1)
    if astray.any():
        first = np.flatnonzero(astray[:-1] & ~astray[1:] & (offsets[:-1] == offsets[1:]))
        astray[first], astray[first + 1] = False, True
    return astray


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
    ordered = queue.files
    for before, after in pairwise(ordered):
        end = (before.base_offset or 0) + before.size
        if (after.base_offset or 0) > end:
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
