"""One consume queue through a start: recovered, appended to, truncated, its minimum corrected.

`ConsumeQueue#recover`, `#putMessagePositionInfo`, `#truncateDirtyLogicFiles`, `#correctMinOffset`.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from formats.consumequeue import PRE_BLANK, PRE_BLANK_SIZE
from rmqtool.broker.appended_units import AppendedUnits
from rmqtool.broker.java import div, rem, wrap64
from rmqtool.broker.units import RECOVERED_FILES, chunks, valid_prefix
from rmqtool.scan.units import UNIT

if TYPE_CHECKING:
    import numpy.typing as npt

    from rmqtool.broker.extension_files import ExtensionFiles
    from rmqtool.broker.mapped_files import MappedFile, MappedFiles
    from rmqtool.broker.queue_records import QueueRecords
    from rmqtool.store.access import OpenMode

    Ints = npt.NDArray[np.int64]

BYTES = UNIT.itemsize
_LARGEST_SLOT = (1 << 63) // BYTES


class NegativePositionError(Exception):
    """Correcting the minimum throws `IllegalArgumentException`: an empty last file behind a full one."""


class ConsumeQueue:
    """State of one plain queue in memory of the broker.

    max_physical: end of the last message it knows, -1 at first. min_logical: first byte that counts.
    floor: physical offset that every ordinary record lies behind (the log's first byte). keep_units: keep
    every appended unit as it is, for who asks what the files hold afterwards (`aftermath`). extension:
    takes the tags codes of units that are appended, where `files` has a disk to write them to.
    """

    def __init__(
        self,
        topic: str,
        queue_id: int,
        files: MappedFiles,
        mode: OpenMode,
        floor: int,
        *,
        keep_units: bool = False,
        extension: ExtensionFiles | None = None,
    ) -> None:
        self.topic, self.queue_id = topic, queue_id
        self._keep_units = keep_units
        self.extension = extension
        self.files = files
        self.max_physical = -1
        self.min_logical = 0
        self.appended = 0
        self.misplaced = 0
        """units appended at another slot than that of their message"""
        self.blanked = 0
        """blank units that the start writes in front of the first"""
        self.recovered_max = 0
        """`max_offset` after the queue's own recovery"""
        self.phantom: int | None = None
        """queue offset of a unit of size 0 that truncation takes for a message"""
        self.astray = 0
        """units appended for records that lie elsewhere than they state"""
        self.doubled = 0
        """records that get no unit because their slot is taken"""
        self.recovered: list[tuple[MappedFile, int]] = []
        """files that `recover` read, with the units it took of each"""
        self._mode = mode
        self._ordinary = floor + 1
        self._whole = files.size // BYTES
        self._first_is_zero = False
        self._last: tuple[int, int] | None = None
        """offset and size of the unit appended last"""

    @property
    def min_offset(self) -> int:
        """`#getMinOffsetInQueue`, in messages."""
        return div(self.min_logical, BYTES)

    @property
    def max_offset(self) -> int:
        """`#getMaxOffsetInQueue`, in messages."""
        return div(self.files.max_offset, BYTES)

    def destroy(self) -> None:
        """`#destroy`: the log has no files."""
        self.files.destroy()
        self.max_physical, self.min_logical = -1, 0

    def recover(self) -> None:
        """`#recover`: reads the last three files up to the first unit that is none."""
        files = self.files.files
        if not files:
            return
        end = 0
        for one in files[max(len(files) - RECOVERED_FILES, 0) :]:
            prefix = valid_prefix(one, UNIT, self._mode, self._whole)
            end = one.base + prefix.count * BYTES
            self.recovered.append((one, prefix.count))
            if prefix.count:
                self.max_physical = wrap64(int(prefix.last["physical_offset"]) + int(prefix.last["size"]))
            if prefix.count < one.wrote // BYTES:
                break
        self.files.truncate(end)
        self.recovered_max = self.max_offset

    def truncate(self, offset: int) -> None:
        """`#truncateDirtyLogicFiles`: takes the last file again from its first unit on, up to the log's end.

        The first unit is taken without a look at its size.
        """
        self.max_physical = offset
        while self.files.files:
            last = self.files.files[-1]
            last.wrote = 0
            count, end = self._below(last, offset)
            if count == 0:
                self.files.delete_last()
                continue
            last.wrote = count * BYTES
            self.max_physical = end
            self.phantom = div(last.base, BYTES) if self._first_is_zero else None
            if last.appended is not None:
                last.appended.cut(count)
            return

    def _below(self, one: MappedFile, offset: int) -> tuple[int, int]:
        """How many units from the first on point below `offset`, and the physical end of the last of them."""
        count, end = 0, offset
        for chunk in chunks(one, self._mode, self._whole, self._ordinary):
            good = (chunk.offsets >= 0) & (chunk.sizes > 0) & (chunk.offsets < offset)
            if chunk.first == 0:
                good[0] = chunk.offsets[0] < offset
                self._first_is_zero = bool(good[0]) and int(chunk.sizes[0]) <= 0
            wrong = np.flatnonzero(~good)
            here = int(wrong[0]) if wrong.size else len(good)
            if here:
                count = chunk.first + here
                end = self._end(one, count - 1, int(chunk.offsets[here - 1]), int(chunk.sizes[here - 1]))
            if wrong.size:
                break
        return count, end

    def _end(self, one: MappedFile, number: int, offset: int, size: int) -> int:
        appended = one.appended
        known = appended.end_of(number) if appended is not None else None
        if known is not None:
            return known
        if appended is not None and appended.low <= number < appended.high and self._last is not None:
            offset, size = self._last
        return wrap64(offset + size)

    def correct_min(self, floor: int) -> bool:
        """`#correctMinOffset` of 4.x: the first unit of the first file that points at or behind `floor`.

        Whether one was found: extension files below its own extension unit are deleted then.
        """
        if not self.files.files:
            return False
        first = self.files.files[0]
        for chunk in chunks(first, self._mode, first.wrote // BYTES, self._ordinary):
            hits = np.flatnonzero(chunk.offsets >= floor)
            if hits.size:
                self.min_logical = first.base + (chunk.first + int(hits[0])) * BYTES
                return True
        return False

    def search_min(self, floor: int) -> bool:
        """`#correctMinOffset` since 5.0: the last unit, then a binary search in the first file.

        Returns the same as `correct_min`; a minimum that is right already is not looked for. Raises
        `NegativePositionError` where the broker's load fails.
        """
        if self.min_logical >= self.files.max_offset or not self.files.files:
            return False
        last = self.files.files[-1]
        if last.wrote < BYTES:
            raise NegativePositionError
        if self._offset_at(last, last.wrote // BYTES - 1) < floor:
            self.min_logical = last.base + last.wrote
            return False
        first = self.files.files[0]
        start = self.min_logical - first.base
        intact = start >= 0
        start = max(start, 0)
        if start >= first.wrote or (intact and self._offset_at(first, start // BYTES) >= floor):
            return False
        found = self._first_at_or_behind(first, start // BYTES, floor)
        if found is not None:
            self.min_logical = first.base + start + found * BYTES
        return found is not None

    def _first_at_or_behind(self, one: MappedFile, first: int, floor: int) -> int | None:
        """Units from `first` of a file to the one at or above `floor` that the search of 5.x settles on.

        None when it finds none. It assumes rising offsets, so that fillers and disorder can lead it elsewhere
        than to the very first.
        """
        low, high = 0, one.wrote // BYTES - first - 1
        while high - low > 1:
            middle = (low + high) // 2
            value = self._offset_at(one, first + middle)
            if value == floor:
                low = high = middle
            elif value > floor:
                high = middle
            else:
                low = middle
        places = range(low, high + 1)
        return next((place for place in places if self._offset_at(one, first + place) >= floor), None)

    def _offset_at(self, one: MappedFile, number: int) -> int:
        return int(next(chunks(one, self._mode, number + 1, self._ordinary, number)).offsets[0])

    def first_code(self) -> int | None:
        """The tags code of the first entry that counts; None where it lies in no file of the disk."""
        one = next((one for one in self.files.files if one.base + one.wrote > self.min_logical), None)
        if one is None or one.file is None or self.min_logical < one.base:
            return None
        with one.file.open(self._mode) as source:
            raw = source.window(self.min_logical - one.base, BYTES)
        return int(raw.view(UNIT)["tags_code"][0]) if len(raw) == BYTES else None

    def append(self, run: QueueRecords) -> None:
        """`#putMessagePositionInfo` for each record.

        Where ends and slots only rise, one comparison with the queue decides for all records of a stretch.
        """
        ends = run.offsets + run.sizes
        falls = ~((np.diff(ends) > 0) & (np.diff(run.slots) > 0))
        borders = [0, *(np.flatnonzero(falls) + 1).tolist(), len(run)]
        for start, end in pairwise(borders):
            self._append_rising(run[start:end])

    def _append_rising(self, run: QueueRecords) -> None:
        at = 0
        while at < len(run):
            slot = int(run.slots[at])
            if self.files.files and slot > 0 and int(run.slots[-1]) < _LARGEST_SLOT:
                self._append_many(run[at:])
                return
            self._append_one(run, at)
            at += 1

    def _append_many(self, run: QueueRecords) -> None:
        ends = run.offsets + run.sizes
        known = int(np.searchsorted(ends, self.max_physical, side="right"))
        if known == len(run):
            return
        # a full last file is followed by a new one before the slot is looked at, even if nothing is written
        self.files.last_for(0)
        taken = int(np.searchsorted(run.slots[known:], self._next_slot(), side="left"))
        self.doubled += taken
        known += taken
        if known < len(run):
            self._extend(run[known:])

    def _next_slot(self) -> int:
        """The slot that is written next; a roll to a new file does not change it."""
        return div(self.files.max_offset, BYTES)

    def _append_one(self, run: QueueRecords, at: int) -> None:
        offset, size, slot = int(run.offsets[at]), int(run.sizes[at]), int(run.slots[at])
        if wrap64(offset + size) <= self.max_physical:
            return
        wanted = wrap64(slot * BYTES)
        file = self.files.last_for(wanted)
        if file.first_in_queue and slot != 0 and file.wrote == 0:
            self.min_logical = wanted
            self._pre_blank(file, rem(wanted, self.files.size))
        if slot != 0 and wanted < file.base + file.wrote:
            self.doubled += 1
            return
        self._extend(run[at : at + 1])

    def _pre_blank(self, file: MappedFile, until: int) -> None:
        """`#fillPreBlank`: units that point to offset 0 and have the largest size."""
        count = max(until, 0) // BYTES
        self.blanked = count
        if count:
            numbers = np.arange(count, dtype=np.int64)
            zeros = np.zeros(count, np.int64)
            appended = _appended(file)
            appended.add(0, count)
            appended.keep(numbers, zeros, zeros + PRE_BLANK_SIZE)
            if self.files.disk is not None:
                self.files.disk.write(file.path, self.files.size, 0, PRE_BLANK * count)
            file.wrote = count * BYTES

    def _extend(self, run: QueueRecords) -> None:
        """Writes units one behind the other, into new files where one is full."""
        slots = self._next_slot() + np.arange(len(run), dtype=np.int64)
        self.misplaced += int((slots != run.slots).sum())
        self.appended += len(run)
        self.astray += int((~run.ordinary).sum())
        kept = ~run.ordinary | (run.offsets < self._ordinary) | self._keep_units
        if kept[0]:
            self._keep_last()
        kept[:-1] |= kept[1:]
        units = np.empty(0, UNIT) if self.files.disk is None else self._encoded(run)
        done = 0
        while done < len(run):
            file = self.files.last_for(0)
            number = file.wrote // BYTES
            count = min(len(run) - done, self._whole - number)
            part = slice(done, done + count)
            appended = _appended(file)
            appended.add(number, count)
            which = np.flatnonzero(kept[part])
            appended.keep(number + which, run.offsets[part][which], run.sizes[part][which])
            if self.files.disk is not None:
                self.files.disk.write(
                    file.path,
                    self.files.size,
                    number * BYTES,
                    units[part].tobytes(),
                    int(run.times[part.stop - 1]),
                )
            file.wrote += count * BYTES
            done += count
        self._last = int(run.offsets[-1]), int(run.sizes[-1])
        self.max_physical = wrap64(self._last[0] + self._last[1])

    def _encoded(self, run: QueueRecords) -> npt.NDArray[Any]:
        units = np.empty(len(run), UNIT)
        units["physical_offset"], units["size"] = run.offsets, run.sizes
        codes = run.codes if self.extension is None else self.extension.put(run.codes, run.times)
        units["tags_code"] = codes
        return units

    def _keep_last(self) -> None:
        """The unit in front of one that may be cut off is asked for its end."""
        if self._last is None or not self.files.files:
            return
        file = next((one for one in reversed(self.files.files) if one.wrote), None)
        if file is None or file.appended is None:
            return
        number = file.wrote // BYTES - 1
        if file.appended.low <= number < file.appended.high:
            file.appended.keep(*(np.array([value], np.int64) for value in (number, *self._last)))


def _appended(file: MappedFile) -> AppendedUnits:
    if file.appended is None:
        number = file.wrote // BYTES
        file.appended = AppendedUnits(number, number)
    return file.appended
