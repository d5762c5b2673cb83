"""The units of consume queues, reached by slot."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from rmqtool.errors import RmqtoolError, VanishedError
from rmqtool.scan.units import BATCH_UNIT, OK, UNIT, data_end, unit_states
from rmqtool.store.cut import TruncatedSource
from rmqtool.store.holes import data_places
from rmqtool.store.layout import FileKind
from rmqtool.store.patched import BadRange, ZeroFilledSource

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    from rmqtool.store.access import Access
    from rmqtool.store.files import StoreFile
    from rmqtool.store.layout import Queue, Store

    Units = npt.NDArray[Any]
    Ints = npt.NDArray[np.int64]

_PART = 1 << 20
"""units that are looked at together: a file has 300,000, unless it was made to have more"""

_NEAR = 4096
"""units that are looked at together where the first or the last message is likely to be near"""

_OPEN = 200
"""queue files that are open at once; a store may have more than a process may open"""


class OpenFiles:
    """Sources of many files, the least recently used closed first."""

    def __init__(self, access: Access) -> None:
        self._access = replace(access, mode="pread")
        self._open: OrderedDict[str, ZeroFilledSource] = OrderedDict()

    def get(self, file: StoreFile) -> ZeroFilledSource:
        """The open source of a file; it copies, as the same units are looked at more than once."""
        source = self._open.pop(file.location, None)
        if source is None:
            source = ZeroFilledSource(TruncatedSource(file.open(self._access), file.size), file.size)
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
    """One queue: its files in order, and how many of their units are known to be right.

    Of a file that is longer than a broker can map, it has what can be mapped.
    Units that cannot be read are zero here, whole ones; `lost` tells which. until: in a live store, the
    offset behind which units are not looked at (`check.live`); there a file may also have expired. file_size:
    what files of the queue usually have; 0 when that is not known.
    """

    def __init__(self, queue: Queue, files: OpenFiles, until: int | None = None, file_size: int = 0) -> None:
        self._until = until
        self.file_size = file_size
        self.topic = queue.topic or ""
        self.queue_id = queue.queue_id or 0
        self.batch = queue.kind is FileKind.BATCHCONSUMEQUEUE
        self.dtype = BATCH_UNIT if self.batch else UNIT
        self.files = tuple(
            replace(file, size=file.mapped_size)
            for file in queue.files
            if file.regular and file.base_offset is not None
        )
        self._files = files
        bases = np.array([file.base_offset or 0 for file in self.files], np.int64)
        self._bases = bases // self.dtype.itemsize
        self._ends: dict[int, int] = {}
        self._outermost: dict[int, tuple[int, int]] = {}
        self._reach: tuple[int, int] | None = None
        self.sound: dict[int, int] = {}
        """units of the files in which each is a message's, in ascending order"""
        self.whole = True
        """no part of a file could not be read, as far as they were checked"""
        self._claims: list[Ints] = [np.empty((0, 2), np.int64)]
        """slots that hold the unit of their record, as rows of [low, high)"""
        self._gone: dict[int, str | None] = {}

    @property
    def path(self) -> str:
        """Directory of the queue, as far as files tell."""
        return self.files[0].display_path.rpartition("/")[0] if self.files else ""

    def parts(self, number: int, *, backwards: bool = False) -> Iterator[tuple[int, Units]]:
        """Units of a file up to its last that is not zero, some at a time: number of the first, units.

        What lies in holes of the file is left out.
        """
        source, size = self._source(number), self.dtype.itemsize
        if source is None:
            return
        end = self.end(number)
        places = data_places(source, 0, end, _PART * size)
        for at in reversed(list(places)) if backwards else places:
            yield at // size, self._window(number, at, min(_PART * size, end - at))

    def end(self, number: int) -> int:
        """Bytes of a file up to the end of its last unit that is not zero."""
        if number not in self._ends:
            self._ends[number] = self._find_end(number)
        return self._ends[number]

    def _find_end(self, number: int) -> int:
        source = self._source(number)
        if source is None:
            return 0 if self._gone[number] is None else self.files[number].size
        end = data_end(source, self.dtype.itemsize)
        if self._until is None or not end:
            return end
        self._ends[number] = end
        for first, units in self.parts(number, backwards=True):
            settled = np.flatnonzero((units["physical_offset"] <= self._until) & (units["size"] > 0))
            if len(settled):
                return (first + int(settled[-1]) + 1) * self.dtype.itemsize
        return 0

    def _source(self, number: int) -> ZeroFilledSource | None:
        """The bytes of a file; None when it cannot be opened, or a live store has deleted it."""
        try:
            return self._files.get(self.files[number])
        except RmqtoolError as error:
            expired = self._until is not None and isinstance(error, VanishedError)
            self._gone[number] = None if expired else str(error)
            return None

    def _window(self, number: int, start: int, length: int) -> Units:
        """Whole units of a file."""
        size = self.dtype.itemsize
        source = self._source(number)
        if source is None:
            return np.empty(0, self.dtype)
        window = source.window(start, length)
        units = window[: len(window) // size * size].view(self.dtype)
        bad = source.unreadable_in(start, start + units.nbytes)
        if bad:
            units = units.copy()
        for one in bad:
            low, high = (one.start - start) // size, -((start - one.end) // size)
            units[max(low, 0) : high] = np.zeros(1, self.dtype)
        return units

    def unreadable(self, number: int) -> list[BadRange]:
        """Ranges of a file that could not be read, as far as it was looked at."""
        if number in self._gone:
            reason = self._gone[number]
            return [] if reason is None else [BadRange(0, self.files[number].size, reason)]
        source = self._source(number)
        return [] if source is None else source.unreadable

    def lost(self, slots: Ints) -> npt.NDArray[np.bool_]:
        """Slots whose unit cannot be read, or has expired."""
        found = np.zeros(len(slots), bool)
        for number, _, _ in self.files_of(slots):
            first = self.first_slot(number)
            for low, high in self.lost_in(number):
                found |= (slots >= first + low) & (slots < first + high)
        return found

    def lost_in(self, number: int) -> list[tuple[int, int]]:
        """Units `[low, high)` of a file that cannot be read, or have expired."""
        size = self.dtype.itemsize
        if number in self._gone:
            return [(0, self.files[number].size // size)]
        return [(bad.start // size, -(-bad.end // size)) for bad in self.unreadable(number)]

    def last_offset(self) -> int:
        """Physical offset that the last unit points to, -1 without units."""
        for number in reversed(range(len(self.files))):
            if self.end(number) and number not in self._gone:
                return int(self._window(number, self.end(number) - self.dtype.itemsize, 1 << 6)[0][0])
        return -1

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
        if self._reach is None:
            self._reach = self._find_ends()
        return self._reach

    def _find_ends(self) -> tuple[int, int]:
        numbers = range(len(self.files))
        first = next((found for number in numbers if (found := self._outer(number, last=False))), None)
        last = next(
            (found for number in reversed(numbers) if (found := self._outer(number, last=True))), None
        )
        if first is None or last is None:
            return self.next_slot, self.next_slot
        if not self.batch:
            return first[0], last[0] + 1
        return int(first[1]["base_offset"]), int(last[1]["base_offset"]) + int(last[1]["batch_size"])

    def _outer(self, number: int, *, last: bool) -> tuple[int, Any] | None:
        """Slot and unit of the first, or the last, message of a file."""
        for low, units in self.parts(number, backwards=last):
            starts = range(0, len(units), _NEAR)
            for start in reversed(starts) if last else starts:
                real = np.flatnonzero(unit_states(units[start : start + _NEAR], None) == OK)
                if len(real):
                    at = start + int(real[-1 if last else 0])
                    return self.first_slot(number) + low + at, units[at]
        return None

    def part(self, number: int, low: int, high: int) -> Units:
        """Units `[low, high)` of a file, counted from its first, as far as it holds any."""
        size = self.dtype.itemsize
        end = min(high * size, self.end(number))
        low = max(low, 0)
        return self._window(number, min(low * size, end), max(end - low * size, 0))

    def files_of(self, slots: Ints) -> Iterator[tuple[int, int, int]]:
        """Files that these slots lie in: number, lowest slot, and the one behind the highest."""
        low, high = int(slots.min()), int(slots.max())
        first, last = (np.searchsorted(self._bases, (low, high), side="right") - 1).tolist()
        if first == last:
            if first >= 0:
                yield first, low, high + 1
            return
        numbers = np.searchsorted(self._bases, slots, side="right") - 1
        for number in np.unique(numbers).tolist():
            if number >= 0:
                own = slots[numbers == number]
                yield number, int(own.min()), int(own.max()) + 1

    def gather(self, slots: Ints) -> tuple[Ints, Ints, Ints]:
        """Offset, size, tags code of the units at `slots`; offset -1 where there is none."""
        offsets = np.full(len(slots), -1, np.int64)
        sizes, codes = np.zeros(len(slots), np.int64), np.zeros(len(slots), np.int64)
        for number, low, high in self.files_of(slots):
            first = self.first_slot(number)
            units = self.part(number, low - first, high - first)
            chosen = np.flatnonzero((slots >= low) & (slots < low + len(units)))
            found = units[slots[chosen] - low]
            offsets[chosen], sizes[chosen], codes[chosen] = (
                found["physical_offset"],
                found["size"],
                found["tags_code"],
            )
        offsets[(offsets == 0) & (sizes == 0)] = -1  # zeros, not the unit of the record at 0
        return offsets, sizes, codes

    def holds(self, offsets: Ints) -> npt.NDArray[np.bool_]:
        """Which of these physical offsets have a unit somewhere in the queue."""
        found = np.zeros(len(offsets), bool)
        low, high = int(offsets.min()), int(offsets.max())
        for number in range(len(self.files)):
            if self._ascends(number):
                first, last = self._outermost[number]
                if last < low or high < first:
                    continue
            for _, units in self.parts(number):
                real = units[units["size"] > 0]  # a unit that was lost to zeros points to no record at 0
                found |= np.isin(offsets, real["physical_offset"].astype(np.int64))
        return found

    def _ascends(self, number: int) -> bool:
        """Are the offsets in a file in order, so that its first and last tell its range?"""
        if number not in self._outermost:
            self._outermost[number] = self._find_outermost(number)
        first, last = self._outermost[number]
        return first <= last or not self.end(number)

    def _find_outermost(self, number: int) -> tuple[int, int]:
        """First and last offset in a file where they ascend, else (0, -1)."""
        first, last, behind = -1, -1, 0
        for low, units in self.parts(number):
            offsets = units["physical_offset"].astype(np.int64)
            if not len(offsets) or low != behind or offsets[0] < last or (offsets[1:] < offsets[:-1]).any():
                return 0, -1
            first, last, behind = int(offsets[0]) if low == 0 else first, int(offsets[-1]), low + len(offsets)
        return (first, last) if behind else (0, -1)

    def claim(self, low: int, high: int) -> None:
        """All slots [low, high) hold the unit of their record."""
        last = self._claims[-1]
        if len(last) and last[-1, 1] == low:
            last[-1, 1] = high
        else:
            self._claims.append(np.array([[low, high]]))

    def claim_each(self, slots: Ints) -> None:
        """These slots do; they are kept as runs, of which an ordinary queue has few."""
        if len(slots):
            slots = slots if (slots[1:] > slots[:-1]).all() else np.unique(slots)
            cuts = np.flatnonzero(np.diff(slots) != 1)
            lows, highs = slots[np.append(0, cuts + 1)], slots[np.append(cuts, len(slots) - 1)] + 1
            self._claims.append(np.stack((lows, highs), axis=1))

    def unclaimed(self, first: int, units: Units) -> npt.NDArray[np.bool_]:
        """Which units from slot `first` on are a message's, of none of whose records they are the unit."""
        runs = self._claimed_runs()
        runs = runs[(runs[:, 0] < first + len(units)) & (runs[:, 1] > first)]
        steps = np.zeros(len(units) + 1, np.int8)
        steps[np.maximum(runs[:, 0] - first, 0)] = 1
        steps[np.minimum(runs[:, 1] - first, len(units))] = -1
        return np.asarray((unit_states(units, None) == OK) & (steps[:-1].cumsum() == 0), np.bool_)

    def is_claimed(self, number: int) -> bool:
        """Whether all units of a file are known to be those of their records."""
        first, runs = self.first_slot(number), self._claimed_runs()
        at = int(np.searchsorted(runs[:, 0], first, side="right")) - 1
        return number in self.sound and at >= 0 and bool(runs[at, 1] >= first + self.sound[number])

    def _claimed_runs(self) -> Ints:
        """Slots with the unit of their record in ascending order, as rows of [low, high) apart."""
        if len(self._claims) > 1:
            runs = np.concatenate(self._claims)
            runs = runs[np.argsort(runs[:, 0], kind="stable")]
            reach = np.maximum.accumulate(runs[:, 1])
            begins = np.flatnonzero(np.append(True, runs[1:, 0] > reach[:-1]))
            self._claims = [np.stack((runs[begins, 0], reach[np.append(begins[1:] - 1, -1)]), axis=1)]
        return self._claims[0]


def queues_of(
    store: Store, kind: FileKind, files: OpenFiles, until: int | None = None
) -> dict[tuple[str, int], QueueUnits]:
    """Every queue of one kind (plain or batch) that can hold units, by topic and number.

    A queue directory that was copied away has neither: it is queue 0 of the topic "".
    """
    known = store.sizes.get(kind)
    size = known.value if known is not None else 0
    return {
        (queue.topic or "", queue.queue_id or 0): QueueUnits(queue, files, until, size)
        for queue in store.queues(kind)
        if queue.is_one
    }


def place_of(queue: QueueUnits, slot: int) -> tuple[str, int]:
    """File and position of a slot."""
    for number in reversed(range(len(queue.files))):
        if queue.first_slot(number) <= slot:
            return queue.files[number].display_path, (slot - queue.first_slot(number)) * queue.dtype.itemsize
    return queue.path, 0
